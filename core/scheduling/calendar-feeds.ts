import type { CalendarFeed, CalendarFeedWithAddress, StoredBooking } from "../../schemas/scheduling.ts";
import type { Input } from "../../schemas/schema.ts";
import { displayNameOf, findHandle } from "../account/face.ts";
import { calendarOf } from "../engines/calendars/calendars.ts";
import { day } from "../platform/clock.ts";
import { digestOf } from "../platform/digest.ts";
import { Fail } from "../platform/errors.ts";
import type { Runtime } from "../platform/runtime.ts";
import { sameText } from "../platform/sealing.ts";
import { keys } from "../store/keys.ts";
import { readRecords } from "../store/records.ts";
import { takeToken } from "../store/throttle.ts";
import { eventOf } from "./calendar-events.ts";
import { type BookingRecord, statusAt, timestamp } from "./ledger.ts";

/** How far a feed looks back, in ms, and its most bookings. */
const LOOKS_BACK_MS = 90 * day;
const MAX_BOOKINGS = 1000;
/** Requests per feed: 30 at once, then one per 10 s. */
const FEED_LIMIT = { burst: 30, rate: 0.1 };

/** A stored feed, without its secret. */
type StoredFeed = CalendarFeed & { digest: string };

/** Creates the secret address of a handle's calendar feed; an earlier one becomes invalid. */
export async function createCalendarFeed(
  runtime: Runtime,
  { handle }: Input<"handle">,
): Promise<{ feed: CalendarFeedWithAddress }> {
  const secret = runtime.id("");
  const createdAt = timestamp(runtime);
  const stored: StoredFeed = { digest: digestOf(secret), createdAt };
  await runtime.redis.set(keys.calendarFeed(handle), JSON.stringify(stored));
  return { feed: { createdAt, url: `${runtime.env.BASE_URL}/v2/public/calendars/${handle}/${secret}.ics` } };
}

/** The handle's feed without its address; `not_found` if there is none. */
export async function readCalendarFeed(
  { redis }: Runtime,
  { handle }: Input<"handle">,
): Promise<{ feed: CalendarFeed }> {
  const feed = await findFeed(redis, handle);
  if (feed === undefined) throw new Fail("not_found", { detail: "The handle has no calendar feed." });
  return { feed: { createdAt: feed.createdAt } };
}

/** Revokes the feed: its address is 404 from the next request on. Without a feed nothing changes. */
export async function deleteCalendarFeed({ redis }: Runtime, { handle }: Input<"handle">): Promise<void> {
  await redis.del(keys.calendarFeed(handle));
}

/**
 * The accepted and pending bookings of a handle as a calendar, from 90 days ago on, at most 1,000, for clients with the address.
 * `not_found`, `rate_limited`.
 */
export async function readFeed(
  runtime: Runtime,
  { handle, file }: Input<"handle" | "file">,
): Promise<{ text: string; etag: string }> {
  const { redis } = runtime;
  const [feed, named] = await Promise.all([findFeed(redis, handle), findHandle(redis, handle)]);
  // The same answer for all: strangers can't learn which handles have a feed.
  if (!feed || !named?.active || !sameText(digestOf(file.replace(/\.ics$/, "")), feed.digest))
    throw new Fail("not_found");
  await takeToken(runtime, { name: "calendar-feed", tag: handle, ...FEED_LIMIT });
  const bookings = await feedBookings(runtime, handle);
  const entries = await Promise.all(
    bookings.map(async (stored) => ({
      event: await eventOf(runtime, handle, { stored, meeting: null }),
      isTentative: statusAt(stored, runtime.now()) === "PENDING",
    })),
  );
  const text = calendarOf(await displayNameOf(redis, handle), entries);
  // Weak, since the content codings of the text have other bytes (RFC 9110, section 8.8.1).
  return { text, etag: `W/"${digestOf(text)}"` };
}

async function findFeed(redis: Runtime["redis"], handle: string): Promise<StoredFeed | undefined> {
  const json = await redis.get(keys.calendarFeed(handle));
  return json === null ? undefined : (JSON.parse(json) as StoredFeed);
}

/** By start: the bookings ahead, and the last ones before them while there is room. */
async function feedBookings({ redis, now }: Runtime, handle: string): Promise<BookingRecord[]> {
  const at = now();
  const found = await Promise.all(
    (["ACCEPTED", "PENDING"] as const).flatMap((status) => {
      const list = keys.bookings(handle, status);
      return [
        redis.zrangebyscore(list, at, "+inf", "LIMIT", 0, MAX_BOOKINGS),
        redis.zrevrangebyscore(list, `(${at}`, at - LOOKS_BACK_MS, "LIMIT", 0, MAX_BOOKINGS),
      ];
    }),
  );
  const bookings = await readRecords<StoredBooking>(redis, found.flat(), (uid) => keys.booking(handle, uid));
  bookings.sort((one, other) => Date.parse(one.start) - Date.parse(other.start));
  const ahead = bookings.filter(({ start }) => Date.parse(start) >= at).length;
  const first = Math.max(0, bookings.length - Math.max(ahead, MAX_BOOKINGS));
  return bookings.slice(first, first + MAX_BOOKINGS);
}
