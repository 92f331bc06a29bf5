import type { EvidenceCard, LessonCard } from "../../schemas/assistant.ts";
import type { Unit } from "../engines/answers/answers.ts";
import { readRun } from "../engines/relay/relay.ts";
import type { ModelTool, RunPublisher, Runtime } from "../platform/runtime.ts";
import { withSignal } from "../platform/signals.ts";
import { ctaCards, evidenceCards, followUps } from "./cards.ts";
import { type Draft, drafted, leadTool, lessonTool } from "./draft.ts";
import { leadSectionFor } from "./lead-section.ts";
import { type AnswerRequest, interrupted } from "./messages.ts";
import { type PublicLibrary, publicLibrary } from "./public-library.ts";

/** One chunk of the UI message stream, limited to the parts that every client reads (docs/reference.md, "Chat stream"). */
type Chunk = { type: string } & Record<string, unknown>;

const MAX_LESSON_CARDS = 3;
/** Sections whose headings may become follow-up questions. */
const NEAR_SECTIONS = 12;

/** Answers a run: retrieval, text, tools. Each chunk is written to the run's stream as soon as it exists. */
export async function answerRun(
  runtime: Runtime,
  { runId }: { runId: string },
  attempt: { number: number; last: boolean; signal: AbortSignal },
): Promise<void> {
  const writer = await runtime.relay.claim(runId, attempt.number);
  if (typeof writer === "string") return;
  const output = new Output(writer);
  try {
    const run = await readRun(runtime.redis, runId);
    if (run === undefined) return await writer.end("failed");
    await withSignal([writer.signal, attempt.signal], (signal) =>
      compose(runtime, JSON.parse(run.request!), { output, signal, runId }),
    );
    await writer.end("done");
  } catch (error) {
    if (writer.signal.aborted) return;
    // Nothing has been sent: another attempt may succeed unnoticed.
    if (output.empty && !attempt.last && !attempt.signal.aborted) {
      writer.release();
      throw error;
    }
    output.put(interrupted);
    await writer.end("failed");
    runtime.log.warn({ modelId: runtime.model.id }, "assistant.answer.failed");
  }
}

/** The chunks of one answer, in the documented order. */
async function compose(
  runtime: Runtime,
  asked: AnswerRequest,
  to: { output: Output; signal: AbortSignal; runId: string },
): Promise<void> {
  const started = performance.now();
  const { output, signal } = to;
  const found = await publicLibrary(runtime, asked);
  const tools = await toolsFor(runtime, asked, found);
  const draft = await drafted(runtime, asked, { found, tools, signal });
  const isTalk = draft.kind === "talk" || draft.kind === "declined";
  const metadata = {
    chatId: asked.chatId,
    modelId: runtime.model.id,
    retrievalMode: isTalk ? "none" : found.mode,
    degraded: draft.degraded,
  };
  output.put({ type: "start", messageId: to.runId, messageMetadata: metadata });
  output.put({ type: "start-step" });
  const text = await putText(output, draft, signal);
  const cards = putEvidence(output, draft);
  const next = putNext(output, asked, { found, draft });
  if (!isTalk) await putTools(runtime, asked, { output, found, draft, text, cards, next, signal });
  output.put({ type: "finish-step" });
  output.put({ type: "finish" });
  const { handle, pageSlug } = asked;
  const { modelId, retrievalMode, degraded } = metadata;
  const tookMs = Math.round(performance.now() - started);
  runtime.log.info(
    { handle, pageSlug, modelId, retrievalMode, degraded, snippetCount: cards.length, tookMs },
    "assistant.answered",
  );
}

/** The tools for a model with tool support: the form once per chat, lesson cards if the best passages have some. */
async function toolsFor({ model }: Runtime, asked: AnswerRequest, found: PublicLibrary): Promise<ModelTool[]> {
  if (model.writer === undefined || !(await model.writer.callsTools())) return [];
  return [...(asked.sectionShown ? [] : [leadTool]), ...(nearCards(found).length > 0 ? [lessonTool] : [])];
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

/** The evidence of the text, known only now, since a model's sentences are checked one by one. */
function putEvidence(output: Output, { units }: Draft): EvidenceCard[] {
  const cards = evidenceCards(units);
  for (const [at, { sourceType, title, sourceUrl }] of cards.entries()) {
    const sourceId = `source-${at + 1}`;
    output.put(
      sourceType === "page" && sourceUrl
        ? { type: "source-url", sourceId, url: sourceUrl, title }
        : { type: "source-document", sourceId, mediaType: "text/plain", title },
    );
  }
  output.put({ type: "data-evidence", data: { cards } });
  return cards;
}

function putNext(
  output: Output,
  asked: AnswerRequest,
  { found, draft }: { found: PublicLibrary; draft: Draft },
): string[] {
  const { question, page, library } = found;
  const links = draft.kind === "declined" ? [] : (page?.links ?? []);
  output.put({ type: "data-cta", data: { cards: ctaCards(links, question) } });
  const headingOf = (blocks: readonly { headings: readonly string[] }[]) => blocks[0]?.headings.at(-1) ?? [];
  const here = library.sections.filter(({ source }) => source.id === asked.pageSlug);
  const near = found.ranked.slice(0, NEAR_SECTIONS);
  const questions = followUps({
    question,
    suggested: page?.suggestedQuestions ?? [],
    headings: [...here, ...near].flatMap(({ blocks }) => headingOf(blocks)),
    answered: draft.units.flatMap(({ block }) => headingOf([block])),
    asked: asked.history.filter(({ role }) => role === "user").map(({ text }) => text),
  });
  output.put({ type: "data-follow-ups", data: { questions } });
  return questions;
}

interface AnswerParts {
  output: Output;
  found: PublicLibrary;
  draft: Draft;
  text: string;
  cards: { title: string }[];
  next: string[];
  signal: AbortSignal;
}

/** The tools that a model called; without tool support, the lesson cards of the evidence and the form that the question asks for. */
async function putTools(runtime: Runtime, asked: AnswerRequest, shown: AnswerParts): Promise<void> {
  const { output, found, draft, text, next, signal } = shown;
  const used = cardsIn(found, draft.units);
  const lessons = draft.calls?.has(lessonTool.name) && used.length === 0 ? nearCards(found) : used;
  const wantsLessons = draft.calls?.has(lessonTool.name) ?? true;
  if (wantsLessons && lessons.length > 0) putTool(output, lessonTool.name, { cards: lessons });
  const { wish, language } = found.question;
  const wantsForm = draft.calls?.has(leadTool.name) ?? wish !== undefined;
  if (!wantsForm) return;
  const evidenceTitles = shown.cards.map(({ title }) => title);
  const material = { wish, language, answer: text, evidenceTitles, retrievalMode: found.mode, followUps: next };
  const section = await leadSectionFor(runtime, asked, { ...material, signal });
  if (section) putTool(output, leadTool.name, section);
}

/** Lesson cards that the units quote. */
function cardsIn({ cards }: PublicLibrary, units: readonly Pick<Unit, "section" | "block">[]): LessonCard[] {
  const found = units.flatMap(({ section, block }) =>
    (cards.get(section.source.id) ?? []).filter(({ title }) => title === block.headings.at(-1)),
  );
  return [...new Map(found.map((card) => [card.lessonId, card])).values()].slice(0, MAX_LESSON_CARDS);
}

/** Lesson cards of the sections that match the question best. */
function nearCards(found: PublicLibrary): LessonCard[] {
  const near = found.ranked.slice(0, MAX_LESSON_CARDS);
  return cardsIn(
    found,
    near.map((section) => ({ section, block: section.blocks[0]! })),
  );
}

/** The service runs its tools itself: clients that send tool results automatically must not do so for these. */
function putTool(output: Output, toolName: string, result: object): void {
  const toolCallId = `call-${toolName}`;
  output.put({ type: "tool-input-available", toolCallId, toolName, input: {}, providerExecuted: true });
  output.put({ type: "tool-output-available", toolCallId, output: result, providerExecuted: true });
}

/** Writes chunks to the run, and remembers whether there were any. */
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
