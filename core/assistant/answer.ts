import type { LessonCard } from "../../schemas/assistant.ts";
import type { RunPublisher, Runtime } from "../platform/runtime.ts";
import { ctaCards, evidenceCards, followUps } from "./cards.ts";
import { type Draft, drafted } from "./draft.ts";
import { languageOf } from "./language.ts";
import { wantsContact } from "./lead-section.ts";
import { leadSectionFor } from "./lead-sections.ts";
import { lessonCards } from "./lesson-cards.ts";
import type { Asking } from "./messages.ts";
import type { Turn } from "./question.ts";
import { type Retrieval, retrieve } from "./retrieval.ts";
import { readRun } from "../engines/relay/runs.ts";

/** One chunk of the UI message stream, in the portable part of it that every client reads (contract 5). */
type Chunk = { type: string } & Record<string, unknown>;

/** Answers a run: retrieval, text, tools; each chunk goes onto the run's stream as it is made. */
export async function answer(
  runtime: Runtime,
  { runId }: { runId: string },
  attempt: { number: number; last: boolean; signal: AbortSignal },
): Promise<void> {
  const writer = await runtime.relay.claim(runId, attempt.number);
  if (typeof writer === "string") return;
  const output = new Output(writer);
  const signal = AbortSignal.any([writer.signal, attempt.signal]);
  try {
    const run = await readRun(runtime.redis, runId);
    if (run === undefined) return await writer.end("failed");
    await compose(runtime, asking(run), { output, signal, runId });
    await writer.end("done");
  } catch (error) {
    if (writer.signal.aborted) return;
    // Nothing has been sent: another attempt may do better, and the reader never knows.
    if (output.empty && !attempt.last && !attempt.signal.aborted) {
      writer.release();
      throw error;
    }
    output.put({ type: "error", errorText: "The answer was interrupted. Please try again." });
    await writer.end("failed");
    runtime.log.warn({ modelId: runtime.model.id }, "assistant.answer.failed");
  }
}

function asking(run: Record<string, string>): Asking {
  const { handle = "", pageSlug = "", chatId = "", question = "", history = "[]" } = run;
  return {
    handle,
    pageSlug,
    chatId,
    question,
    history: JSON.parse(history) as Turn[],
    sectionShown: run.sectionShown === "1",
  };
}

/** The chunks of one answer, in the contract's order. */
async function compose(
  runtime: Runtime,
  asked: Asking,
  to: { output: Output; signal: AbortSignal; runId: string },
): Promise<void> {
  const started = performance.now();
  const { output, signal } = to;
  const found = await retrieve(runtime, { handle: asked.handle, pageSlug: asked.pageSlug, text: retrievalText(asked) });
  const draft = await drafted(runtime, asked, { found, signal });
  const metadata = {
    chatId: asked.chatId,
    modelId: runtime.model.id,
    retrievalMode: draft.declined ? "none" : found.mode,
    degraded: draft.degraded,
  };
  output.put({ type: "start", messageId: to.runId, messageMetadata: metadata });
  output.put({ type: "start-step" });
  const cards = evidenceCards(draft.used, asked.question);
  putSources(output, draft, cards.length);
  output.put({ type: "data-evidence", data: { cards } });
  const text = await putText(output, draft, signal);
  const next = putNext(output, asked, { found, draft });
  if (!draft.declined)
    await putTools(runtime, asked, { output, found, text, cards, next, mode: metadata.retrievalMode, signal });
  output.put({ type: "finish-step" });
  output.put({ type: "finish" });
  const tookMs = Math.round(performance.now() - started);
  const { modelId, retrievalMode, degraded } = metadata;
  runtime.log.info(
    {
      handle: asked.handle,
      pageSlug: asked.pageSlug,
      modelId,
      retrievalMode,
      degraded,
      snippetCount: cards.length,
      tookMs,
    },
    "assistant.answered",
  );
}

/** A short follow-up is looked up together with what the visitor asked before. */
function retrievalText({ question, history }: Asking): string {
  const before = history.findLast(({ role }) => role === "user")?.text ?? "";
  return question.length < 40 && before !== "" ? `${question} ${before.slice(0, 200)}` : question;
}

function putSources(output: Output, draft: Draft, count: number): void {
  const seen = new Set<string>();
  for (const { kind, title, url } of draft.used.slice(0, count)) {
    if (seen.has(`${kind} ${title}`)) continue;
    seen.add(`${kind} ${title}`);
    const sourceId = `source-${seen.size}`;
    output.put(
      kind === "page" && url
        ? { type: "source-url", sourceId, url, title }
        : { type: "source-document", sourceId, mediaType: "text/plain", title },
    );
  }
}

async function putText(output: Output, draft: Draft, signal: AbortSignal): Promise<string> {
  let text = "";
  output.put({ type: "text-start", id: "text" });
  for await (const delta of draft.text) {
    signal.throwIfAborted();
    if (delta === "") continue;
    text += delta;
    output.put({ type: "text-delta", id: "text", delta });
  }
  output.put({ type: "text-end", id: "text" });
  return text;
}

function putNext(output: Output, asked: Asking, { found, draft }: { found: Retrieval; draft: Draft }): string[] {
  const links = draft.declined ? [] : (found.page?.links ?? []);
  output.put({ type: "data-cta", data: { cards: ctaCards(links, asked.question, wantsContact(asked.question)) } });
  const questions = followUps({
    question: asked.question,
    language: languageOf(asked.question),
    suggested: found.page?.suggestedQuestions ?? [],
    headings: [...(found.page?.sections ?? []), ...found.evidence].map(({ heading }) => heading),
    used: draft.used,
    asked: asked.history.filter(({ role }) => role === "user").map(({ text }) => text),
  });
  output.put({ type: "data-follow-ups", data: { questions } });
  return questions;
}

interface Shown {
  output: Output;
  found: Retrieval;
  text: string;
  cards: { title: string }[];
  next: string[];
  mode: string;
  signal: AbortSignal;
}

async function putTools(runtime: Runtime, asked: Asking, shown: Shown): Promise<void> {
  const lessons: LessonCard[] = lessonCards(shown.found.passages);
  if (lessons.length > 0) putTool(shown.output, "renderProductivityLessonCards", { cards: lessons });
  const evidenceTitles = [...new Set(shown.cards.map(({ title }) => title))];
  const section = await leadSectionFor(runtime, asked, {
    text: shown.text,
    followUps: shown.next,
    evidenceTitles,
    mode: shown.mode,
    signal: shown.signal,
  });
  if (section) putTool(shown.output, "renderLeadQualificationSection", section);
}

function putTool(output: Output, toolName: string, result: object): void {
  const toolCallId = `call-${toolName}`;
  output.put({ type: "tool-input-available", toolCallId, toolName, input: {} });
  output.put({ type: "tool-output-available", toolCallId, output: result });
}

/** The run's writer as a place for chunks, which remembers whether there were any. */
class Output {
  readonly #writer: RunPublisher;
  empty = true;

  constructor(writer: RunPublisher) {
    this.#writer = writer;
  }

  put(chunk: Chunk): void {
    this.empty = false;
    this.#writer.write(JSON.stringify(chunk));
  }
}
