import type { EvidenceCard, LessonCard } from "../../schemas/assistant.ts";
import type { JobData } from "../../schemas/jobs.ts";
import { evidenceCards, type Unit } from "../engines/answers/answers.ts";
import { readRun } from "../engines/relay/relay.ts";
import type { JobAttempt, ModelTool, Runtime } from "../platform/runtime.ts";
import { withSignal } from "../platform/signals.ts";
import { keys } from "../store/keys.ts";
import { ctaCards, followUps } from "./cards.ts";
import { type Draft, draftAnswer, leadTool, lessonTool } from "./draft.ts";
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
  { runId }: JobData<"assistant.answer">,
  attempt: Pick<JobAttempt, "number" | "last" | "signal">,
): Promise<void> {
  const writer = await runtime.relay.claim(runId, attempt.number);
  if (typeof writer === "string") return;
  let isEmpty = true;
  try {
    const run = await readRun(runtime.redis, runId);
    if (run === undefined) return await writer.end("failed");
    await withSignal([writer.signal, attempt.signal], async (signal) => {
      for await (const chunk of answerChunks(runtime, JSON.parse(run.request!), { runId, signal })) {
        isEmpty = false;
        writer.write(JSON.stringify(chunk));
      }
    });
    await writer.end("done", JSON.stringify({ type: "finish" }));
  } catch (error) {
    if (writer.signal.aborted) return;
    // Nothing has been sent: another attempt may succeed unnoticed.
    if (isEmpty && !attempt.last && !attempt.signal.aborted) {
      writer.release();
      throw error;
    }
    await writer.end("failed", JSON.stringify(interrupted));
    runtime.log.warn({ modelId: runtime.model.id }, "assistant.answer.failed");
  }
}

/** The chunks of one answer, in the documented order, but for `finish`, which is stored with the run's end. */
async function* answerChunks(
  runtime: Runtime,
  request: AnswerRequest,
  { runId, signal }: { runId: string; signal: AbortSignal },
): AsyncGenerator<Chunk> {
  const started = performance.now();
  const [found] = await Promise.all([
    publicLibrary(runtime, request),
    runtime.redis.zrem(keys.waitingAnswers(request.handle), runId),
  ]);
  const tools = await toolsFor(runtime, request, found);
  const draft = await draftAnswer(runtime, request, { found, tools, signal });
  const isTalk = draft.kind === "talk" || draft.kind === "declined";
  const { id: modelId } = runtime.model;
  const { degraded } = draft;
  const retrievalMode = isTalk ? "none" : found.mode;
  const messageMetadata = { chatId: request.chatId, modelId, retrievalMode, degraded };
  yield { type: "start", messageId: runId, messageMetadata };
  yield { type: "start-step" };
  const text = yield* textChunks(draft, signal);
  // Known only now, since a model's sentences are checked one by one.
  const cards = evidenceCards(draft.units);
  yield* evidenceChunks(cards);
  const links = draft.kind === "declined" ? [] : (found.page?.links ?? []);
  yield { type: "data-cta", data: { cards: ctaCards(links, found.question) } };
  const questions = nextQuestions(request, found, draft);
  yield { type: "data-follow-ups", data: { questions } };
  if (!isTalk) yield* toolChunks(runtime, request, { runId, found, draft, text, cards, questions, signal });
  yield { type: "finish-step" };
  const { handle, pageSlug } = request;
  const tookMs = Math.round(performance.now() - started);
  const figures = { modelId, retrievalMode, degraded, snippetCount: cards.length, tookMs };
  runtime.log.info({ handle, pageSlug, ...figures }, "assistant.answered");
}

/** The tools for a model with tool support: the form once per chat, lesson cards if the best passages have some. */
async function toolsFor({ model }: Runtime, request: AnswerRequest, found: PublicLibrary): Promise<ModelTool[]> {
  if (model.writer === undefined || !(await model.writer.callsTools())) return [];
  return [...(request.sectionShown ? [] : [leadTool]), ...(nearCards(found).length > 0 ? [lessonTool] : [])];
}

/** Returns the whole text at the end. */
async function* textChunks({ text: deltas }: Draft, signal: AbortSignal): AsyncGenerator<Chunk, string> {
  let text = "";
  yield { type: "text-start", id: "text" };
  for await (const delta of deltas) {
    signal.throwIfAborted();
    if (delta === "") continue;
    text += delta;
    yield { type: "text-delta", id: "text", delta };
  }
  yield { type: "text-end", id: "text" };
  return text;
}

function* evidenceChunks(cards: EvidenceCard[]): Generator<Chunk> {
  for (const [at, { sourceType, title, sourceUrl }] of cards.entries()) {
    const sourceId = `source-${at + 1}`;
    yield sourceType === "page" && sourceUrl
      ? { type: "source-url", sourceId, url: sourceUrl, title }
      : { type: "source-document", sourceId, mediaType: "text/plain", title };
  }
  yield { type: "data-evidence", data: { cards } };
}

function nextQuestions(request: AnswerRequest, found: PublicLibrary, draft: Draft): string[] {
  const headingOf = (blocks: readonly { headings: readonly string[] }[]) => blocks[0]?.headings.at(-1) ?? [];
  const here = found.library.sections.filter(({ source }) => source.id === request.pageSlug);
  const near = found.ranked.slice(0, NEAR_SECTIONS);
  return followUps({
    question: found.question,
    suggested: found.page?.suggestedQuestions ?? [],
    headings: [...here, ...near].flatMap(({ blocks }) => headingOf(blocks)),
    answered: draft.units.flatMap(({ block }) => headingOf([block])),
    asked: request.history.filter(({ role }) => role === "user").map(({ text }) => text),
  });
}

interface AnswerParts {
  runId: string;
  found: PublicLibrary;
  draft: Draft;
  text: string;
  cards: EvidenceCard[];
  questions: string[];
  signal: AbortSignal;
}

/** The tools that a model called; without tool support, the lesson cards of the evidence and the form that the question asks for. */
async function* toolChunks(runtime: Runtime, request: AnswerRequest, parts: AnswerParts): AsyncGenerator<Chunk> {
  const { runId, found, draft, text, cards, questions, signal } = parts;
  const used = cardsIn(found, draft.units);
  const lessons = draft.calls?.has(lessonTool.name) && used.length === 0 ? nearCards(found) : used;
  const wantsLessons = draft.calls?.has(lessonTool.name) ?? true;
  if (wantsLessons && lessons.length > 0) yield* toolCall(lessonTool.name, { cards: lessons });
  const { wish, language } = found.question;
  if (!(draft.calls?.has(leadTool.name) ?? wish !== undefined)) return;
  const evidenceTitles = cards.map(({ title }) => title);
  const material = { wish, language, answer: text, evidenceTitles, retrievalMode: found.mode, followUps: questions };
  const section = await leadSectionFor(runtime, request, { ...material, runId, signal });
  if (section) yield* toolCall(leadTool.name, section);
}

/** The lesson cards of documents: the only one, or those whose own words are among the units. */
function cardsIn({ cards }: PublicLibrary, units: readonly Pick<Unit, "section" | "block">[]): LessonCard[] {
  const found = units.flatMap(({ section, block }) =>
    (cards.get(section.source.id) ?? []).filter(
      ({ title }, _at, { length }) => length === 1 || title === block.headings.at(-1),
    ),
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
function toolCall(toolName: string, output: object): Chunk[] {
  const call = { toolCallId: `call-${toolName}`, providerExecuted: true };
  return [
    { type: "tool-input-available", ...call, toolName, input: {} },
    { type: "tool-output-available", ...call, output },
  ];
}
