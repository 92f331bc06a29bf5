import { settingsOf } from "../core/account/face.ts";
import type { Fail } from "../core/platform/errors.ts";
import { formatMinutes, formatMoney } from "../core/platform/formats.ts";
import { fillPlaceholders } from "../core/platform/words.ts";
import type { EventPage } from "../core/scheduling/face.ts";
import { hasWords, languages, wordsLanguage, wordsOf } from "../schemas/languages.ts";
import type { PublicEvent } from "../schemas/scheduling.ts";
import { cardLink } from "./account-view.ts";
import { failureName } from "./failure-view.ts";
import type { Request, View } from "./route.ts";
import { escapeHtml, htmlDocument, type LinkPreview, linkPreview, unlisted } from "./shell.ts";

interface Page {
  language: string;
  title: string;
  /** HTML of the main part. */
  body: string;
  /** Further elements of the head, as HTML. */
  head?: string[];
  /** Pages of any origin may frame it. */
  isEmbedded?: boolean;
  /** Shows one booking, whose address must not be cached or shared. */
  isPrivate?: boolean;
  status?: number;
}

/** Makes the page interactive and reports its height to an embedding page. */
const script = '<script src="/assets/scheduling.js" defer></script>';

/** The page of an event type: the content that works without the script, and the script's initial data. */
export async function schedulingView(visit: EventPage, request: Request): Promise<View> {
  const language = languageOf(request, (await settingsOf(request.runtime.redis, visit.handle)).language);
  const { event, booking, isEmbedded, host } = visit;
  const title = event?.title ?? booking?.title ?? "";
  const { bookingPage: words, events } = wordsOf(language);
  const data = JSON.stringify({ ...visit, language, languages: Object.keys(languages), words }).replace(
    /</g,
    "\\u003c",
  );
  const description = event?.description
    ? `<p class="description" dir="auto">${escapeHtml(event.description)}</p>`
    : "";
  const body = `<main id="scheduling">
<div class="card starting"><h1 dir="auto">${escapeHtml(title)}</h1>${description}
<noscript><p class="alert">${escapeHtml(events.noscript)}</p></noscript></div>
</main>
<script type="application/json" id="scheduling-visit">${data}</script>
${script}`;
  const preview = { title: `${title} · ${host.name}`, summary: event?.description ?? "", image: host.logoUrl };
  const head = previewAt(request, preview);
  return pageView({ language, title: preview.title, head, body, isEmbedded, isPrivate: booking !== null });
}

/** A handle's public event types as links, with the host's logo, and the host's name in the title. */
export async function eventListView({ events }: { events: PublicEvent[] }, request: Request): Promise<View> {
  const { handle = "" } = request.parameters;
  const { displayName, language: ofHandle, logoUrl } = await settingsOf(request.runtime.redis, handle);
  const language = languageOf(request, ofHandle);
  const words = wordsOf(language).events;
  const title = fillPlaceholders(words.title, { host: displayName ?? handle });
  const items = events.map((event) => eventItem(event, request, language)).join("");
  const list = items === "" ? `<p>${escapeHtml(words.none)}</p>` : `<ul class="events">${items}</ul>`;
  const logo = logoUrl === null ? "" : `<img class="logo" src="${escapeHtml(logoUrl)}" alt="">`;
  const head = previewAt(request, { title, summary: "", image: logoUrl });
  return pageView({ language, title, head, body: plain(title, list, logo) });
}

/** The preview of a public page's link: its path without the query, which only changes how the page looks. */
function previewAt({ address, runtime }: Request, preview: Omit<LinkPreview, "url">): string[] {
  const { pathname } = new URL(address, runtime.env.BASE_URL);
  return linkPreview({ ...preview, url: new URL(pathname, runtime.env.BASE_URL).href });
}

/** The page of a failure: its sentence and the next step. It never reveals whether something hidden exists. */
export function schedulingFailure(fail: Fail, request: Request): View {
  const language = languageOf(request);
  const { title, advice } = wordsOf(language).failures[failureName(fail, request)];
  const body = `${plain(title, `<p>${escapeHtml(advice)}</p>${wayOn(fail, request, language)}`)}\n${script}`;
  return pageView({ language, title, body, status: fail.status, isPrivate: true, isEmbedded: true });
}

/** The language that the visitor has chosen on the page (`?language=`), else that of the browser, else that of the handle. */
function languageOf(request: Request, ofHandle?: string | null): string {
  return chosenLanguage(request) ?? request.language(ofHandle);
}

function chosenLanguage(request: Request): string | undefined {
  const chosen = queryOf(request).get("language") ?? "";
  return hasWords(chosen) ? wordsLanguage(chosen) : undefined;
}

function queryOf({ address }: Request): URLSearchParams {
  return new URL(address, "http://service.invalid").searchParams;
}

/** The address of a handle's list or of an event, which keeps the language that the visitor has chosen. */
function addressOf(request: Request, ...path: string[]): string {
  const chosen = chosenLanguage(request);
  const query = chosen === undefined ? "" : `?language=${chosen}`;
  return `/apps/public/scheduling/${path.map(encodeURIComponent).join("/")}${query}`;
}

/** Once more, the handle's other events, or the start; inside another page there is only the same address, which may be framed. */
function wayOn(fail: Fail, request: Request, language: string): string {
  const { ways } = wordsOf(language);
  if (!fail.permanent) return cardLink(ways.again, request.address);
  if (queryOf(request).has("embed")) return "";
  const { handle = "", eventSlug } = request.parameters;
  if (eventSlug === undefined) return cardLink(ways.home, "/");
  return cardLink(ways.events, addressOf(request, handle));
}

function eventItem(event: PublicEvent, request: Request, language: string): string {
  const { handle, slug, title, description } = event;
  const text = description === "" ? "" : `<span class="description" dir="auto">${escapeHtml(description)}</span>`;
  const address = addressOf(request, handle, slug);
  const terms = escapeHtml(termsOf(event, language).join(" · "));
  return `<li><a href="${address}"><strong dir="auto">${escapeHtml(title)}</strong><span class="terms">${terms}</span>${text}</a></li>`;
}

/** Length, price, and whether the host confirms bookings. */
function termsOf({ duration, price, confirmationRequired }: PublicEvent, language: string): string[] {
  return [
    formatMinutes(duration, language),
    ...(price ? [formatMoney(price, language)] : []),
    ...(confirmationRequired ? [wordsOf(language).events.approval] : []),
  ];
}

function plain(title: string, body: string, logo = ""): string {
  return `<main id="scheduling"><div class="card plain">${logo}<h1>${escapeHtml(title)}</h1>${body}</div></main>`;
}

function pageView(page: Page): View {
  return {
    type: "text/html; charset=utf-8",
    status: page.status ?? 200,
    body: document(page),
    headers: headersOf(page),
  };
}

function headersOf({ isEmbedded, isPrivate }: Page): Record<string, string> {
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src https:",
    "form-action 'none'",
    "base-uri 'none'",
    "require-trusted-types-for 'script'",
    `frame-ancestors ${isEmbedded ? "*" : "'none'"}`,
  ];
  return {
    "Content-Security-Policy": policy.join("; "),
    "Cache-Control": isPrivate ? "no-store" : "no-cache",
    // The address may contain a booking's uid, which is enough to cancel it.
    "Referrer-Policy": "no-referrer",
  };
}

function document({ language, title, head = [], body, isPrivate, isEmbedded, status }: Page): string {
  return htmlDocument({
    language,
    title,
    head: isPrivate || isEmbedded ? [unlisted] : head,
    styles: ["page.css", "scheduling.css"],
    look: isEmbedded && status === undefined ? "scheduling embedded" : "scheduling",
    body,
  });
}
