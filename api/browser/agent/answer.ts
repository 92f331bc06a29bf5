import type { CtaCard, EvidenceCard, LeadSection, LessonCard } from "../../../schemas/assistant.ts";
import { words } from "./words.ts";

/** State of an answer. */
export type Status =
  | "waiting"
  | "queued"
  | "streaming"
  | "reconnecting"
  | "done"
  | "stopped"
  | "interrupted"
  | "failed";

/** An answer as received so far. */
export interface Answer {
  status: Status;
  /** The error, for the visitor. */
  problem: string;
  /** Number of the last event received. */
  last: string;
  text: string;
  /** True once the text is complete, so that the parts below it don't move. */
  textEnded: boolean;
  degraded: boolean;
  evidence: EvidenceCard[];
  actions: CtaCard[];
  followUps: string[];
  lessons: LessonCard[];
  section?: LeadSection;
}

/** One part of the UI message stream (docs/reference.md, "Chat stream"). */
interface Chunk {
  type: string;
  delta?: string;
  messageMetadata?: { degraded?: boolean };
  data?: { cards?: never[]; questions?: string[] };
  toolCallId?: string;
  toolName?: string;
  output?: unknown;
}

/** An answer before its first event. */
export function blankAnswer(): Answer {
  return {
    status: "waiting",
    problem: "",
    last: "",
    text: "",
    textEnded: false,
    degraded: false,
    evidence: [],
    actions: [],
    followUps: [],
    lessons: [],
  };
}

/** True if no event will follow. */
export function isOver({ status }: Answer): boolean {
  return /done|stopped|interrupted|failed/.test(status);
}

/** The status text for the visitor; empty while all goes well. */
export function stateOf({ status, problem }: Answer): string {
  const { waiting, queued, reconnecting, stopped, interrupted } = words;
  const states: Partial<Record<Status, string>> = { waiting, queued, reconnecting, stopped, interrupted };
  return problem || (states[status] ?? "");
}

/** Adds one part of the stream to an answer; a replay starts again. Unknown parts are ignored. */
export function addChunk(answer: Answer, chunk: Chunk): void {
  const { type, data } = chunk;
  if (type === "start") Object.assign(answer, blankAnswer(), { degraded: chunk.messageMetadata?.degraded === true });
  if (type === "text-delta") answer.text += chunk.delta ?? "";
  else if (type === "text-end") answer.textEnded = true;
  else if (type === "data-evidence") answer.evidence = data?.cards ?? [];
  else if (type === "data-cta") answer.actions = data?.cards ?? [];
  else if (type === "data-follow-ups") answer.followUps = data?.questions ?? [];
  else if (type === "tool-output-available") addOutput(answer, chunk.output);
  // A model may think, and its first sentence may be checked, long after the stream starts.
  answer.status = answer.text.trim() === "" && !answer.textEnded ? "waiting" : "streaming";
  if (type === "finish") endAnswer(answer, "done");
  // If the visitor stops an answer, reading ends; so another client stopped this one.
  else if (type === "abort") endAnswer(answer, "interrupted");
  else if (type === "error") endAnswer(answer, "failed", words.interrupted);
}

/** Ends an answer. */
export function endAnswer(answer: Answer, status: Status, problem = ""): void {
  Object.assign(answer, { status, problem, textEnded: true });
}

/** The two tools are told apart by their output. */
function addOutput(answer: Answer, output: unknown): void {
  const { cards, sectionId, dynamicView, fields } = (output ?? {}) as { cards?: LessonCard[] } & Partial<LeadSection>;
  if (Array.isArray(cards)) answer.lessons = cards;
  else if (sectionId && dynamicView && Array.isArray(fields)) answer.section = output as LeadSection;
}
