import t from "tap";
import type { Order, PaymentProvider } from "../core/platform/runtime.ts";
import { expireHold, recordFailedRefund, recordRefund, settlePayment } from "../core/scheduling/booking-payments.ts";
import { keys } from "../core/store/keys.ts";
import { afterReply, keyNames } from "../fixtures/redis.ts";
import { openStage, PUBLIC_EVENTS_PATH, type Stage } from "../fixtures/scheduling/owner.ts";
import { eventually } from "../fixtures/service.ts";

const base = "/v2/handles/acme/scheduling";
const price = { enabled: true, amountMinor: 5000, currency: "EUR" };
const start = "2026-10-05T09:00:00Z";

/** A provider that records its requests. */
function provider(more: Partial<PaymentProvider> = {}): PaymentProvider & { orders: Order[] } {
  const orders: Order[] = [];
  const openCheckout = async (order: Order) => {
    orders.push(order);
    return { url: `https://pay.example/${order.booking.bookingUid}` };
  };
  return { orders, accountStatus: async () => "OK", openCheckout, ...more };
}

function connect(stage: Stage, payments: PaymentProvider): void {
  Object.assign(stage.service.runtime, { payments });
}

/** Types of the webhook events that were written, in the order of their causes. */
async function written(stage: Stage): Promise<string[]> {
  const { redis } = stage.service.runtime;
  const found = await keyNames(redis, keys.webhookEvent("acme", "*"));
  const events = (await Promise.all(found.map((key) => redis.get(key)))).map((json) => JSON.parse(json as string));
  return events.map(({ type, data }) => `${data.booking.version} ${type}`).sort();
}

/** An endpoint, so that there is somebody to tell. */
async function listen(stage: Stage): Promise<void> {
  await stage.owner.post(`${base}/webhooks`).send({ url: "http://127.0.0.1:9/hook" }).expect(201);
}

t.test("without a provider or a price no booking is made and no slot is held", async (t) => {
  const stage = await openStage(t);
  const { event, book, service } = stage;
  await event({ slug: "paid", payment: price });
  await event({ slug: "unpriced", payment: { enabled: true } });
  const refused = async (slug: string) =>
    t.match((await book(slug, start, 30)).body, { status: 409, code: "payment_provider_not_connected" });
  await refused("paid");
  connect(stage, provider({ accountStatus: async () => undefined }));
  await refused("paid");
  connect(stage, provider());
  await refused("unpriced");
  t.equal(await service.runtime.redis.exists(keys.blocks("acme")), 0);
  t.match((await service.visitor.get(`${PUBLIC_EVENTS_PATH}/paid`)).body.event, {
    paymentRequired: true,
    price: { amountMinor: 5000 },
  });
});

t.test("a paid booking that its visitor moves keeps its payment while it waits for the owner", async (t) => {
  const stage = await openStage(t);
  connect(stage, provider());
  await stage.event({ slug: "paid", payment: price, confirmationRequired: true });
  const { bookingUid } = (await stage.book("paid", start, 30).expect(201)).body;
  await settlePayment(stage.service.runtime, { handle: "acme", bookingUid });
  const slot = { start: "2026-10-05T11:00:00Z", end: "2026-10-05T11:30:00Z" };
  const moved = await stage.service.visitor
    .post(`${PUBLIC_EVENTS_PATH}/paid/reschedule`)
    .send({ bookingUid, slot })
    .expect(200);
  t.match(moved.body, { status: "PENDING", booking: { payment: { status: "PAID" }, confirmedAt: null } });
  t.equal(moved.body.nextAction, undefined);
  const confirmed = await stage.owner.post(`${base}/bookings/${bookingUid}/confirm`).expect(200);
  t.match(confirmed.body.booking, { status: "ACCEPTED", payment: { status: "PAID" } });
});

t.test("a move does not begin a refund period again that has ended", async (t) => {
  const stage = await openStage(t);
  connect(stage, provider());
  await stage.event({ slug: "paid", payment: price });
  const book = async (at: string) => (await stage.book("paid", at, 30).expect(201)).body.bookingUid as string;
  const settle = (bookingUid: string) => settlePayment(stage.service.runtime, { handle: "acme", bookingUid });
  const move = async (bookingUid: string, day: string) => {
    const slot = { start: `${day}T09:00:00Z`, end: `${day}T09:30:00Z` };
    const sent = stage.service.visitor.post(`${PUBLIC_EVENTS_PATH}/paid/reschedule`).send({ bookingUid, slot });
    return (await sent.expect(200)).body.booking.payment;
  };
  const cancel = async (uid: string) =>
    (await stage.service.visitor.post(`${PUBLIC_EVENTS_PATH}/paid/bookings/${uid}/cancel`).expect(200)).body.booking;
  const [late, unpaid, early] = [
    await book(start),
    await book("2026-10-05T11:00:00Z"),
    await book("2026-10-08T10:00:00Z"),
  ];
  await settle(late);
  await settle(early);
  const ended = { refundUntil: "2026-10-04T09:00:00.000Z", refundable: false };
  for (const day of ["2026-10-12", "2026-10-13"]) t.match(await move(late, day), ended);
  t.match(await cancel(late), { payment: { ...ended, status: "PAID" } });
  t.match(await move(early, "2026-10-14"), { refundUntil: "2026-10-13T09:00:00.000Z", refundable: true });
  t.match(await cancel(early), { payment: { status: "REFUND_DUE" } });
  await move(unpaid, "2026-10-15");
  await settle(unpaid);
  t.match(await cancel(unpaid), { payment: { status: "REFUND_DUE" } }, "the time that was paid for counts");
});

t.test("a price is shown in the units in which the provider charges it", async (t) => {
  const stage = await openStage(t);
  const currencies = {
    HUF: "HUF 4,900.00",
    COP: "COP 4,900.00",
    ISK: "ISK 4,900.00",
    EUR: "€4,900.00",
    JPY: "JP¥490,000",
    KWD: "KWD 490.000",
  };
  for (const currency of Object.keys(currencies))
    await stage.event({
      slug: currency.toLowerCase(),
      payment: { enabled: true, amountMinor: 490_000, currency },
    });
  await stage.event({ slug: "part", payment: { enabled: true, amountMinor: 490_050, currency: "HUF" } });
  const { text } = await stage.service.visitor.get("/apps/public/scheduling/acme").expect(200);
  const shown = [...text.matchAll(/30 minutes · ([^<]*)</g)].map(([, price]) => price?.replace("\u00a0", " "));
  t.same(shown.sort(), [...Object.values(currencies), "HUF 4,900.50"].sort());
});

t.test("an event type that can't take its payment says so and why", async (t) => {
  const stage = await openStage(t);
  const { owner } = stage;
  const fields = { slug: "paid", title: "Paid", durationMinutes: 30, payment: { enabled: true } };
  const { eventType } = (await owner.post(`${base}/event-types`).send(fields).expect(201)).body;
  t.match(eventType, { bookable: false, reason: "payment_provider_not_connected" });
  const one = `${base}/event-types/${eventType.eventTypeId}`;
  const read = async () => {
    const [single, list] = [
      (await owner.get(one)).body.eventType,
      (await owner.get(`${base}/event-types`)).body.eventTypes,
    ];
    t.same(list, [single]);
    return { bookable: single.bookable, reason: single.reason };
  };
  t.same(await read(), { bookable: false, reason: "payment_provider_not_connected" });
  connect(stage, provider({ accountStatus: async () => undefined }));
  t.same(await read(), { bookable: false, reason: "payment_provider_not_connected" });
  connect(stage, provider());
  t.same(await read(), { bookable: false, reason: "price_missing" });
  const changed = await owner.put(one).send({ payment: price, bookable: false, reason: "ignored" }).expect(200);
  t.match(changed.body.eventType, { bookable: true, reason: null });
  await owner
    .put(one)
    .send({ payment: { enabled: false } })
    .expect(200);
  connect(stage, provider({ accountStatus: async () => undefined }));
  t.same(await read(), { bookable: true, reason: null });
  t.notOk(
    "bookable" in
      JSON.parse(
        (await stage.service.runtime.redis.hget(keys.eventType("acme", eventType.eventTypeId), "json")) as string,
      ),
  );
});

t.test(
  "a paid booking goes to the checkout, and is confirmed once it is paid, with or without confirmation",
  async (t) => {
    const stage = await openStage(t);
    await listen(stage);
    const payments = provider();
    connect(stage, payments);
    await stage.event({ slug: "paid", payment: price, confirmationRequired: true });
    const made = await stage.book("paid", start, 30).expect(201);
    const { bookingUid } = made.body;
    const url = `https://pay.example/${bookingUid}`;
    t.match(made.body, { status: "PENDING_PAYMENT", nextAction: { type: "redirect_to_checkout", url } });
    t.match(made.body.booking, {
      status: "PENDING_PAYMENT",
      holdUntil: "2026-10-05T06:35:00.000Z",
      payment: { status: "REQUIRED", checkoutUrl: url },
    });
    t.match(payments.orders, [
      { openMinutes: 31, booking: { handle: "acme", bookingUid, payment: { amountMinor: 5000, currency: "EUR" } } },
    ]);
    t.equal(
      payments.orders[0]?.returnUrl,
      `http://service.test/apps/public/scheduling/acme/paid?booking=${bookingUid}`,
    );
    await stage.book("paid", start, 30).expect(409);
    await stage.owner.post(`${base}/bookings/${bookingUid}/confirm`).expect(409);
    const settle = () => settlePayment(stage.service.runtime, { handle: "acme", bookingUid });
    const results = await Promise.all([settle(), settle(), settle()]);
    t.same(results.sort(), ["accepted", "repeated", "repeated"]);
    const { booking } = (await stage.owner.get(`${base}/bookings/${bookingUid}`)).body;
    t.match(booking, { status: "ACCEPTED", holdUntil: null, confirmedAt: String });
    t.match(booking.payment, { status: "PAID", checkoutUrl: null });
    t.same(await written(stage), [
      "1 scheduling.booking.created",
      "1 scheduling.payment.required",
      "3 scheduling.booking.confirmed",
      "3 scheduling.payment.succeeded",
    ]);
    await t.rejects(settlePayment(stage.service.runtime, { handle: "acme", bookingUid: "unknown" }), {
      code: "booking_not_found",
    });
  },
);

t.test("a hold ends after 35 minutes, and its job releases the slot once", async (t) => {
  const stage = await openStage(t);
  await listen(stage);
  connect(stage, provider());
  await stage.event({ slug: "paid", payment: price });
  const { bookingUid } = (await stage.book("paid", start, 30).expect(201)).body;
  const { runtime } = stage.service;
  const expire = () => expireHold(runtime, { handle: "acme", bookingUid });
  await expire();
  t.equal(
    (await stage.owner.get(`${base}/bookings/${bookingUid}`)).body.booking.status,
    "PENDING_PAYMENT",
    "too early",
  );
  stage.at("2026-10-05T06:35:00Z");
  const read = async () => (await stage.owner.get(`${base}/bookings/${bookingUid}`)).body.booking;
  const over = { status: "REJECTED", cancelledBy: "service", holdUntil: null, payment: { checkoutUrl: null } };
  t.match(await read(), over, "before the job has run too");
  await Promise.all([expire(), expire(), expire()]);
  t.match(await read(), over);
  t.equal(await runtime.redis.zcard(keys.blocks("acme")), 0);
  const rejected = (await written(stage)).filter((type) => type.endsWith("cancelled"));
  t.equal(rejected.length, 1);
});

t.test("a hold that expires while its job reads the clock ends by this job or by the next one", async (t) => {
  const stage = await openStage(t);
  connect(stage, provider());
  await stage.event({ slug: "paid", payment: price });
  const { bookingUid } = (await stage.book("paid", start, 30).expect(201)).body;
  const { runtime } = stage.service;
  const waiting = async () => (await runtime.queues.queue("scheduling").getDelayed()).length;
  const before = await waiting();
  // Each reading of the clock is a second later, and the first is just before the end.
  const readings = Array.from({ length: 100 }, (_, at) => Date.parse("2026-10-05T06:34:59.500Z") + at * 1000);
  const ticking = Object.create(runtime, { now: { value: () => readings.shift() } }) as typeof runtime;
  await expireHold(ticking, { handle: "acme", bookingUid });
  const { booking } = (await stage.owner.get(`${base}/bookings/${bookingUid}`)).body;
  t.ok(booking.status === "REJECTED" || (await waiting()) > before, booking.status);
});

t.test("a payment after the hold reclaims the slot if it is free", async (t) => {
  const stage = await openStage(t);
  connect(stage, provider());
  await stage.event({ slug: "paid", payment: price });
  const settle = (bookingUid: string) => settlePayment(stage.service.runtime, { handle: "acme", bookingUid });
  const book = async (at: string) => (await stage.book("paid", at, 30).expect(201)).body.bookingUid as string;
  const [expired, unwritten, lost] = [
    await book(start),
    await book("2026-10-05T10:00:00Z"),
    await book("2026-10-05T11:00:00Z"),
  ];
  stage.at("2026-10-05T06:40:00Z");
  await expireHold(stage.service.runtime, { handle: "acme", bookingUid: expired });
  const other = await book("2026-10-05T11:00:00Z");
  t.equal(await settle(expired), "accepted");
  t.equal(await settle(unwritten), "accepted");
  t.equal(await settle(lost), "refund");
  t.equal(await settle(lost), "refund", "again is the same");
  t.equal(await settle(other), "accepted");
  const read = async (uid: string) => (await stage.owner.get(`${base}/bookings/${uid}`)).body.booking;
  t.match(await read(expired), { status: "ACCEPTED", cancelledBy: null });
  t.match(await read(lost), { status: "REJECTED", payment: { status: "REFUND_DUE" } });
  t.equal(await stage.service.runtime.redis.zcard(keys.blocks("acme")), 3);
});

t.test("a payment after the hold reclaims no slot of a day that is full", async (t) => {
  const stage = await openStage(t);
  connect(stage, provider());
  await stage.event({ slug: "paid", payment: price, maxBookingsPerDay: 2 });
  const settle = (bookingUid: string) => settlePayment(stage.service.runtime, { handle: "acme", bookingUid });
  const book = async (at: string) => (await stage.book("paid", at, 30).expect(201)).body.bookingUid as string;
  const [ended, unwritten] = [await book(start), await book("2026-10-05T10:00:00Z")];
  stage.at("2026-10-05T06:40:00Z");
  await expireHold(stage.service.runtime, { handle: "acme", bookingUid: ended });
  const others = [await book("2026-10-05T12:00:00Z"), await book("2026-10-05T13:00:00Z")];
  const results = [];
  for (const uid of [ended, unwritten, ...others]) results.push(await settle(uid));
  t.same(results, ["refund", "refund", "accepted", "accepted"]);
  const read = async (uid: string) => (await stage.owner.get(`${base}/bookings/${uid}`)).body.booking;
  for (const uid of [ended, unwritten])
    t.match(await read(uid), { status: "REJECTED", payment: { status: "REFUND_DUE" } });
  t.equal(await stage.service.runtime.redis.zcard(keys.blocks("acme")), 2);
});

t.test("a payment within the hold counts although the booking has begun, unless it is over", async (t) => {
  const stage = await openStage(t);
  connect(stage, provider());
  await stage.event({ slug: "paid", payment: price });
  await stage.event({ slug: "short", payment: price, durationMinutes: 5 });
  stage.at("2026-10-05T08:58:00Z");
  const over = (await stage.book("short", start, 5).expect(201)).body.bookingUid;
  const begun = (await stage.book("paid", "2026-10-05T09:30:00Z", 30).expect(201)).body.bookingUid;
  const settle = (bookingUid: string) => settlePayment(stage.service.runtime, { handle: "acme", bookingUid });
  stage.at("2026-10-05T09:32:00Z");
  t.equal(await settle(over), "refund");
  t.equal(await settle(begun), "accepted");
  const { booking } = (await stage.owner.get(`${base}/bookings/${begun}`)).body;
  t.match(booking, { status: "ACCEPTED", payment: { status: "PAID" }, holdUntil: null });
});

t.test("a payment for a booking that was cancelled, or has begun after its hold, must go back", async (t) => {
  const stage = await openStage(t);
  await listen(stage);
  connect(stage, provider());
  await stage.event({ slug: "paid", payment: price });
  const settle = (bookingUid: string) => settlePayment(stage.service.runtime, { handle: "acme", bookingUid });
  const first = (await stage.book("paid", start, 30).expect(201)).body.bookingUid;
  const second = (await stage.book("paid", "2026-10-05T10:00:00Z", 30).expect(201)).body.bookingUid;
  const cancelled = await stage.service.visitor.post(`${PUBLIC_EVENTS_PATH}/paid/bookings/${first}/cancel`).expect(200);
  t.equal(cancelled.body.status, "CANCELLED");
  t.equal(await settle(first), "refund");
  stage.at("2026-10-05T10:00:00Z");
  t.equal(await settle(second), "refund");
  const read = await stage.owner.get(`${base}/bookings/${first}`);
  t.match(read.body.booking, { status: "CANCELLED", payment: { status: "REFUND_DUE" } });
  const told = (await written(stage)).filter((event) => !/created|required/.test(event));
  t.same(told, [
    "3 scheduling.booking.cancelled",
    "3 scheduling.booking.cancelled",
    "3 scheduling.payment.succeeded",
    "4 scheduling.payment.succeeded",
  ]);
});

t.test("a payment that is first heard of by its refund is told as paid, once", async (t) => {
  const stage = await openStage(t);
  await listen(stage);
  connect(stage, provider());
  await stage.event({ slug: "paid", payment: price });
  const { bookingUid } = (await stage.book("paid", start, 30).expect(201)).body;
  const name = { handle: "acme", bookingUid };
  await recordRefund(stage.service.runtime, name, 1);
  t.equal(await settlePayment(stage.service.runtime, name), "refund");
  await recordRefund(stage.service.runtime, name, 2);
  t.same(
    (await written(stage)).filter((event) => /succeeded/.test(event)),
    ["3 scheduling.payment.succeeded"],
  );
});

t.test("a refund that is made while its failure is recorded is not remembered as failed", async (t) => {
  const stage = await openStage(t);
  connect(stage, provider());
  const { runtime } = stage.service;
  await stage.event({ slug: "paid", payment: price });
  const { bookingUid } = (await stage.book("paid", start, 30).expect(201)).body;
  const name = { handle: "acme", bookingUid };
  await settlePayment(runtime, name);
  const path = `${base}/bookings/${bookingUid}`;
  await stage.owner.post(`${path}/cancel`).expect(200);
  const read = { name: "hmget", key: keys.booking("acme", bookingUid) } as const;
  afterReply(runtime.redis, read, () => recordRefund(runtime, name, 1));
  await recordFailedRefund(runtime, name, { reason: "failed" });
  t.match((await stage.owner.get(path)).body.booking.payment, { status: "REFUNDED" });
  t.equal(await runtime.redis.exists(keys.unrefunded("acme")), 0);
});

t.test("a booking that its owner cancels before its checkout is open is refused, with a key too", async (t) => {
  const stage = await openStage(t);
  const openCheckout = async ({ booking: { bookingUid } }: Order) => {
    await stage.owner.post(`${base}/bookings/${bookingUid}/cancel`).expect(200);
    return { url: "https://pay.example/late" };
  };
  connect(stage, provider({ openCheckout }));
  await stage.event({ slug: "paid", payment: price });
  for (const headers of [{}, { "Idempotency-Key": "once" }])
    t.match((await stage.book("paid", start, 30).set(headers)).body, {
      status: 409,
      code: "scheduling_slot_unavailable",
      detail: /hold/,
    });
});

t.test("if no checkout can be created, slot and key are free again", async (t) => {
  const stage = await openStage(t);
  const working = provider();
  let broken = true;
  const openCheckout: PaymentProvider["openCheckout"] = async (order) => {
    if (broken) throw new Error("no answer");
    return working.openCheckout(order);
  };
  connect(stage, provider({ openCheckout }));
  await stage.event({ slug: "paid", payment: price });
  const ask = () => stage.book("paid", start, 30).set("Idempotency-Key", "pay-1");
  const failed = await ask().expect(503);
  t.match(failed, { body: { code: "service_unavailable" }, headers: { "retry-after": String } });
  t.same((await stage.slots("paid", start, "2026-10-05T09:30:00Z")).length, 1);
  broken = false;
  const made = await ask().expect(201);
  const again = await ask().expect(201);
  t.same(again.body, made.body);
  t.match(again, {
    headers: { "idempotency-replayed": "true" },
    body: { nextAction: { type: "redirect_to_checkout" } },
  });
  t.equal(working.orders.length, 1);
});

t.test("a checkout that fails while its booking changes is opened again", async (t) => {
  const stage = await openStage(t);
  const working = provider();
  let isFirst = true;
  const openCheckout: PaymentProvider["openCheckout"] = async (order) => {
    if (!isFirst) return working.openCheckout(order);
    isFirst = false;
    const slot = { start: "2026-10-05T11:00:00Z", end: "2026-10-05T11:30:00Z" };
    const { bookingUid } = order.booking;
    await stage.service.visitor.post(`${PUBLIC_EVENTS_PATH}/paid/reschedule`).send({ bookingUid, slot }).expect(200);
    throw new Error("no answer");
  };
  connect(stage, provider({ openCheckout }));
  await stage.event({ slug: "paid", payment: price });
  const made = await stage.book("paid", start, 30).expect(201);
  t.match(made.body, { status: "PENDING_PAYMENT", nextAction: { type: "redirect_to_checkout" } });
  t.match(made.body.booking, { start: "2026-10-05T11:00:00.000Z" });
});

t.test("a key is in progress while its checkout is created, and continues after a crash", async (t) => {
  const stage = await openStage(t);
  const working = provider();
  const waiting: (() => void)[] = [];
  const openCheckout: PaymentProvider["openCheckout"] = async (order) => {
    if (waiting.length === 0) await new Promise<void>((resolve) => waiting.push(resolve));
    return working.openCheckout(order);
  };
  connect(stage, provider({ openCheckout }));
  await stage.event({ slug: "paid", payment: price });
  const ask = () => stage.book("paid", start, 30).set("Idempotency-Key", "pay-2");
  const first = ask().then((answer) => answer);
  await eventually(() => waiting.length === 1);
  t.match(await ask(), { status: 409, body: { code: "idempotency_in_progress" }, headers: { "retry-after": "1" } });
  // As if the first process had died with its request: its record's time is up.
  const { redis } = stage.service.runtime;
  const [key = ""] = await keyNames(redis, keys.idempotent("acme", "bookings-paid", "*"));
  const record = JSON.parse((await redis.get(key)) as string);
  await redis.set(key, JSON.stringify({ ...record, until: 0 }));
  const second = await ask().expect(201);
  waiting[0]?.();
  const late = await first;
  t.equal(late.status, 201);
  t.equal(second.body.bookingUid, late.body.bookingUid, "one booking");
  t.equal((await stage.owner.get(`${base}/bookings`)).body.bookings.length, 1);
});

t.test("a request that was slow to open its checkout takes away none that its repetition has opened", async (t) => {
  const stage = await openStage(t);
  const working = provider();
  let answer = (): void => {};
  const late = new Promise<void>((resolve) => {
    answer = resolve;
  });
  let calls = 0;
  const openCheckout: PaymentProvider["openCheckout"] = async (order) => {
    if (++calls === 2) return working.openCheckout(order);
    await late;
    throw new Error("no answer");
  };
  connect(stage, provider({ openCheckout }));
  await stage.event({ slug: "paid", payment: price });
  const ask = () => stage.book("paid", start, 30).set("Idempotency-Key", "pay-3");
  const first = ask().then((answer) => answer);
  await eventually(() => calls === 1);
  const { redis } = stage.service.runtime;
  const [key = ""] = await keyNames(redis, keys.idempotent("acme", "bookings-paid", "*"));
  const record = JSON.parse((await redis.get(key)) as string);
  await redis.set(key, JSON.stringify({ ...record, until: 0 }));
  const second = await ask().expect(201);
  answer();
  t.match(await first, { status: 201, body: { nextAction: second.body.nextAction } });
  const { bookingUid } = second.body;
  const { booking } = (await stage.owner.get(`${base}/bookings/${bookingUid}`)).body;
  t.match(booking, { status: "PENDING_PAYMENT" }, "its payer may be at the checkout");
});

t.test("an unpaid hold expires", async (t) => {
  const env = { TEST_CLOCK: "2026-10-05T06:00:00Z", TEST_CLOCK_RATE: "600" };
  const stage = await openStage(t, { env, workers: ["scheduling"] });
  connect(stage, provider());
  await stage.event({ slug: "paid", payment: price });
  const made = await stage.book("paid", "2026-10-07T09:00:00Z", 30).expect(201);
  t.equal(made.body.status, "PENDING_PAYMENT");
  const list = keys.bookings("acme", "REJECTED");
  await eventually(() => stage.service.runtime.redis.zcard(list));
  t.equal(await stage.service.runtime.redis.zcard(keys.blocks("acme")), 0);
});
