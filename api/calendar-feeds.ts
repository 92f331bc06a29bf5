import { createCalendarFeed, deleteCalendarFeed, readCalendarFeed, readFeed } from "../core/scheduling/face.ts";
import {
  calendarFeedAnswer,
  calendarFeedPath,
  newCalendarFeed,
  publicCalendarFeed,
  shownCalendarFeedAnswer,
} from "../schemas/scheduling.ts";
import { anyone, creator, type Row, route, type View } from "./route.ts";

const feed = "/v2/handles/:handle/scheduling/calendar-feed";

/** The bookings of a handle as a calendar feed at a secret address. */
export const calendarFeedRows: Row[] = [
  route(`POST ${feed}`, creator, newCalendarFeed, createCalendarFeed, {
    status: 201,
    returns: shownCalendarFeedAnswer,
    wrote: () => "calendar-feed",
    summary: "Create or rotate the calendar feed",
    description:
      "Answers a secret address that any calendar can subscribe to; it is in this answer only. An earlier address ends at once.",
  }),
  route(`GET ${feed}`, creator, calendarFeedPath, readCalendarFeed, {
    returns: calendarFeedAnswer,
    summary: "Get the calendar feed",
    failures: ["not_found"],
  }),
  route(`DELETE ${feed}`, creator, calendarFeedPath, deleteCalendarFeed, {
    summary: "Revoke the calendar feed",
    description: "Its address answers 404 from the next request on. It is no error if there is none.",
  }),
  route("GET /v2/public/calendars/:handle/:file", anyone, publicCalendarFeed, readFeed, {
    view: feedView,
    summary: "Subscribe to the bookings of a handle",
    description:
      "An iCalendar file of the accepted and pending bookings from 90 days ago on, at most 1,000. The address is the capability.",
    failures: ["not_found", "rate_limited"],
    produces: { types: ["text/calendar"], example: "BEGIN:VCALENDAR\r\n…\r\nEND:VCALENDAR\r\n" },
  }),
];

function feedView({ text, etag }: { text: string; etag: string }): View {
  const headers = { ETag: etag, "Cache-Control": "private, no-cache", "Referrer-Policy": "no-referrer" };
  return { type: "text/calendar; charset=utf-8", body: text, headers };
}
