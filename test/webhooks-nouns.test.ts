import { Buffer } from "node:buffer";
import { Webhook as Verifier } from "standardwebhooks";
import t, { type Test as TapTest } from "tap";
import { addressDigest } from "../core/platform/address.ts";
import { keys } from "../core/store/keys.ts";
import { setWebhookStatus } from "../core/webhooks/endpoints.ts";
import { makeSending, type Sending, startMailing } from "../fixtures/email.ts";
import { connectAccount } from "../fixtures/providers/consent.ts";
import { type StripeServer, startStripe } from "../fixtures/providers/stripe.ts";
import { keyNames } from "../fixtures/redis.ts";
import { eventually, type Service, startService } from "../fixtures/service.ts";
import { type MailServer, startMailServer } from "../fixtures/smtp.ts";
import { type Receiver, startReceiver, undocumented } from "../fixtures/webhook-receiver.ts";
import { webhookEventTypes } from "../schemas/webhooks.ts";

const root = "/v2/handles/acme";
const secret = `whsec_${Buffer.from("a secret of the feedback routes").toString("base64")}`;
const agent = { PUBLIC_PAGE_AGENT_ALLOWED_HANDLES: "acme" };
const course = {
  ...{ pageSlug: "course", title: "Course", content: "<p>secret</p>", teaser: "<p>teaser</p>" },
  ...{ status: "PUBLISHED", accessMode: "PAID" },
  price: { amountMinor: 900, currency: "EUR" },
};

/** A handle that can send and be paid, whose leads must confirm their address, with the receiver of its events. */
interface Stage {
  service: Service;
  mail: MailServer;
  stripe: StripeServer;
  acme: Sending;
  receiver: Receiver;
  signingSecret: string;
}

async function open(t: TapTest, workers?: string[]): Promise<Stage> {
  const [mail, stripe] = [await startMailServer(t), await startStripe()];
  t.teardown(() => stripe.close());
  const env = { ...agent, ...stripe.env, EMAIL_FEEDBACK_SECRET: secret };
  const service = await startMailing(t, mail.url, { env, ...(workers ? { workers } : {}) });
  const acme = await makeSending(service);
  await connectAccount(acme.owner, "stripe");
  await acme.owner.post(`${root}/pages`).send(course).expect(201);
  const campaign = { campaignId: "cmp_1", name: "Checked", verifyLeads: true };
  await acme.owner.post(`${root}/campaigns`).send(campaign).expect(201);
  const receiver = await startReceiver(t);
  const { webhook } = (await acme.owner.post(`${root}/webhooks`).send({ url: receiver.url }).expect(201)).body;
  t.same(webhook.events, webhookEventTypes, "without events it gets all");
  return { service, mail, stripe, acme, receiver, signingSecret: webhook.secret };
}

async function capture({ visitor }: Service): Promise<string> {
  const sent = { email: "ada@example.com", campaignId: "cmp_1" };
  return (await visitor.post("/v2/public/handles/acme/leads").send(sent).expect(202)).body.lead.leadId;
}

/** The same person books a meeting, and is a guest of another one. */
async function book({ service: { visitor }, acme }: Stage): Promise<void> {
  const type = { slug: "intro", title: "Introduction", durationMinutes: 30 };
  await acme.owner.post(`${root}/scheduling/event-types`).send(type).expect(201);
  const path = "/v2/public/scheduling/acme/intro";
  const [start, end] = [1, 7].map((days) => new Date(Date.now() + days * 86_400_000).toISOString());
  const { slots } = (await visitor.get(`${path}/slots`).query({ start, end }).expect(200)).body;
  const [ada, bob] = ["Ada", "Bob"].map((name) => ({ name, email: `${name}@example.com` }));
  const bookings = [{ attendee: ada }, { attendee: bob, guests: ["carl@example.com", ada] }];
  for (const [at, people] of bookings.entries()) {
    const slot = { start: slots[at].start, end: slots[at].end };
    await visitor
      .post(`${path}/bookings`)
      .send({ ...people, slot })
      .expect(201);
  }
}

async function verify({ service, mail }: Stage, leadId: string): Promise<void> {
  const said = await eventually(() => mail.mails.find(({ to }) => to.includes("ada@example.com")));
  const [code = ""] = /\b\d{6}\b/.exec(said.headers.subject ?? "") ?? [];
  const type = (code: string) => service.visitor.post(`/v2/public/handles/acme/leads/${leadId}/verify`).send({ code });
  await type(code === "123456" ? "654321" : "123456").expect(400);
  await type(code).expect(200);
  await type(code).expect(200);
}

/** Tells of a delivery as a mail provider does; returns how much of it was news. */
async function tell({ visitor }: Service, notice: object): Promise<number> {
  const [body, at] = [JSON.stringify(notice), new Date()];
  const signed = {
    "webhook-id": "id_1",
    "webhook-timestamp": String(Math.floor(at.getTime() / 1000)),
    "webhook-signature": new Verifier(secret).sign("id_1", at, body),
  };
  const request = visitor.post("/v2/email/feedback").set({ "Content-Type": "application/json", ...signed });
  return (await request.send(body).expect(200)).body.applied;
}

/** A visitor buys the course, and the provider and the way back tell of it, each twice. */
async function buy({ service, stripe }: Stage): Promise<string> {
  await service.visitor.post("/v2/public/pages/acme/course/checkout").expect(200);
  const [id = ""] = [...stripe.sessions.keys()];
  const session = stripe.pay(id);
  const back = new URL((session.form.success_url ?? "").replace("{CHECKOUT_SESSION_ID}", id));
  const { body, signature } = await stripe.notice(session, "checkout.session.completed");
  for (let times = 0; times < 2; times++) {
    const notice = service.visitor.post("/v2/public/providers/stripe/webhook").set("stripe-signature", signature);
    await notice.set("Content-Type", "application/json").send(body).expect(200);
    await service.visitor.get(back.pathname + back.search).expect(303);
  }
  return id;
}

t.test("leads, conversions, mails and purchases tell their webhooks once each, as documented and signed", async (t) => {
  const stage = await open(t, ["webhooks", "campaigns", "email"]);
  const { service, acme, receiver, signingSecret } = stage;
  const leadId = await capture(service);
  await verify(stage, leadId);
  const conversion = { leadId, campaignId: "cmp_1", value: 12.5, currency: "EUR" };
  await acme.owner.post(`${root}/conversions`).send(conversion).expect(202);
  const messageId = await acme.send(["ann@far.example", "bob@far.example"]);
  await acme.until(messageId, "SENT");
  const bounced = { type: "BOUNCED", messageId, recipient: "bob@far.example", smtpCode: 550, enhancedStatus: "5.1.1" };
  t.same([await tell(service, bounced), await tell(service, bounced)], [1, 0]);
  await tell(service, { type: "COMPLAINED", messageId, recipient: "ann@far.example" });
  const sessionId = await buy(stage);

  const events = await eventually(() => receiver.received.length >= 6 && receiver.received);
  const of = (type: string) => events.filter(({ event }) => event.type === type).map(({ event }) => event.data);
  t.match(of("lead.captured"), [{ handle: "acme", lead: { leadId, status: "UNVERIFIED", email: "ada@example.com" } }]);
  t.match(of("lead.verified"), [{ handle: "acme", lead: { leadId, status: "VERIFIED" } }]);
  t.match(of("conversion.recorded"), [{ handle: "acme", conversion }]);
  const mailed = { messageId, purpose: "TRANSACTIONAL_API", suppressed: true };
  t.match(of("email.bounced"), [{ handle: "acme", email: { ...mailed, recipient: "bob@far.example", smtpCode: 550 } }]);
  t.match(of("email.complained"), [{ handle: "acme", email: { ...mailed, recipient: "ann@far.example" } }]);
  const purchase = { sessionId, pageSlug: "course", email: "buyer@example.com", amountMinor: 900, currency: "EUR" };
  t.match(of("page.purchased"), [{ handle: "acme", purchase }]);
  t.equal(events.length, 6, "nothing is told twice");
  t.same(await undocumented(service, events), []);
  for (const { body, headers } of events) t.ok(new Verifier(signingSecret).verify(body, headers));
});

t.test("an address that a server refuses for good is a bounce", async (t) => {
  const { service, mail, acme, receiver } = await open(t, ["webhooks", "email"]);
  mail.refuseRecipient = () => ({ code: 550, words: "5.1.1 unknown" });
  const messageId = await acme.send(["eve@far.example"]);
  await acme.until(messageId, "FAILED");
  const events = await eventually(() => receiver.received.length > 0 && receiver.received);
  const email = { messageId, recipient: "eve@far.example", smtpCode: 550, suppressed: true };
  t.match(events[0]?.event, { type: "email.bounced", data: { email } });
  t.same(await undocumented(service, events), []);
});

t.test("events of a crashed process are delivered, with their cause", async (t) => {
  const stage = await open(t);
  const { service, acme, receiver } = stage;
  // The process ends right after each step, before its jobs reach a queue.
  service.runtime.queues.publish = async () => 0;
  const leadId = await capture(service);
  await acme.owner.post(`${root}/conversions`).send({ leadId, campaignId: "cmp_1" }).expect(202);
  await buy(stage);
  t.equal(receiver.received.length, 0);
  const other = await startService(t, { redis: service.redis, workers: ["webhooks"] });
  await other.runtime.queues.sweep(-1000);
  await eventually(() => receiver.received.length >= 3);
  const types = receiver.received.map(({ event }) => event.type).sort();
  t.same(types, ["conversion.recorded", "lead.captured", "page.purchased"]);
  t.equal((await acme.owner.get(`${root}/leads/${leadId}`).expect(200)).body.lead.leadId, leadId);
});

t.test("without an endpoint no event is stored", async (t) => {
  const service = await startService(t, { env: agent });
  await service.handle("acme");
  await service.visitor.post("/v2/public/handles/acme/leads").send({ email: "ada@example.com" }).expect(202);
  t.same(await keyNames(service.runtime.redis, "webhook-event:*"), []);
  t.equal(await service.runtime.redis.hlen(keys.outbox("acme")), 0);
});

t.test("no stored event contains an erased person", async (t) => {
  const stage = await open(t, ["webhooks", "campaigns"]);
  const { service, acme, receiver } = stage;
  const leadId = await capture(service);
  await book(stage);
  await eventually(() => receiver.received.length === 5);
  const { redis } = service.runtime;
  t.equal((await keyNames(redis, "webhook-event:{acme}:*")).length, 5);
  await acme.owner.delete(`${root}/leads/${leadId}`).expect(204);
  await eventually(async () => (await keyNames(redis, "webhook-event:{acme}:*")).length === 0);
  t.notOk(await redis.exists(keys.personEvents("acme", addressDigest("ada@example.com"))));
});

t.test("the list of a person's events forgets those that have expired", async (t) => {
  const { service } = await open(t);
  const { redis } = service.runtime;
  for (let round = 0; round < 30; round++) {
    for (const key of await keyNames(redis, "webhook-event:*")) await redis.del(key);
    // A day has passed: the person is a new lead.
    for (const key of await keyNames(redis, "lead-recent:*")) await redis.del(key);
    await capture(service);
  }
  const [list = ""] = await keyNames(redis, "person-events:*");
  t.ok((await redis.scard(list)) < 10, "although the person has new ones");
  const [event = ""] = await keyNames(redis, "webhook-event:*");
  t.equal(await redis.sismember(list, event), 1);
});

t.test("an endpoint gets no event from before its registration, or from when it was disabled", async (t) => {
  const service = await startService(t, { env: agent });
  const owner = await service.handle("acme");
  const register = async () => {
    const receiver = await startReceiver(t);
    const hook = { url: receiver.url, events: ["lead.captured"] };
    const { webhookId } = (await owner.post(`${root}/webhooks`).send(hook).expect(201)).body.webhook;
    const names = () => receiver.received.map(({ event }) => (event.data as { lead: { name: string } }).lead.name);
    return { webhookId, names };
  };
  const leave = (name: string) =>
    service.visitor.post("/v2/public/handles/acme/leads").send({ email: "ada@example.com", name }).expect(202);
  const set = (webhookId: string, status: "ACTIVE" | "DISABLED") =>
    setWebhookStatus(service.runtime, { handle: "acme", webhookId }, status);

  const [early, resting, gone] = [await register(), await register(), await register()];
  await set(resting.webhookId, "DISABLED");
  await leave("One");
  await set(resting.webhookId, "ACTIVE");
  await owner.delete(`${root}/webhooks/${gone.webhookId}`).expect(204);
  const late = await register();
  await service.startWorkers(["webhooks"]);
  await eventually(() => early.names().length === 1);
  await leave("Two");
  await eventually(() => [early, resting, late].every((one) => one.names().includes("Two")));
  t.same(
    [early, resting, gone, late].map((one) => one.names()),
    [["One", "Two"], ["Two"], [], ["Two"]],
  );
});

t.test("without an enabled endpoint no event is stored", async (t) => {
  const service = await startService(t, { env: agent });
  const owner = await service.handle("acme");
  const hook = { url: "https://example.com/hook" };
  const { webhookId } = (await owner.post(`${root}/webhooks`).send(hook).expect(201)).body.webhook;
  await setWebhookStatus(service.runtime, { handle: "acme", webhookId }, "DISABLED");
  await service.visitor.post("/v2/public/handles/acme/leads").send({ email: "ada@example.com" }).expect(202);
  t.same(await keyNames(service.runtime.redis, "webhook-*:*"), []);
});
