import { wordsOf } from "../../schemas/languages.ts";
import {
  Grounding,
  piecesOf,
  type Question,
  type Reply,
  replyTo,
  smallTalk,
  type Unit,
} from "../engines/answers/answers.ts";
import { waitAtMost } from "../platform/clock.ts";
import type { Delta, ModelTool, Runtime, Writer } from "../platform/runtime.ts";
import { withSignal } from "../platform/signals.ts";
import type { AnswerRequest } from "./messages.ts";
import { chatPrompt } from "./prompt.ts";
import type { PublicLibrary } from "./public-library.ts";

/** An answer in preparation: its text streams, and its evidence is complete once the text has ended. */
export interface Draft {
  kind: Reply["kind"] | "written";
  text: AsyncIterable<string> | Iterable<string>;
  degraded: boolean;
  /** The evidence of the text; complete once the text has ended. */
  units: readonly Unit[];
  /** Names of the tools that a model called; absent if rules decide instead. */
  calls?: ReadonlySet<string>;
}

/** Ms within which a model must send a first delta, and a first presentable text; otherwise the extractive answer is sent. */
const FIRST_DELTA_MS = 10_000;
const FIRST_TEXT_MS = 15_000;
/** Ms without text after which a model counts as finished, also if it goes on thinking. */
const SILENCE_MS = 20_000;
/** Ms after which an answer in one piece ends with the text so far: its reader waits for 20 s. */
const WHOLE_MS = 16_000;
/** Most characters of a model: a full answer, and the excess that it is allowed. */
const MAX_LENGTH = 2800 + 2000;
/** Ms for which a model may load, even after its reader has left. */
const LOAD_TIMEOUT_MS = 300_000;
/** Ms of silence after which a model counts as loading when its reader leaves. */
const LOADING_AFTER_MS = 2000;

type DraftContext = { found: PublicLibrary; tools: readonly ModelTool[]; signal: AbortSignal };
type ModelContext = DraftContext & { runtime: Runtime; request: AnswerRequest; reply: Reply };

/** The model's answer, or the extractive one if there is no model or it fails to start; then degraded. */
export async function draftAnswer(runtime: Runtime, request: AnswerRequest, context: DraftContext): Promise<Draft> {
  const { found } = context;
  const { question } = found;
  const talk = smallTalk(question);
  if (talk) return { ...talk, text: piecesOf(talk.markdown), degraded: false };
  const reply = replyTo(found.library, question, { ...found.context, formless: request.isWhole });
  const plain = quoted(reply, found.degraded, question);
  if (runtime.model.writer === undefined || found.library.sections.length === 0) return plain;
  const draft = await new ModelPart(runtime.model.writer, { ...context, runtime, request, reply }).begin();
  if (draft) return draft;
  runtime.log.warn({ modelId: runtime.model.id }, "assistant.answer.failed");
  return { ...plain, degraded: true };
}

/** If retrieval failed and nothing was found, the answer says so instead of "not found". */
function quoted(reply: Reply, degraded: boolean, { language }: Question): Draft {
  const isLost = degraded && reply.units.length === 0;
  const markdown = isLost ? wordsOf(language).answers.phrases.fallback : reply.markdown;
  return { kind: reply.kind, text: piecesOf(markdown), degraded, units: reply.units };
}

/** A model's part of one answer: it starts in time, continues without silence, and ends. */
class ModelPart {
  readonly #context: ModelContext;
  readonly #deltas: AsyncIterator<Delta>;
  readonly #filter: Grounding;
  readonly #end = new AbortController();
  readonly #startedAt = performance.now();
  readonly #calls = new Set<string>();
  #hasBegun = false;
  #textAt = 0;
  #length = 0;
  #isCut = false;
  #pending: Promise<IteratorResult<Delta>> | undefined;

  constructor(writer: Writer, context: ModelContext) {
    const { found, request, tools, signal } = context;
    const { question } = found;
    const { messages, passages, marks } = chatPrompt(found, request.history);
    this.#context = context;
    this.#filter = new Grounding(found.library, passages, {
      language: question.language,
      never: marks,
      links: found.page?.links ?? [],
    });
    this.#deltas = writer.write(messages, tools, this.#end.signal)[Symbol.asyncIterator]();
    signal.addEventListener("abort", () => this.#leave(), { once: true });
  }

  /**
   * The draft once there is text to show, or all of it for an answer in one piece; undefined if the model fails before, is late, or sends
   * nothing.
   */
  async begin(): Promise<Draft | undefined> {
    const { found, tools, request, signal } = this.#context;
    try {
      const first = await this.#firstText();
      if (first === "late") {
        this.#goOnLoading();
        return undefined;
      }
      const units = this.#filter.used;
      const calls = tools.length > 0 ? { calls: this.#calls } : {};
      if (first === "") {
        this.#end.abort();
        return this.#unheard(calls);
      }
      const text = request.isWhole ? [await joined(this.#rest(first))] : this.#rest(first);
      return { kind: "written", text, degraded: found.degraded, units, ...calls };
    } catch {
      // The model is down or broke off: the extractive answer replaces it and is marked as degraded.
      signal.throwIfAborted();
      this.#end.abort();
      return undefined;
    }
  }

  /** No sentence of the model passed the check, or it only called a tool: quote instead. */
  #unheard(calls: { calls?: ReadonlySet<string> }): Draft | undefined {
    const { reply, found, request } = this.#context;
    const { question } = found;
    if (this.#filter.dropped === 0 && this.#calls.size === 0) return undefined;
    // A reply without an answer to a wish points to the form, if one can follow, whether the model called it or not.
    if (reply.kind === "none" && question.wish && !request.isWhole) this.#calls.add(leadTool.name);
    const isOffer = this.#calls.has(leadTool.name) && reply.kind !== "answer";
    const { contact } = wordsOf(question.language).answers.phrases;
    const said = isOffer ? { ...reply, kind: "none" as const, markdown: contact, units: [] } : reply;
    return { ...quoted(said, found.degraded, question), ...calls };
  }

  /** The first text that passes the check; `""` if the model ends, or says too much, without any. */
  async #firstText(): Promise<string> {
    for (;;) {
      const deadline = this.#hasBegun ? FIRST_TEXT_MS : FIRST_DELTA_MS;
      const step = await this.#next(deadline - (performance.now() - this.#startedAt));
      if (step === undefined) return "late";
      const text = step.done ? this.#lastText() : this.#take(step.value);
      if (text.trim() !== "" || step.done || this.#isOver) return text;
    }
  }

  async *#rest(first: string): AsyncGenerator<string> {
    yield first;
    for (;;) {
      const step = await this.#next(this.#textAt + SILENCE_MS - performance.now());
      if (step === undefined || this.#isOver) return this.#end.abort();
      if (step.done) return yield this.#lastText();
      yield this.#take(step.value);
    }
  }

  /** The last sentence, unless the model was stopped within it. */
  #lastText(): string {
    return this.#isCut ? "" : this.#filter.end();
  }

  #take({ text = "", call, isCut = false }: Delta): string {
    this.#isCut ||= isCut;
    if (this.#context.tools.some(({ name }) => name === call)) this.#calls.add(call!);
    if (text !== "") this.#textAt = performance.now();
    // A server may send any text at once, and the time to check it grows faster than its length.
    const checked = text.slice(0, Math.max(0, MAX_LENGTH - this.#length));
    this.#length += text.length;
    return this.#filter.push(checked);
  }

  get #isOver(): boolean {
    return this.#length > MAX_LENGTH;
  }

  /** The next delta; undefined if none arrives in time. A late delta is not lost. */
  async #next(withinMs: number): Promise<IteratorResult<Delta> | undefined> {
    this.#context.signal.throwIfAborted();
    const elapsed = performance.now() - this.#startedAt;
    const timeoutMs = this.#context.request.isWhole ? Math.min(withinMs, WHOLE_MS - elapsed) : withinMs;
    this.#pending ??= this.#deltas.next();
    // A failure after the timeout no longer matters.
    this.#pending.catch(() => undefined);
    const step = await waitAtMost(this.#pending, timeoutMs);
    if (step === undefined) return undefined;
    this.#pending = undefined;
    this.#hasBegun = true;
    return step;
  }

  /** The reader has left: a generating model stops at once; a loading one continues, or every visitor would restart its load. */
  #leave(): void {
    const isLoading = !this.#hasBegun && performance.now() - this.#startedAt >= LOADING_AFTER_MS;
    if (isLoading) this.#goOnLoading();
    else this.#end.abort();
  }

  /** Lets the model load until its first delta, whose content is discarded. */
  #goOnLoading(): void {
    const stop = () => this.#end.abort();
    const limits = [this.#context.runtime.shutdownController.signal, AbortSignal.timeout(LOAD_TIMEOUT_MS)];
    const loading = withSignal(limits, async (signal) => {
      signal.addEventListener("abort", stop, { once: true });
      await this.#pending;
    });
    // How it failed no longer matters.
    void loading.catch(() => undefined).finally(stop);
  }
}

async function joined(deltas: AsyncIterable<string>): Promise<string> {
  let text = "";
  for await (const delta of deltas) text += delta;
  return text;
}

/** Offered to models with tool support, which decide themselves. */
export const leadTool: ModelTool = {
  name: "renderLeadQualificationSection",
  description:
    "Shows the visitor a short contact form. Call it when the visitor asks for contact, a demo, a quote, a price for their own case, or a purchase or booking; never for other questions.",
};

export const lessonTool: ModelTool = {
  name: "renderProductivityLessonCards",
  description:
    "Shows the visitor the lesson card of the passages. Call it when the lesson answers what the visitor asks.",
};
