import type { OwnerState, OwnerVisit } from "../core/scheduling/face.ts";
import { type Words, wordsOf } from "../schemas/languages.ts";
import { cardView, factList } from "./account-view.ts";
import type { View } from "./route.ts";
import { escapeHtml } from "./shell.ts";

type PageWords = Words["ownerBookingPage"];

/** The page behind a link in an owner's mail: the booking, its status, and the decision that the link asks for. */
export function ownerBookingView({ state, language, host, facts }: OwnerVisit): View {
  const { ownerBookingPage: words } = wordsOf(language);
  const name = host === "" ? "" : `<p dir="auto">${escapeHtml(host)}</p>`;
  const list = facts.length === 0 ? "" : factList(facts.map(factRow));
  const { title, body } = contentOf(state, words);
  const headers = { Vary: "Accept-Language", "Referrer-Policy": "no-referrer" };
  return cardView({
    language,
    title,
    status: statuses[state] ?? 200,
    body: `${name}${body}${list}${formOf(state, words)}`,
    headers,
  });
}

/** Statuses of dead links: 410 for links that once worked (RFC 9110, section 15.5.11), 404 for all others. */
const statuses: Partial<Record<OwnerState, number>> = { expired: 410, over: 410, invalid: 404 };

function contentOf(state: OwnerState, words: PageWords): { title: string; body: string } {
  if (state === "confirm") return { title: words.confirmTitle, body: "" };
  if (state === "decline") return { title: words.declineTitle, body: "" };
  const title = state === "invalid" ? words.invalidTitle : words.title;
  return { title, body: `<p role="status">${escapeHtml(words[state])}</p>` };
}

function factRow([name, value, address]: OwnerVisit["facts"][number]): [name: string, html: string] {
  const text = escapeHtml(value).replace(/&#10;|\n/g, "<br>");
  const shown =
    address && /^https?:/i.test(address) ? `<a href="${escapeHtml(address)}" rel="noreferrer">${text}</a>` : text;
  return [name, shown];
}

/** A form that posts to the page's own address. */
function formOf(state: OwnerState, words: PageWords): string {
  if (state === "confirm")
    return `<form method="post"><button type="submit">${escapeHtml(words.confirm)}</button></form>`;
  if (state !== "decline") return "";
  const reason = `<label>${escapeHtml(words.reason)}<textarea name="reason" rows="3" maxlength="1000"></textarea></label>`;
  return `<form method="post">${reason}<button type="submit">${escapeHtml(words.decline)}</button></form>`;
}
