import type { Fail } from "../core/platform/errors.ts";
import { errors } from "../schemas/errors.ts";
import { problem } from "./problem.ts";
import type { View } from "./route.ts";
import { documentOf, escapeHtml, unlisted } from "./shell.ts";

/** One page of the account: a card with a title. */
export interface Card {
  /** BCP 47; English where it is absent. */
  language?: string;
  title: string;
  /** HTML below the title. */
  body: string;
  status?: number;
  /** Origins that the page's form may lead to besides its own. */
  leadsTo?: string[];
  /** The page's own script in /assets. */
  script?: string;
  headers?: Record<string, string | string[]>;
}

/** A card as a document that runs nothing but its own script and can't be framed. */
export function cardView(card: Card): View {
  return {
    type: "text/html; charset=utf-8",
    status: card.status ?? 200,
    body: document(card),
    headers: { ...headersOf(card), ...card.headers },
  };
}

/** What a person sees of a failure: its sentence, and what to do next. */
export function failureCard(fail: Fail): View {
  const advised = { title: "That did not work", advice: fail.details.detail ?? errors[fail.code][1] };
  const { title, advice } = known[fail.code] ?? advised;
  const { "Content-Type": _type, ...headers } = problem(fail, "").headers;
  return cardView({ title, status: fail.status, headers, body: `<p>${escapeHtml(advice)}</p>` });
}

const known: Record<string, { title: string; advice: string }> = {
  attempt_expired: {
    title: "This pairing is over",
    advice: "It was used before, or it is older than ten minutes. Start again on the desktop.",
  },
  attempt_not_pending: {
    title: "Already decided",
    advice: "This pairing was allowed or denied before. Start again on the desktop if that was not you.",
  },
  invalid_token: { title: "You are signed out", advice: "Open the address of the desktop again and sign in." },
  rate_limited: { title: "Too many tries", advice: "Wait a few minutes, then try again." },
  transactional_email_queue_unavailable: {
    title: "No mail right now",
    advice: "A code can't be sent at the moment. Try again later.",
  },
};

function headersOf({ leadsTo = [], script }: Card): Record<string, string> {
  const policy = [
    "default-src 'none'",
    "style-src 'self'",
    ...(script ? ["script-src 'self'", "connect-src 'self'"] : []),
    `form-action ${["'self'", ...leadsTo].join(" ")}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ];
  return {
    "Content-Security-Policy": policy.join("; "),
    "Cache-Control": "no-store",
    "X-Frame-Options": "DENY",
    // Not no-referrer: with that, forms would send the origin "null".
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
  };
}

function document({ language = "en", title, body, script }: Card): string {
  return documentOf({
    language,
    title,
    styles: ["page.css", "account.css"],
    head: [unlisted, ...(script ? [`<script src="/assets/${script}" defer></script>`] : [])],
    look: "account",
    body: `<main>\n<h1>${escapeHtml(title)}</h1>\n${body}\n</main>`,
  });
}
