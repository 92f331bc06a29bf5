import type {
  CtaCard,
  chatRequest,
  chatStream,
  EvidenceCard,
  QuestionAnswer,
  question,
} from "../../schemas/assistant.ts";
import type { Input } from "../../schemas/schema.ts";
import { cancelRun, createRun, RunLost, runEnding } from "../engines/relay/relay.ts";
import type { PagePath } from "../pages/face.ts";
import { digestOf } from "../platform/digest.ts";
import { Fail } from "../platform/errors.ts";
import type { RunChunk, RunSubscription, Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { job } from "../store/outbox.ts";
import { addWaiting } from "../store/waiting.ts";
import { mustBeOpen } from "./gate.ts";
import { forgetLeadSection } from "./lead-section.ts";
import { type AnswerRequest, checkQuestion, interrupted, readMessages } from "./messages.ts";

/** Fewest characters of a chat id that resumes: the id is the capability (docs/reference.md, "Resuming a chat"). */
const MIN_CAPABILITY_LENGTH = 16;
/** For this long an answer can be replayed. */
const REPLAY_TTL_SECONDS = 600;
/** Ms after which the JSON route gives up (docs/reference.md, "Answers"). */
const JSON_TIMEOUT_MS = 20_000;
/** Ms after which nobody waits for an answer that no worker has begun. */
const MAX_WAIT_MS = 20_000;

type ChatStream = Input<"handle" | "pageSlug" | "chatId", typeof chatStream>;

/** Starts an answer to the latest message and follows it as a UI message stream (docs/reference.md, "Chat stream"). */
export async function chat(
  runtime: Runtime,
  input: Input<"handle" | "pageSlug", typeof chatRequest>,
): Promise<AsyncIterable<RunChunk>> {
  const parsed = readMessages(input.messages);
  const chatId = input.id && input.id !== "" ? input.id : runtime.id("chat_");
  const resumable = input.resumable === true && isCapability(chatId);
  if (input.trigger === "regenerate-message") await forgetLeadSection(runtime, { ...input, chatId });
  const { handle, pageSlug } = input;
  return streamOf(await startRun(runtime, { ...parsed, handle, pageSlug, chatId, isWhole: false }, resumable), 0);
}

/**
 * Answers one question as an object: the same run, collected, until the signal `closed` says that the asker has left.
 * `service_unavailable` without an answer in 20 s, or if its worker dies.
 */
export async function askQuestion(
  runtime: Runtime,
  input: Input<"handle" | "pageSlug", typeof question>,
): Promise<QuestionAnswer> {
  checkQuestion(input.question, "/question");
  const { handle, pageSlug } = input;
  const parsed = { question: input.question.trim(), history: [], sectionShown: true };
  const request = { ...parsed, handle, pageSlug, chatId: runtime.id("chat_"), isWhole: true };
  const follower = await startRun(runtime, request, false);
  const leave = (): void => void follower.return();
  const timer = setTimeout(leave, JSON_TIMEOUT_MS);
  const closed = input.closed as AbortSignal | undefined;
  closed?.addEventListener("abort", leave);
  if (closed?.aborted) leave();
  try {
    return await fold(follower);
  } catch (error) {
    throw error instanceof RunLost ? new Fail("service_unavailable", { retryAfter: 5 }, error) : error;
  } finally {
    clearTimeout(timer);
    await follower.return();
  }
}

/**
 * Replays the chat's latest answer, from the start or after an event, and continues it. Undefined if there is nothing (more) to send: an
 * `EventSource` reconnects until it gets 204 (HTML, section 9.2.3).
 */
export async function resumeChat(runtime: Runtime, input: ChatStream): Promise<AsyncIterable<RunChunk> | undefined> {
  const runId = await runOf(runtime, input);
  if (runId === undefined) return undefined;
  const ending = await runEnding(runtime.redis, runId);
  if (ending === "unknown") return undefined;
  const after = /^\d{1,15}$/.test(input.lastEventId ?? "") ? Number(input.lastEventId) : 0;
  if (ending !== "running" && after >= ending.last + (lastChunks[ending.end] ? 1 : 0)) return undefined;
  return streamOf(runtime.relay.follow(runId, { after, resumable: true }), after);
}

/** Cancels the chat's running answer; idempotent. */
export async function stopChat(runtime: Runtime, input: ChatStream): Promise<void> {
  const runId = await runOf(runtime, input);
  if (runId !== undefined) await cancelRun(runtime.redis, runId);
}

/** Nothing happens to a run before its job, which is one step with the chat's key: no crash leaves an answer that its chat can't find. */
async function startRun(runtime: Runtime, request: AnswerRequest, resumable: boolean): Promise<RunSubscription> {
  const { handle, chatId } = request;
  const runId = runtime.id("run_");
  const [priority] = await Promise.all([
    // The fewer answers of the handle wait, the sooner it is this one's turn.
    addWaiting(runtime.redis, keys.waitingAnswers(handle), { member: runId, maxWaitMs: MAX_WAIT_MS }),
    createRun(runtime.redis, runId, { request: JSON.stringify(request) }),
  ]);
  const follower = runtime.relay.follow(runId, { resumable });
  await runtime.queues.commit(handle, [job("assistant.answer", runId, { runId }, { priority })], (transaction) => {
    transaction.set(chatKey(request, chatId), runId, "EX", REPLAY_TTL_SECONDS);
  });
  return follower;
}

async function runOf(runtime: Runtime, input: ChatStream): Promise<string | undefined> {
  await mustBeOpen(runtime, input);
  if (!isCapability(input.chatId)) return undefined;
  return (await runtime.redis.get(chatKey(input, input.chatId))) ?? undefined;
}

/** Characters are code points, as in a question. */
function isCapability(chatId: string): boolean {
  return [...chatId].length >= MIN_CAPABILITY_LENGTH;
}

function chatKey(page: PagePath, chatId: string): string {
  return keys.chatRun(page.handle, page.pageSlug, digestOf(chatId));
}

/** The last chunk by the run's end; a failing worker has written its own error. */
const lastChunks = { done: undefined, failed: undefined, cancelled: { type: "abort" }, lost: interrupted };

/**
 * The chunks of a run, and the protocol's own last chunk where the run has none. `after` is the number of the last chunk that the reader
 * has. `return` must not wait for a pending `next`; otherwise only the next chunk would reveal that the reader has left.
 */
function streamOf(follower: RunSubscription, after: number): AsyncIterable<RunChunk> {
  const leave = async () => {
    await follower.return();
    return { done: true, value: undefined } as const;
  };
  return Object.assign(endedChunks(follower, after), { return: leave });
}

async function* endedChunks(follower: RunSubscription, after: number): AsyncGenerator<RunChunk> {
  let last = after;
  let end: object | undefined;
  try {
    for await (const chunk of follower) {
      last = chunk.id;
      yield chunk;
    }
    end = lastChunks[follower.outcome ?? "done"];
  } catch {
    // Whatever the cause, the visitor only learns that the answer was interrupted.
    end = interrupted;
  }
  // If only this process lost the run, its next chunk still comes elsewhere, with the next number.
  if (end) yield { id: follower.outcome ? last + 1 : last, chunk: JSON.stringify(end) };
}

async function fold(chunks: AsyncIterable<RunChunk>): Promise<QuestionAnswer> {
  const answer: QuestionAnswer = {
    answerMarkdown: "",
    evidenceCards: [],
    ctaCards: [],
    followUps: [],
    degraded: false,
    retrievalMode: "none",
    modelId: "",
  };
  let finished = false;
  for await (const { chunk } of chunks) {
    const part = JSON.parse(chunk);
    if (part.type === "start") {
      const { modelId, retrievalMode, degraded } = part.messageMetadata;
      Object.assign(answer, { modelId, retrievalMode, degraded });
    } else if (part.type === "text-delta") answer.answerMarkdown += part.delta;
    else if (part.type === "data-evidence") answer.evidenceCards = part.data.cards as EvidenceCard[];
    else if (part.type === "data-cta") answer.ctaCards = part.data.cards as CtaCard[];
    else if (part.type === "data-follow-ups") answer.followUps = part.data.questions as string[];
    else if (part.type === "finish") finished = true;
  }
  if (!finished) throw new Fail("service_unavailable", { retryAfter: 5 });
  return answer;
}
