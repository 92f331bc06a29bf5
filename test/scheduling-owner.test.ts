import t from "tap";
import { createEventType, putSchedule } from "../core/scheduling/face.ts";
import { keys } from "../core/store/keys.ts";
import { openStage, PUBLIC_EVENTS_PATH } from "../fixtures/scheduling/owner.ts";
import { startService } from "../fixtures/service.ts";

const base = "/v2/handles/acme/scheduling";
const weekly = [{ day: 1, startTime: "09:00", endTime: "12:00" }];

t.test("a schedule is made, replaced, listed and deleted", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const body = { scheduleId: "work", timeZone: "Europe/Berlin", weeklyAvailability: weekly };
  const made = await owner.post(`${base}/schedules`).send(body).expect(201);
  t.match(made.body.schedule, { ...body, handle: "acme", overrides: [], version: 1 });
  const overrides = [{ from: "2026-12-24", to: "2026-12-26", unavailable: true }];
  const replaced = await owner
    .post(`${base}/schedules`)
    .send({ ...made.body.schedule, overrides })
    .expect(200);
  t.match(replaced.body.schedule, { overrides, version: 2, createdAt: made.body.schedule.createdAt });
  const stale = await owner
    .post(`${base}/schedules`)
    .send({ ...body, expectedVersion: 1 })
    .expect(409);
  t.match(stale.body, { code: "version_conflict", currentVersion: 2 });
  await owner
    .post(`${base}/schedules`)
    .send({ ...body, expectedVersion: 2 })
    .expect(200);
  const named = await owner.post(`${base}/schedules`).send({ timeZone: "UTC", weeklyAvailability: [] }).expect(201);
  t.match(named.body.schedule.scheduleId, /^sched_/);
  const list = await owner.get(`${base}/schedules`).expect(200);
  t.same(
    list.body.schedules.map(({ scheduleId }: { scheduleId: string }) => scheduleId),
    [named.body.schedule.scheduleId, "work"],
  );
  t.equal(list.body.nextCursor, null);
  await owner.get(`${base}/schedules/work`).expect(200);
  await owner.delete(`${base}/schedules/work`).expect(204);
  t.match((await owner.get(`${base}/schedules/work`).expect(404)).body, { code: "schedule_not_found" });
  t.match((await owner.delete(`${base}/schedules/work`).expect(404)).body, { code: "schedule_not_found" });
});

t.test("two requests that make one schedule leave one", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const body = { scheduleId: "work", timeZone: "UTC", weeklyAvailability: weekly };
  const answers = await Promise.all(Array.from({ length: 8 }, () => owner.post(`${base}/schedules`).send(body)));
  t.same(answers.map(({ status }) => status).sort(), [200, 200, 200, 200, 200, 200, 200, 201]);
  t.equal((await owner.get(`${base}/schedules/work`)).body.schedule.version, 8);
});

t.test("an invalid schedule is refused by name", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const hours = (startTime: string, endTime: string) => ({ weeklyAvailability: [{ day: 1, startTime, endTime }] });
  const override = (...overrides: object[]) => ({ overrides });
  const day = { date: "2026-10-12" };
  const refused: [string, object][] = [
    ["/timeZone", { timeZone: "Europe/Atlantis" }],
    ["/timeZone", { timeZone: "PST" }],
    ["/timeZone", { timeZone: undefined }],
    ["/weeklyAvailability/0/endTime", hours("09:00", "09:00")],
    ["/weeklyAvailability/0/endTime", hours("10:00", "09:00")],
    ["/weeklyAvailability/0/startTime", hours("24:00", "24:00")],
    ["/weeklyAvailability/0/startTime", hours("9:00", "10:00")],
    ["/weeklyAvailability/0/endTime", hours("09:00", "24:01")],
    ["/weeklyAvailability/0/endTime", hours("23:59", "23:59")],
    ["/weeklyAvailability/0/day", { weeklyAvailability: [{ day: 7, startTime: "09:00", endTime: "10:00" }] }],
    [
      "/weeklyAvailability/0/zone",
      { weeklyAvailability: [{ day: 1, startTime: "09:00", endTime: "10:00", zone: "UTC" }] },
    ],
    ["/overrides/0/date", override({ date: "2026-02-30", unavailable: true })],
    ["/overrides/0", override(day)],
    ["/overrides/0", override({ ...day, startTime: "09:00" })],
    ["/overrides/0", override({ ...day, from: "2026-10-12", unavailable: true })],
    ["/overrides/0", override({ from: "2026-10-12", to: "2026-10-13", startTime: "09:00", endTime: "10:00" })],
    ["/overrides/0/to", override({ from: "2026-10-13", to: "2026-10-12", unavailable: true })],
    ["/overrides/0/endTime", override({ ...day, startTime: "10:00", endTime: "09:00" })],
    ["/overrides/0", override({ ...day, startTime: "09:00", endTime: "10:00" }, { ...day, unavailable: true })],
    [
      "/overrides/0",
      override(
        { ...day, startTime: "09:00", endTime: "10:00" },
        { from: "2026-10-11", to: "2026-10-13", unavailable: true },
      ),
    ],
    ["/colour", { colour: "red" }],
  ];
  for (const [path, fields] of refused) {
    const body = { scheduleId: "work", timeZone: "UTC", weeklyAvailability: weekly, ...fields };
    const answer = await owner.post(`${base}/schedules`).send(body);
    t.match(answer.body, { status: 400, code: "invalid_request", errors: [{ path }] }, JSON.stringify(fields));
  }
  await owner.get(`${base}/schedules/work`).expect(404);
  const late = { timeZone: "UTC", ...hours("22:00", "00:00") };
  const [fault] = (await owner.post(`${base}/schedules`).send(late).expect(400)).body.errors;
  t.equal(fault.message, "must be after startTime; the day ends at 24:00");
  const accepted = [
    hours("23:59", "24:00"),
    override({ ...day, startTime: "09:00", endTime: "24:00", unavailable: false }),
  ];
  for (const fields of accepted)
    await owner
      .post(`${base}/schedules`)
      .send({ scheduleId: "work", timeZone: "UTC", weeklyAvailability: weekly, ...fields });
  t.equal((await owner.get(`${base}/schedules/work`)).body.schedule.version, 2);
});

t.test("an event type has the documented defaults, and owner and visitors see their own view", async (t) => {
  const { owner, service } = await openStage(t);
  const made = await owner
    .post(`${base}/event-types`)
    .send({ slug: "intro", title: "Intro", durationMinutes: 30 })
    .expect(201);
  const { eventTypeId } = made.body.eventType;
  t.match(eventTypeId, /^etp_/);
  t.match(made.body.eventType, {
    handle: "acme",
    slug: "intro",
    title: "Intro",
    description: "",
    durationMinutes: 30,
    timeZone: "UTC",
    hidden: false,
    status: "ACTIVE",
    confirmationRequired: false,
    minimumNoticeMinutes: 0,
    buffers: { beforeMinutes: 0, afterMinutes: 0 },
    payment: { enabled: false },
    locations: [],
    bookingFields: [],
    version: 1,
    revision: 1,
    url: "http://service.test/apps/public/scheduling/acme/intro",
  });
  t.same((await service.visitor.get(`${PUBLIC_EVENTS_PATH}/intro`).expect(200)).body.event, {
    handle: "acme",
    eventTypeId,
    slug: "intro",
    title: "Intro",
    description: "",
    duration: 30,
    locations: [],
    timeZone: "UTC",
    bookingFields: [],
    paymentRequired: false,
    price: null,
    confirmationRequired: false,
    availableActions: ["book", "cancel", "reschedule"],
  });
  t.equal((await owner.get(`${base}/event-types`).expect(200)).body.eventTypes.length, 1);
  t.same((await owner.get(`${base}/event-types/${eventTypeId}`).expect(200)).body.eventType, made.body.eventType);
});

t.test("a change preserves other fields, inside buffers and payment too", async (t) => {
  const { owner, event } = await openStage(t);
  const payment = { enabled: true, amountMinor: 5000, currency: "EUR" };
  const buffers = { beforeMinutes: 5, afterMinutes: 10 };
  const eventTypeId = await event({
    slug: "intro",
    buffers,
    payment,
    slotIntervalMinutes: 15,
    timeZone: "Asia/Kathmandu",
  });
  const path = `${base}/event-types/${eventTypeId}`;
  const changed = await owner
    .put(path)
    .send({ buffers: { afterMinutes: 20 }, payment: { enabled: false }, hidden: true })
    .expect(200);
  t.match(changed.body.eventType, {
    version: 2,
    revision: 2,
    hidden: true,
    timeZone: "Asia/Kathmandu",
    slotIntervalMinutes: 15,
  });
  t.same(changed.body.eventType.buffers, { beforeMinutes: 5, afterMinutes: 20 });
  t.same(changed.body.eventType.payment, {
    enabled: false,
    amountMinor: 5000,
    currency: "EUR",
    refundUntilMinutes: 1440,
  });
  const cleared = await owner
    .put(path)
    .send({ slotIntervalMinutes: null, timeZone: null, expectedVersion: 2 })
    .expect(200);
  t.match(cleared.body.eventType, { version: 3, slotIntervalMinutes: null, timeZone: "UTC" });
  t.match((await owner.put(path).send({ title: "Late", expectedVersion: 2 }).expect(409)).body, {
    code: "version_conflict",
    currentVersion: 3,
  });
  await owner.put(path).send(cleared.body.eventType).expect(200);
  t.match((await owner.put(`${base}/event-types/etp_none`).send({ title: "X" }).expect(404)).body, {
    code: "event_type_not_found",
  });
  t.match((await owner.put(path).send({ scheduleId: "gone" }).expect(404)).body, { code: "schedule_not_found" });
});

t.test("changes of an event type that come at once are all made", async (t) => {
  const { owner, event } = await openStage(t);
  const eventTypeId = await event({ slug: "intro" });
  const change = (title: string) => owner.put(`${base}/event-types/${eventTypeId}`).send({ title });
  const answers = await Promise.all(Array.from({ length: 40 }, (_, at) => change(`Title ${at}`)));
  t.same([...new Set(answers.map(({ status }) => status))], [200]);
  t.equal((await owner.get(`${base}/event-types/${eventTypeId}`)).body.eventType.version, 41);
});

t.test("a handle has at most 500 event types", async (t) => {
  const { owner, service, event } = await openStage(t);
  const others = Array.from({ length: 499 }, (_, at) => [at, `etp_${at}`]).flat();
  await service.runtime.redis.zadd(keys.eventTypes("acme"), ...others);
  await event({ slug: "last" });
  const more = { slug: "more", title: "More", durationMinutes: 30 };
  const refused = await owner.post(`${base}/event-types`).send(more).expect(400);
  t.match(refused.body, { code: "invalid_request", detail: /500/ });
});

t.test("a handle has at most 100 schedules, which can all be replaced", async (t) => {
  const { owner, service } = await openStage(t);
  const others = Array.from({ length: 98 }, (_, at) => [at, `sched_${at}`]).flat();
  await service.runtime.redis.zadd(keys.schedules("acme"), ...others);
  const body = { timeZone: "UTC", weeklyAvailability: weekly };
  await owner.post(`${base}/schedules`).send(body).expect(201);
  const refused = await owner.post(`${base}/schedules`).send(body).expect(400);
  t.match(refused.body, { code: "invalid_request", detail: /100/ });
  await owner
    .post(`${base}/schedules`)
    .send({ ...body, scheduleId: "main" })
    .expect(200);
  await service.runtime.redis.zrem(keys.schedules("acme"), "sched_0");
  const input = { handle: "acme", timeZone: "UTC", weeklyAvailability: weekly, overrides: [] };
  const made = await Promise.allSettled(Array.from({ length: 10 }, () => putSchedule(service.runtime, input)));
  t.equal(made.filter(({ status }) => status === "fulfilled").length, 1, "of many in one tick those that fit");
});

t.test("the schedules and event types of a handle fit into memory, and are still read by visitors", async (t) => {
  const { owner, event, service } = await openStage(t);
  const choices = Array.from({ length: 100 }, (_, at) => `${at}`.padEnd(200, "x"));
  const fields = Array.from({ length: 40 }, (_, at) => ({
    id: `f${at}`,
    label: "Pick",
    type: "select",
    options: choices,
  }));
  const small = await event({ slug: "small" });
  const body = { title: "Large", durationMinutes: 30, bookingFields: fields };
  const make = (slug: string) => owner.post(`${base}/event-types`).send({ ...body, slug });
  const { eventType } = (await make("large-0").expect(201)).body;
  for (const at of [1, 2, 3, 4]) await make(`large-${at}`).expect(201);
  const full = { code: "invalid_request", detail: /4194304/ };
  t.match((await make("large-5").expect(400)).body, full);
  const update = (id: string, changes: object) => owner.put(`${base}/event-types/${id}`).send(changes);
  t.match((await update(small, { bookingFields: fields }).expect(400)).body, full);
  await update(small, { title: "A walk" }).expect(200);
  await service.visitor.get(`${PUBLIC_EVENTS_PATH}/small`).expect(200);
  await update(eventType.eventTypeId, { bookingFields: [] }).expect(200);
  const crowd = [1, 2, 3, 4].map((at) => createEventType(service.runtime, { ...eventType, slug: `late-${at}` }));
  const made = (await Promise.allSettled(crowd)).filter(({ status }) => status === "fulfilled");
  t.equal(made.length, 1, "of many in one tick those that fit");
});

t.test("a slug belongs to one event type, and is free again when that is renamed or deleted", async (t) => {
  const { owner, event, service } = await openStage(t);
  const first = await event({ slug: "intro" });
  const taken = await owner
    .post(`${base}/event-types`)
    .send({ slug: "intro", title: "Other", durationMinutes: 15 })
    .expect(409);
  t.match(taken.body, { code: "event_type_slug_taken" });
  const second = await event({ slug: "other" });
  t.match((await owner.put(`${base}/event-types/${second}`).send({ slug: "intro" }).expect(409)).body, {
    code: "event_type_slug_taken",
  });
  await owner.put(`${base}/event-types/${first}`).send({ slug: "welcome" }).expect(200);
  await owner.put(`${base}/event-types/${second}`).send({ slug: "intro" }).expect(200);
  await service.visitor.get(`${PUBLIC_EVENTS_PATH}/other`).expect(404);
  await owner.delete(`${base}/event-types/${first}`).expect(204);
  await owner.delete(`${base}/event-types/${first}`).expect(404);
  await event({ slug: "welcome" });
  const race = await Promise.all(
    Array.from({ length: 6 }, () =>
      owner.post(`${base}/event-types`).send({ slug: "one", title: "One", durationMinutes: 15 }),
    ),
  );
  t.same(race.map(({ status }) => status).sort(), [201, 409, 409, 409, 409, 409]);
});

t.test("the page of a booking is that of its own event type, whatever slug that has now", async (t) => {
  const { owner, event, service, book } = await openStage(t);
  const eventTypeId = await event({ slug: "intro" });
  const { bookingUid } = (await book("intro", "2026-10-05T09:00:00Z", 30).expect(201)).body;
  const visit = async () => {
    const { text } = await service.visitor.get(`/apps/public/scheduling/acme/intro?booking=${bookingUid}`).expect(200);
    const [, json = ""] = /<script type="application\/json" id="scheduling-visit">(.*?)<\/script>/s.exec(text) ?? [];
    return JSON.parse(json);
  };
  t.match(await visit(), { eventSlug: "intro", event: { eventTypeId } });
  await owner.put(`${base}/event-types/${eventTypeId}`).send({ slug: "welcome" }).expect(200);
  t.match(await visit(), { eventSlug: "welcome", event: { eventTypeId } }, "the link of an old mail");
  await event({ slug: "intro", title: "Another one" });
  const { eventSlug } = await visit();
  t.match(await visit(), { event: { eventTypeId } }, "the old slug is that of another event type");
  const slot = { start: "2026-10-05T10:00:00Z", end: "2026-10-05T10:30:00Z" };
  const path = `${PUBLIC_EVENTS_PATH}/${eventSlug}`;
  await service.visitor.post(`${path}/reschedule`).send({ bookingUid, slot }).expect(200);
  await owner.delete(`${base}/event-types/${eventTypeId}`).expect(204);
  t.match(await visit(), { eventSlug: "intro", event: null, booking: { bookingUid } }, "nothing to move it to");
});

t.test("an invalid event type is refused by name", async (t) => {
  const { owner } = await openStage(t);
  const field = { id: "company", label: "Company", type: "text" };
  const refused: [string, object][] = [
    ["/slug", { slug: "Not A Slug" }],
    ["/slug", { slug: "a".repeat(97) }],
    ["/slug", { slug: undefined }],
    ["/title", { title: " " }],
    ["/title", { title: "a\r\nb" }],
    ["/durationMinutes", { durationMinutes: 0 }],
    ["/durationMinutes", { durationMinutes: 1441 }],
    ["/durationMinutes", { durationMinutes: undefined }],
    ["/slotIntervalMinutes", { slotIntervalMinutes: 0 }],
    ["/minimumNoticeMinutes", { minimumNoticeMinutes: 525_601 }],
    ["/buffers/beforeMinutes", { buffers: { beforeMinutes: 1441 } }],
    ["/bookingWindowDays", { bookingWindowDays: 3651 }],
    ["/bookingWindowDays", { bookingWindowDays: 0 }],
    ["/timeZone", { timeZone: "Mars/Olympus" }],
    ["/timeZone", { timeZone: "IST" }],
    ["/status", { status: "SLEEPING" }],
    ["/locations/0/type", { locations: [{ type: "In Person", label: "x" }] }],
    ["/bookingFields/0/type", { bookingFields: [{ ...field, type: "colour" }] }],
    ["/bookingFields/0/options", { bookingFields: [{ ...field, type: "select" }] }],
    ["/bookingFields/1/id", { bookingFields: [field, field] }],
    ["/payment/currency", { payment: { enabled: true, amountMinor: 1, currency: "euros" } }],
    ["/seats", { seats: 5 }],
  ];
  for (const [path, fields] of refused) {
    const answer = await owner
      .post(`${base}/event-types`)
      .send({ slug: "intro", title: "Intro", durationMinutes: 30, ...fields });
    t.match(answer.body, { status: 400, code: "invalid_request" }, JSON.stringify(fields));
    t.ok(
      answer.body.errors?.some((fault: { path: string }) => fault.path === path),
      `${path}: ${JSON.stringify(answer.body.errors)}`,
    );
  }
  const types = [
    "text",
    "textarea",
    "text_area",
    "text-area",
    "email",
    "phone",
    "number",
    "checkbox",
    "boolean",
    "url",
  ];
  const bookingFields = types.map((type, at) => ({ ...field, id: `f${at}`, type }));
  await owner
    .post(`${base}/event-types`)
    .send({ slug: "all", title: "All", durationMinutes: 1440, bookingFields })
    .expect(201);
});

t.test("owner routes need a role on the handle", async (t) => {
  const { service } = await openStage(t);
  const stranger = await service.as("stranger");
  t.match((await service.visitor.get(`${base}/event-types`).expect(401)).body, { code: "missing_bearer_token" });
  t.match((await stranger.get(`${base}/event-types`).expect(403)).body, { code: "forbidden" });
  await service.grant("acme", "helper", "CREATOR");
  const helper = await service.as("helper");
  await helper.get(`${base}/event-types`).expect(200);
});

t.test("hidden, paused, archived, deleted and unknown look the same to visitors", async (t) => {
  const { owner, event, service } = await openStage(t);
  const eventTypeId = await event({ slug: "intro", hidden: true });
  const path = `${base}/event-types/${eventTypeId}`;
  const window = "start=2026-10-05T00:00:00Z&end=2026-10-06T00:00:00Z";
  const slot = { start: "2026-10-05T10:00:00Z", end: "2026-10-05T10:30:00Z" };
  const same = async (slug: string, handle = "acme") => {
    const at = `/v2/public/scheduling/${handle}/${slug}`;
    const answers = [
      await service.visitor.get(at),
      await service.visitor.get(`${at}/slots?${window}`),
      await service.visitor.post(`${at}/bookings`).send({ attendee: { name: "A", email: "a@example.com" }, slot }),
      await service.visitor.post(`${at}/reschedule`).send({ bookingUid: "x", slot }),
    ];
    return answers.map(({ status, body }) => [status, body.code, body.detail]);
  };
  const nothing = await same("unknown");
  t.same(
    nothing.map(([status, code]) => [status, code]),
    Array(4).fill([404, "event_type_not_found"]),
  );
  t.same(await same("intro"), nothing, "hidden");
  t.same(await same("intro", "nobody"), nothing, "an unknown handle");
  await owner.put(path).send({ hidden: false, status: "PAUSED" }).expect(200);
  t.same(await same("intro"), nothing, "paused");
  await owner.put(path).send({ status: "ARCHIVED" }).expect(200);
  t.same(await same("intro"), nothing, "archived");
  t.same((await service.visitor.get(PUBLIC_EVENTS_PATH).expect(200)).body, { events: [] });
  await owner.put(path).send({ status: "ACTIVE" }).expect(200);
  t.equal((await service.visitor.get(PUBLIC_EVENTS_PATH).expect(200)).body.events.length, 1);
  await owner.delete(path).expect(204);
  t.same(await same("intro"), nothing, "deleted");
  t.match((await service.visitor.get("/v2/public/scheduling/nobody").expect(404)).body, { code: "not_found" });
});
