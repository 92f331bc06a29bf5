import { Buffer } from "node:buffer";
import t, { type Test as TapTest } from "tap";
import { syncBooking } from "../core/scheduling/calendar-events.ts";
import { keys } from "../core/store/keys.ts";
import {
  GRAPH_RATE_LIMITED,
  type MicrosoftServer,
  type StoredGraphEvent,
  startMicrosoft,
} from "../fixtures/providers/microsoft.ts";
import { Refusal } from "../fixtures/providers/oauth.ts";
import { type Desk, openDesk } from "../fixtures/scheduling/desk.ts";
import { eventually } from "../fixtures/service.ts";

const owned = "/v2/handles/acme/scheduling";
const [own, shared] = ["AAMkDefault=", "AAMkShared="];

interface Office extends Desk {
  microsoft: MicrosoftServer;
  /** Puts an event into the owner's calendar, or changes the one with this id. */
  put(event: Partial<StoredGraphEvent>): StoredGraphEvent;
  remove(id: string): void;
}

async function start(t: TapTest, options: { location?: string; workers?: string[] } = {}): Promise<Office> {
  const microsoft = await startMicrosoft();
  t.teardown(() => microsoft.close());
  const desk = await openDesk(t, { providerKey: "microsoft", env: microsoft.env, ...options });
  const [calendar] = microsoft.calendars;
  if (calendar === undefined) throw new Error("no calendar");
  return {
    ...desk,
    microsoft,
    put: (event) => microsoft.put(calendar, event),
    remove: (id) => microsoft.remove(calendar, id),
  };
}

/** An event of the owner on a day, from one hour of UTC to another. */
function timed(date: string, from: string, to: string): Pick<StoredGraphEvent, "start" | "end"> {
  const at = (hour: string) => ({ dateTime: `${date}T${hour}:00.0000000`, timeZone: "UTC" });
  return { start: at(from), end: at(to) };
}

/** The event that stands in the owner's calendar, once there is one that fits. */
function written(
  { microsoft }: Office,
  fits: (event: StoredGraphEvent) => boolean = () => true,
): Promise<StoredGraphEvent> {
  return eventually(() => {
    const [event, ...more] = microsoft.calendars[0]?.events.values() ?? [];
    return more.length === 0 && event && fits(event) && event;
  });
}

const startsAt =
  (instant: string) =>
  ({ start }: StoredGraphEvent): boolean =>
    start.dateTime.startsWith(instant);

const full = (from: number, to: number): string[] =>
  Array.from({ length: (to - from) * 2 }, (_, at) => {
    const minutes = at % 2 ? "30" : "00";
    return `${String(from + Math.floor(at / 2)).padStart(2, "0")}:${minutes}`;
  });

t.test("calendars are listed with the default one and write access", async (t) => {
  const { owner, credentialId } = await start(t, { workers: [] });
  const { calendars } = (await owner.get(`${owned}/integrations/microsoft/calendars`).expect(200)).body;
  t.same(calendars, [
    { calendarId: own, credentialId, name: "Calendar", primary: true, writable: true },
    { calendarId: shared, credentialId, name: "Shared", primary: false, writable: false },
  ]);
});

t.test("busy times take slots away: by how they show themselves, whole days, series", async (t) => {
  const { put, select, free } = await start(t, { workers: [] });
  put(timed("2026-10-06", "09:00", "11:00"));
  put({ ...timed("2026-10-06", "12:00", "13:00"), showAs: "free" });
  put({ ...timed("2026-10-06", "13:00", "14:00"), showAs: "workingElsewhere" });
  put({ ...timed("2026-10-06", "14:00", "15:00"), responseStatus: { response: "declined" } });
  put({ ...timed("2026-10-06", "15:00", "16:00"), isCancelled: true });
  put({ ...timed("2026-10-06", "16:00", "17:00"), showAs: "tentative" });
  put({ ...timed("2026-10-07", "09:00", "16:00"), showAs: "busy", weeks: 3 });
  put({ ...timed("2026-10-08", "09:00", "16:00"), showAs: "free", weeks: 3 });
  put({ ...timed("2026-10-09", "00:00", "00:00"), end: timed("2026-10-10", "00:00", "00:00").start, isAllDay: true });
  await select([own]).expect(200);
  t.same(await free("2026-10-06"), full(11, 16));
  for (const date of ["2026-10-07", "2026-10-14", "2026-10-21"]) t.same(await free(date), full(16, 17), date);
  t.same(await free("2026-10-28"), full(9, 17));
  t.same(await free("2026-10-15"), full(9, 17), "a series that is shown as free");
  t.same(await free("2026-10-09"), []);
});

t.test("only changes are read again: new, moved and deleted events, and one occurrence of a series", async (t) => {
  const { microsoft, put, remove, select, free, refresh } = await start(t, { workers: [] });
  const moved = put(timed("2026-10-06", "09:00", "12:00"));
  const deleted = put(timed("2026-10-07", "09:00", "12:00"));
  const series = put({ ...timed("2026-10-08", "09:00", "16:30"), showAs: "busy", weeks: 3 });
  for (let day = 10; day < 30; day++) put(timed(`2026-11-${day}`, "09:00", "17:00"));
  await select([own]).expect(200);
  const whole = microsoft.oauth.calls.length;
  put({ id: moved.id, ...timed("2026-10-06", "15:00", "17:00") });
  remove(deleted.id);
  remove(`${series.id}.1`);
  put(timed("2026-10-09", "09:00", "16:00"));
  await refresh();
  t.same(await free("2026-10-06"), full(9, 15));
  t.same(await free("2026-10-07"), full(9, 17));
  t.same(await free("2026-10-08"), ["16:30"]);
  t.same(await free("2026-10-15"), full(9, 17), "the deleted occurrence, of which no word is said");
  t.same(await free("2026-10-22"), ["16:30"]);
  t.same(await free("2026-10-09"), full(16, 17));
  t.same(await free("2026-11-12"), []);
  const since = microsoft.oauth.calls.length - whole;
  t.ok(since < 8, `${since} calls for five changes`);
  remove(series.id);
  await refresh();
  t.same(await free("2026-10-22"), full(9, 17), "the whole series, which ends as occurrences without a name");
  t.same(await free("2026-10-09"), full(16, 17));
});

t.test("an event that one round names as changed and as deleted is deleted", async (t) => {
  const { microsoft, put, select, free, refresh } = await start(t, { workers: [] });
  const event = put(timed("2026-10-06", "09:00", "12:00"));
  await select([own]).expect(200);
  t.same(await free("2026-10-06"), full(12, 17));
  // It was changed before the first page of the round, and deleted before the last one.
  put({ id: event.id, ...timed("2026-10-06", "09:00", "13:00") });
  microsoft.calendars[0]?.changes.push(`-${event.id}`);
  await refresh();
  t.same(await free("2026-10-06"), full(9, 17));
});

t.test("a delta link that leads nowhere is dropped, and an event that is none hides no other", async (t) => {
  const { microsoft, put, select, refresh, free, owner } = await start(t, { workers: [] });
  await select([own]).expect(200);
  const good = { ...put(timed("2026-10-06", "09:00", "16:00")), type: "singleInstance", showAs: "busy" };
  for (const bad of [null, { ...good, id: 5 }, { ...good, id: "bad", start: {} }]) {
    for (const link of ["/v1.0/me/nothing/delta?$deltatoken=1", "https://other.test/v1.0/me/nothing"]) {
      microsoft.oauth.trouble = [new Refusal(200, { value: [bad, good], "@odata.deltaLink": link })];
      await refresh();
      t.same(await free("2026-10-06"), full(16, 17), JSON.stringify(bad));
      await refresh();
      t.same(await free("2026-10-06"), full(16, 17), "read again");
      t.match((await owner.get(`${owned}/integrations`)).body.credentials, [{ status: "OK" }], link);
    }
  }
});

t.test("a lost delta token means that all is read again", async (t) => {
  const { microsoft, put, remove, select, free, refresh, owner } = await start(t, { workers: [] });
  const gone = put(timed("2026-10-06", "09:00", "12:00"));
  await select([own]).expect(200);
  microsoft.forget();
  remove(gone.id);
  put(timed("2026-10-07", "09:00", "12:00"));
  await refresh();
  t.same(await free("2026-10-06"), full(9, 17));
  t.same(await free("2026-10-07"), full(12, 17));
  t.match((await owner.get(`${owned}/integrations`)).body.credentials, [{ status: "OK" }]);
});

t.test(
  "a booking's event is created with a Teams link, moved and removed; Microsoft sends no invitations",
  async (t) => {
    const desk = await start(t, { location: "teams" });
    desk.microsoft.meetingAfter = 2;
    await desk.select([own], own).expect(200);
    const uid = await desk.booked("2026-10-06T10:00:00Z");
    const made = await written(desk, ({ onlineMeeting }) => Boolean(onlineMeeting));
    t.match(made, {
      subject: "Talk with Ada Lovelace",
      start: { dateTime: "2026-10-06T10:00:00", timeZone: "UTC" },
      end: { dateTime: "2026-10-06T10:30:00" },
      showAs: "busy",
    });
    t.notOk(made.attendees);
    const { meetingUrl } = await eventually(async () => {
      const booking = await desk.booking(uid);
      return booking.meetingUrl !== null && booking;
    });
    t.equal(meetingUrl, made.onlineMeeting?.joinUrl);
    await desk.moved(uid, "2026-10-07T11:00:00Z").expect(200);
    const moved = await written(desk, startsAt("2026-10-07T11:00"));
    t.equal(moved.id, made.id);
    t.equal(moved.onlineMeeting?.joinUrl, made.onlineMeeting?.joinUrl, "the meeting stays");
    await desk.cancelled(uid).expect(200);
    await eventually(() => desk.microsoft.calendars[0]?.events.size === 0);
    t.match(await desk.booking(uid), { status: "CANCELLED", syncStatus: "OK" });
  },
);

t.test("an attempt that was repeated, or ended before it could be noted, leaves one event", async (t) => {
  const desk = await start(t, { workers: [] });
  await desk.select([], own).expect(200);
  const bookingUid = await desk.booked("2026-10-06T10:00:00Z");
  const { runtime } = desk.service;
  const sync = () => syncBooking(runtime, { handle: "acme", bookingUid });
  const forget = () => runtime.redis.hdel(keys.booking("acme", bookingUid), "written");
  await Promise.all([sync(), sync(), sync()]);
  const { id } = await written(desk);
  await forget();
  await sync();
  t.match(await written(desk), { id }, "the same content again");
  await forget();
  await desk.moved(bookingUid, "2026-10-07T11:00:00Z").expect(200);
  await sync();
  t.match(await written(desk, startsAt("2026-10-07T11:00")), { id }, "newer content");
});

t.test("an event whose change was answered without it goes with its cancelled booking all the same", async (t) => {
  const desk = await start(t, { workers: [] });
  await desk.select([], own).expect(200);
  const bookingUid = await desk.booked("2026-10-06T10:00:00Z");
  const { runtime } = desk.service;
  const sync = () => syncBooking(runtime, { handle: "acme", bookingUid });
  await sync();
  const request = runtime.outbound.request.bind(runtime.outbound);
  runtime.outbound.request = async (address, call) => {
    const answer = await request(address, call);
    return call?.method === "PATCH" ? { ...answer, body: Buffer.from("{}") } : answer;
  };
  await desk.moved(bookingUid, "2026-10-07T11:00:00Z").expect(200);
  await t.rejects(sync());
  t.match(await desk.booking(bookingUid), { syncStatus: "DEGRADED" });
  runtime.outbound.request = request;
  await desk.cancelled(bookingUid).expect(200);
  await sync();
  t.equal(desk.microsoft.calendars[0]?.events.size, 0);
});

t.test("owners' changes stay, and deleted events are created again", async (t) => {
  const desk = await start(t);
  await desk.select([], own).expect(200);
  const uid = await desk.booked("2026-10-06T10:00:00Z");
  const { id } = await written(desk);
  const noted = () => desk.service.runtime.redis.hget(keys.booking("acme", uid), "written");
  await eventually(async () => (await noted())?.includes("eventId"));
  desk.put({ id, importance: "high" });
  await desk.moved(uid, "2026-10-07T11:00:00Z").expect(200);
  t.match(await written(desk, startsAt("2026-10-07T11:00")), { id, importance: "high" });
  desk.remove(id);
  await desk.moved(uid, "2026-10-08T11:00:00Z").expect(200);
  await written(desk, startsAt("2026-10-08T11:00"));
  await eventually(async () => (await desk.booking(uid)).syncStatus === "OK");
});

t.test("a booking's own event doesn't take its time", async (t) => {
  const desk = await start(t);
  await desk.select([own], own).expect(200);
  const uid = await desk.booked("2026-10-06T10:00:00Z");
  await written(desk);
  await desk.refresh();
  await desk.moved(uid, "2026-10-06T10:00:00Z").expect(200);
});

t.test("owners learn that a calendar is gone or can't be written, and what to do", async (t) => {
  const { microsoft, owner, service, select, refresh, booked, credentialId } = await start(t, { workers: [] });
  const [calendar] = microsoft.calendars as [(typeof microsoft.calendars)[number]];
  const sync = (bookingUid: string) => syncBooking(service.runtime, { handle: "acme", bookingUid });
  await select([own as string], own).expect(200);
  calendar.canEdit = false;
  const bookingUid = await booked("2026-10-06T10:00:00Z");
  await t.rejects(sync(bookingUid), { message: /denies access to a selected calendar.+ 403 \(ErrorAccessDenied\)/ });
  microsoft.calendars.shift();
  await t.rejects(sync(bookingUid), { message: /no longer exists.+ 404 \(ErrorItemNotFound\)/ });
  await refresh();
  const gone = { credentialId, status: "DEGRADED", detail: /^A selected calendar no longer exists at the provider;/ };
  t.match((await owner.get(`${owned}/integrations`)).body.credentials, [gone]);
});

t.test("owners learn that an account has no calendars, such as one without a mailbox", async (t) => {
  const { microsoft, owner } = await start(t, { workers: [] });
  microsoft.oauth.trouble = [new Refusal(404, { error: { code: "MailboxNotEnabledForRESTAPI" } })];
  t.match((await owner.get(`${owned}/integrations/microsoft/calendars`).expect(503)).body, {
    code: "service_unavailable",
    detail: /denies access to the calendars of this account; .+ 404 \(MailboxNotEnabledForRESTAPI\)/,
  });
});

t.test("a token goes to the address of the settings alone, wherever a link points", async (t) => {
  const { microsoft, put, select, free } = await start(t, { workers: [] });
  for (let hour = 9; hour < 15; hour++) put(timed("2026-10-06", `${hour}:00`.padStart(5, "0"), `${hour + 1}:00`));
  await select([own]).expect(200);
  t.same(await free("2026-10-06"), full(15, 17), "all pages were read from our server though links name another");
  t.ok(microsoft.oauth.calls.length > 4);
});

t.test("a mailbox is never asked more at once than it takes", async (t) => {
  const { microsoft, select } = await start(t, { workers: [] });
  const names = Array.from({ length: 12 }, (_, at) => microsoft.addCalendar(`Team${at}`));
  await select(names).expect(200);
  t.equal(microsoft.oauth.refusedAsTooMany, 0);
});

t.test("limits of Microsoft are waited for", async (t) => {
  const desk = await start(t);
  await desk.select([], own).expect(200);
  desk.microsoft.oauth.trouble.push(GRAPH_RATE_LIMITED(1));
  const uid = await desk.booked("2026-10-06T10:00:00Z");
  await written(desk);
  t.match(await desk.booking(uid), { syncStatus: "OK" });
});
