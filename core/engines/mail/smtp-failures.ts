import type { Purpose } from "../../../schemas/email.ts";
import type { SmtpFailure, SmtpPhase } from "./smtp.ts";

/** Enhanced status codes (RFC 3463) of addresses that don't exist or accept no mail; they are suppressed. */
const HARD_BOUNCE_CODES = ["5.1.1", "5.1.10", "5.2.1"];

/** True for a code that blames the address, and not the message, the sender or a temporary state. */
export function isHardBounce(enhancedStatus: string | undefined): boolean {
  return enhancedStatus !== undefined && HARD_BOUNCE_CODES.includes(enhancedStatus);
}

/** What follows from a failed attempt. */
export type SmtpFailureClass =
  /** The server may be unusable for everybody: sending pauses until it works again. Without `wait` the attempt doesn't count. */
  | { kind: "provider"; reason: string; code?: number | undefined; wait?: number }
  /** Retried after `wait` domain ms. */
  | { kind: "deferred"; reason: string; code: number | undefined; wait: number }
  /** Never retried; `hard` suppresses the address. */
  | { kind: "failed"; reason: string; code: number | undefined; hard: boolean };

/** An attempt: its number from 1, the kind of mail, and domain ms since its acceptance. */
export interface DeliveryProgress {
  attempt: number;
  purpose: Purpose;
  age: number;
}

const second = 1000;
const minute = 60 * second;

/** Waits before the second and later attempts, the last one for all others; a code is useful for minutes only. */
const RETRY_WAITS: Record<"code" | "mail", { steps: number[]; life: number }> = {
  code: { steps: [5 * second, 10 * second, 20 * second, 40 * second, 80 * second], life: 10 * minute },
  mail: { steps: [15 * second, minute, 5 * minute, 15 * minute, 30 * minute, 60 * minute], life: 24 * 60 * minute },
};
/** Each wait varies by up to a fifth, so that simultaneous failures spread out. */
const jitter = 0.2;

/** Replies that blame the login or the encryption (RFC 4954, RFC 3207). */
const loginCodes = [454, 530, 534, 535, 538];

const refusals: Record<SmtpPhase, string> = {
  connect: "server_unavailable",
  mail: "sender_refused",
  recipient: "recipient_refused",
  data: "content_refused",
  content: "content_refused",
};

/**
 * Classifies a failure by phase and code. A refusal (5xx) is final; everything else is retried for at most 24 hours. A connection that
 * broke after the content was sent is retried too: the mail may arrive twice, with the same Message-ID, but is never lost. A login code is
 * the server's failure until a recipient is named; after that it may be about that recipient alone (Postfix defers relaying with 454). At
 * MAIL FROM it may be about the sender alone, so it counts as an attempt.
 */
export function classifySmtpFailure(failure: SmtpFailure, attempted: DeliveryProgress): SmtpFailureClass {
  const { phase, code, enhanced } = failure;
  const blamesLogin = code !== undefined && loginCodes.includes(code);
  if (phase === "connect") return { kind: "provider", reason: reasonOf(failure, refusals.connect) };
  if (phase === "mail" && blamesLogin) {
    const later = deferredOrFailed(reasonOf(failure, refusals.connect), code, attempted);
    return later.kind === "deferred" ? { ...later, kind: "provider" } : later;
  }
  if (code !== undefined && code >= 500 && !blamesLogin) {
    return { kind: "failed", reason: reasonOf(failure, refusals[phase]), code, hard: isHardBounce(enhanced) };
  }
  const word = code !== undefined ? "deferred_by_server" : phase === "content" ? "outcome_unknown" : "connection_lost";
  return deferredOrFailed(reasonOf(failure, word), code, attempted);
}

/** Deferred by the wait of this attempt, or failed if the mail would be too old by then. */
function deferredOrFailed(
  reason: string,
  code: number | undefined,
  { attempt, purpose, age }: DeliveryProgress,
): SmtpFailureClass {
  const { steps, life } = RETRY_WAITS[purpose === "LEAD_VERIFICATION" ? "code" : "mail"];
  const step = steps[Math.min(attempt, steps.length) - 1] ?? minute;
  const wait = Math.round(step * (1 - jitter + 2 * jitter * Math.random()));
  return age + wait > life
    ? { kind: "failed", reason: `given_up: ${reason}`, code, hard: false }
    : { kind: "deferred", reason, code, wait };
}

/** The reason as a word and the server's reply, on one line. */
function reasonOf({ message }: SmtpFailure, word: string): string {
  return `${word}: ${message.replace(/\s+/g, " ").slice(0, 300)}`;
}
