import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { Webhook as Verifier } from "standardwebhooks";
import t from "tap";
import { retryAfterMs } from "../core/platform/exchange.ts";
import { keys } from "../core/store/keys.ts";
import { RETRY_DELAYS_MS, waitAfter } from "../core/webhooks/attempts.ts";
import { dispatchEvents, testWebhook } from "../core/webhooks/deliveries.ts";
import { createWebhook } from "../core/webhooks/endpoints.ts";
import { eventJob } from "../core/webhooks/events.ts";
import { sendDeliveries } from "../core/webhooks/sending.ts";
import { openStage, PUBLIC_EVENTS_PATH, unlimited } from "../fixtures/scheduling/owner.ts";
import { eventually, type Service, startService } from "../fixtures/service.ts";
import { type ReceivedDelivery, startReceiver, undocumented } from "../fixtures/webhook-receiver.ts";
import { testEventType, type WebhookEventType, webhookEventTypes } from "../schemas/webhooks.ts";
import { startWorkers } from "../workers/run.ts";

const path = "/v2/handles/acme/scheduling/webhooks";

/** Writes an event with its cause in one step, as the nouns do. */
async function cause({ runtime }: Service, type: WebhookEventType, data: unknown): Promise<string> {
  const { event, ...dispatch } = eventJob(runtime, "acme", { type, data });
  await runtime.queues.commit(
    "acme",
    [dispatch],
    (step) => void step.set(event.key, event.content, "PX", event.retentionMs),
  );
  return dispatch.data.eventId;
}

t.test("a webhook is registered, read, listed and deleted, and its secret is shown once", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const body = { url: "https://example.com/hook", events: ["scheduling.booking.created"], description: "CRM" };
  const { webhook } = (await owner.post(path).send(body).expect(201)).body;
  t.match(webhook, { ...body, status: "ACTIVE", secret: /^whsec_[A-Za-z0-9+/]{43}=$/, createdAt: String });
  const { secret, ...rest } = webhook;
  t.same((await owner.get(`${path}/${webhook.webhookId}`).expect(200)).body, { webhook: rest });
  t.same((await owner.get(path).expect(200)).body, { webhooks: [rest], nextCursor: null });
  const stored = JSON.stringify(await service.runtime.redis.hgetall(keys.webhook("acme", webhook.webhookId)));
  t.notOk(stored.includes(secret) || stored.includes(secret.slice(6)), "the secret is stored sealed");
  await owner.delete(`${path}/${webhook.webhookId}`).expect(204);
  t.equal((await owner.get(`${path}/${webhook.webhookId}`).expect(404)).body.code, "webhook_not_found");
  t.equal((await owner.delete(`${path}/${webhook.webhookId}`).expect(404)).body.code, "webhook_not_found");
});

t.test("a handle has at most 50 webhooks, also if more are registered at once", async (t) => {
  const owner = await (await startService(t)).handle("acme");
  const body = { url: "http://127.0.0.1:1/hook" };
  const made = await Promise.all(Array.from({ length: 60 }, () => owner.post(path).send(body)));
  t.equal(made.filter(({ status }) => status === 201).length, 50);
  const { webhooks } = (await owner.get(`${path}?limit=100`).expect(200)).body;
  t.equal(webhooks.length, 50);
  t.match((await owner.post(path).send(body).expect(400)).body, { code: "invalid_request", detail: /at most 50/ });
  await owner.delete(`${path}/${webhooks[0].webhookId}`).expect(204);
  await owner.post(path).send(body).expect(201);
});

t.test("a webhook without events gets all of them; unknown names and refused addresses are 400", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const { webhook } = (await owner.post(path).send({ url: "https://example.com/hook" }).expect(201)).body;
  t.equal(webhook.events.length, 7);
  const bad = async (body: object) => (await owner.post(path).send(body).expect(400)).body;
  t.match(await bad({ url: "https://example.com", events: ["scheduling.booking.exploded"] }), {
    code: "invalid_request",
  });
  t.match(await bad({ url: "https://example.com", events: [] }), { code: "invalid_request" });
  t.match(await bad({ url: "not an address" }), { code: "invalid_request", errors: [{ path: "/url" }] });
  t.match(await bad({}), { code: "invalid_request" });
  const smuggled = [
    "https://example.com/ok\r\nX: y",
    "https://example.com/a b",
    " https://example.com/",
    "https://x\u0085y/",
  ];
  for (const url of smuggled) t.match(await bad({ url }), { code: "invalid_request", errors: [{ path: "/url" }] }, url);
  for (const url of ["http://example.com/", "https://10.0.0.1/", "https://169.254.169.254/", "ftp://example.com/"])
    t.match(await bad({ url }), { code: "invalid_request", errors: [{ path: "/url", message: String }] }, url);
});

t.test("an event reaches the webhooks that want it, signed, and their log says so", async (t) => {
  const service = await startService(t, { workers: ["webhooks"] });
  const owner = await service.handle("acme");
  const [all, some] = [await startReceiver(t), await startReceiver(t)];
  const { webhook } = (await owner.post(path).send({ url: all.url }).expect(201)).body;
  await owner
    .post(path)
    .send({ url: some.url, events: ["scheduling.payment.succeeded"] })
    .expect(201);
  const eventId = await cause(service, "scheduling.booking.created", { booking: { bookingUid: "b1" } });
  const [got] = await eventually(() => all.received.length > 0 && all.received);
  t.match(got?.event, { type: "scheduling.booking.created", data: { booking: { bookingUid: "b1" } } });
  t.equal(got?.headers["webhook-id"], eventId);
  t.ok(new Verifier(webhook.secret).verify(got?.body ?? "", got?.headers ?? {}));
  t.throws(() => new Verifier(webhook.secret).verify(`${got?.body} `, got?.headers ?? {}));
  const [delivery] = await eventually(async () => {
    const { deliveries } = (await owner.get(`${path}/${webhook.webhookId}/deliveries`).expect(200)).body;
    return deliveries[0]?.status === "SUCCEEDED" && deliveries;
  });
  t.match(delivery, { eventId, type: "scheduling.booking.created", attempts: [{ status: 204, error: null }] });
  t.equal(some.received.length, 0);
});

t.test("an event dispatched twice is delivered once", async (t) => {
  const service = await startService(t, { workers: ["webhooks"] });
  const owner = await service.handle("acme");
  const receiver = await startReceiver(t);
  await owner.post(path).send({ url: receiver.url }).expect(201);
  const { queues } = service.runtime;
  const eventId = await cause(service, "scheduling.booking.created", {});
  await eventually(() => receiver.received.length === 1);
  await queues.later({ name: "webhooks.dispatch", id: "again", data: { handle: "acme", eventId } });
  await cause(service, "scheduling.booking.confirmed", {});
  await eventually(() => receiver.received.some(({ event }) => event.type === "scheduling.booking.confirmed"));
  t.equal(receiver.received.filter(({ event }) => event.type === "scheduling.booking.created").length, 1);
});

t.test("events of a burst are delivered once each, even if they are dispatched again", async (t) => {
  const service = await startService(t, { workers: ["webhooks"] });
  const owner = await service.handle("acme");
  const [all, some] = [await startReceiver(t), await startReceiver(t)];
  await owner.post(path).send({ url: all.url }).expect(201);
  await owner
    .post(path)
    .send({ url: some.url, events: ["scheduling.booking.confirmed"] })
    .expect(201);
  const types = ["scheduling.booking.created", "scheduling.booking.confirmed"] as const;
  const causes = Array.from({ length: 60 }, (_, count) => cause(service, types[count % 2] as WebhookEventType, {}));
  const eventIds = await Promise.all(causes);
  await eventually(() => all.received.length >= 60 && some.received.length >= 30);
  const data = { handle: "acme", eventIds: [...eventIds, "evt_gone"] };
  await service.runtime.queues.later({ name: "webhooks.dispatch-all", id: "again", data });
  const last = await cause(service, "scheduling.booking.confirmed", {});
  const ids = ({ received }: { received: { headers: Record<string, string> }[] }) =>
    received.map(({ headers }) => headers["webhook-id"]);
  await eventually(() => [all, some].every((one) => ids(one).includes(last)));
  t.same(ids(all).sort(), [...eventIds, last].sort());
  t.same(ids(some).sort(), [...eventIds.filter((_, count) => count % 2 === 1), last].sort());
});

t.test("a failed attempt is made again with the same id and a new timestamp", async (t) => {
  const service = await startService(t, { workers: ["webhooks"] });
  const owner = await service.handle("acme");
  const receiver = await startReceiver(
    t,
    (response, count) => void response.writeHead(count === 1 ? 500 : 200).end("x"),
  );
  const { webhook } = (await owner.post(path).send({ url: receiver.url }).expect(201)).body;
  await cause(service, "scheduling.booking.created", {});
  const [first, second] = await eventually(() => receiver.received.length === 2 && receiver.received);
  t.equal(first?.headers["webhook-id"], second?.headers["webhook-id"]);
  t.not(first?.headers["webhook-timestamp"], second?.headers["webhook-timestamp"]);
  t.ok(new Verifier(webhook.secret).verify(second?.body ?? "", second?.headers ?? {}));
});

t.test(
  "a redirect is a failure and is not followed; 410 disables, and a test that succeeds enables again",
  async (t) => {
    const service = await startService(t, { workers: ["webhooks"] });
    const owner = await service.handle("acme");
    const other = await startReceiver(t);
    let status = 302;
    const receiver = await startReceiver(
      t,
      (response) => void response.writeHead(status, { location: other.url }).end(),
    );
    const { webhook } = (await owner.post(path).send({ url: receiver.url }).expect(201)).body;
    const at = `${path}/${webhook.webhookId}`;
    await cause(service, "scheduling.booking.created", {});
    const [redirected] = await eventually(async () => {
      const { deliveries } = (await owner.get(`${at}/deliveries`)).body;
      return deliveries[0]?.attempts.length === 1 && deliveries;
    });
    t.match(redirected, { status: "PENDING", attempts: [{ status: 302 }] });
    t.equal(other.received.length, 0);
    status = 410;
    const gone = (await owner.post(`${at}/deliveries/${redirected.deliveryId}/redeliver`).expect(202)).body.delivery;
    t.equal(gone.eventId, redirected.eventId);
    await eventually(async () => (await owner.get(at)).body.webhook.status === "DISABLED");
    const before = receiver.received.length;
    await cause(service, "scheduling.booking.created", {});
    status = 200;
    await owner.post(`${at}/test`).expect(202);
    await eventually(async () => (await owner.get(at)).body.webhook.status === "ACTIVE");
    t.same(
      receiver.received.slice(before).map(({ event }) => event.type),
      ["webhook.test"],
    );
    t.equal((await owner.post(`${at}/deliveries/nothing/redeliver`).expect(404)).body.code, "not_found");
  },
);

t.test("after a rotation both secrets sign, the old one for 24 hours", async (t) => {
  const service = await startService(t, { workers: ["webhooks"] });
  const owner = await service.handle("acme");
  const receiver = await startReceiver(t);
  const { webhook: old } = (await owner.post(path).send({ url: receiver.url }).expect(201)).body;
  const { webhook: fresh } = (await owner.post(`${path}/${old.webhookId}/rotate-secret`).expect(200)).body;
  t.not(old.secret, fresh.secret);
  await owner.post(`${path}/${old.webhookId}/test`).expect(202);
  const [got] = await eventually(() => receiver.received.length > 0 && receiver.received);
  for (const { secret } of [old, fresh])
    t.ok(new Verifier(secret).verify(got?.body ?? "", got?.headers ?? {}), "verifies");
  const key = keys.webhook("acme", old.webhookId);
  const stored = JSON.parse((await service.runtime.redis.hget(key, "json")) as string);
  const previous = stored.previous.map((one: object) => ({ ...one, until: Date.now() - 1 }));
  const past = { ...stored, previous };
  await service.runtime.redis.hset(key, "json", JSON.stringify(past));
  await owner.post(`${path}/${old.webhookId}/test`).expect(202);
  const [, later] = await eventually(() => receiver.received.length === 2 && receiver.received);
  t.throws(() => new Verifier(old.secret).verify(later?.body ?? "", later?.headers ?? {}));
  t.ok(new Verifier(fresh.secret).verify(later?.body ?? "", later?.headers ?? {}));
});

t.test("every secret of the last 24 hours signs, however often it was rotated", async (t) => {
  const service = await startService(t, { workers: ["webhooks"] });
  const owner = await service.handle("acme");
  const receiver = await startReceiver(t);
  const { webhook } = (await owner.post(path).send({ url: receiver.url }).expect(201)).body;
  const rotate = () => owner.post(`${path}/${webhook.webhookId}/rotate-secret`);
  const secrets: string[] = [webhook.secret];
  for (let times = 0; times < 20; times++) secrets.push((await rotate().expect(200)).body.webhook.secret);
  const refused = await rotate().expect(429);
  t.match(refused.body, { code: "rate_limited", detail: /at most 21 secrets/ });
  t.ok(Number(refused.headers["retry-after"]) > 86_000);
  await owner.post(`${path}/${webhook.webhookId}/test`).expect(202);
  const [got] = await eventually(() => receiver.received.length > 0 && receiver.received);
  for (const secret of secrets) t.ok(new Verifier(secret).verify(got?.body ?? "", got?.headers ?? {}));
  const key = keys.webhook("acme", webhook.webhookId);
  const stored = JSON.parse((await service.runtime.redis.hget(key, "json")) as string);
  t.notOk(
    secrets.some((secret) => JSON.stringify(stored).includes(secret.slice(6))),
    "all are stored sealed",
  );
  // As one process of an earlier version has stored it.
  const earlier = { ...stored, previous: stored.previous[0] };
  await service.runtime.redis.hset(key, "json", JSON.stringify(earlier));
  secrets.push((await rotate().expect(200)).body.webhook.secret);
  await owner.post(`${path}/${webhook.webhookId}/test`).expect(202);
  const [, later] = await eventually(() => receiver.received.length === 2 && receiver.received);
  for (const secret of secrets.slice(-3)) t.ok(new Verifier(secret).verify(later?.body ?? "", later?.headers ?? {}));
});

/** The received events of each booking, in order. */
function perBooking(received: ReceivedDelivery[]): Map<string, string[]> {
  const told = new Map<string, string[]>();
  for (const { event } of received) {
    const { bookingUid } = event.data.booking as { bookingUid: string };
    told.set(bookingUid, [...(told.get(bookingUid) ?? []), event.type.split(".")[2] as string]);
  }
  return told;
}

t.test(
  "`created` is earlier than `confirmed` of the same change and arrives first, also at a slow receiver",
  async (t) => {
    const { event, book, owner, service } = await openStage(t, { env: unlimited });
    // The first answers are the slowest, so that later requests would overtake.
    const receiver = await startReceiver(t, (response, count) =>
      setTimeout(() => response.writeHead(204).end(), count % 3 === 1 ? 120 : 5),
    );
    await owner.post(path).send({ url: receiver.url }).expect(201);
    await event({ slug: "intro", durationMinutes: 10 });
    await service.startWorkers(["webhooks"]);
    await service.startWorkers(["webhooks"]);
    const starts = Array.from({ length: 20 }, (_, at) => new Date(Date.parse("2026-10-05T09:00:00Z") + at * 600_000));
    await Promise.all(starts.map((start) => book("intro", start.toISOString(), 10).expect(201)));
    await eventually(() => receiver.received.length === 40);
    const told = perBooking(receiver.received);
    t.same([...new Set([...told.values()].map((types) => types.join()))], ["created,confirmed"]);
    const times = (type: string) =>
      new Map(
        receiver.received
          .filter(({ event }) => event.type === `scheduling.booking.${type}`)
          .map(({ event }) => [(event.data.booking as { bookingUid: string }).bookingUid, event.timestamp]),
      );
    const [created, confirmed] = [times("created"), times("confirmed")];
    t.ok(
      [...created].every(([uid, at]) => at < (confirmed.get(uid) ?? "")),
      "a receiver can sort them",
    );
  },
);

t.test("`confirmed` is not sent before `created` of the same change, even if that is slow to read", async (t) => {
  const { mget } = Redis.prototype;
  const slow = async function (this: Redis, names: string[]): Promise<(string | null)[]> {
    const found = await mget.call(this, names);
    if (found.some((json) => json?.includes("booking.created"))) await sleep(500);
    return found;
  };
  t.intercept(Redis.prototype, "mget", { value: slow });
  const { event, book, owner, service } = await openStage(t, { env: unlimited });
  const receiver = await startReceiver(t);
  await owner.post(path).send({ url: receiver.url }).expect(201);
  await event({ slug: "intro", durationMinutes: 10 });
  await service.startWorkers(["webhooks"]);
  await book("intro", "2026-10-05T09:00:00Z", 10).expect(201);
  await eventually(() => receiver.received.length === 2);
  t.same([...perBooking(receiver.received).values()], [["created", "confirmed"]]);
});

t.test("due events are sent in the order in which they were created, not in that of the dispatch", async (t) => {
  const service = await startService(t);
  const { runtime } = service;
  const owner = await service.handle("acme");
  const receiver = await startReceiver(t, (response, count) =>
    setTimeout(() => response.writeHead(204).end(), 60 / count),
  );
  await owner.post(path).send({ url: receiver.url }).expect(201);
  const types = ["created", "confirmed", "rescheduled", "cancelled"].map((name) => `scheduling.booking.${name}`);
  const events = types.map((type) =>
    eventJob(runtime, "acme", { type: type as WebhookEventType, data: { booking: { bookingUid: "b1" } } }),
  );
  for (const { event } of events) await runtime.redis.set(event.key, event.content, "PX", event.retentionMs);
  for (const { data } of [...events].reverse())
    await dispatchEvents(runtime, { handle: data.handle, eventIds: [data.eventId] });
  await service.startWorkers(["webhooks"]);
  await eventually(() => receiver.received.length === 4);
  t.same(
    receiver.received.map(({ event }) => event.type),
    types,
  );
  const { webhooks } = (await owner.get(path)).body;
  const { deliveries } = (await owner.get(`${path}/${webhooks[0].webhookId}/deliveries`)).body;
  t.same(deliveries.map(({ type }: { type: string }) => type).reverse(), types, "the log shows the newest first");
  t.notOk("subject" in deliveries[0]);
});

t.test("a delivery without an answer keeps the next one of its booking waiting for seconds only", async (t) => {
  const service = await startService(t, { workers: ["webhooks"] });
  const owner = await service.handle("acme");
  let isFirstOver = false;
  const overAtArrival: boolean[] = [];
  const receiver = await startReceiver(t, (response, count) => {
    overAtArrival.push(isFirstOver);
    if (count > 1) return void response.writeHead(204).end();
    response.once("close", () => {
      isFirstOver = true;
    });
  });
  await owner.post(path).send({ url: receiver.url }).expect(201);
  const booking = { bookingUid: "b1" };
  await cause(service, "scheduling.booking.created", { booking });
  await eventually(() => receiver.received.length === 1);
  await cause(service, "scheduling.booking.confirmed", { booking });
  await cause(service, "scheduling.booking.created", { booking: { bookingUid: "b2" } });
  await eventually(() => receiver.received.length === 2);
  t.match(receiver.received[1]?.event, { type: "scheduling.booking.created", data: { booking: { bookingUid: "b2" } } });
  t.same(overAtArrival, [false, false], "another booking's does not wait");
  await eventually(() => receiver.received.length === 3);
  t.match(receiver.received[2]?.event, { type: "scheduling.booking.confirmed" });
});

t.test("an endpoint that has only failed for five days is disabled", async (t) => {
  const service = await startService(t, { workers: ["webhooks"] });
  const owner = await service.handle("acme");
  const receiver = await startReceiver(t, (response) => void response.writeHead(500).end());
  const { webhook } = (await owner.post(path).send({ url: receiver.url }).expect(201)).body;
  const failing = keys.webhookFailing("acme", webhook.webhookId);
  await cause(service, "scheduling.booking.created", {});
  await eventually(() => service.runtime.redis.exists(failing));
  t.equal((await owner.get(`${path}/${webhook.webhookId}`)).body.webhook.status, "ACTIVE");
  await service.runtime.redis.set(failing, Date.now() - 5 * 86_400_000);
  await cause(service, "scheduling.booking.created", {});
  await eventually(async () => (await owner.get(`${path}/${webhook.webhookId}`)).body.webhook.status === "DISABLED");
});

t.test("an endpoint that hangs keeps no other waiting", async (t) => {
  const service = await startService(t, { workers: ["webhooks"] });
  const owner = await service.handle("acme");
  const hanging = await startReceiver(t, () => {});
  const quick = await startReceiver(t);
  await owner.post(path).send({ url: hanging.url }).expect(201);
  await owner.post(path).send({ url: quick.url }).expect(201);
  for (let count = 0; count < 60; count++) await cause(service, "scheduling.booking.created", { count });
  await eventually(() => quick.received.length === 60);
  t.ok(hanging.received.length <= 20, "the hanging one has its own limit");
});

t.test("however many endpoints hang, each has its sender, and none of the others waits", async (t) => {
  const service = await startService(t, { workers: ["webhooks"] });
  const { runtime } = service;
  let open = 0;
  const hanging = await startReceiver(t, (response) => {
    open++;
    response.on("close", () => open--);
  });
  const quick = await startReceiver(t);
  const test = async (handle: string, url: string) => {
    const { webhook } = await createWebhook(runtime, { handle, url });
    return testWebhook(runtime, { handle, webhookId: webhook.webhookId });
  };
  const handles = Array.from({ length: 11 }, (_, at) => `acme${at}`);
  for (const handle of ["acme", ...handles]) await service.handle(handle);
  await Promise.all(Array.from({ length: 510 }, (_, at) => test(handles[at % 11] as string, hanging.url)));
  await eventually(() => open === 510);
  await test("acme", quick.url);
  await eventually(() => quick.received.length === 1);
});

t.test("a sender whose clock is seconds behind waits for its delivery", async (t) => {
  const { runtime, handle } = await startService(t);
  await handle("acme");
  const receiver = await startReceiver(t);
  const { webhook } = await createWebhook(runtime, { handle: "acme", url: receiver.url });
  const place = { handle: "acme", webhookId: webhook.webhookId };
  const { delivery } = await testWebhook(runtime, place);
  await runtime.redis.zadd(keys.webhookQueue("acme", webhook.webhookId), Date.now() + 3000, delivery.deliveryId);
  await sendDeliveries(runtime, place, { signal: new AbortController().signal });
  t.equal(receiver.received.length, 1);
});

t.test("however often an endpoint fails, one sender waits for its next delivery", async (t) => {
  const { runtime, handle } = await startService(t, { workers: ["webhooks"] });
  await handle("acme");
  const receiver = await startReceiver(t, (response) => void response.writeHead(500, { "retry-after": "7" }).end());
  const { webhook } = await createWebhook(runtime, { handle: "acme", url: receiver.url });
  const place = { handle: "acme", webhookId: webhook.webhookId };
  for (let count = 1; count <= 5; count++) {
    await testWebhook(runtime, place);
    await eventually(async () => {
      const isAwake = await runtime.redis.exists(keys.webhookAwake("acme", webhook.webhookId));
      return receiver.received.length === count && isAwake === 0;
    });
  }
  await eventually(async () => (await runtime.queues.queue("webhooks").getActiveCount()) === 1, 3000);
  await eventually(() => receiver.received.length === 10, 15_000);
});

t.test("a stopping sender records what is in flight and leaves the rest to another", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const held: (() => void)[] = [];
  let isOpen = false;
  const receiver = await startReceiver(t, (response) => {
    const answer = () => void response.writeHead(204).end();
    if (isOpen) answer();
    else held.push(answer);
  });
  const { webhook } = (await owner.post(path).send({ url: receiver.url }).expect(201)).body;
  const first = await startWorkers(service.runtime, ["webhooks"]);
  await Promise.all(Array.from({ length: 30 }, () => cause(service, "scheduling.booking.created", {})));
  await eventually(() => held.length === 20);
  const stopped = first.close();
  isOpen = true;
  for (const answer of held) answer();
  await stopped;
  const statuses = async () => {
    const { deliveries } = (await owner.get(`${path}/${webhook.webhookId}/deliveries?limit=100`)).body;
    return deliveries.map(({ status }: { status: string }) => status);
  };
  const before = await statuses();
  t.equal(before.filter((status: string) => status === "SUCCEEDED").length, 20);
  t.equal(before.filter((status: string) => status === "PENDING").length, 10);
  const second = await startWorkers(service.runtime, ["webhooks"]);
  t.teardown(() => second.close());
  await eventually(async () => (await statuses()).every((status: string) => status === "SUCCEEDED"), 5000);
  t.equal(new Set(receiver.received.map(({ headers }) => headers["webhook-id"])).size, 30);
  t.equal(receiver.received.length, 30, "each once");
});

t.test("a superseded sender records what is in flight, and takes no more", async (t) => {
  const service = await startService(t, { workers: ["webhooks"] });
  const { redis } = service.runtime;
  const owner = await service.handle("acme");
  const held: (() => void)[] = [];
  const receiver = await startReceiver(t, (response) => {
    held.push(() => void response.writeHead(204).end());
  });
  const { webhook } = (await owner.post(path).send({ url: receiver.url }).expect(201)).body;
  const [awake, queue] = [keys.webhookAwake("acme", webhook.webhookId), keys.webhookQueue("acme", webhook.webhookId)];
  const causes = Array.from({ length: 6 }, () => cause(service, "scheduling.booking.created", {}));
  const ids = (await Promise.all(causes)).map((eventId) => `dlv_${eventId}_${webhook.webhookId}`);
  await eventually(() => held.length === 6);
  await redis.set(awake, "another");
  for (const answer of held) {
    answer();
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await eventually(async () => {
    const found = await redis.mget(ids.map((id) => keys.webhookDelivery("acme", id)));
    return found.every((json) => json?.includes('"SUCCEEDED"'));
  }, 5000);
  await cause(service, "scheduling.booking.created", {});
  await eventually(async () => (await redis.zcard(queue)) === 1);
  t.equal(await redis.get(awake), "another");
  t.equal(receiver.received.length, 6);
});

t.test("a success resets the count of failures, and a removed delivery is not written again", async (t) => {
  const service = await startService(t, { workers: ["webhooks"] });
  const { redis } = service.runtime;
  const owner = await service.handle("acme");
  const answers: ((status: number) => void)[] = [];
  const receiver = await startReceiver(t, (response) => {
    answers.push((status) => void response.writeHead(status).end());
  });
  const { webhook } = (await owner.post(path).send({ url: receiver.url }).expect(201)).body;
  const failing = keys.webhookFailing("acme", webhook.webhookId);
  const answerNext = async (status: number) => {
    const eventId = await cause(service, "scheduling.booking.created", {});
    const answer = await eventually(() => answers.shift());
    const key = keys.webhookDelivery("acme", `dlv_${eventId}_${webhook.webhookId}`);
    if (status === 200) await redis.del(key);
    answer(status);
    return key;
  };
  await answerNext(500);
  await eventually(() => redis.exists(failing));
  const gone = await answerNext(200);
  await eventually(async () => (await redis.exists(failing)) === 0);
  t.equal(await redis.exists(gone), 0);
  t.equal(await redis.zcard(keys.webhookQueue("acme", webhook.webhookId)), 1, "only the failed one waits");
});

t.test("an endpoint that is deleted during its last call leaves no failure behind", async (t) => {
  const service = await startService(t, { workers: ["webhooks"] });
  const { redis } = service.runtime;
  const owner = await service.handle("acme");
  const held: (() => void)[] = [];
  const receiver = await startReceiver(t, (response) => held.push(() => void response.writeHead(410).end()));
  const { webhookId } = (await owner.post(path).send({ url: receiver.url }).expect(201)).body.webhook;
  const eventId = await cause(service, "scheduling.booking.created", {});
  const answer = await eventually(() => held.shift());
  await owner.delete(`${path}/${webhookId}`).expect(204);
  answer();
  const delivery = keys.webhookDelivery("acme", `dlv_${eventId}_${webhookId}`);
  await eventually(async () => (await redis.get(delivery))?.includes("FAILED"));
  t.equal(await redis.exists(keys.webhookFailing("acme", webhookId)), 0);
});

t.test("waits grow as documented, with jitter, and never fall below what the receiver asks for", async (t) => {
  t.same(
    RETRY_DELAYS_MS.map((ms) => ms / 1000),
    [5, 300, 1800, 7200, 18_000, 36_000, 36_000],
  );
  t.equal(waitAfter(1, 0, 0), 5000);
  t.equal(waitAfter(1, 0, 1), 6000);
  t.equal(waitAfter(1, 60_000, 0), 60_000);
  t.equal(waitAfter(2, 1000, 0), 300_000);
  t.equal(waitAfter(8, 0, 0), undefined);
  const now = Date.parse("2026-01-01T00:00:00Z");
  t.equal(retryAfterMs("120", now), 120_000);
  t.equal(retryAfterMs("Thu, 01 Jan 2026 00:01:00 GMT", now), 60_000);
  t.equal(retryAfterMs("999999999", now), 86_400_000);
  for (const nothing of [undefined, "", "soon", "Wed, 31 Dec 2025 00:00:00 GMT"])
    t.equal(retryAfterMs(nothing, now), 0);
});

t.test("Retry-After is honoured", async (t) => {
  const service = await startService(t, { workers: ["webhooks"] });
  const owner = await service.handle("acme");
  const receiver = await startReceiver(t, (response) => void response.writeHead(429, { "retry-after": "3600" }).end());
  const { webhook } = (await owner.post(path).send({ url: receiver.url }).expect(201)).body;
  await cause(service, "scheduling.booking.created", {});
  const [delivery] = await eventually(async () => {
    const { deliveries } = (await owner.get(`${path}/${webhook.webhookId}/deliveries`)).body;
    return deliveries[0]?.attempts.length === 1 && deliveries;
  });
  const wait = Date.parse(delivery.nextAttemptAt) - Date.parse(delivery.attempts[0].at);
  t.ok(wait >= 3_600_000, `${wait} ms`);
});

t.test("the status of a response counts, even if its body breaks off, is malformed or doesn't end", async (t) => {
  const service = await startService(t, { workers: ["webhooks"] });
  const owner = await service.handle("acme");
  const attemptAt = async (head: string, body: string, ends = true) => {
    const receiver = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.on("data", (part) => {
        if (part.includes("}")) socket[ends ? "end" : "write"](`HTTP/1.1 ${head}\r\n\r\n${body}`);
      });
    });
    await once(receiver.listen(0, "127.0.0.1"), "listening");
    t.teardown(() => void receiver.close());
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
    const { webhook } = (await owner.post(path).send({ url }).expect(201)).body;
    await owner.post(`${path}/${webhook.webhookId}/test`).expect(202);
    return eventually(async () => {
      const [delivery] = (await owner.get(`${path}/${webhook.webhookId}/deliveries`)).body.deliveries;
      return delivery.attempts.length === 1 && { ...delivery, attempt: delivery.attempts[0] };
    });
  };
  const half = "content-length: 100";
  const [cut, odd, open, gone, later] = await Promise.all([
    attemptAt(`200 OK\r\n${half}`, "half"),
    attemptAt("200 OK\r\ntransfer-encoding: chunked", "no chunk"),
    attemptAt(`202 Accepted\r\n${half}`, "half", false),
    attemptAt(`410 Gone\r\n${half}`, "half"),
    attemptAt(`429 Later\r\nretry-after: 3600\r\n${half}`, "half"),
  ]);
  t.match(cut, { status: "SUCCEEDED", attempt: { status: 200, error: null, responseSnippet: "half" } });
  t.match(odd, { status: "SUCCEEDED", attempt: { status: 200, error: null } });
  t.match(open, { status: "SUCCEEDED", attempt: { status: 202, error: null } });
  t.match(gone, { status: "FAILED", attempt: { status: 410 } });
  await eventually(async () => {
    const { webhooks } = (await owner.get(path)).body;
    return webhooks.some(({ status }: { status: string }) => status === "DISABLED");
  });
  t.match(later, { status: "PENDING", attempt: { status: 429 } });
  t.ok(Date.parse(later.nextAttemptAt) - Date.parse(later.attempt.at) >= 3_600_000);
});

t.test("every event has its documented body in the OpenAPI document", async (t) => {
  const { service, owner, event, book } = await openStage(t, { workers: ["webhooks"] });
  const { webhooks } = (await service.visitor.get("/openapi.json").expect(200)).body;
  t.same(Object.keys(webhooks).sort(), [...webhookEventTypes, testEventType].sort());
  const receiver = await startReceiver(t);
  const { webhook } = (await owner.post(path).send({ url: receiver.url }).expect(201)).body;
  await event({ slug: "intro", locations: [{ type: "phone", label: "Phone" }] });
  const { bookingUid } = (await book("intro", "2026-10-05T09:30:00Z", 30).expect(201)).body;
  const slot = { start: "2026-10-05T10:30:00Z", end: "2026-10-05T11:00:00Z" };
  await service.visitor.post(`${PUBLIC_EVENTS_PATH}/intro/reschedule`).send({ bookingUid, slot }).expect(200);
  await service.visitor.post(`${PUBLIC_EVENTS_PATH}/intro/bookings/${bookingUid}/cancel`).expect(200);
  await owner.post(`${path}/${webhook.webhookId}/test`).expect(202);
  const events = await eventually(() => receiver.received.length === 5 && receiver.received);
  t.equal(new Set(events.map(({ event: { type } }) => type)).size, 5);
  t.same(await undocumented(service, events), []);
});
