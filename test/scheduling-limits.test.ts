import { once } from "node:events";
import { connect } from "node:net";
import t, { type Test } from "tap";
import { keys } from "../core/store/keys.ts";
import { keyNames } from "../fixtures/redis.ts";
import { ada, openStage, PUBLIC_EVENTS_PATH, type Stage } from "../fixtures/scheduling/owner.ts";

const start = Date.parse("2026-10-05T09:00:00Z");
const instant = (minutes: number) => new Date(start + minutes * 60_000).toISOString();
const slot = (minutes: number) => ({ start: instant(minutes), end: instant(minutes + 5) });

/** A visitor's requests from a network, as the proxy names it. */
function from({ service }: Stage, address: string) {
  const post = (path: string, body: object) =>
    service.visitor.post(`${PUBLIC_EVENTS_PATH}/intro/${path}`).set("X-Forwarded-For", address).send(body);
  return {
    book: (minutes: number, more: object = {}) =>
      post("bookings", { attendee: { ...ada, email: `p${minutes}@example.com` }, slot: slot(minutes), ...more }),
    move: (bookingUid: string, minutes: number) => post("reschedule", { bookingUid, slot: slot(minutes) }),
    cancel: (bookingUid: string) => post(`bookings/${bookingUid}/cancel`, {}),
  };
}

async function open(t: Test, env: Record<string, string> = {}): Promise<Stage> {
  const stage = await openStage(t, { env: { TRUST_PROXY: "1", ...env } });
  await stage.event({ slug: "intro", durationMinutes: 5 });
  return stage;
}

t.test("a network books, moves and cancels 20 times at once, then 30 times an hour", async (t) => {
  const stage = await open(t);
  const visitor = from(stage, "192.0.2.1");
  const uids: string[] = [];
  for (let at = 0; at < 18; at++) uids.push((await visitor.book(at * 5).expect(201)).body.bookingUid);
  await visitor.move(uids[0] as string, 200).expect(200);
  await visitor.cancel(uids[1] as string).expect(200);
  for (const refused of [visitor.book(300), visitor.move(uids[2] as string, 305), visitor.cancel(uids[3] as string)]) {
    const { body, headers } = await refused.expect(429);
    t.match(body, { code: "rate_limited", detail: /from this network\. Try again in 2 minutes\./ });
    const wait = Number(headers["retry-after"]);
    t.ok(wait > 100 && wait <= 120, `${wait} s`);
  }
  t.match((await stage.service.visitor.get(`${PUBLIC_EVENTS_PATH}/intro/bookings/${uids[3]}`)).body.booking, {
    status: "ACCEPTED",
  });
  const [bucket] = await keyNames(stage.service.runtime.redis, keys.bookingBucket("acme", "*"));
  // Two minutes later by the bucket's own clock.
  await stage.service.runtime.redis.incrby(bucket as string, -120_000_000);
  await visitor.book(300).expect(201);
  await visitor.book(310).expect(429);
});

t.test("refusals, repeats and requests for cancelled bookings don't count against a network", async (t) => {
  const stage = await open(t, { PUBLIC_BOOKINGS_BURST: "3" });
  const visitor = from(stage, "192.0.2.1");
  const { bookingUid } = (await visitor.book(0).set("Idempotency-Key", "once").expect(201)).body;
  for (let at = 0; at < 5; at++) {
    await visitor.book(0).set("Idempotency-Key", "once").expect(201).expect("idempotency-replayed", "true");
    await visitor.book(0, { attendee: { name: "Bob", email: "bob@example.com" } }).expect(409);
    await visitor.book(5, { attendee: {} }).expect(400);
  }
  await visitor.cancel(bookingUid).expect(200);
  for (let at = 0; at < 5; at++) await visitor.cancel(bookingUid).expect(200);
  await visitor.book(0).expect(201);
  await visitor.book(5).expect(429);
});

t.test("a visitor who hangs up at once counts for the own network", async (t) => {
  const { service, event } = await openStage(t);
  await event({ slug: "intro", durationMinutes: 5 });
  const path = `${PUBLIC_EVENTS_PATH}/intro/bookings`;
  const bookingAt = (minutes: number) => ({ attendee: ada, slot: slot(minutes) });
  await service.visitor.post(path).send(bookingAt(0)).expect(201);
  const body = JSON.stringify(bookingAt(5));
  const head = ["Host: a", "Content-Type: application/json", `Content-Length: ${body.length}`].join("\r\n");
  const socket = connect(Number(new URL(service.url).port), "127.0.0.1");
  socket.write(`POST ${path} HTTP/1.1\r\n${head}\r\n\r\n${body}`, () => socket.destroy());
  // Node books for one who hangs up, Deno does not; either way it is over by the end of the next booking.
  await once(socket, "close");
  await service.visitor.post(path).send(bookingAt(10)).expect(201);
  t.equal(
    (await keyNames(service.runtime.redis, keys.bookingBucket("acme", "*"))).length,
    1,
    "all count for one network",
  );
});

t.test("an IPv6 subscriber is one network, other networks are not touched", async (t) => {
  const stage = await open(t, { PUBLIC_BOOKINGS_BURST: "2" });
  await from(stage, "2001:db8::1").book(0).expect(201);
  await from(stage, "2001:db8::ffff:2").book(5).expect(201);
  await from(stage, "2001:db8::3").book(10).expect(429);
  await from(stage, "2001:db8:0:1::1").book(10).expect(201);
  const { redis } = stage.service.runtime;
  const names = await keyNames(redis, keys.bookingBucket("acme", "*"));
  t.equal(names.length, 2);
  for (const name of names) {
    t.notMatch(name, /2001|db8/, "no key contains an address");
    t.ok((await redis.pttl(name)) <= (2 / 30) * 3_600_000 + 10_000, "it lives until it is full again and 10 s");
  }
});

t.test("a crowd from one network gets as many bookings as its bucket has", async (t) => {
  const stage = await open(t, { PUBLIC_BOOKINGS_BURST: "5" });
  const visitor = from(stage, "192.0.2.1");
  const answers = await Promise.all(Array.from({ length: 15 }, (_, at) => visitor.book(at * 5)));
  t.same(answers.map(({ status }) => status).sort(), [...Array(5).fill(201), ...Array(10).fill(429)]);
});

t.test("one address has at most 10 future bookings of a handle", async (t) => {
  const stage = await open(t, { PUBLIC_BOOKINGS_BURST: "0" });
  const visitor = from(stage, "192.0.2.1");
  const attendee = (email: string) => ({ attendee: { name: "Ada", email } });
  const uids: string[] = [];
  for (let at = 0; at < 10; at++)
    uids.push(
      (await visitor.book(at * 5, attendee(at % 2 ? "ADA@example.com" : ada.email)).expect(201)).body.bookingUid,
    );
  const { body, headers } = await visitor.book(50, attendee("Ada@Example.com")).expect(429);
  t.match(body, { code: "rate_limited", detail: /already has 10 future bookings\. Cancel one of them/ });
  t.equal(Number(headers["retry-after"]), 3 * 3600, "the next booking begins in three hours");
  await visitor.book(50, attendee("bob@example.com")).expect(201);
  await visitor.move(uids[0] as string, 60).expect(200);
  await visitor.book(0, attendee(ada.email)).expect(429);
  await visitor.cancel(uids[9] as string).expect(200);
  await visitor.book(70, attendee(ada.email)).expect(201);
  await visitor.book(75, attendee(ada.email)).expect(429);
  stage.at(instant(6));
  await visitor.book(75, attendee(ada.email)).expect(201);
  await visitor.book(80, attendee(ada.email)).expect(429);
});

t.test("an address that comes ten times at once with one place left gets one booking", async (t) => {
  const stage = await open(t, { PUBLIC_BOOKINGS_BURST: "0", PUBLIC_BOOKINGS_PER_ATTENDEE: "3" });
  const visitor = from(stage, "192.0.2.1");
  const answers = await Promise.all(Array.from({ length: 10 }, (_, at) => visitor.book(at * 5, { attendee: ada })));
  t.equal(answers.filter(({ status }) => status === 201).length, 3);
  t.equal(answers.filter(({ status }) => status === 429).length, 7);
});

t.test("expired holds, declined and past bookings don't count for an address", async (t) => {
  const env = { PUBLIC_BOOKINGS_BURST: "0", PUBLIC_BOOKINGS_PER_ATTENDEE: "1" };
  const stage = await open(t, env);
  const payments = {
    accountStatus: async () => "OK",
    openCheckout: async () => ({ url: "https://pay.example/1" }),
  };
  Object.assign(stage.service.runtime, { payments });
  await stage.event({
    slug: "paid",
    durationMinutes: 5,
    payment: { enabled: true, amountMinor: 500, currency: "EUR" },
  });
  await stage.event({ slug: "asked", durationMinutes: 5, confirmationRequired: true });
  await stage.book("paid", instant(0), 5).expect(201);
  await stage.book("asked", instant(10), 5).expect(429);
  stage.at("2026-10-05T06:36:00Z");
  const { bookingUid } = (await stage.book("asked", instant(10), 5).expect(201)).body;
  await stage.book("asked", instant(20), 5).expect(429);
  await stage.owner.post(`/v2/handles/acme/scheduling/bookings/${bookingUid}/decline`).expect(200);
  await stage.book("asked", instant(20), 5).expect(201);
});

t.test("a visitor moves one booking at most 5 times a day", async (t) => {
  const stage = await open(t);
  const visitor = from(stage, "192.0.2.1");
  const tomorrow = 24 * 60;
  const first = (await visitor.book(tomorrow).expect(201)).body.bookingUid;
  const other = (await visitor.book(tomorrow + 5).expect(201)).body.bookingUid;
  for (let at = 1; at <= 5; at++) await visitor.move(first, tomorrow + at * 30).expect(200);
  stage.at("2026-10-05T07:00:00Z");
  const { body, headers } = await visitor.move(first, tomorrow + 240).expect(429);
  t.match(body, { code: "rate_limited", detail: /moved 5 times a day\. Move it tomorrow, or cancel it/ });
  t.equal(Number(headers["retry-after"]), 23 * 3600);
  const read = (await stage.service.visitor.get(`${PUBLIC_EVENTS_PATH}/intro/bookings/${first}`)).body.booking;
  t.match(read, { start: "2026-10-06T11:30:00.000Z", sequence: 5 });
  t.notOk("moves" in read);
  await visitor.move(other, tomorrow + 245).expect(200);
  stage.at("2026-10-06T06:00:00Z");
  await visitor.move(first, tomorrow + 240).expect(200);
  await visitor.cancel(first).expect(200);
});

t.test("limits of 0 are off", async (t) => {
  for (const env of [{ PUBLIC_BOOKINGS_BURST: "0" }, { PUBLIC_BOOKINGS_RATE: "0" }]) {
    const stage = await open(t, { ...env, PUBLIC_BOOKINGS_PER_ATTENDEE: "0" });
    const visitor = from(stage, "192.0.2.1");
    for (let at = 0; at < 25; at++) await visitor.book(at * 5, { attendee: ada }).expect(201);
    t.same(await keyNames(stage.service.runtime.redis, keys.bookingBucket("acme", "*")), []);
  }
});
