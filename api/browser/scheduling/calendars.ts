import type { Booking } from "../../../schemas/scheduling.ts";
import { link } from "../agent/address.ts";
import { element } from "../agent/element.ts";
import type { Host } from "./host.ts";
import { ownAddressOf, visit, words } from "./visit.ts";

/** Links that add a booking to the usual calendars, and its file for all others. */
export function calendarLinks({ calls }: Host, booking: Booking): HTMLElement {
  const file = { href: calls.calendarFile(booking.bookingUid), download: "booking.ics" };
  const links = [
    link(googleAddress(booking), "Google"),
    link(outlookAddress("outlook.live.com", booking), "Outlook"),
    link(outlookAddress("outlook.office.com", booking), "Microsoft 365"),
    element("a", file, words.calendarFile),
  ];
  return element(
    "div.calendars",
    { role: "group", "aria-label": words.addToCalendar },
    element("span.muted", words.addToCalendar),
    ...links,
  );
}

/** Google's page for a new event; times are in UTC, in basic format. */
function googleAddress(booking: Booking): string {
  const compact = (instant: string): string => new Date(instant).toISOString().replace(/[-:]|\.\d+/g, "");
  const { title, text, place } = eventTexts(booking);
  const dates = `${compact(booking.start)}/${compact(booking.end)}`;
  const query = new URLSearchParams({ action: "TEMPLATE", text: title, dates, details: text, location: place });
  return `https://calendar.google.com/calendar/render?${query}`;
}

/** Outlook's page for a new event, for private accounts or organisations. */
function outlookAddress(site: string, booking: Booking): string {
  const { title, text, place } = eventTexts(booking);
  const [startdt, enddt] = [booking.start, booking.end].map((instant) => new Date(instant).toISOString());
  const query = new URLSearchParams({
    path: "/calendar/action/compose",
    rru: "addevent",
    subject: title,
    startdt: startdt!,
    enddt: enddt!,
    body: text,
    location: place,
  });
  return `https://${site}/calendar/0/deeplink/compose?${query}`;
}

/** The title, text and place of the calendar entry. The text links to the booking, outside any frame. */
function eventTexts(booking: Booking): { title: string; text: string; place: string } {
  const description = visit.event?.description ?? "";
  return {
    title: `${booking.title} · ${visit.host.name}`,
    text: [description.slice(0, 1000), ownAddressOf(booking.bookingUid)].filter(Boolean).join("\n\n"),
    place: booking.meetingUrl ?? booking.location?.label ?? "",
  };
}
