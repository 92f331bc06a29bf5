import t, { type Test as TapTest } from "tap";
import { syncBooking } from "../core/scheduling/calendar-events.ts";
import { keys } from "../core/store/keys.ts";
import { connectAccount } from "../fixtures/providers/consent.ts";
import { startGoogle } from "../fixtures/providers/google.ts";
import { Refusal } from "../fixtures/providers/oauth.ts";
import { type Meeting, startZoom, type ZoomServer } from "../fixtures/providers/zoom.ts";
import { type Desk, openDesk } from "../fixtures/scheduling/desk.ts";
import { eventually } from "../fixtures/service.ts";

const owned = "/v2/handles/acme/scheduling";

async function start(t: TapTest, options: { workers?: string[] } = {}): Promise<Desk & { zoom: ZoomServer }> {
  const zoom = await startZoom();
  t.teardown(() => zoom.close());
  return { ...(await openDesk(t, { providerKey: "zoom", env: zoom.env, location: "zoom", ...options })), zoom };
}

/** The meeting that is planned, once there is one that fits. */
function planned({ zoom }: { zoom: ZoomServer }, fits: (meeting: Meeting) => boolean = () => true): Promise<Meeting> {
  return eventually(() => {
    const [meeting, ...more] = zoom.meetings.values();
    return more.length === 0 && meeting && fits(meeting) && meeting;
  });
}

t.test("a booking gets a meeting of its own, which moves with it and ends with it", async (t) => {
  const desk = await start(t);
  const uid = await desk.booked("2026-10-06T10:00:00Z");
  const made = await planned(desk);
  t.match(made, { topic: "Talk with Ada Lovelace", type: 2, start_time: "2026-10-06T10:00:00Z", duration: 30 });
  t.notOk(made.agenda.includes(uid), "the agenda doesn't give the booking away");
  const { meetingUrl } = await eventually(async () => {
    const booking = await desk.booking(uid);
    return booking.meetingUrl !== null && booking;
  });
  t.equal(meetingUrl, made.join_url);
  await desk.moved(uid, "2026-10-07T11:00:00Z").expect(200);
  const moved = await planned(desk, ({ start_time: at }) => at === "2026-10-07T11:00:00Z");
  t.equal(moved.id, made.id);
  await desk.cancelled(uid).expect(200);
  await eventually(() => desk.zoom.meetings.size === 0);
  t.match(await desk.booking(uid), { status: "CANCELLED", syncStatus: "OK" });
});

t.test("a long title is cut between two characters", async (t) => {
  const desk = await start(t);
  const [talk] = (await desk.owner.get(`${owned}/event-types`).expect(200)).body.eventTypes;
  const title = `a${"🚲".repeat(199)}`;
  await desk.owner.put(`${owned}/event-types/${talk.eventTypeId}`).send({ title }).expect(200);
  await desk.booked("2026-10-06T10:00:00Z");
  const { topic } = await planned(desk);
  t.ok(topic.length <= 200);
  t.notMatch(topic, /\p{Cs}/u);
});

t.test("an attempt that ended before it could be noted leaves one meeting, among many", async (t) => {
  const desk = await start(t, { workers: [] });
  const { runtime } = desk.service;
  const sync = (bookingUid: string) => syncBooking(runtime, { handle: "acme", bookingUid });
  const others = ["09:00", "09:30", "11:00", "11:30"].map((hour) => desk.booked(`2026-10-06T${hour}:00Z`));
  for (const uid of await Promise.all(others)) await sync(uid);
  const uid = await desk.booked("2026-10-06T10:00:00Z");
  await sync(uid);
  await runtime.redis.hdel(keys.booking("acme", uid), "written");
  await desk.moved(uid, "2026-10-07T11:00:00Z").expect(200);
  await sync(uid);
  t.equal(desk.zoom.meetings.size, 5);
  t.ok([...desk.zoom.meetings.values()].some(({ start_time: at }) => at === "2026-10-07T11:00:00Z"));
});

t.test("an answer that lists no meetings is no reason to make a second one", async (t) => {
  const desk = await start(t, { workers: [] });
  const { runtime } = desk.service;
  const bookingUid = await desk.booked("2026-10-06T10:00:00Z");
  const sync = () => syncBooking(runtime, { handle: "acme", bookingUid });
  await sync();
  await runtime.redis.hdel(keys.booking("acme", bookingUid), "written");
  desk.zoom.oauth.trouble = [new Refusal(200, {})];
  await t.rejects(sync());
  await sync();
  t.equal(desk.zoom.meetings.size, 1);
});

t.test("a meeting whose answer was lost goes with its cancelled booking, though its event was noted", async (t) => {
  const [zoom, google] = [await startZoom(), await startGoogle()];
  for (const server of [zoom, google]) t.teardown(() => server.close());
  const env = { ...zoom.env, ...google.env };
  const desk = await openDesk(t, { providerKey: "zoom", env, location: "zoom", workers: [] });
  const calendar = { credentialId: await connectAccount(desk.owner, "google"), busyCalendarIds: [] };
  const destination = { ...calendar, destinationCalendarId: "owner@gmail.test" };
  await desk.owner.post(`${owned}/selected-calendars`).send(destination).expect(200);
  const bookingUid = await desk.booked("2026-10-06T10:00:00Z");
  const { runtime } = desk.service;
  const request = runtime.outbound.request.bind(runtime.outbound);
  runtime.outbound.request = async (...call) => {
    const answer = await request(...call);
    if (zoom.meetings.size === 0) return answer;
    runtime.outbound.request = request;
    throw new Error("The answer is lost.");
  };
  const sync = () => syncBooking(runtime, { handle: "acme", bookingUid });
  await t.rejects(sync(), { message: "zoom: The answer is lost." });
  await desk.cancelled(bookingUid).expect(200);
  await sync();
  t.equal(zoom.meetings.size, 0);
});

t.test("an attempt that ended after it replaced a deleted meeting leaves one", async (t) => {
  const desk = await start(t, { workers: [] });
  const { runtime } = desk.service;
  const uid = await desk.booked("2026-10-06T10:00:00Z");
  const sync = () => syncBooking(runtime, { handle: "acme", bookingUid: uid });
  await sync();
  const noted = (await runtime.redis.hget(keys.booking("acme", uid), "written")) as string;
  desk.zoom.meetings.clear();
  await sync();
  // The note of the new meeting is lost.
  await runtime.redis.hset(keys.booking("acme", uid), "written", noted);
  await sync();
  t.equal(desk.zoom.meetings.size, 1);
});

t.test(
  "a booking that waits for its owner again doesn't get the link of the meeting that was made meanwhile",
  async (t) => {
    const desk = await start(t, { workers: [] });
    const { runtime } = desk.service;
    await desk.event({ slug: "ask", confirmationRequired: true, locations: [{ type: "zoom", label: "" }] });
    const { bookingUid } = (await desk.book("ask", "2026-10-06T10:00:00Z", 30).expect(201)).body;
    const confirm = () => desk.owner.post(`${owned}/bookings/${bookingUid}/confirm`).expect(200);
    const sync = () => syncBooking(runtime, { handle: "acme", bookingUid });
    await confirm();
    const request = runtime.outbound.request.bind(runtime.outbound);
    // The visitor moves the booking between the provider's answer and its note.
    runtime.outbound.request = async (...call) => {
      const answer = await request(...call);
      runtime.outbound.request = request;
      const slot = { start: "2026-10-07T11:00:00Z", end: "2026-10-07T11:30:00Z" };
      await desk.service.visitor
        .post("/v2/public/scheduling/acme/ask/reschedule")
        .send({ bookingUid, slot })
        .expect(200);
      return answer;
    };
    await sync();
    await sync();
    t.equal(desk.zoom.meetings.size, 0);
    t.match(await desk.booking(bookingUid), { status: "PENDING", meetingUrl: null });
    await confirm();
    await sync();
    t.equal((await desk.booking(bookingUid)).meetingUrl, (await planned(desk)).join_url);
  },
);

t.test("a meeting that the owner deleted is made again", async (t) => {
  const desk = await start(t);
  const uid = await desk.booked("2026-10-06T10:00:00Z");
  const first = await planned(desk);
  await eventually(async () => (await desk.booking(uid)).meetingUrl !== null);
  desk.zoom.meetings.clear();
  await desk.moved(uid, "2026-10-07T11:00:00Z").expect(200);
  const second = await planned(desk);
  t.not(second.id, first.id);
  await eventually(async () => (await desk.booking(uid)).meetingUrl === second.join_url);
});

t.test("beyond the day's quota bookings stay saved and degraded, without further requests", async (t) => {
  const desk = await start(t);
  desk.zoom.quota = 0;
  const uid = await desk.booked("2026-10-06T10:00:00Z");
  await eventually(async () => (await desk.booking(uid)).syncStatus === "DEGRADED");
  const asked = desk.zoom.oauth.calls.length;
  await desk.owner.post(`${owned}/bookings/${uid}/sync`).send({}).expect(202);
  await desk.booked("2026-10-06T11:00:00Z");
  await eventually(async () => (await desk.service.runtime.queues.queue("scheduling").getActiveCount()) === 0);
  t.equal(desk.zoom.oauth.calls.length, asked);
  t.match(await desk.booking(uid), { status: "ACCEPTED", meetingUrl: null });
});

t.test("Zoom has no calendars to select", async (t) => {
  const { owner, select } = await start(t, { workers: [] });
  const none = (await owner.get(`${owned}/integrations/zoom/calendars`).expect(404)).body;
  t.match(none, { code: "integration_not_found", detail: "This provider has no calendars." });
  t.equal((await select([]).expect(404)).body.code, "integration_not_found");
});

t.test("a meeting whose link is no web address is asked for again", async (t) => {
  const { zoom, service, booked, booking } = await start(t, { workers: [] });
  const bookingUid = await booked("2026-10-06T10:00:00Z");
  const sync = () => syncBooking(service.runtime, { handle: "acme", bookingUid });
  const none = new Refusal(200, { meetings: [] });
  for (const join_url of ["javascript:alert(1)", undefined, 5]) {
    zoom.oauth.trouble = [none, new Refusal(201, { id: 1, join_url })];
    await t.rejects(sync(), { message: /named no link/ });
    t.match(await booking(bookingUid), { meetingUrl: null, syncStatus: "DEGRADED" });
  }
  await sync();
  t.match(await booking(bookingUid), { meetingUrl: /^https:/, syncStatus: "OK" });
});
