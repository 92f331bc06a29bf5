import type { Fail } from "../core/platform/errors.ts";
import { formatWait } from "../core/platform/formats.ts";
import type { ErrorCode, InputError } from "../schemas/errors.ts";
import { type Words, wordsOf } from "../schemas/languages.ts";
import { cardLink, cardView } from "./card.ts";
import { type Html, html, type Part, sentence } from "./html.ts";
import type { Request } from "./request.ts";
import type { View } from "./route.ts";

type FailureName = keyof Words["failures"];

/** Failures with a text of their own; all others use the text of their status. */
const byCode: Partial<Record<ErrorCode, FailureName>> = {
  attempt_expired: "pairingOver",
  attempt_not_pending: "pairingDecided",
  transactional_email_queue_unavailable: "noMail",
  payment_provider_not_connected: "notForSale",
  invalid_verification_code: "wrongCode",
  invalid_oauth_state: "connectExpired",
  oauth_exchange_failed: "connectRefused",
  event_type_not_found: "eventMissing",
  booking_not_found: "bookingMissing",
};
const byStatus: Record<number, FailureName> = {
  401: "signedOut",
  403: "forbidden",
  404: "missing",
  405: "missing",
  409: "conflict",
  410: "gone",
  429: "tooMany",
  500: "failed",
  503: "away",
};

/** Pages for a browser whose fields no visitor types: their names would say nothing. */
export const browserPage = { errorView: failureView, failureTexts: { invalid_request: "invalid" } } as const;
/** Rows for operators, who have a password instead of a sign-in. */
export const operatorTexts = { missing_bearer_token: "forbidden", invalid_token: "forbidden" } as const;

/** The page of a failure in the visitor's language: a title, one sentence and a link. The app adds the headers. */
export function failureView(fail: Fail, request: Request): View {
  const language = request.language();
  const words = wordsOf(language);
  const { title, advice } = failureWords(fail, request, language);
  // A row with its own text is one whose fields were not typed by the visitor.
  const wrong = request.failureTexts[fail.code] ? undefined : mistakes(fail.details.errors ?? [], words);
  const body = html`<p>${wrong ?? advice}</p>\n${nextLink(fail, request, words)}`;
  const script = request.formPage === undefined ? undefined : "back.js";
  return cardView({ language, title, status: fail.status, body, script, isFramed: true });
}

/** The words for a failure: the row's choice, else those of the code, else those of the status. A limit tells how long to wait. */
export function failureWords(
  { code, status, details }: Fail,
  { failureTexts }: Request,
  language: string,
): { title: string; advice: Html } {
  const name = failureTexts[code] ?? byCode[code] ?? byStatus[status] ?? "invalid";
  const { title, advice } = wordsOf(language).failures[name];
  return { title, advice: sentence(advice, { time: html`${formatWait(details.retryAfter ?? 1, language)}` }) };
}

/** The invalid fields, by name; undefined if none is. */
function mistakes(errors: InputError[], { mistakes: words }: Words): Part {
  const names = errors.map(({ path }) => nameAt(path)).filter((name) => name !== "");
  if (names.length === 0) return undefined;
  if (names.join() === "email") return words.email;
  const fields = names.map((name, at) => [at > 0 && ", ", html`<strong>${name}</strong>`]);
  return sentence(words.fields, { fields: html`${fields}` });
}

/** The name of a field as its form has it, from its JSON pointer (RFC 6901, section 4). */
function nameAt(path: string): string {
  return path.slice(1).replaceAll("~1", "/").replaceAll("~0", "~");
}

/** The link of the page: the same address, the page of the form, the page in question, or the start. */
function nextLink(fail: Fail, { method, address, pagePath, formPage }: Request, { ways }: Words): Part {
  if (!fail.permanent && method !== "POST") return cardLink(ways.again, address);
  if (formPage !== undefined) return cardLink(ways.back, formPage);
  if (pagePath !== undefined && fail.status !== 404) return cardLink(ways.page, pagePath);
  return address !== "/" && cardLink(ways.home, "/");
}
