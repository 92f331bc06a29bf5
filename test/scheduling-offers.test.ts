import t from "tap";
import { keys } from "../core/store/keys.ts";
import { openStage, PUBLIC_EVENTS_PATH } from "../fixtures/scheduling/owner.ts";
import { startService } from "../fixtures/service.ts";

const base = "/v2/handles/acme/scheduling";

t.test("the window of a question has its limits", async (t) => {
  const { event, service } = await openStage(t);
  await event({ slug: "intro" });
  const ask = (query: string) => service.visitor.get(`${PUBLIC_EVENTS_PATH}/intro/slots?${query}`);
  const refused: [string, string][] = [
    ["/start", "end=2026-10-06T00:00:00Z"],
    ["/end", "start=2026-10-06T00:00:00Z"],
    ["/start", "start=2026-10-05&end=2026-10-06T00:00:00Z"],
    ["/start", "start=2026-10-05T00:00:00&end=2026-10-06T00:00:00Z"],
    ["/end", "start=2026-10-06T00:00:00Z&end=2026-10-05T00:00:00Z"],
    ["/end", "start=2026-10-05T00:00:00Z&end=2026-12-06T00:00:01Z"],
    ["/timeZone", "start=2026-10-05T00:00:00Z&end=2026-10-06T00:00:00Z&timeZone=Mars/Olympus"],
    ["/timeZone", "start=2026-10-05T00:00:00Z&end=2026-10-06T00:00:00Z&timeZone=PST"],
  ];
  for (const [path, query] of refused)
    t.match((await ask(query)).body, { status: 400, code: "invalid_request", errors: [{ path }] }, query);
  await ask("start=2026-10-05T00:00:00Z&end=2026-12-06T00:00:00Z").expect(200);
  await ask("start=2026-10-05T00:00:00%2B02:00&end=2026-10-06T00:00:00-03:30&extra=ignored").expect(200);
  t.same((await ask("start=2026-10-05T00:00:00Z&end=2026-10-05T00:00:00Z").expect(200)).body.slots, []);
  t.same((await ask("start=2020-01-01T00:00:00Z&end=2020-02-01T00:00:00Z").expect(200)).body.slots, []);
  await ask("start=9999-12-01T00:00:00Z&end=9999-12-31T23:00:00Z").expect(200);
  await ask("start=0001-01-01T00:00:00Z&end=0001-02-01T00:00:00Z").expect(200);
});

t.test("a slot answer has at most 5,000 slots, else `end` is refused", async (t) => {
  const { event, service } = await openStage(t);
  await event({ slug: "intro", durationMinutes: 1, slotIntervalMinutes: 1 });
  const ask = (end: string) =>
    service.visitor.get(`${PUBLIC_EVENTS_PATH}/intro/slots?start=2026-10-05T06:00:00Z&end=${end}`);
  // 480 of a day: ten days and 200 minutes are 5,000.
  t.equal((await ask("2026-10-15T12:20:00Z").expect(200)).body.slots.length, 5000);
  for (let times = 0; times < 3; times++)
    t.match((await ask("2026-10-15T12:21:00Z").expect(400)).body, {
      code: "invalid_request",
      errors: [{ path: "/end", message: /at most 5000 slots/ }],
    });
});

t.test("an answer that has not changed costs a 304, and every change shows at once", async (t) => {
  const { event, service, book, owner, at } = await openStage(t);
  const eventTypeId = await event({ slug: "intro", minimumNoticeMinutes: 30 });
  const window = "start=2026-10-05T00:00:00Z&end=2026-10-06T00:00:00Z";
  const ask = (etag = "") =>
    service.visitor.get(`${PUBLIC_EVENTS_PATH}/intro/slots?${window}`).set("If-None-Match", etag);
  const first = await ask().expect(200);
  const etag = first.headers.etag as string;
  t.match(first.headers, { "cache-control": "no-cache", "content-type": "application/json; charset=utf-8" });
  t.equal((await ask(etag).expect(304)).text, "");
  t.match(etag, /^W\//, "all content codings share the tag, so it is weak (RFC 9110, section 8.8.3)");
  for (const coding of ["br", "gzip", "identity"])
    t.equal((await ask().set("Accept-Encoding", coding)).headers.etag, etag, coding);
  const changes: [string, () => Promise<unknown>][] = [
    ["a booking", () => book("intro", "2026-10-05T09:00:00Z", 30).expect(201)],
    ["the event type", () => owner.put(`${base}/event-types/${eventTypeId}`).send({ durationMinutes: 60 }).expect(200)],
    [
      "the schedule",
      () =>
        owner
          .post(`${base}/schedules`)
          .send({
            scheduleId: "main",
            timeZone: "UTC",
            weeklyAvailability: [{ day: 1, startTime: "10:00", endTime: "16:00" }],
          })
          .expect(200),
    ],
    ["time", async () => at("2026-10-05T11:30:00.001Z")],
  ];
  let last = etag;
  for (const [name, change] of changes) {
    await change();
    const next = await ask(last).expect(200);
    t.not(next.headers.etag, last, name);
    await ask(next.headers.etag as string).expect(304);
    last = next.headers.etag as string;
  }
  t.equal(
    (await ask()).body.slots[0].start,
    "2026-10-05T13:00:00.000Z",
    "half an hour before noon is over by a millisecond",
  );
});

t.test("an event type uses its own schedule, else the oldest, else working hours in its zone", async (t) => {
  const service = await startService(t);
  let now = Date.parse("2026-10-05T06:00:00Z");
  Object.assign(service.runtime, { now: () => now++ });
  const owner = await service.handle("acme");
  const event = async (fields: object) => {
    const made = await owner
      .post(`${base}/event-types`)
      .send({ title: "T", durationMinutes: 60, ...fields })
      .expect(201);
    return made.body.eventType as { eventTypeId: string; timeZone: string };
  };
  const look = async (slug: string) => {
    const { body } = await service.visitor
      .get(`${PUBLIC_EVENTS_PATH}/${slug}/slots?start=2026-10-05T00:00:00Z&end=2026-10-07T00:00:00Z`)
      .expect(200);
    const [first] = body.slots;
    return [
      body.slots.length,
      first.start.slice(8, 16),
      first.sourceAvailability.kind,
      first.timeZone,
      body.displayTimeZone,
    ];
  };
  await event({ slug: "plain" });
  await event({ slug: "york", timeZone: "America/New_York" });
  t.same(await look("plain"), [16, "05T09:00", "default", "UTC", "UTC"]);
  t.same(await look("york"), [16, "05T13:00", "default", "America/New_York", "America/New_York"]);
  const hours = (startTime: string, endTime: string) => [{ day: 1, startTime, endTime }];
  const overrides = [{ date: "2026-10-06", startTime: "20:00", endTime: "21:00" }];
  const berlin = { scheduleId: "b", timeZone: "Europe/Berlin", weeklyAvailability: hours("10:00", "12:00"), overrides };
  await owner.post(`${base}/schedules`).send(berlin).expect(201);
  await owner
    .post(`${base}/schedules`)
    .send({ scheduleId: "a", timeZone: "UTC", weeklyAvailability: hours("18:00", "21:00") })
    .expect(201);
  t.same(await look("plain"), [3, "05T08:00", "weekly", "Europe/Berlin", "Europe/Berlin"]);
  t.same(
    await look("york"),
    [3, "05T08:00", "weekly", "America/New_York", "America/New_York"],
    "hours of Berlin on the clock of New York",
  );
  t.equal((await event({ slug: "late", scheduleId: "a" })).timeZone, "UTC");
  t.same(await look("late"), [3, "05T18:00", "weekly", "UTC", "UTC"]);
  await owner.delete(`${base}/schedules/a`).expect(204);
  t.same(await look("late"), [3, "05T08:00", "weekly", "Europe/Berlin", "Europe/Berlin"], "its schedule is gone");
  const { body } = await service.visitor.get(
    `${PUBLIC_EVENTS_PATH}/plain/slots?start=2026-10-06T00:00:00Z&end=2026-10-07T00:00:00Z`,
  );
  t.match(body.slots, [{ start: "2026-10-06T18:00:00.000Z", sourceAvailability: { kind: "override" } }]);
});

t.test("a stored zone that the runtime does not know is read as UTC", async (t) => {
  const { event, service, slots, book } = await openStage(t);
  const eventTypeId = await event({ slug: "intro" });
  const { redis } = service.runtime;
  const rezone = async (key: string, timeZone: string) => {
    const json = JSON.parse((await redis.hget(key, "json")) as string);
    await redis.hset(key, "json", JSON.stringify({ ...json, timeZone }));
  };
  await rezone(keys.schedule("acme", "main"), "Mars/Olympus");
  await rezone(keys.eventType("acme", eventTypeId), "Mars/Olympus");
  await redis.incr(keys.catalogVersion("acme"));
  t.match((await service.visitor.get(`${PUBLIC_EVENTS_PATH}/intro`).expect(200)).body.event, {
    timeZone: "UTC",
  });
  t.equal((await slots("intro", "2026-10-05T06:00:00Z", "2026-10-06T06:00:00Z"))[0], "10-05T09:00");
  const { bookingUid } = (await book("intro", "2026-10-05T09:00:00Z", 30).expect(201)).body;
  await rezone(keys.booking("acme", bookingUid), "Mars/Olympus");
  const file = await service.visitor.get(`${PUBLIC_EVENTS_PATH}/intro/bookings/${bookingUid}/calendar.ics`).expect(200);
  t.match(file.text, "DTSTART:20261005T090000Z");
});

t.test("slots of a day on which the clocks change, through the front door", async (t) => {
  const { event, service, owner, at } = await openStage(t);
  at("2026-03-01T00:00:00Z");
  const weeklyAvailability = [{ day: 0, startTime: "01:00", endTime: "04:00" }];
  await owner
    .post(`${base}/schedules`)
    .send({ scheduleId: "ny", timeZone: "America/New_York", weeklyAvailability })
    .expect(201);
  await event({ slug: "intro", scheduleId: "ny" });
  const starts = async (date: string) => {
    const { body } = await service.visitor
      .get(`${PUBLIC_EVENTS_PATH}/intro/slots?start=${date}T00:00:00Z&end=${date}T23:00:00Z`)
      .expect(200);
    return body.slots.map(({ start }: { start: string }) => start.slice(11, 16)).join(" ");
  };
  t.equal(await starts("2026-03-08"), "06:00 06:30 07:00 07:30");
  t.equal(await starts("2026-11-01"), "05:00 05:30 06:00 06:30 07:00 07:30 08:00 08:30");
});

t.test("the slot of an expired hold is listed and can be booked before a job has recorded the expiry", async (t) => {
  const { event, service, book, slots, at } = await openStage(t);
  const payments = { accountStatus: async () => "OK", openCheckout: async () => ({ url: "https://pay.example/1" }) };
  Object.assign(service.runtime, { payments });
  await event({ slug: "paid", payment: { enabled: true, amountMinor: 100, currency: "EUR" } });
  const made = await book("paid", "2026-10-05T09:00:00Z", 30).expect(201);
  t.same(await slots("paid", "2026-10-05T09:00:00Z", "2026-10-05T10:00:00Z"), ["10-05T09:30"]);
  at("2026-10-05T06:34:59.999Z");
  t.same(await slots("paid", "2026-10-05T09:00:00Z", "2026-10-05T10:00:00Z"), ["10-05T09:30"]);
  at("2026-10-05T06:35:00Z");
  t.same(await slots("paid", "2026-10-05T09:00:00Z", "2026-10-05T10:00:00Z"), ["10-05T09:00", "10-05T09:30"]);
  const read = await service.visitor.get(`${PUBLIC_EVENTS_PATH}/paid/bookings/${made.body.bookingUid}`).expect(200);
  t.equal(read.body.booking.status, "REJECTED");
  await service.visitor.post(`${PUBLIC_EVENTS_PATH}/paid/bookings/${made.body.bookingUid}/cancel`).expect(409);
  const second = await book("paid", "2026-10-05T09:00:00Z", 30).expect(201);
  t.not(second.body.bookingUid, made.body.bookingUid);
});

t.test("500 event types with a schedule of 2,000 rows for one date are read at once", async (t) => {
  const { event, service, owner } = await openStage(t);
  const { redis } = service.runtime;
  const overrides = Array.from({ length: 2000 }, () => ({ date: "2026-10-06", startTime: "09:00", endTime: "10:00" }));
  await owner.post(`${base}/schedules`).send({ scheduleId: "main", timeZone: "UTC", overrides }).expect(200);
  const eventTypeId = await event({ slug: "intro" });
  const stored = JSON.parse((await redis.hget(keys.eventType("acme", eventTypeId), "json")) ?? "");
  const writes = redis.pipeline();
  for (let at = 1; at < 500; at++) {
    const copy = { ...stored, eventTypeId: `etp_${at}`, slug: `intro-${at}` };
    writes.hset(keys.eventType("acme", copy.eventTypeId), { version: 1, json: JSON.stringify(copy) });
    writes.zadd(keys.eventTypes("acme"), at, copy.eventTypeId);
  }
  await writes.incr(keys.catalogVersion("acme")).exec();
  const begun = Date.now();
  const { body } = await service.visitor.get(PUBLIC_EVENTS_PATH).expect(200);
  t.equal(body.events.length, 500);
  t.ok(Date.now() - begun < 2000, `${Date.now() - begun} ms`);
});
