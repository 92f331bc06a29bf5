import { formatMinutes, formatMoney } from "../../../core/platform/formats.ts";
import { locationName } from "../../../core/platform/locations.ts";
import { fillPlaceholders } from "../../../core/platform/placeholders.ts";
import type { Booking, PublicEvent } from "../../../schemas/scheduling.ts";
import { element, type Part } from "../agent/element.ts";
import type { Host } from "./host.ts";
import { type Icon, pageIcon } from "./icons.ts";
import { linked } from "./links.ts";
import { clock, dateText, locale, rangeText, zoneText } from "./times.ts";
import { visit, words } from "./visit.ts";

type Location = PublicEvent["locations"][number];

/** Summary of the event: title and length; before booking also the place, the price and the chosen time. */
export function eventInfo(host: Host, isDeciding: boolean, slot?: { start: string; end: string }): HTMLElement {
  const { event, booking } = visit;
  const shown = event ?? { title: booking?.title ?? "", duration: booking?.durationMinutes ?? 0, description: "" };
  const former = isDeciding ? host.booking : null;
  const facts = [
    former && fact("calendar", formerTime(former), "former"),
    slot && fact("calendar", timeOf(slot), "chosen"),
    fact("time", formatMinutes(shown.duration, locale)),
    ...(event && isDeciding ? eventFacts(event) : []),
  ];
  return element(
    "div.info",
    hostName(),
    element("h1", { dir: "auto" }, shown.title),
    element("ul.facts", ...facts),
    shown.description !== "" && element("p.description", { dir: "auto" }, ...linked(shown.description)),
  );
}

/** The host: name, and logo if there is one. */
function hostName(): HTMLElement {
  const { name, logoUrl } = visit.host;
  const logo = logoUrl !== null && element("img.logo", { src: logoUrl, alt: "", decoding: "async" });
  return element("p.handle", logo, element("span", { dir: "auto" }, name));
}

/** The booking's present time while another is chosen. */
function formerTime(booking: Booking): HTMLElement {
  return element("span", element("strong", words.before), timeOf(booking));
}

/** `Monday, 5 October 2026`, and `09:30 – 10:00` with the zone below it. */
export function timeOf(slot: { start: string; end: string }): HTMLElement {
  return element(
    "span.time",
    element("span", dateText(slot.start)),
    element("span", rangeText(slot)),
    element("span.zone-name", zoneText(clock.zone, Date.parse(slot.start))),
  );
}

/** The display name of a place. A meeting link is only shown to the attendee. */
export function placeName({ type, label }: Location): string {
  const isAddress = /^https?:/i.test(label);
  return label === "" || isAddress ? locationName(type, words) : label;
}

function eventFacts(event: PublicEvent): HTMLElement[] {
  const price = event.price && fillPlaceholders(words.paid, { price: formatMoney(event.price, locale) });
  return [
    ...event.locations.map((location) => fact("place", placeName(location))),
    ...(price ? [fact("price", price)] : []),
    ...(event.confirmationRequired ? [fact("wait", words.needsConfirmation)] : []),
  ];
}

function fact(name: Icon, text: string | HTMLElement, look = ""): HTMLElement {
  const node = typeof text === "string" ? element("span", { dir: "auto" }, text) : text;
  return element("li", { class: look }, pageIcon(name), node);
}

/** The attendee and the state of the booking, as rows of a name and a value. */
export function bookingRows(booking: Booking): HTMLElement {
  const rows: [string, Part][] = [
    [words.when, timeOf(booking)],
    [words.before, isMoved(booking) ? timeOf(booking.rescheduledFrom) : null],
    [words.location, booking.location && placeName(booking.location)],
    [words.who, [booking.attendee.name, ...booking.guests.map(({ name, email }) => name || email)].join(", ")],
    [words.reason, isEnded(booking) ? booking.cancellationReason : booking.reschedulingReason],
  ];
  const shown = rows.filter(([, value]) => Boolean(value));
  return element(
    "dl",
    ...shown.map(([name, value]) => element("div", element("dt", name), element("dd", { dir: "auto" }, value))),
  );
}

type Moved = Booking & { rescheduledFrom: { start: string; end: string } };

function isMoved(booking: Booking): booking is Moved {
  return booking.rescheduledFrom !== null && !isEnded(booking);
}

/** True for a cancelled or declined booking, which can be neither moved nor cancelled. */
export function isEnded({ status }: Booking): boolean {
  return status === "CANCELLED" || status === "REJECTED";
}
