import { LAST_MESSAGES, MAX_QUESTION_LENGTH } from "../../schemas/assistant.ts";
import type { Turn } from "../engines/answers/answers.ts";
import { isBlank } from "../platform/characters.ts";
import { Fail, invalid } from "../platform/errors.ts";
import { asObject } from "../platform/json.ts";

/** The input of an answer. */
export interface AnswerRequest {
  handle: string;
  pageSlug: string;
  chatId: string;
  question: string;
  /** Earlier messages, oldest first; untrusted. */
  history: Turn[];
  /** True if the conversation already shows a lead section. */
  sectionShown: boolean;
  /** True if the reader gets the answer in one piece, so that a failed part can still be replaced. */
  isWhole: boolean;
}

/** The last chunk of an answer that broke off. */
export const interrupted = { type: "error", errorText: "The answer was interrupted. Please try again." };
/** Longest text of an earlier message, in characters; longer ones are cut. */
const MAX_HISTORY_LENGTH = 2000;
const MAX_HISTORY_MESSAGES = 12;

interface Message {
  role: "user" | "assistant";
  /** Of its parts; line breaks between them are not the visitor's and don't count. */
  texts: string[];
  sectionShown: boolean;
}

/** Parses the latest question of a chat: `invalid_request` without one or with a `system` message, `question_too_long`. */
export function readMessages(messages: unknown[]): Pick<AnswerRequest, "question" | "history" | "sectionShown"> {
  const ignored = Math.max(0, messages.length - LAST_MESSAGES);
  const read = messages.slice(ignored).map((message, at) => readMessage(message, ignored + at));
  const latest = read.findLastIndex(({ role }) => role === "user");
  const texts = read[latest]?.texts ?? [];
  const written = texts.join("");
  if (isBlank(written)) throw invalid("/messages", "must contain a user message with text");
  checkQuestion(written, "/messages");
  const before = read.slice(0, latest).filter(({ texts }) => texts.length > 0);
  const history = before
    .slice(-MAX_HISTORY_MESSAGES)
    .map(({ role, texts }) => ({ role, text: texts.join("\n").slice(0, MAX_HISTORY_LENGTH) }));
  return { question: texts.join("\n").trim(), history, sectionShown: read.some((message) => message.sectionShown) };
}

/** Rejects an empty question and one of more than 500 code points, before trimming. */
export function checkQuestion(question: string, path: string): void {
  if (isBlank(question)) throw invalid(path, "must contain text");
  // A string has at least half as many code points as units, so most lengths need no counting.
  if (question.length > MAX_QUESTION_LENGTH && [...question].length > MAX_QUESTION_LENGTH)
    throw new Fail("question_too_long", {
      errors: [{ path, message: `is longer than ${MAX_QUESTION_LENGTH} characters` }],
    });
}

function readMessage(message: unknown, at: number): Message {
  const { role, parts } = asObject(message);
  if (role !== "user" && role !== "assistant") throw invalid(`/messages/${at}/role`, "must be user or assistant");
  if (!Array.isArray(parts)) throw invalid(`/messages/${at}/parts`, "must be an array");
  const texts = parts.map((part, place) => textOf(part, `/messages/${at}/parts/${place}`));
  return {
    role,
    texts: texts.filter((text) => text !== ""),
    sectionShown: parts.some((part) => part?.type === "tool-renderLeadQualificationSection"),
  };
}

function textOf(part: unknown, path: string): string {
  const { type, text } = asObject(part);
  if (typeof type !== "string") throw invalid(`${path}/type`, "must be a string");
  if (type !== "text") return "";
  if (typeof text !== "string") throw invalid(`${path}/text`, "must be a string");
  return text;
}
