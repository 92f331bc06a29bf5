import t, { type Test as TapTest } from "tap";
import { syncBooking } from "../core/scheduling/calendar-events.ts";
import { storeCredential } from "../core/scheduling/credentials.ts";
import { keys } from "../core/store/keys.ts";
import { connectAccount } from "../fixtures/providers/consent.ts";
import {
  GOOGLE_RATE_LIMITED,
  type GoogleServer,
  type StoredGoogleEvent,
  startGoogle,
} from "../fixtures/providers/google.ts";
import { Refusal } from "../fixtures/providers/oauth.ts";
import { keyNames } from "../fixtures/redis.ts";
import { type Desk, openDesk } from "../fixtures/scheduling/desk.ts";
import { eventually } from "../fixtures/service.ts";
import { startReceiver } from "../fixtures/webhook-receiver.ts";

const owned = "/v2/handles/acme/scheduling";
const own = "owner@gmail.test";

async function start(
  t: TapTest,
  options: { location?: string; workers?: string[] } = {},
): Promise<Desk & { google: GoogleServer }> {
  const google = await startGoogle(own);
  t.teardown(() => google.close());
  return { ...(await openDesk(t, { providerKey: "google", env: google.env, ...options })), google };
}

/** An event of the owner on a day, from one hour of UTC to another. */
function timed(date: string, from: string, to: string): Pick<StoredGoogleEvent, "start" | "end"> {
  return { start: { dateTime: `${date}T${from}:00Z` }, end: { dateTime: `${date}T${to}:00Z` } };
}

/** The event that stands in the owner's calendar, once there is one that fits. */
function written(
  { google }: { google: GoogleServer },
  fits: (event: StoredGoogleEvent) => boolean = () => true,
): Promise<StoredGoogleEvent> {
  return eventually(() => {
    const events = [...(google.calendars.get(own)?.events.values() ?? [])].filter(
      ({ status }) => status !== "cancelled",
    );
    const [event, ...more] = events;
    return more.length === 0 && event && fits(event) && event;
  });
}

const full = (from: number, to: number): string[] =>
  Array.from({ length: (to - from) * 2 }, (_, at) => {
    const minutes = at % 2 ? "30" : "00";
    return `${String(from + Math.floor(at / 2)).padStart(2, "0")}:${minutes}`;
  });

t.test("calendars are listed over all pages, with write access", async (t) => {
  const { owner, google, credentialId } = await start(t, { workers: [] });
  google.pageSize = 1;
  const { calendars } = (await owner.get(`${owned}/integrations/google/calendars`).expect(200)).body;
  t.same(calendars, [
    { calendarId: own, credentialId, name: "Own", primary: true, writable: true },
    {
      calendarId: "holidays@group.v.calendar.google.com",
      credentialId,
      name: "Holidays",
      primary: false,
      writable: false,
    },
  ]);
});

t.test("an account whose grant has ended hides no calendars of the others", async (t) => {
  const { owner, service, credentialId } = await start(t, { workers: [] });
  const secret = JSON.stringify({ accessToken: "old", refreshToken: "revoked", staleAt: 0 });
  const ended = { providerKey: "google" as const, account: "second@gmail.test", secret };
  const second = await storeCredential(service.runtime, "acme", ended);
  const { calendars } = (await owner.get(`${owned}/integrations/google/calendars`).expect(200)).body;
  t.same(new Set(calendars.map((one: { credentialId: string }) => one.credentialId)), new Set([credentialId]));
  const { credentials } = (await owner.get(`${owned}/integrations`).expect(200)).body;
  const states = credentials.map((one: { credentialId: string; status: string }) => [one.credentialId, one.status]);
  t.same(new Map(states).get(second.credentialId), "DEGRADED");
  t.same(new Map(states).get(credentialId), "OK");
  await owner.delete(`${owned}/integrations/google/credentials/${credentialId}`).expect(204);
  const refused = await owner.get(`${owned}/integrations/google/calendars`).expect(409);
  t.equal(refused.body.code, "integration_revoked", "of the only account");
});

t.test("if no account's calendars can be read, the owner learns which account to connect again", async (t) => {
  const { owner, service, google } = await start(t, { workers: [] });
  const secret = JSON.stringify({ accessToken: "old", refreshToken: "revoked", staleAt: 0 });
  const ended = { providerKey: "google" as const, account: "second@gmail.test", secret };
  const { credentialId } = await storeCredential(service.runtime, "acme", ended);
  google.oauth.pausedUntil = Number.POSITIVE_INFINITY;
  const refused = await owner.get(`${owned}/integrations/google/calendars`).expect(409);
  t.equal(refused.body.code, "integration_revoked");
  await owner.delete(`${owned}/integrations/google/credentials/${credentialId}`).expect(204);
  const away = await owner.get(`${owned}/integrations/google/calendars`).expect(503);
  t.equal(away.body.code, "service_unavailable", "the other account answers later");
});

t.test("a calendar that can only be read is no destination", async (t) => {
  const { select } = await start(t, { workers: [] });
  const refused = await select([], "holidays@group.v.calendar.google.com").expect(400);
  t.match(refused.body, { code: "invalid_request", errors: [{ path: "/destinationCalendarId" }] });
});

t.test("busy times take slots away: timed ones, whole days of the calendar's zone, series", async (t) => {
  const { google, select, free } = await start(t, { workers: [] });
  google.put(own, timed("2026-10-06", "09:00", "11:00"));
  google.put(own, { ...timed("2026-10-06", "12:00", "13:00"), transparency: "transparent" });
  google.put(own, {
    ...timed("2026-10-06", "13:00", "14:00"),
    attendees: [{ self: true, responseStatus: "declined" }],
  });
  google.put(own, { ...timed("2026-10-06", "14:00", "15:00"), eventType: "workingLocation" });
  google.put(own, { ...timed("2026-10-06", "16:00", "17:00"), status: "tentative" });
  google.put(own, { ...timed("2026-10-07", "09:00", "16:00"), recurrence: ["RRULE:FREQ=WEEKLY;COUNT=3"] });
  google.put("holidays@group.v.calendar.google.com", { start: { date: "2026-10-09" }, end: { date: "2026-10-10" } });
  t.equal((await free("2026-10-06")).length, 16);
  await select([own, "holidays@group.v.calendar.google.com"]).expect(200);
  t.same(await free("2026-10-06"), full(11, 16));
  for (const date of ["2026-10-07", "2026-10-14", "2026-10-21"]) t.same(await free(date), full(16, 17), date);
  t.same(await free("2026-10-28"), full(9, 17));
  t.same(await free("2026-10-09"), []);
  t.same((await free("2026-10-08")).length, 16, "the day before ends before its local midnight");
});

t.test("only changes are read again: new, moved and deleted events, and one instance of a series", async (t) => {
  const { google, select, free, refresh } = await start(t, { workers: [] });
  const moved = google.put(own, timed("2026-10-06", "09:00", "12:00"));
  const deleted = google.put(own, timed("2026-10-07", "09:00", "12:00"));
  const series = google.put(own, {
    ...timed("2026-10-08", "09:00", "16:30"),
    recurrence: ["RRULE:FREQ=WEEKLY;COUNT=3"],
  });
  for (let day = 10; day < 20; day++) google.put(own, timed(`2026-11-${day}`, "09:00", "17:00"));
  await select([own]).expect(200);
  const whole = google.oauth.calls.length;
  google.put(own, { id: moved.id, ...timed("2026-10-06", "15:00", "17:00") });
  google.remove(own, deleted.id);
  google.remove(own, `${series.id}_20261015T090000Z`);
  google.put(own, timed("2026-10-09", "09:00", "16:00"));
  await refresh();
  t.same(await free("2026-10-06"), full(9, 15));
  t.same(await free("2026-10-07"), full(9, 17));
  t.same(await free("2026-10-08"), ["16:30"]);
  t.same(await free("2026-10-15"), full(9, 17), "the deleted instance");
  t.same(await free("2026-10-22"), ["16:30"]);
  t.same(await free("2026-10-09"), full(16, 17));
  t.same(await free("2026-11-12"), []);
  const since = google.oauth.calls.length - whole;
  t.ok(since < 6, `${since} calls for five changes`);
  google.remove(own, series.id);
  await refresh();
  t.same(await free("2026-10-22"), full(9, 17), "the whole series");
});

t.test("a lost sync token means that all is read again", async (t) => {
  const { google, select, free, refresh, owner } = await start(t, { workers: [] });
  const gone = google.put(own, timed("2026-10-06", "09:00", "12:00"));
  await select([own]).expect(200);
  google.forget();
  google.remove(own, gone.id);
  google.put(own, timed("2026-10-07", "09:00", "12:00"));
  await refresh();
  t.same(await free("2026-10-06"), full(9, 17));
  t.same(await free("2026-10-07"), full(12, 17));
  t.match((await owner.get(`${owned}/integrations`)).body.credentials, [{ status: "OK" }]);
});

t.test("a booking reads a calendar again that was read more than 10 s ago", async (t) => {
  const { google, select, book, service } = await start(t, { workers: [] });
  await select([own]).expect(200);
  google.put(own, timed("2026-10-06", "10:00", "11:00"));
  await service.runtime.redis.hset(keys.busyState("acme"), "at", Date.now() - 10_001);
  const taken = await book("talk", "2026-10-06T10:00:00Z", 30).expect(409);
  t.equal(taken.body.code, "scheduling_slot_unavailable");
});

t.test("a booking doesn't wait for a provider that doesn't answer: its last word counts", async (t) => {
  const { google, select, book, service } = await start(t, { workers: [] });
  google.put(own, timed("2026-10-06", "10:00", "11:00"));
  await select([own]).expect(200);
  await service.runtime.redis.hset(keys.busyState("acme"), "at", Date.now() - 61_000);
  google.oauth.hangs = true;
  const started = Date.now();
  await book("talk", "2026-10-06T12:00:00Z", 30).expect(201);
  t.ok(Date.now() - started < 3000, "1.5 s, and the time of a busy machine");
  t.equal(google.oauth.hanging, 1, "the provider is still being asked");
  await book("talk", "2026-10-06T10:00:00Z", 30).expect(409);
});

t.test("a booking's event is created with a Meet link, moved and removed; Google sends no invitations", async (t) => {
  const desk = await start(t, { location: "google_meet" });
  desk.google.conferenceAfter = 2;
  await desk.select([own], own).expect(200);
  const uid = await desk.booked("2026-10-06T10:00:00Z");
  const made = await written(desk, ({ hangoutLink }) => hangoutLink !== undefined);
  t.match(made, {
    summary: "Talk with Ada Lovelace",
    start: { dateTime: "2026-10-06T10:00:00.000Z", timeZone: "UTC" },
    end: { dateTime: "2026-10-06T10:30:00.000Z" },
    id: /^[0-9a-v]{5,}$/,
    description: /Ada Lovelace &#60;ada@example.com&#62;/,
  });
  t.notOk(made.attendees);
  t.notOk(made.id.includes(uid.toLowerCase()), "the id of the event doesn't give the booking away");
  const { meetingUrl } = await eventually(async () => {
    const booking = await desk.booking(uid);
    return booking.meetingUrl !== null && booking;
  });
  t.equal(meetingUrl, made.hangoutLink);
  await desk.moved(uid, "2026-10-07T11:00:00Z").expect(200);
  const moved = await written(desk, ({ start }) => start.dateTime === "2026-10-07T11:00:00.000Z");
  t.equal(moved.id, made.id);
  t.equal(moved.hangoutLink, made.hangoutLink, "the link stays");
  await desk.cancelled(uid).expect(200);
  await eventually(() => desk.google.calendars.get(own)?.events.get(made.id)?.status === "cancelled");
  t.match(await desk.booking(uid), { status: "CANCELLED", syncStatus: "OK" });
});

t.test("an answer that is longer than a description of Google's leaves its booking in the calendar", async (t) => {
  const desk = await start(t);
  await desk.event({ slug: "long", bookingFields: [{ id: "note", label: "Note", type: "textarea" }] });
  await desk.select([own], own).expect(200);
  const answers = { note: `${"&".repeat(5000)}${"😀".repeat(2500)}` };
  await desk.book("long", "2026-10-06T10:00:00Z", 30, { answers }).expect(201);
  const { description } = await written(desk);
  t.match(description, /Note: (&#38;)+$/);
});

t.test("an attempt that was repeated, or ended before it could be noted, leaves one event", async (t) => {
  const desk = await start(t, { workers: [] });
  await desk.select([], own).expect(200);
  const bookingUid = await desk.booked("2026-10-06T10:00:00Z");
  const { runtime } = desk.service;
  const sync = () => syncBooking(runtime, { handle: "acme", bookingUid });
  await Promise.all([sync(), sync(), sync()]);
  const { id } = await written(desk);
  await runtime.redis.hdel(keys.booking("acme", bookingUid), "written");
  await desk.moved(bookingUid, "2026-10-07T11:00:00Z").expect(200);
  await sync();
  const moved = await written(desk, ({ start }) => start.dateTime === "2026-10-07T11:00:00.000Z");
  t.equal(moved.id, id);
});

t.test(
  "a provider that refuses connections degrades its account and the bookings, as any failure of it does",
  async (t) => {
    const desk = await start(t, { workers: [] });
    await desk.select([own], own).expect(200);
    const bookingUid = await desk.booked("2026-10-06T10:00:00Z");
    await desk.google.close();
    await t.rejects(syncBooking(desk.service.runtime, { handle: "acme", bookingUid }), { message: /^google: / });
    t.match(await desk.booking(bookingUid), { syncStatus: "DEGRADED" });
    await desk.refresh();
    const { credentials } = (await desk.owner.get(`${owned}/integrations`).expect(200)).body;
    t.match(credentials, [{ status: "DEGRADED" }]);
  },
);

t.test("an event of an attempt that ended before it could be noted goes with its cancelled booking", async (t) => {
  const desk = await start(t, { workers: [] });
  const { runtime } = desk.service;
  await desk.select([], own).expect(200);
  const uid = await desk.booked("2026-10-06T10:00:00Z");
  const sync = () => syncBooking(runtime, { handle: "acme", bookingUid: uid });
  const request = runtime.outbound.request.bind(runtime.outbound);
  runtime.outbound.request = async (...call) => {
    const answer = await request(...call);
    // Redis is away when the provider answers.
    Object.assign(runtime.redis, { hset: () => Promise.reject(new Error("Connection is closed.")) });
    return answer;
  };
  await t.rejects(sync());
  Object.assign(runtime.outbound, { request });
  Reflect.deleteProperty(runtime.redis, "hset");
  await written(desk);
  await desk.cancelled(uid).expect(200);
  await sync();
  t.same(
    [...(desk.google.calendars.get(own)?.events.values() ?? [])].map(({ status }) => status),
    ["cancelled"],
  );
  t.match(await desk.booking(uid), { status: "CANCELLED", syncStatus: "OK" });
});

t.test("owners' changes stay, and deleted events are created again", async (t) => {
  const desk = await start(t);
  await desk.select([], own).expect(200);
  const uid = await desk.booked("2026-10-06T10:00:00Z");
  const { id } = await written(desk);
  const noted = () => desk.service.runtime.redis.hget(keys.booking("acme", uid), "written");
  await eventually(async () => (await noted())?.includes("eventId"));
  desk.google.put(own, { id, colorId: "7" });
  await desk.moved(uid, "2026-10-07T11:00:00Z").expect(200);
  t.match(await written(desk, ({ start }) => start.dateTime === "2026-10-07T11:00:00.000Z"), { id, colorId: "7" });
  desk.google.remove(own, id);
  await desk.moved(uid, "2026-10-08T11:00:00Z").expect(200);
  t.match(await written(desk, ({ start }) => start.dateTime === "2026-10-08T11:00:00.000Z"), { id });
});

t.test("a booking's own event doesn't take its time: it can be moved within it", async (t) => {
  const desk = await start(t);
  await desk.select([own], own).expect(200);
  const uid = await desk.booked("2026-10-06T10:00:00Z");
  await written(desk);
  await desk.refresh();
  await desk.moved(uid, "2026-10-06T10:00:00Z").expect(200);
  await desk.cancelled(uid).expect(200);
  await desk.refresh();
  t.ok((await desk.free("2026-10-06")).includes("10:00"));
});

t.test("limits of Google are waited for, in both of its forms", async (t) => {
  const desk = await start(t);
  await desk.select([], own).expect(200);
  desk.google.oauth.trouble.push(GOOGLE_RATE_LIMITED.user(), GOOGLE_RATE_LIMITED.minute(1));
  const uid = await desk.booked("2026-10-06T10:00:00Z");
  await written(desk);
  t.match(await desk.booking(uid), { syncStatus: "OK" });
});

t.test(
  "a grant that ended leaves bookings saved and degraded, says so once, and they are written when it is renewed",
  async (t) => {
    const desk = await start(t);
    const receiver = await startReceiver(t);
    await desk.owner.post(`${owned}/webhooks`).send({ url: receiver.url }).expect(201);
    await desk.select([own], own).expect(200);
    desk.google.oauth.revokeAll();
    const uid = await desk.booked("2026-10-06T10:00:00Z");
    await eventually(async () => (await desk.booking(uid)).syncStatus === "DEGRADED");
    t.match((await desk.owner.get(`${owned}/integrations`)).body.credentials, [{ status: "DEGRADED" }]);
    const degraded = () => receiver.received.filter(({ event }) => event.type === "scheduling.sync.degraded");
    await eventually(() => degraded().length > 0);
    await desk.refresh();
    await desk.owner.post(`${owned}/bookings/${uid}/sync`).send({}).expect(202);
    const other = await desk.booked("2026-10-06T12:00:00Z");
    await eventually(async () => (await desk.booking(other)).syncStatus === "DEGRADED");
    await desk.moved(other, "2026-10-06T13:00:00Z").expect(200);
    await eventually(() => receiver.received.some(({ event }) => event.type === "scheduling.booking.rescheduled"));
    t.equal(degraded().length, 1, "of the account, not of each booking");
    t.equal(await connectAccount(desk.owner, "google"), desk.credentialId);
    await desk.owner.post(`${owned}/bookings/${uid}/sync`).send({}).expect(202);
    await written(desk);
    await eventually(async () => (await desk.booking(uid)).syncStatus === "OK");
  },
);

t.test("an event that is none hides no other, and an account with it is not ill", async (t) => {
  const { google, select, refresh, free, owner } = await start(t, { workers: [] });
  await select([own]).expect(200);
  const good = { id: "good", status: "confirmed", ...timed("2026-10-06", "10", "11") };
  const dates = { start: { date: "soon" }, end: { date: "later" } };
  const strange = [null, 5, { ...good, id: 5 }, { ...good, id: "" }, { ...good, id: "x".repeat(5000) }];
  const inside = [
    { ...good, ...dates },
    { ...good, attendees: [null] },
    { ...good, start: { dateTime: null } },
  ];
  const named = { ...good, extendedProperties: { private: { uid: 5 } } };
  for (const bad of [...strange, ...inside, named]) {
    google.oauth.trouble = [new Refusal(200, { items: [bad, { ...good, id: "other" }], nextSyncToken: "next" })];
    await refresh();
    t.same(
      (await free("2026-10-06")).slice(0, 4),
      ["09:00", "09:30", "11:00", "11:30"],
      JSON.stringify(bad)?.slice(0, 99),
    );
    t.match((await owner.get(`${owned}/integrations`)).body.credentials, [{ status: "OK" }]);
    google.remove(own, google.put(own, timed("2026-10-06", "15", "16")).id);
  }
});

t.test("a change of very many series is read in few calls, and an endless mark is not kept", async (t) => {
  const { google, select, refresh, free, service } = await start(t, { workers: [] });
  await select([own]).expect(200);
  google.put(own, timed("2026-10-06", "09", "16"));
  const series = (count: number, nextSyncToken: string) => {
    const items = Array.from({ length: count }, (_, at) => ({ id: `any${at}`, recurringEventId: `series${at}` }));
    google.oauth.trouble = [new Refusal(200, { items, nextSyncToken })];
    google.oauth.calls = [];
  };
  series(300, "next");
  await refresh();
  t.ok(google.oauth.calls.length < 10, `${google.oauth.calls.length} calls`);
  t.same(await free("2026-10-06"), full(16, 17));
  series(0, "n".repeat(2 ** 20));
  await refresh();
  const [key = ""] = await keyNames(service.runtime.redis, "calendar-objects:*");
  t.equal(JSON.parse((await service.runtime.redis.hget(key, "")) ?? "{}").mark, null);
  await refresh();
  t.same(await free("2026-10-06"), full(16, 17));
});

t.test("pages that lead in a circle end at once, and the calendar is read when they do not", async (t) => {
  const { google, select, refresh, free, owner } = await start(t, { workers: [] });
  await select([own]).expect(200);
  google.put(own, timed("2026-10-06", "09", "16"));
  const circle = Array.from({ length: 300 }, (_, at) => ({ items: [], nextPageToken: `page${at % 3}` }));
  google.oauth.trouble = circle.map((page) => new Refusal(200, page));
  await refresh();
  t.ok(google.oauth.trouble.length > 290, "each page was read once");
  t.match((await owner.get(`${owned}/integrations`)).body.credentials, [{ status: "DEGRADED" }]);
  google.oauth.trouble = [];
  await refresh();
  t.same(await free("2026-10-06"), full(16, 17));
  t.match((await owner.get(`${owned}/integrations`)).body.credentials, [{ status: "OK" }]);
});

t.test(
  "an answer that is no listing frees no time: the last known times count, and the account is degraded",
  async (t) => {
    const { google, select, refresh, free, owner } = await start(t, { workers: [] });
    await select([own]).expect(200);
    google.put(own, timed("2026-10-06", "09", "16"));
    await refresh();
    for (const body of [undefined, {}, [], { status: "ok" }, { error: { code: 500 } }]) {
      google.forget();
      google.oauth.trouble = Array.from({ length: 4 }, () => new Refusal(200, body));
      await refresh();
      await refresh();
      t.same(await free("2026-10-06"), full(16, 17), JSON.stringify(body));
      t.match((await owner.get(`${owned}/integrations`)).body.credentials, [{ status: "DEGRADED" }]);
      google.oauth.trouble = Array.from({ length: 2 }, () => new Refusal(200, body));
      await owner.get(`${owned}/integrations/google/calendars`).expect(503);
      google.oauth.trouble = [];
      await refresh();
      t.match((await owner.get(`${owned}/integrations`)).body.credentials, [{ status: "OK" }]);
    }
  },
);

t.test("a calendar whose listings have no sync token is read whole each time", async (t) => {
  const { google, select, refresh, free, owner } = await start(t, { workers: [] });
  google.marks = false;
  await select([own]).expect(200);
  google.put(own, timed("2026-10-06", "09", "16"));
  await refresh();
  t.same(await free("2026-10-06"), full(16, 17));
  t.match((await owner.get(`${owned}/integrations`)).body.credentials, [{ status: "OK" }]);
});

t.test("an answer that is no event leaves its booking degraded until the event is written", async (t) => {
  const desk = await start(t, { workers: [] });
  const { google, service, select, booked, booking } = desk;
  await select([], own).expect(200);
  const bookingUid = await booked("2026-10-06T10:00:00Z");
  google.oauth.trouble = [new Refusal(200, {})];
  const sync = () => syncBooking(service.runtime, { handle: "acme", bookingUid });
  await t.rejects(sync());
  t.match(await booking(bookingUid), { syncStatus: "DEGRADED" });
  await sync();
  await written(desk);
  t.match(await booking(bookingUid), { syncStatus: "OK" });
});

t.test("an error code of a provider is never read as a failure of Redis", async (t) => {
  const { google, select, refresh, owner } = await start(t, { workers: [] });
  await select([own]).expect(200);
  for (const status of [403, 502]) {
    google.oauth.trouble = Array.from({ length: 2 }, () => new Refusal(status, { error: { status: "ETIMEDOUT" } }));
    await refresh();
    t.match((await owner.get(`${owned}/integrations`)).body.credentials, [{ status: "DEGRADED" }]);
    google.oauth.trouble = [];
    await refresh();
    t.match((await owner.get(`${owned}/integrations`)).body.credentials, [{ status: "OK" }]);
  }
});

t.test("owners learn that a calendar is gone or can't be written, and what to do", async (t) => {
  const desk = await start(t);
  const { google, owner, service, select, refresh, booked, booking } = desk;
  const receiver = await startReceiver(t);
  await owner
    .post(`${owned}/webhooks`)
    .send({ url: receiver.url, events: ["scheduling.sync.degraded"] })
    .expect(201);
  await select([own], own).expect(200);
  const calendar = google.calendars.get(own) as NonNullable<ReturnType<typeof google.calendars.get>>;
  const events = async (count: number) =>
    (await eventually(() => receiver.received.length === count && receiver.received)).at(-1)?.event.data;

  calendar.accessRole = "reader";
  const bookingUid = await booked("2026-10-06T10:00:00Z");
  const denied = /^The provider denies access to a selected calendar; .+ answered 403 \(requiredAccessLevel\)\.$/;
  t.match(await events(1), { reason: "provider_unavailable", detail: denied, booking: { bookingUid } });
  await refresh();
  t.match((await owner.get(`${owned}/integrations`)).body.credentials, [{ status: "OK" }], "it can be read");

  google.calendars.delete(own);
  await refresh();
  const gone = /^A selected calendar no longer exists at the provider; .+ answered 404 \(notFound\)\.$/;
  t.match(await events(2), { reason: "provider_unavailable", detail: gone });
  t.match((await owner.get(`${owned}/integrations`)).body.credentials, [{ status: "DEGRADED", detail: gone }]);
  await t.rejects(syncBooking(service.runtime, { handle: "acme", bookingUid }), { message: /no longer exists/ });

  calendar.accessRole = "owner";
  google.calendars.set(own, calendar);
  await syncBooking(service.runtime, { handle: "acme", bookingUid });
  t.match(await booking(bookingUid), { syncStatus: "OK" });
});

t.test("what a provider says of an error is not logged, but its code is", async (t) => {
  const { google, select, refresh, service, booked } = await start(t, { workers: [] });
  const logged: unknown[] = [];
  t.intercept(service.runtime.log, "warn", { value: (...line: unknown[]) => void logged.push(line) });
  await select([own], own).expect(200);
  const bookingUid = await booked("2026-10-06T10:00:00Z");
  const refusals = Array.from(
    { length: 4 },
    () => new Refusal(400, { error: { status: "INVALID_ARGUMENT", message: "Ada Lovelace <ada@example.com>" } }),
  );
  google.oauth.trouble = [...refusals];
  await refresh();
  google.oauth.trouble = [...refusals];
  const syncing = syncBooking(service.runtime, { handle: "acme", bookingUid });
  await t.rejects(syncing, { message: /^google: \S+ answered 400 \(INVALID_ARGUMENT\)\.$/ });
  t.match(JSON.stringify(logged), /answered 400 \(INVALID_ARGUMENT\)/);
  t.notMatch(JSON.stringify(logged), /Ada|example\.com/);
});

t.test("a link that is no web address reaches no attendee", async (t) => {
  const { google, select, service, booked, booking } = await start(t, { location: "google_meet", workers: [] });
  await select([], own).expect(200);
  const bookingUid = await booked("2026-10-06T10:00:00Z");
  const sync = () => syncBooking(service.runtime, { handle: "acme", bookingUid });
  const links = ["javascript:alert(1)", "https://meet.example/\r\nBcc: all", 5, {}, `https://${"x".repeat(9000)}/`];
  for (const hangoutLink of links) {
    google.oauth.trouble = Array.from({ length: 6 }, () => new Refusal(200, { id: "any", etag: "1", hangoutLink }));
    await t.rejects(sync(), { message: /made no meeting/ });
    t.match(await booking(bookingUid), { meetingUrl: null, syncStatus: "DEGRADED" });
  }
  google.oauth.trouble = [];
  await sync();
  t.match(await booking(bookingUid), { meetingUrl: /^https:/, syncStatus: "OK" });
});
