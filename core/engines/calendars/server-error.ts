import { ResponseRefused } from "../../platform/exchange.ts";

/** Why a calendar server could not be used: a code for programs, and the sentence that its owner reads. */
const SENTENCES = {
  not_found: "Not found: the calendar server has nothing at this address; check the path.",
  no_calendar_server: "There is no calendar server at this address.",
  other_origin: "The calendar server redirects to another origin; connect that address instead.",
  limit: "The calendar server's answer exceeds a limit.",
  timeout: "Timeout: the calendar server did not answer in time.",
  unreachable: "The calendar server cannot be reached.",
  rate_limited: "The calendar server limits requests; try again later.",
  unavailable: "The calendar server is unavailable; try again later.",
  refused: "The calendar server refused the request.",
  no_calendars: "The provider denies access to the calendars of this account; check that it has a mailbox there.",
  calendar_gone: "A selected calendar no longer exists at the provider; select another one.",
  calendar_denied: "The provider denies access to a selected calendar; allow it there, or select another one.",
} as const;

type CalendarServerReason = keyof typeof SENTENCES;

/** A failure of a calendar server. The message is for its owner and repeats nothing that the server sent. */
export class CalendarServerError extends Error {
  override readonly name = "CalendarServerError";
  readonly reason: CalendarServerReason;

  constructor(reason: CalendarServerReason, detail = "", cause?: unknown) {
    super(detail === "" ? SENTENCES[reason] : `${SENTENCES[reason]} ${detail}`, { cause });
    this.reason = reason;
  }
}

/** What refusals of a provider's API mean to the owner, by status. */
export type Refusals = Partial<Record<number, CalendarServerReason>>;

export const listRefusals: Refusals = { 403: "no_calendars", 404: "no_calendars", 410: "no_calendars" };
export const calendarRefusals: Refusals = { 403: "calendar_denied", 404: "calendar_gone", 410: "calendar_gone" };

/** The error for a response status that is not a success (RFC 9110, section 15). */
export function errorForStatus(status: number): CalendarServerError {
  return new CalendarServerError(reasonForStatus(status), `It answered ${status}.`);
}

function reasonForStatus(status: number): CalendarServerReason {
  if (status === 404 || status === 410) return "not_found";
  if (status === 429) return "rate_limited";
  // Servers without WebDAV answer an unknown method with 405 or 501, or with a page.
  if (status < 400 || status === 405 || status === 501) return "no_calendar_server";
  return status >= 500 ? "unavailable" : "refused";
}

/** Maps the failure of a call to a calendar server to its reason. */
export function asCalendarServerError(error: unknown): CalendarServerError {
  if (!(error instanceof ResponseRefused))
    return new CalendarServerError(
      "unreachable",
      CONNECTION_FAILURES[(error as NodeJS.ErrnoException).code ?? ""],
      error,
    );
  const { reason, message } = error;
  if (reason === "encoding") return new CalendarServerError("no_calendar_server", message, error);
  return new CalendarServerError(reason, reason === "limit" ? message : "", error);
}

/** Reasons of failed connections, by the error codes of Node, its two resolvers and undici. */
const CONNECTION_FAILURES: Record<string, string> = {
  ECONNREFUSED: "The connection was refused.",
  ECONNRESET: "The connection was closed.",
  UND_ERR_SOCKET: "The connection was closed.",
  ENOTFOUND: "The host name is unknown.",
  ENODATA: "The host name is unknown.",
  EAI_AGAIN: "The host name cannot be resolved right now.",
  EREFUSED: "The host name cannot be resolved right now.",
  ESERVFAIL: "The host name cannot be resolved right now.",
  ETIMEOUT: "The host name cannot be resolved right now.",
  UND_ERR_CONNECT_TIMEOUT: "The connection timed out.",
  ERR_SSL_WRONG_VERSION_NUMBER: "It speaks no TLS at this port.",
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: "It speaks only old versions of TLS.",
  ERR_SSL_UNSUPPORTED_PROTOCOL: "It speaks only old versions of TLS.",
  CERT_HAS_EXPIRED: "Its certificate has expired.",
  CERT_NOT_YET_VALID: "Its certificate is not valid yet.",
  DEPTH_ZERO_SELF_SIGNED_CERT: "Its certificate is not trusted.",
  SELF_SIGNED_CERT_IN_CHAIN: "Its certificate is not trusted.",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "Its certificate is not trusted.",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "Its certificate is not trusted.",
  ERR_TLS_CERT_ALTNAME_INVALID: "Its certificate is for another name.",
};
