import t, { type Test as TapTest } from "tap";
import { refreshBusy } from "../core/scheduling/busy-calendars.ts";
import { resyncAll, syncBooking } from "../core/scheduling/calendar-events.ts";
import { keys } from "../core/store/keys.ts";
import { spawnProgram } from "../fixtures/processes.ts";
import { startLyingDav } from "../fixtures/providers/lying-dav.ts";
import { hasRadicale, type Radicale, startRadicale } from "../fixtures/providers/radicale.ts";
import { openStage, PUBLIC_EVENTS_PATH, type Stage, unlimited } from "../fixtures/scheduling/owner.ts";
import { eventually, type Service } from "../fixtures/service.ts";
import { startReceiver, undocumented } from "../fixtures/webhook-receiver.ts";

const owned = "/v2/handles/acme/scheduling";
const skip = hasRadicale() ? false : "radicale and apache2-utils are not installed";

/** A handle whose bookings are written into a calendar of a real server. */
interface Desk {
  stage: Stage;
  service: Service;
  owner: Stage["owner"];
  server: Radicale;
  calendar: string;
  /** Selects calendars for busy times and a destination. */
  select(busyCalendarIds: string[], destinationCalendarId?: string): ReturnType<Stage["owner"]["post"]>;
  /** Books 30 minutes and returns the uid. */
  booked(start: string, more?: Record<string, unknown>): Promise<string>;
  /** Moves a booking to another start. */
  moved(bookingUid: string, start: string): ReturnType<Service["visitor"]["post"]>;
  cancelled(bookingUid: string): ReturnType<Service["visitor"]["post"]>;
  booking(bookingUid: string): Promise<Record<string, unknown>>;
  /** The one event of the calendar, once there is one that matches. */
  written(like: RegExp): Promise<string>;
  empty(): Promise<unknown>;
}

async function open(t: TapTest, queues = ["scheduling", "webhooks"]): Promise<Desk> {
  const server = await startRadicale(t);
  const stage = await openStage(t, { env: unlimited, workers: queues });
  const { owner, service } = stage;
  const calendar = await server.calendar("office");
  await stage.event({ slug: "talk", title: "Talk" });
  const login = { serverUrl: server.url, username: server.username, password: server.password };
  const connected = await owner.post(`${owned}/integrations/caldav/credentials`).send(login).expect(201);
  const { credentialId } = connected.body.credential;
  const texts = async () => [...(await server.events(calendar)).values()].map((text) => text.replace(/\r?\n /g, ""));
  const desk: Desk = {
    ...{ stage, service, owner, server, calendar },
    select: (busyCalendarIds, destinationCalendarId) =>
      owner.post(`${owned}/selected-calendars`).send({ credentialId, busyCalendarIds, destinationCalendarId }),
    booked: async (start, more = {}) => (await stage.book("talk", start, 30, more).expect(201)).body.bookingUid,
    moved(bookingUid, start) {
      const end = new Date(Date.parse(start) + 1_800_000).toISOString();
      return service.visitor.post(`${PUBLIC_EVENTS_PATH}/talk/reschedule`).send({ bookingUid, slot: { start, end } });
    },
    cancelled: (bookingUid) =>
      service.visitor.post(`${PUBLIC_EVENTS_PATH}/talk/bookings/${bookingUid}/cancel`).send({}),
    booking: async (bookingUid) => (await owner.get(`${owned}/bookings/${bookingUid}`).expect(200)).body.booking,
    written: (like) =>
      eventually(async () => {
        const [text, ...more] = await texts();
        return more.length === 0 && text !== undefined && like.test(text) && text;
      }),
    empty: () => eventually(async () => (await texts()).length === 0),
  };
  await desk.select([], calendar).expect(200);
  return desk;
}

t.test("a booking's event is made, moved and removed at the destination", { skip }, async (t) => {
  const desk = await open(t);
  const uid = await desk.booked("2026-10-06T10:00:00Z", { guests: ["guest@example.com"] });
  const made = await desk.written(/BEGIN:VEVENT/);
  t.match(made, `UID:${uid}@service.test`, "the UID of its mails");
  t.match(made, "DTSTART:20261006T100000Z");
  t.match(made, "DTEND:20261006T103000Z");
  t.match(made, "SUMMARY:Talk with Ada Lovelace");
  t.match(made, "DESCRIPTION:Who: Ada Lovelace <ada@example.com>\\nGuests: guest@example.com");
  t.notMatch(made, /ATTENDEE|ORGANIZER|METHOD/, "nobody is invited by the calendar server");
  await desk.moved(uid, "2026-10-07T11:00:00Z").expect(200);
  t.match(await desk.written(/DTSTART:20261007T110000Z/), "SEQUENCE:1");
  await desk.cancelled(uid).expect(200);
  await desk.empty();
  t.match(await desk.booking(uid), { status: "CANCELLED", syncStatus: "OK" });
});

t.test("a request is written once it is accepted, and a declined one never", { skip }, async (t) => {
  const desk = await open(t);
  await desk.stage.event({ slug: "ask", title: "Ask", confirmationRequired: true });
  const ask = async (start: string) => (await desk.stage.book("ask", start, 30).expect(201)).body.bookingUid as string;
  const [wanted, unwanted] = [await ask("2026-10-06T10:00:00Z"), await ask("2026-10-06T11:00:00Z")];
  await desk.owner.post(`${owned}/bookings/${unwanted}/decline`).send({}).expect(200);
  const other = await desk.booked("2026-10-06T12:00:00Z");
  await desk.written(new RegExp(other));
  await desk.owner.post(`${owned}/bookings/${wanted}/confirm`).send({}).expect(200);
  const texts = await eventually(async () => {
    const found = [...(await desk.server.events(desk.calendar)).values()];
    return found.some((text) => text.includes(wanted)) && found;
  });
  t.equal(texts.length, 2);
});

t.test("bookings from before the worker's start are written in their current state", { skip }, async (t) => {
  const desk = await open(t, []);
  const [kept, gone] = [await desk.booked("2026-10-06T10:00:00Z"), await desk.booked("2026-10-06T12:00:00Z")];
  await desk.moved(kept, "2026-10-07T11:00:00Z").expect(200);
  await desk.cancelled(gone).expect(200);
  await desk.service.startWorkers(["scheduling"]);
  t.match(await desk.written(/DTSTART:20261007T110000Z/), kept);
  await eventually(async () => (await desk.service.runtime.queues.queue("scheduling").getActiveCount()) === 0);
  t.equal((await desk.server.events(desk.calendar)).size, 1);
});

t.test("repeated, simultaneous and broken attempts leave one event", { skip }, async (t) => {
  const desk = await open(t, []);
  const { runtime } = desk.service;
  const bookingUid = await desk.booked("2026-10-06T10:00:00Z");
  const job = { handle: "acme", bookingUid };
  await Promise.all([syncBooking(runtime, job), syncBooking(runtime, job), syncBooking(runtime, job)]);
  await desk.written(new RegExp(bookingUid));
  // As if the process had died after its request and before it wrote down what became of it.
  await runtime.redis.hdel(keys.booking("acme", bookingUid), "written");
  await desk.moved(bookingUid, "2026-10-07T11:00:00Z").expect(200);
  await syncBooking(runtime, job);
  await desk.written(/DTSTART:20261007T110000Z/);
  await runtime.redis.hdel(keys.booking("acme", bookingUid), "written");
  await syncBooking(runtime, job);
  await desk.cancelled(bookingUid).expect(200);
  await syncBooking(runtime, job);
  await desk.empty();
  t.match(await desk.booking(bookingUid), { syncStatus: "OK" });
});

t.test("an event that its owner changed or deleted is restored to the booking", { skip }, async (t) => {
  const desk = await open(t);
  const uid = await desk.booked("2026-10-06T10:00:00Z");
  const before = await desk.written(/SEQUENCE:0/);
  const [address = ""] = [...(await desk.server.events(desk.calendar)).keys()];
  const put = (text: string) => desk.server.dav("PUT", address, text, { "content-type": "text/calendar" });
  await (await put(before.replace(/SUMMARY:.*/, "SUMMARY:Mine"))).text();
  await desk.moved(uid, "2026-10-07T11:00:00Z").expect(200);
  t.match(await desk.written(/DTSTART:20261007T110000Z/), "SUMMARY:Talk with Ada Lovelace");
  await (await desk.server.dav("DELETE", address)).text();
  await desk.moved(uid, "2026-10-08T11:00:00Z").expect(200);
  await desk.written(/DTSTART:20261008T110000Z/);
  const later = (await desk.written(/SEQUENCE:2/)).replaceAll("SEQUENCE:2", "SEQUENCE:9");
  await (await put(later)).text();
  await desk.moved(uid, "2026-10-09T11:00:00Z").expect(200);
  await syncBooking(desk.service.runtime, { handle: "acme", bookingUid: uid });
  t.match(await desk.written(/SEQUENCE:9/), "DTSTART:20261008T110000Z", "a later state stays");
});

t.test("a booking's event moves whatever other programs and servers make of it", async (t) => {
  const dav = await startLyingDav();
  t.teardown(() => dav.close());
  const { owner, service, event, book } = await openStage(t, { env: unlimited });
  await event({ slug: "talk", title: "Talk" });
  const login = { serverUrl: dav.url, username: "alice", password: "secret" };
  const { credential } = (await owner.post(`${owned}/integrations/caldav/credentials`).send(login).expect(201)).body;
  const selected = { credentialId: credential.credentialId, busyCalendarIds: [], destinationCalendarId: dav.calendar };
  await owner.post(`${owned}/selected-calendars`).send(selected).expect(200);
  const { bookingUid } = (await book("talk", "2026-10-06T10:00:00Z", 30).expect(201)).body;
  const written = async (): Promise<[string, string]> => {
    await syncBooking(service.runtime, { handle: "acme", bookingUid });
    t.equal(dav.objects.size, 1, "one event");
    return Array.from(dav.objects, ([path, { data }]) => [path, data])[0] as [string, string];
  };
  const moveTo = async (day: number): Promise<string> => {
    const [start, end] = [`2026-10-0${day}T11:00:00Z`, `2026-10-0${day}T11:30:00Z`];
    const path = `${PUBLIC_EVENTS_PATH}/talk/reschedule`;
    await service.visitor.post(path).send({ bookingUid, slot: { start, end } }).expect(200);
    return (await written())[1];
  };
  const [path, made] = await written();
  const changed = made.replace("\nSEQUENCE:0", "\nSEQUENCE:3").replace("T100000Z", "T140000Z");
  dav.objects.set(path, { etag: '"changed"', data: changed });
  const moved = await moveTo(7);
  t.match(moved, "DTSTART:20261007T110000Z", "a program that changed it raised its SEQUENCE");
  t.match(moved, "\nSEQUENCE:3", "which doesn't fall");
  dav.hasEtags = false;
  t.match(await moveTo(8), "DTSTART:20261008T110000Z", "a server without etags");
  dav.hasEtags = true;
  const [last = { data: "" }] = dav.objects.values();
  dav.objects.clear();
  dav.objects.set("/office/renamed.ics", { ...last, etag: '"renamed"' });
  t.match(await moveTo(9), "DTSTART:20261009T110000Z", "a server that renames objects");
});

t.test("what an owner adds to a booking's event stays with it when it moves", { skip }, async (t) => {
  const desk = await open(t);
  const uid = await desk.booked("2026-10-06T10:00:00Z");
  const before = await desk.written(/SEQUENCE:0/);
  const [address = ""] = [...(await desk.server.events(desk.calendar)).keys()];
  const alarm = ["BEGIN:VALARM", "ACTION:DISPLAY", "DESCRIPTION:Soon", "TRIGGER:-PT10M", "END:VALARM"].join("\r\n");
  const invited = "ORGANIZER:mailto:user_acme@example.com\r\nATTENDEE:mailto:colleague@example.com";
  const text = before.replace("END:VEVENT", `CATEGORIES:Work\r\nCOLOR:red\r\n${invited}\r\n${alarm}\r\nEND:VEVENT`);
  await (await desk.server.dav("PUT", address, text, { "content-type": "text/calendar" })).text();
  await desk.moved(uid, "2026-10-07T11:00:00Z").expect(200);
  const moved = await desk.written(/DTSTART:20261007T110000Z/);
  const added = ["CATEGORIES:Work", "COLOR:red", "TRIGGER:-PT10M", "ATTENDEE:mailto:colleague@example.com"];
  for (const line of [...added, "DTEND:20261007T113000Z", "SEQUENCE:1"]) t.match(moved, line);
  t.notMatch(moved, /20261006/, "nothing of the old time is left");
});

t.test("an event that its owner's program made of the invitation becomes that of the booking", { skip }, async (t) => {
  const desk = await open(t, []);
  const bookingUid = await desk.booked("2026-10-06T10:00:00Z");
  const invitation = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//mail//EN", "BEGIN:VEVENT"];
  const told = [
    `UID:${bookingUid}@service.test`,
    "DTSTAMP:20260101T000000Z",
    "DTSTART:20261006T100000Z",
    "SUMMARY:Talk",
    "ORGANIZER:mailto:calendar@acme.example",
    "ATTENDEE:mailto:ada@example.com",
    "CATEGORIES:Work",
  ];
  const text = [...invitation, ...told, "END:VEVENT", "END:VCALENDAR", ""].join("\r\n");
  const imports = () =>
    desk.server.dav("PUT", `${desk.calendar}of-their-own.ics`, text, { "content-type": "text/calendar" });
  await imports();
  await syncBooking(desk.service.runtime, { handle: "acme", bookingUid });
  const first = await desk.written(/SUMMARY:Talk with Ada Lovelace/);
  t.match(first, `UID:${bookingUid}@service.test`);
  await imports();
  await desk.moved(bookingUid, "2026-10-07T11:00:00Z").expect(200);
  await syncBooking(desk.service.runtime, { handle: "acme", bookingUid });
  for (const event of [first, await desk.written(/DTSTART:20261007T110000Z/)]) {
    t.match(event, "CATEGORIES:Work");
    t.notMatch(event, /ORGANIZER|ATTENDEE/, "the server mails nobody");
  }
  await desk.cancelled(bookingUid).expect(200);
  await syncBooking(desk.service.runtime, { handle: "acme", bookingUid });
  await desk.empty();
  t.match(await desk.booking(bookingUid), { syncStatus: "OK" });
});

t.test("the echo of an own event takes no time: neither for moving nor after cancelling", { skip }, async (t) => {
  const desk = await open(t);
  await desk.select([desk.calendar], desk.calendar).expect(200);
  await desk.stage.event({ slug: "walk", title: "Walk", slotIntervalMinutes: 15 });
  const bookingUid = (await desk.stage.book("walk", "2026-10-06T12:00:00Z", 30).expect(201)).body.bookingUid;
  await desk.written(new RegExp(bookingUid));
  await refreshBusy(desk.service.runtime, "acme");
  const slot = { start: "2026-10-06T12:15:00Z", end: "2026-10-06T12:45:00Z" };
  await desk.service.visitor.post(`${PUBLIC_EVENTS_PATH}/walk/reschedule`).send({ bookingUid, slot }).expect(200);
  await desk.service.visitor.post(`${PUBLIC_EVENTS_PATH}/walk/bookings/${bookingUid}/cancel`).send({}).expect(200);
  await desk.empty();
  const uid = await desk.booked("2026-10-06T10:00:00Z");
  await desk.written(new RegExp(uid));
  await desk.server.put(desk.calendar, "other", "DTSTART:20261006T110000Z", "DTEND:20261006T120000Z");
  await refreshBusy(desk.service.runtime, "acme");
  const free = () => desk.stage.slots("talk", "2026-10-06T09:00:00Z", "2026-10-06T12:30:00Z");
  const all = ["09:00", "09:30", "10:30", "12:00"].map((time) => `10-06T${time}`);
  t.same(await free(), all, "the other event takes its time, and the booking its own");
  await desk.server.stop();
  await desk.cancelled(uid).expect(200);
  t.same(
    await free(),
    [...all.slice(0, 2), "10-06T10:00", ...all.slice(2)],
    "free at once, though nobody could take the event out",
  );
});

t.test(
  "a server that is away leaves the booking saved and degraded, tells it once, and is caught up with",
  { skip },
  async (t) => {
    const desk = await open(t);
    const receiver = await startReceiver(t);
    const events = ["scheduling.sync.degraded"];
    await desk.owner.post(`${owned}/webhooks`).send({ url: receiver.url, events }).expect(201);
    await desk.server.stop();
    const uid = await desk.booked("2026-10-06T10:00:00Z");
    await eventually(async () => (await desk.booking(uid)).syncStatus === "DEGRADED");
    t.match(await desk.booking(uid), { status: "ACCEPTED", start: "2026-10-06T10:00:00.000Z" });
    await t.rejects(syncBooking(desk.service.runtime, { handle: "acme", bookingUid: uid }), { message: /^caldav: / });
    const [told] = await eventually(() => receiver.received.length > 0 && receiver.received);
    t.match(told?.event.data, {
      handle: "acme",
      providerKey: "caldav",
      credentialId: String,
      reason: "provider_unavailable",
      booking: { bookingUid: uid, syncStatus: "DEGRADED" },
    });
    t.same(await undocumented(desk.service, receiver.received), []);
    await desk.server.restart();
    t.match((await desk.owner.post(`${owned}/bookings/${uid}/sync`).expect(202)).body.booking, { bookingUid: uid });
    await desk.written(new RegExp(uid));
    await eventually(async () => (await desk.booking(uid)).syncStatus === "OK");
    t.equal(receiver.received.length, 1);
    t.equal((await desk.owner.post(`${owned}/bookings/nobody/sync`).expect(404)).body.code, "booking_not_found");
  },
);

t.test("unfinished writes are done at the next calendar pull", { skip }, async (t) => {
  const desk = await open(t, []);
  const bookingUid = await desk.booked("2026-10-06T10:00:00Z");
  const { runtime } = desk.service;
  await desk.server.stop();
  await t.rejects(syncBooking(runtime, { handle: "acme", bookingUid }));
  const queue = runtime.queues.queue("scheduling");
  await queue.obliterate({ force: true });
  await desk.service.startWorkers(["scheduling"]);
  await resyncAll(runtime, "acme", 1);
  const early = `sync-${bookingUid}-turn-1`;
  await eventually(async () => (await queue.getJobState(early)) === "completed");
  t.equal((await desk.booking(bookingUid)).syncStatus, "DEGRADED", "each pull tries once, so that tries don't pile up");
  await desk.server.restart();
  await refreshBusy(runtime, "acme");
  await desk.written(new RegExp(bookingUid));
  await eventually(async () => (await desk.booking(bookingUid)).syncStatus === "OK");
  t.equal(await runtime.redis.exists(keys.unsynced("acme")), 0);
});

t.test("an event goes with the destination, and stays where none is named any more", { skip }, async (t) => {
  const desk = await open(t);
  const uid = await desk.booked("2026-10-06T10:00:00Z");
  await desk.written(new RegExp(uid));
  const other = await desk.server.calendar("other");
  await desk.select([], other).expect(200);
  await desk.moved(uid, "2026-10-07T11:00:00Z").expect(200);
  await desk.empty();
  await eventually(async () => (await desk.server.events(other)).size === 1);
  await desk.select([]).expect(200);
  await desk.moved(uid, "2026-10-08T11:00:00Z").expect(200);
  await eventually(async () => [...(await desk.server.events(other)).values()].join().includes("20261008T110000Z"));
  await desk.booked("2026-10-09T11:00:00Z");
  await desk.cancelled(uid).expect(200);
  await eventually(async () => (await desk.server.events(other)).size === 0);
  t.equal((await desk.server.events(desk.calendar)).size, 0, "without a destination nothing new is written");
});

t.test("a destination is a calendar of the account that may be written", { skip }, async (t) => {
  const desk = await open(t);
  const refused = async (destination: string) => (await desk.select([], destination).expect(400)).body.errors;
  t.match(await refused(`${desk.server.url}/bob/office/`), [
    { path: "/destinationCalendarId", message: "is not a calendar of this account" },
  ]);
  const locked = await desk.server.readOnly("locked");
  t.match(await refused(locked), [{ path: "/destinationCalendarId", message: "is read-only" }]);
  const { selectedCalendars } = (await desk.select([locked], desk.calendar).expect(200)).body;
  t.match(selectedCalendars, { busyCalendarIds: [locked], destinationCalendarId: desk.calendar });
});

t.test("a worker that is killed on its way leaves one event for each booking", { skip }, async (t) => {
  const desk = await open(t, []);
  const days = ["06", "07", "08", "09"];
  const times = ["09:00", "10:00", "11:00", "12:00", "13:00", "14:00"];
  const uids: string[] = [];
  for (const day of days) for (const time of times) uids.push(await desk.booked(`2026-10-${day}T${time}:00Z`));
  await desk.select([desk.calendar], desk.calendar).expect(200);
  const env = { ...desk.service.redis.env, WORKER_QUEUES: "scheduling", BASE_URL: "http://service.test" };
  const worker = spawnProgram(t, "workers/main.ts", env);
  await eventually(async () => (await desk.server.events(desk.calendar)).size >= 3);
  await worker.end("SIGKILL");
  spawnProgram(t, "workers/main.ts", env);
  const notes = () =>
    Promise.all(uids.map((uid) => desk.service.runtime.redis.hget(keys.booking("acme", uid), "written")));
  await eventually(async () => (await notes()).every((one) => one?.includes("eventId")), 100_000);
  const texts = [...(await desk.server.events(desk.calendar)).values()];
  t.equal(texts.length, uids.length);
  t.ok(uids.every((uid) => texts.filter((text) => text.includes(uid)).length === 1));
});

t.test("a worker of the build expands calendars in its threads", { skip }, async (t) => {
  const desk = await open(t, []);
  await desk.select([desk.calendar]).expect(200);
  await desk.server.put(desk.calendar, "x", "DTSTART:20261005T090000Z", "DURATION:PT1H", "RRULE:FREQ=WEEKLY");
  const [next] = await desk.service.runtime.queues.queue("scheduling").getDelayed();
  const clock = { TEST_CLOCK: "2026-10-05T06:00:00Z" };
  const env = { ...desk.service.redis.env, WORKER_QUEUES: "scheduling", BASE_URL: "http://service.test", ...clock };
  spawnProgram(t, "workers/main.ts", env);
  await next?.promote();
  const slots = () => desk.stage.slots("talk", "2026-10-12T08:00:00Z", "2026-10-12T11:00:00Z");
  t.same(await eventually(async () => (await slots()).length === 2 && slots()), ["10-12T10:00", "10-12T10:30"]);
});
