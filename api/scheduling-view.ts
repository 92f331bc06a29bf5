import { settingsOf } from "../core/account/face.ts";
import { visibleCharacters } from "../core/platform/characters.ts";
import type { Fail } from "../core/platform/errors.ts";
import { formatMinutes, formatMoney, formatTime } from "../core/platform/formats.ts";
import { fillPlaceholders } from "../core/platform/placeholders.ts";
import { bookingFacts, type EventPage, type OwnerState, type OwnerVisit } from "../core/scheduling/face.ts";
import { hasWords, languages, type Words, wordsLanguage, wordsOf } from "../schemas/languages.ts";
import type { Booking, BookingAnswer, PublicEvent } from "../schemas/scheduling.ts";
import { cardLink, cardView, factList } from "./card.ts";
import { failureWords } from "./failure-view.ts";
import {
  type Html,
  html,
  htmlDocument,
  htmlView,
  jsonScript,
  type LinkPreview,
  linkPreview,
  type Part,
  redirect,
  unlisted,
} from "./html.ts";
import type { Request } from "./request.ts";
import type { View } from "./route.ts";

interface Page {
  language: string;
  title: string;
  body: Part;
  /** Further elements of the head. */
  head?: Part[];
  /** Pages of any origin may frame it. */
  isEmbedded?: boolean;
  /** Shows one booking, whose address must not be cached or shared. */
  isPrivate?: boolean;
  status?: number;
}

/** Makes the page interactive and reports its height to an embedding page. */
const script = html`<script src="/assets/scheduling.js" defer></script>`;

/** The page of an event type: the content that works without the script, and the script's initial data. */
export async function schedulingView(visit: EventPage, request: Request): Promise<View> {
  const language = languageOf(request, (await settingsOf(request.runtime.redis, visit.handle)).language);
  const { event, booking, isEmbedded, host } = visit;
  const title = event?.title ?? booking?.title ?? "";
  const summary = event?.description ?? "";
  const { bookingPage, unmailedBooking, events } = wordsOf(language);
  const words = visit.isMailed ? bookingPage : { ...bookingPage, ...unmailedBooking };
  const body = html`<main id="scheduling">
<div class="card starting"><h1 dir="auto">${title}</h1>${summary && html`<p class="description" dir="auto">${summary}</p>`}
<noscript>${booking ? bookedForm(visit, booking, language) : html`<p class="alert">${events.noscript}</p>`}</noscript></div>
</main>
${jsonScript("scheduling-visit", { ...visit, language, languages: Object.keys(languages), words })}
${script}`;
  const preview = { title: `${title} · ${host.name}`, summary, image: host.logoUrl };
  const head = previewAt(request, preview);
  return pageView({ language, title: preview.title, head, body, isEmbedded, isPrivate: booking !== null });
}

/** A booking and the form that cancels it, for browsers without the script. */
function bookedForm({ handle, eventSlug, event, now }: EventPage, booking: Booking, language: string): Html {
  const { bookingPage: words } = wordsOf(language);
  const { status, bookingUid } = booking;
  const questions = event?.bookingFields ?? [];
  const facts = bookingFacts({ stored: booking, recipient: { as: "attendee", language }, questions });
  const isOver = status === "REJECTED" || status === "CANCELLED" || Date.parse(booking.start) <= now;
  const action = `/v2/public/scheduling/${handle}/${eventSlug}/bookings/${bookingUid}/cancel?language=${language}`;
  return html`<div class="booked"><h2>${bookedTitle(booking, words)}</h2>
${factList(facts.map(([name, value, address]) => [name, factValue(value, address)]))}
${
  !isOver &&
  html`<form class="form" method="post" action="${action}">${refundTerms(booking, language)}
<div class="field"><label>${words.reason} <textarea name="cancellationReason" rows="3" maxlength="1000"></textarea></label></div>
<button class="primary danger">${words.cancel}</button></form>`
}</div>`;
}

function bookedTitle({ status, payment, cancelledBy }: Booking, words: Words["bookingPage"]): string {
  const isUnpaid = payment !== null && cancelledBy === "service";
  return {
    ACCEPTED: words.accepted,
    PENDING: words.requested,
    PENDING_PAYMENT: words.unpaid,
    REJECTED: isUnpaid ? words.unpaidOver : words.declined,
    CANCELLED: words.cancelled,
  }[status];
}

function refundTerms({ payment, attendee }: Booking, language: string): Part {
  if (payment?.status !== "PAID") return undefined;
  const { cancelRefund, cancelKept } = wordsOf(language).bookingPage;
  const time = formatTime(payment.refundUntil, { language, timeZone: attendee.timeZone, length: "long" });
  const price = formatMoney(payment, language);
  return html`<p>${fillPlaceholders(payment.refundable ? cancelRefund : cancelKept, { price, time })}</p>`;
}

/** Leads a browser without the script from the form back to its booking, in the language of the form. */
export function cancelledView({ bookingUid }: BookingAnswer, request: Request): View {
  const { handle, eventSlug } = request.parameters;
  const query = new URLSearchParams({ booking: bookingUid, language: languageOf(request) });
  return redirect({ location: `/apps/public/scheduling/${handle}/${eventSlug}?${query}` });
}

/** A handle's public event types as links, with the host's logo, and the host's name in the title. */
export async function eventListView({ events }: { events: PublicEvent[] }, request: Request): Promise<View> {
  const { handle = "" } = request.parameters;
  const { displayName, language: ofHandle, logoUrl } = await settingsOf(request.runtime.redis, handle);
  const language = languageOf(request, ofHandle);
  const words = wordsOf(language).events;
  const title = fillPlaceholders(words.title, { host: displayName ?? handle });
  const items = events.map((event) => eventItem(event, request, language));
  const list = items.length === 0 ? html`<p>${words.none}</p>` : html`<ul class="events">${items}</ul>`;
  const head = previewAt(request, { title, summary: "", image: logoUrl });
  const logo = logoUrl !== null && html`<img class="logo" src="${logoUrl}" alt="">`;
  const isEmbedded = isFramed(request);
  const body = html`${plain(title, list, logo)}${isEmbedded && script}`;
  return pageView({ language, title, head, body, isEmbedded });
}

/** The preview of a public page's link: its path without the query, which only changes how the page looks. */
function previewAt({ address, runtime }: Request, preview: Omit<LinkPreview, "url">): Part[] {
  const { pathname } = new URL(address, runtime.env.BASE_URL);
  return linkPreview({ ...preview, url: new URL(pathname, runtime.env.BASE_URL).href });
}

/** The page of a failure: its sentence and the next step. It never reveals whether something hidden exists. */
export function schedulingFailure(fail: Fail, request: Request): View {
  const language = languageOf(request);
  const { title, advice } = failureWords(fail, request, language);
  const body = html`${plain(title, html`<p>${advice}</p>${wayOn(fail, request, language)}`)}\n${script}`;
  return pageView({ language, title, body, status: fail.status, isPrivate: true, isEmbedded: true });
}

/** The language that the visitor has chosen on the page (`?language=`), else that of the browser, else that of the handle. */
function languageOf(request: Request, ofHandle?: string | null): string {
  return chosenLanguage(request) ?? request.language(ofHandle);
}

function chosenLanguage({ query }: Request): string | undefined {
  const chosen = query.get("language") ?? "";
  return hasWords(chosen) ? wordsLanguage(chosen) : undefined;
}

/** The address of a handle's list or of an event, which keeps the chosen language, and the look and entries of an embedded page. */
function addressOf(request: Request, ...path: string[]): string {
  const kept = new URLSearchParams();
  const chosen = chosenLanguage(request);
  if (chosen !== undefined) kept.set("language", chosen);
  for (const name of isFramed(request) ? ["embed", "theme", "accent", "name", "email"] : [])
    if (request.query.has(name)) kept.set(name, request.query.get(name) ?? "");
  return `/apps/public/scheduling/${path.map(encodeURIComponent).join("/")}${kept.size > 0 ? `?${kept}` : ""}`;
}

function isFramed({ query }: Request): boolean {
  return query.get("embed") === "1";
}

/** Once more, the handle's other events, or the start; inside another page there is only the same address, which may be framed. */
function wayOn(fail: Fail, request: Request, language: string): Part {
  const { ways } = wordsOf(language);
  if (!fail.permanent) return cardLink(ways.again, request.address);
  if (isFramed(request)) return undefined;
  const { handle = "", eventSlug } = request.parameters;
  return eventSlug === undefined ? cardLink(ways.home, "/") : cardLink(ways.events, addressOf(request, handle));
}

function eventItem(event: PublicEvent, request: Request, language: string): Part {
  const { handle, slug, title, description } = event;
  const text = description && html`<span class="description" dir="auto">${description}</span>`;
  const terms = termsOf(event, language).join(" · ");
  return html`<li><a href="${addressOf(request, handle, slug)}"><strong dir="auto">${title}</strong><span class="terms">${terms}</span>${text}</a></li>`;
}

function termsOf({ duration, price, confirmationRequired }: PublicEvent, language: string): string[] {
  return [
    formatMinutes(duration, language),
    ...(price ? [formatMoney(price, language)] : []),
    ...(confirmationRequired ? [wordsOf(language).events.approval] : []),
  ];
}

function plain(title: string, body: Part, logo?: Part): Part {
  return html`<main id="scheduling"><div class="card plain">${logo}<h1>${title}</h1>${body}</div></main>`;
}

function pageView({ language, title, head, body, isEmbedded, isPrivate, status }: Page): View {
  const document = htmlDocument({
    language,
    title,
    head: isPrivate || isEmbedded ? [unlisted] : (head ?? []),
    styles: ["page.css", "card.css", "scheduling.css"],
    look: isEmbedded && status === undefined ? "embedded" : undefined,
    body,
  });
  const policy = [
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' https:; form-action 'self'",
    `base-uri 'none'; require-trusted-types-for 'script'; frame-ancestors ${isEmbedded ? "*" : "'none'"}`,
  ];
  // The address may contain a booking's uid, which is enough to cancel it.
  const headers = { "Cache-Control": isPrivate ? "no-store" : "no-cache", "Referrer-Policy": "no-referrer" };
  return htmlView(document, policy, { status, headers });
}

/** Statuses of dead links: 410 for links that once worked (RFC 9110, section 15.5.11), 404 for all others. */
const deadLinks: Partial<Record<OwnerState, number>> = { expired: 410, over: 410, invalid: 404 };

/** The page behind a link in an owner's mail: the booking, its status, and the decision that the link asks for. */
export function ownerBookingView({ state, language, host, facts }: OwnerVisit): View {
  const { ownerBookingPage, ways } = wordsOf(language);
  const { title, status, form } = ownerContent(state, ownerBookingPage);
  const isDead = deadLinks[state] !== undefined;
  const list = facts.length > 0 && factList(facts.map(([name, value, address]) => [name, factValue(value, address)]));
  return cardView({
    language,
    title,
    status: deadLinks[state] ?? 200,
    body: [host && html`<p dir="auto">${host}</p>`, status, list, form, isDead && cardLink(ways.home, "/")],
    headers: { "Referrer-Policy": "no-referrer" },
  });
}

/** The title, and either a status or a form that posts to the page's own address. */
function ownerContent(
  state: OwnerState,
  words: Words["ownerBookingPage"],
): { title: string; status?: Part; form?: Part } {
  const form = (label: string, reason?: Part) =>
    html`<form method="post">${reason}<button type="submit">${label}</button></form>`;
  if (state === "confirm") return { title: words.confirmTitle, form: form(words.confirm) };
  if (state === "decline") {
    const reason = html`<label>${words.reason}<textarea name="reason" rows="3" maxlength="1000"></textarea></label>`;
    return { title: words.declineTitle, form: form(words.decline, reason) };
  }
  const title = state === "invalid" ? words.invalidTitle : words.title;
  return { title, status: html`<p role="status">${words[state]}</p>` };
}

function factValue(value: string, address: string | undefined): Part {
  const lines = visibleCharacters(value)
    .split("\n")
    .map((line, at) => [at > 0 && html`<br>`, line]);
  return address && /^https?:/i.test(address) ? html`<a href="${address}" rel="noreferrer">${lines}</a>` : lines;
}
