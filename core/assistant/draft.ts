import { wordsOf } from "../../schemas/languages.ts";
import {
  type Grounding,
  groundIn,
  piecesOf,
  type Question,
  type Reply,
  replyTo,
  smallTalk,
  type Unit,
} from "../engines/answers/answers.ts";
import type { Delta, Runtime, Tool, Writer } from "../platform/runtime.ts";
import type { Asking } from "./messages.ts";
import { chatPrompt } from "./prompt.ts";
import type { PublicLibrary } from "./public-library.ts";

/** An answer about to be sent: its text comes, and what it rests on is known when the text is over. */
export interface Draft {
  kind: Reply["kind"] | "written";
  text: AsyncIterable<string> | Iterable<string>;
  degraded: boolean;
  /** What the text rests on; complete when the text is. */
  units: readonly Unit[];
  /** Names of the tools that a model has called; absent where rules decide instead. */
  calls?: ReadonlySet<string>;
}

/** Ms in which a model must have sent something, and something that can be shown, before the extractive answer goes out. */
const firstDeltaMs = 10_000;
const firstTextMs = 15_000;
/** Ms without a delta after which a model has nothing more to say. */
const silenceMs = 20_000;
/** Ms after which an answer that is given in one piece ends with what there is: its reader waits for 20 s. */
const wholeMs = 16_000;
/** Characters of a full answer, and how far over them a model may go. */
const answerLength = 2800;
const overLength = 2000;
/** A model that loads is given so long, though nobody waits for it any more. */
const loadTimeoutMs = 300_000;
/** A model that hasn't sent anything for so long when its reader leaves is loading. */
const LOADING_AFTER_MS = 2000;

type DraftContext = { found: PublicLibrary; tools: readonly Tool[]; signal: AbortSignal };

/** The answer by the model, or quoted where there is none or where it fails to begin; then degraded. */
export async function drafted(runtime: Runtime, asked: Asking, made: DraftContext): Promise<Draft> {
  const { found } = made;
  const { question } = found;
  const talk = smallTalk(question);
  if (talk) return { ...talk, text: piecesOf(talk.markdown), degraded: false };
  const reply = replyTo(found.library, question, found.place);
  const plain = quoted(reply, found.degraded, question);
  if (runtime.model.writer === undefined || found.library.sections.length === 0) return plain;
  const part = new ModelPart(runtime.model.writer, { ...made, runtime, asked, reply });
  const draft = await part.begin();
  return (draft && asked.isWhole ? await part.whole(draft) : draft) ?? { ...plain, degraded: true };
}

/** Where retrieval failed and nothing was found, that is said instead of "not found". */
function quoted(reply: Reply, degraded: boolean, { language }: Question): Draft {
  const isLost = degraded && reply.units.length === 0;
  const markdown = isLost ? wordsOf(language).answers.phrases.fallback : reply.markdown;
  return { kind: reply.kind, text: piecesOf(markdown), degraded, units: reply.units };
}

/** A model's part of one answer: it begins in time, goes on without silence, and ends. */
class ModelPart {
  readonly #made: DraftContext & { runtime: Runtime; asked: Asking; reply: Reply };
  readonly #deltas: AsyncIterator<Delta>;
  readonly #filter: Grounding;
  readonly #end = new AbortController();
  readonly #startedAt = performance.now();
  readonly #calls = new Set<string>();
  #hasBegun = false;
  #length = 0;
  #pending: Promise<IteratorResult<Delta>> | undefined;

  constructor(writer: Writer, made: DraftContext & { runtime: Runtime; asked: Asking; reply: Reply }) {
    const { found, asked, tools, signal } = made;
    const { question } = found;
    const { messages, passages, marks } = chatPrompt(found, asked.history);
    this.#made = made;
    this.#filter = groundIn(found.library, passages, {
      language: question.language,
      never: marks,
      links: found.page?.links ?? [],
    });
    this.#deltas = writer.write(messages, tools, this.#end.signal)[Symbol.asyncIterator]();
    signal.addEventListener("abort", () => this.#leave(), { once: true });
  }

  /** The draft once there is text to show; undefined where the model fails, is late, or says nothing. */
  async begin(): Promise<Draft | undefined> {
    const { found, tools } = this.#made;
    try {
      const first = await this.#firstText();
      if (first === "late") {
        this.#goOnLoading();
        return undefined;
      }
      const units = this.#filter.used;
      const calls = tools.length > 0 ? { calls: this.#calls } : {};
      if (first === "") return this.#unheard(calls);
      return { kind: "written", text: this.#rest(first), degraded: found.degraded, units, ...calls };
    } catch (error) {
      return this.#fail(error);
    }
  }

  /** The draft with all its text; undefined where the model breaks off. */
  async whole(draft: Draft): Promise<Draft | undefined> {
    try {
      let text = "";
      for await (const delta of draft.text) text += delta;
      return { ...draft, text: [text] };
    } catch (error) {
      return this.#fail(error);
    }
  }

  /** A model that is down or breaks off is answered for by the text itself; the answer says that it is degraded. */
  #fail(error: unknown): undefined {
    this.#made.signal.throwIfAborted();
    this.#end.abort();
    if (!(error instanceof Error)) throw error;
  }

  /** Nothing of what it said holds, or it only called a tool: the quote says what there is. */
  #unheard(calls: { calls?: ReadonlySet<string> }): Draft | undefined {
    const { reply, found } = this.#made;
    const { question } = found;
    if (this.#filter.dropped === 0 && this.#calls.size === 0) return undefined;
    const isOffer = this.#calls.has(leadTool.name) && reply.kind !== "answer";
    const { contact } = wordsOf(question.language).answers.phrases;
    const said = isOffer ? { ...reply, kind: "none" as const, markdown: contact, units: [] } : reply;
    return { ...quoted(said, found.degraded, question), ...calls };
  }

  /** The first text that holds, `""` where the model ends without any. */
  async #firstText(): Promise<string> {
    for (;;) {
      const deadline = this.#hasBegun ? firstTextMs : firstDeltaMs;
      const step = await this.#next(deadline - (performance.now() - this.#startedAt));
      if (step === undefined) return "late";
      const text = step.done ? this.#filter.end() : this.#take(step.value);
      if (text.trim() !== "" || step.done) return text;
    }
  }

  async *#rest(first: string): AsyncGenerator<string> {
    yield first;
    for (;;) {
      const step = await this.#next(silenceMs);
      const isOver = step === undefined || this.#length > answerLength + overLength;
      if (isOver) return this.#end.abort();
      if (step.done) return yield this.#filter.end();
      yield this.#take(step.value);
    }
  }

  #take({ text = "", call }: Delta): string {
    if (this.#made.tools.some(({ name }) => name === call)) this.#calls.add(call!);
    this.#length += text.length;
    return this.#filter.push(text);
  }

  /** The next delta; undefined where none comes in time. A delta that is late is not lost. */
  async #next(withinMs: number): Promise<IteratorResult<Delta> | undefined> {
    this.#made.signal.throwIfAborted();
    const elapsed = performance.now() - this.#startedAt;
    const timeoutMs = this.#made.asked.isWhole ? Math.min(withinMs, wholeMs - elapsed) : withinMs;
    this.#pending ??= this.#deltas.next();
    // What fails after its time is nobody's concern any more.
    this.#pending.catch(() => undefined);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), Math.max(0, timeoutMs));
    });
    const step = await Promise.race([this.#pending, late]).finally(() => clearTimeout(timer));
    if (step === undefined) return undefined;
    this.#pending = undefined;
    this.#hasBegun = true;
    return step;
  }

  /** The reader has left: a model that writes stops at once, one that loads goes on, or every visitor would begin its load again. */
  #leave(): void {
    const isLoading = !this.#hasBegun && performance.now() - this.#startedAt >= LOADING_AFTER_MS;
    if (isLoading) this.#goOnLoading();
    else this.#end.abort();
  }

  /** Lets the model load until its first word; what it would say is not wanted any more. */
  #goOnLoading(): void {
    const { shutdownController } = this.#made.runtime;
    const stop = () => this.#end.abort();
    const timer = setTimeout(stop, loadTimeoutMs);
    shutdownController.signal.addEventListener("abort", stop, { once: true });
    void (this.#pending ?? Promise.resolve())
      .catch(() => undefined)
      .finally(() => {
        clearTimeout(timer);
        shutdownController.signal.removeEventListener("abort", stop);
        stop();
      });
  }
}

/** Offered to models that can call tools, which then decide by themselves. */
export const leadTool: Tool = {
  name: "renderLeadQualificationSection",
  description:
    "Shows the visitor a short contact form. Call it when the visitor asks for contact, a demo, a quote, a price for their own case, or a purchase or booking; never for other questions.",
};

export const lessonTool: Tool = {
  name: "renderProductivityLessonCards",
  description:
    "Shows the visitor the lesson card of the passages. Call it when the lesson answers what the visitor asks.",
};
