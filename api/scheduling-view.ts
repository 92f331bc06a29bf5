import type { Fail } from "../core/platform/errors.ts";
import type { Visit } from "../core/scheduling/face.ts";
import { errors } from "../schemas/errors.ts";
import type { PublicEvent } from "../schemas/scheduling.ts";
import type { View } from "./route.ts";
import { documentOf, escapeHtml, unlisted } from "./shell.ts";

interface Page {
  title: string;
  /** HTML of the main part. */
  body: string;
  /** Shown inside pages of any origin. */
  isEmbedded?: boolean;
  /** Speaks of one booking, whose address must not be kept or spread. */
  isPrivate?: boolean;
  status?: number;
  headers?: Record<string, string>;
}

/** Makes the page interactive, and tells a page around it how tall it is. */
const script = '<script src="/assets/scheduling.js" defer></script>';

/** The page of an event type: what can be read without its script, and what the script starts from. */
export function schedulingView(visit: Visit): View {
  const { event, booking, isEmbedded } = visit;
  const title = event?.title ?? booking?.title ?? "";
  const data = JSON.stringify(visit).replace(/</g, "\\u003c");
  const description = event?.description
    ? `<p class="description" dir="auto">${escapeHtml(event.description)}</p>`
    : "";
  const body = `<main id="scheduling">
<div class="card starting"><h1 dir="auto">${escapeHtml(title)}</h1>${description}
<noscript><p class="alert">This page needs JavaScript to show the free times.</p></noscript></div>
</main>
<script type="application/json" id="scheduling-visit">${data}</script>
${script}`;
  return pageView({ title, body, isEmbedded, isPrivate: booking !== null });
}

/** A handle's public event types as links. */
export function eventListView({ events }: { events: PublicEvent[] }): View {
  const items = events.map(eventItem).join("");
  const list = items === "" ? "<p>There is nothing to book at the moment.</p>" : `<ul class="events">${items}</ul>`;
  return pageView({ title: "Book a time", body: plain("Book a time", list) });
}

/** What a person sees of a failure: its sentence and what to do next; never whether something hidden is there. */
export function schedulingFailure(fail: Fail): View {
  const { title, advice } = known[fail.code] ?? { title: "That did not work", advice: errors[fail.code][1] };
  const wait: Record<string, string> =
    fail.details.retryAfter === undefined ? {} : { "Retry-After": String(Math.ceil(fail.details.retryAfter)) };
  const body = `${plain(title, `<p>${escapeHtml(advice)}</p>`)}\n${script}`;
  return pageView({ title, body, status: fail.status, headers: wait, isPrivate: true, isEmbedded: true });
}

const missing = {
  title: "Not available",
  advice: "There is nothing to book at this address. It may have moved, or it is closed for now.",
};
const known: Record<string, { title: string; advice: string }> = {
  not_found: missing,
  event_type_not_found: missing,
  booking_not_found: {
    title: "No such booking",
    advice: "The address of the booking is not complete, or it has ended long ago. Use the link in your mail.",
  },
  rate_limited: { title: "One moment", advice: "Many people look at this page right now. Please try again shortly." },
  service_unavailable: {
    title: "Back in a moment",
    advice: "The calendar can't be read right now. Please try again shortly.",
  },
};

function eventItem({ handle, slug, title, description, duration }: PublicEvent): string {
  const text = description === "" ? "" : `<span class="description" dir="auto">${escapeHtml(description)}</span>`;
  const address = `/apps/public/scheduling/${encodeURIComponent(handle)}/${encodeURIComponent(slug)}`;
  return `<li><a href="${address}"><strong dir="auto">${escapeHtml(title)}</strong><span class="length">${duration} min</span>${text}</a></li>`;
}

function plain(title: string, body: string): string {
  return `<main id="scheduling"><div class="card plain"><h1>${escapeHtml(title)}</h1>${body}</div></main>`;
}

function pageView(page: Page): View {
  return {
    type: "text/html; charset=utf-8",
    status: page.status ?? 200,
    body: document(page),
    headers: headersOf(page),
  };
}

function headersOf({ isEmbedded, isPrivate, headers }: Page): Record<string, string> {
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
    // The address may hold a booking's uid, which is all that is needed to cancel it.
    "Referrer-Policy": "no-referrer",
    ...headers,
  };
}

function document({ title, body, isPrivate, isEmbedded, status }: Page): string {
  return documentOf({
    language: "en",
    title,
    head: isPrivate || isEmbedded ? [unlisted] : [],
    styles: ["page.css", "scheduling.css"],
    look: isEmbedded && status === undefined ? "scheduling embedded" : "scheduling",
    body,
  });
}
