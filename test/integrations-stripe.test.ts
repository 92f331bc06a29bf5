import { createHash, createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import request, { type Test as SuperTest } from "supertest";
import t, { type Test as TapTest } from "tap";
import { attachDomain } from "../core/account/domains.ts";
import { eraseHandle } from "../core/operations/erasure.ts";
import { settlePayment } from "../core/scheduling/booking-payments.ts";
import { keys } from "../core/store/keys.ts";
import {
  type StripeNotice,
  type StripeServer,
  type StripeSession,
  startStripe,
  stripeClient,
} from "../fixtures/providers/stripe.ts";
import { eventually, type Service, startService } from "../fixtures/service.ts";
import { type MailServer, startMailServer } from "../fixtures/smtp.ts";
import { stopDate } from "../fixtures/time.ts";
import { startReceiver, undocumented } from "../fixtures/webhook-receiver.ts";

const owned = "/v2/handles/acme/scheduling";
const EVENT_PATH = "/v2/public/scheduling/acme/talk";
const noticePath = "/v2/public/providers/stripe/webhook";
type Owner = Awaited<ReturnType<Service["handle"]>>;

async function start(
  t: TapTest,
  { env, ...options }: { workers?: string[]; env?: Record<string, string> } = {},
): Promise<{ service: Service; owner: Owner; stripe: StripeServer }> {
  const stripe = await startStripe();
  t.teardown(() => stripe.close());
  const service = await startService(t, { env: { ...stripe.env, ...env }, ...options });
  return { service, owner: await service.handle("acme"), stripe };
}

/** The owner's browser at the provider: agrees, and is sent back. */
async function agree(authorizeUrl: string): Promise<URL> {
  const answer = await fetch(authorizeUrl, { redirect: "manual" });
  await answer.text();
  return new URL(answer.headers.get("location") ?? "");
}

async function connect(owner: Owner): Promise<{ credentialId: string }> {
  const { authorizeUrl } = (await owner.post(`${owned}/integrations/stripe/oauth/start`).expect(200)).body;
  const back = await agree(authorizeUrl);
  const body = { code: back.searchParams.get("code"), state: back.searchParams.get("state") };
  return (await owner.post(`${owned}/integrations/stripe/oauth/callback`).send(body).expect(201)).body.credential;
}

const paidType = {
  slug: "talk",
  title: "Talk",
  durationMinutes: 30,
  timeZone: "UTC",
  payment: { enabled: true, amountMinor: 4900, currency: "EUR" },
};

/** Books the first slot that is offered in the next fortnight, later ones by `at`. */
async function book({ visitor }: Service, at = 0): Promise<{ answer: Answer; slot: object }> {
  const day = 86_400_000;
  const [start, end] = [Date.now() + day, Date.now() + 14 * day].map((ms) => new Date(ms).toISOString());
  const { slots } = (await visitor.get(`${EVENT_PATH}/slots`).query({ start, end }).expect(200)).body;
  const slot = { start: slots[at].start, end: slots[at].end };
  const sent = { attendee: { name: "Ada", email: "ada@example.com" }, slot };
  return { answer: (await visitor.post(`${EVENT_PATH}/bookings`).send(sent).expect(201)).body, slot };
}

interface Answer {
  bookingUid: string;
  status: string;
  nextAction: { type: string; url: string };
}

function sessionOf(stripe: StripeServer, bookingUid: string): StripeSession {
  const found = [...stripe.sessions.values()].find(({ form }) => form["metadata[bookingUid]"] === bookingUid);
  if (!found) throw new Error("no session");
  return found;
}

async function tell(service: Service, asked: StripeNotice | Promise<StripeNotice>, status = 200): Promise<void> {
  const { body, signature } = await asked;
  await service.visitor
    .post(noticePath)
    .set("Content-Type", "application/json")
    .set("Stripe-Signature", signature)
    .send(body)
    .expect(status);
}

/** The signature of any body, made as Stripe's pages say. */
function signed(body: string): string {
  const timestamp = Math.floor(Date.now() / 1000);
  return `t=${timestamp},v1=${createHmac("sha256", stripeClient.webhookSecret).update(`${timestamp}.${body}`).digest("hex")}`;
}

const statusOf = async ({ visitor }: Service, uid: string) =>
  (await visitor.get(`${EVENT_PATH}/bookings/${uid}`).expect(200)).body.booking;

t.test("an account is connected by OAuth with PKCE, listed and disconnected", async (t) => {
  const { owner, stripe } = await start(t);
  const none = (await owner.get(`${owned}/integrations`).expect(200)).body;
  t.same(none.credentials, []);
  t.same(
    none.providers.map(({ providerKey }: { providerKey: string }) => providerKey),
    ["google", "microsoft", "caldav", "zoom", "stripe"],
  );
  t.match(none.providers[4], { providerKey: "stripe", configured: true });
  const { authorizeUrl, state } = (await owner.post(`${owned}/integrations/stripe/oauth/start`).expect(200)).body;
  const query = Object.fromEntries(new URL(authorizeUrl).searchParams);
  t.match(query, {
    state,
    code_challenge_method: "S256",
    redirect_uri: "http://service.test/oauth/scheduling/stripe/return",
  });
  const credential = await connect(owner);
  t.match(credential, { providerKey: "stripe", account: stripeClient.account, status: "OK", createdAt: String });
  t.same((await owner.get(`${owned}/integrations`)).body.credentials, [credential]);
  await connect(owner);
  t.equal((await owner.get(`${owned}/integrations`)).body.credentials.length, 1, "the same account is kept once");
  const { credentialId } = (await owner.get(`${owned}/integrations`)).body.credentials[0];
  await owner.delete(`${owned}/integrations/stripe/credentials/${credentialId}`).expect(204);
  t.same(stripe.revoked, [stripeClient.account]);
  const gone = await owner.delete(`${owned}/integrations/stripe/credentials/${credentialId}`).expect(404);
  t.equal(gone.body.code, "integration_not_found");
});

t.test("erasing a handle names the provider if that does not take its account back", async (t) => {
  const { service, owner, stripe } = await start(t);
  await connect(owner);
  stripe.isDown = true;
  t.match(await eraseHandle(service.runtime, "acme"), { grantsLeft: ["stripe"] });
});

t.test("a state works once, for its handle and its provider; a wrong code is refused", async (t) => {
  const { service, owner } = await start(t);
  const other = await service.handle("other");
  const begin = async () => (await owner.post(`${owned}/integrations/stripe/oauth/start`).expect(200)).body;
  const callback = `${owned}/integrations/stripe/oauth/callback`;
  const refused = async (asked: Promise<{ body: { code: string } }>) => (await asked).body.code;
  const first = await begin();
  const back = await agree(first.authorizeUrl);
  const body = { code: back.searchParams.get("code"), state: first.state };
  t.equal(await refused(other.post(callback.replace("acme", "other")).send(body).expect(400)), "invalid_oauth_state");
  t.equal(await refused(owner.post(callback).send(body).expect(400)), "invalid_oauth_state", "it is used up");
  const second = await begin();
  t.equal(
    await refused(owner.post(callback).send({ code: "wrong", state: second.state }).expect(400)),
    "oauth_exchange_failed",
  );
  const mixed = [await begin(), await begin()];
  const code = (await agree(mixed[0].authorizeUrl)).searchParams.get("code");
  t.equal(
    await refused(owner.post(callback).send({ code, state: mixed[1].state }).expect(400)),
    "oauth_exchange_failed",
  );
  t.equal(await refused(owner.post(callback).send({ code: "x", state: "unknown" }).expect(400)), "invalid_oauth_state");
});

t.test("a provider that answers nonsense, or not at all, fails by name", async (t) => {
  const answers = ["no json", "[]", "{}", '{"access_token":7}', undefined];
  let answer: string | undefined;
  const server = createServer((_request, response) => {
    if (answer === undefined) return void response.destroy();
    response.writeHead(200, { "content-type": "application/json" }).end(answer);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.teardown(() => server.close());
  const stripe = await startStripe();
  t.teardown(() => stripe.close());
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const service = await startService(t, { env: { ...stripe.env, STRIPE_CONNECT_BASE: base } });
  const owner = await service.handle("acme");
  for (answer of answers) {
    const { state } = (await owner.post(`${owned}/integrations/stripe/oauth/start`).expect(200)).body;
    const ended = await owner.post(`${owned}/integrations/stripe/oauth/callback`).send({ code: "x", state });
    t.equal(
      ended.body.code,
      answer === undefined ? "service_unavailable" : "oauth_exchange_failed",
      answer ?? "nothing",
    );
  }
  t.same((await owner.get(`${owned}/integrations`).expect(200)).body.credentials, []);
});

t.test("the returning browser continues to the application, which connects as the user who started", async (t) => {
  const { service, owner } = await start(t);
  const { authorizeUrl, state } = (await owner.post(`${owned}/integrations/stripe/oauth/start`).expect(200)).body;
  const back = await agree(authorizeUrl);
  const answer = await service.visitor.get(back.pathname + back.search).expect(303);
  const onward = new URL(answer.headers.location as string);
  t.match(Object.fromEntries(onward.searchParams), { providerKey: "stripe", code: String, state });
  t.equal((await owner.get(`${owned}/integrations`)).body.credentials.length, 0);
  const body = { code: onward.searchParams.get("code"), state };
  await owner.post(`${owned}/integrations/stripe/oauth/callback`).send(body).expect(201);
  t.equal((await owner.get(`${owned}/integrations`)).body.credentials.length, 1);
});

t.test("without a client id no authorisation can be started", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  for (const key of ["stripe", "google"])
    t.equal(
      (await owner.post(`${owned}/integrations/${key}/oauth/start`).expect(409)).body.code,
      "provider_not_configured",
    );
  t.equal(
    (await owner.post(`${owned}/integrations/nobody/oauth/start`).expect(404)).body.code,
    "integration_not_found",
  );
});

t.test("a paid booking leads to a checkout, and the payment accepts it", async (t) => {
  const { service, owner, stripe } = await start(t, { workers: ["webhooks"] });
  await owner.post(`${owned}/event-types`).send(paidType).expect(201);
  const receiver = await startReceiver(t);
  await owner.post(`${owned}/webhooks`).send({ url: receiver.url }).expect(201);
  const early = await service.visitor.post(`${EVENT_PATH}/bookings`).send({
    attendee: { name: "A", email: "a@example.com" },
    slot: { start: "2030-01-01T09:00:00Z", end: "2030-01-01T09:30:00Z" },
  });
  t.match(early.body, { status: 409, code: "payment_provider_not_connected" });
  await connect(owner);
  const { answer } = await book(service);
  t.equal(answer.status, "PENDING_PAYMENT");
  const session = sessionOf(stripe, answer.bookingUid);
  t.match(answer.nextAction, { type: "redirect_to_checkout", url: `${stripe.url}/pay/${session.id}` });
  t.match(session.form, {
    "line_items[0][price_data][unit_amount]": "4900",
    "line_items[0][price_data][currency]": "eur",
    client_reference_id: answer.bookingUid,
  });
  t.match(
    session.form.success_url,
    /^http:\/\/service\.test\/apps\/public\/scheduling\/acme\/talk\?booking=\w+&paid=1$/,
  );
  t.equal(session.form.cancel_url, session.form.success_url?.replace("&paid=1", ""));
  const notice = stripe.notice(stripe.pay(session.id), "checkout.session.completed");
  await tell(service, notice);
  await tell(service, notice);
  t.match(await statusOf(service, answer.bookingUid), { status: "ACCEPTED", payment: { status: "PAID" } });
  const types = await eventually(
    () => receiver.received.length >= 4 && receiver.received.map(({ event }) => event.type),
  );
  t.same(types.sort(), [
    "scheduling.booking.confirmed",
    "scheduling.booking.created",
    "scheduling.payment.required",
    "scheduling.payment.succeeded",
  ]);
  t.same(await undocumented(service, receiver.received), []);
});

t.test("notices come signed, fresh, from the handle's own account and about the right amount", async (t) => {
  const { service, owner, stripe } = await start(t);
  await owner.post(`${owned}/event-types`).send(paidType).expect(201);
  await connect(owner);
  const { answer } = await book(service);
  const session = stripe.pay(sessionOf(stripe, answer.bookingUid).id);
  const good = await stripe.notice(session, "checkout.session.completed");
  await tell(service, { ...good, body: good.body.replace("cs_test_1", "cs_test_2") }, 400);
  await tell(service, { ...good, signature: "t=1,v1=00" }, 400);
  await tell(service, { ...good, signature: "" }, 400);
  await tell(
    service,
    stripe.notice(session, "checkout.session.completed", { timestamp: Math.floor(Date.now() / 1000) - 400 }),
    400,
  );
  await tell(service, stripe.notice(session, "checkout.session.completed", { account: "acct_of_a_stranger" }));
  const cheap = { ...session, form: { ...session.form, "line_items[0][price_data][unit_amount]": "1" } };
  await tell(service, stripe.notice(cheap, "checkout.session.completed"));
  for (const body of ["", "no json", "null", "[]", "{}", '{"type":"x","data":{"object":null}}'])
    await tell(service, { body, signature: signed(body) }, 400);
  t.equal((await statusOf(service, answer.bookingUid)).status, "PENDING_PAYMENT");
  await tell(service, good);
  t.equal((await statusOf(service, answer.bookingUid)).status, "ACCEPTED");
});

t.test("an installation without payment refuses notices", async (t) => {
  const service = await startService(t);
  for (const signature of ["", signed("{}")]) await tell(service, { body: "{}", signature }, 400);
});

t.test("a payment and its refund count after the owner has disconnected the account of the checkout", async (t) => {
  const { service, owner, stripe } = await start(t);
  await owner.post(`${owned}/event-types`).send(paidType).expect(201);
  const { credentialId } = await connect(owner);
  const { answer } = await book(service);
  await owner.delete(`${owned}/integrations/stripe/credentials/${credentialId}`).expect(204);
  const session = stripe.pay(sessionOf(stripe, answer.bookingUid).id);
  await tell(service, stripe.notice(session, "checkout.session.completed", { account: "acct_of_a_stranger" }));
  t.equal((await statusOf(service, answer.bookingUid)).status, "PENDING_PAYMENT");
  await tell(service, stripe.notice(session, "checkout.session.completed"));
  const { payment, status } = await statusOf(service, answer.bookingUid);
  t.match({ status, payment }, { status: "ACCEPTED", payment: { status: "PAID" } });
  t.notOk("account" in payment, "the account is not shown");
  await tell(service, stripe.refundNotice(session));
  t.match(await statusOf(service, answer.bookingUid), { payment: { status: "REFUNDED" } });
});

t.test(
  "disconnecting closes the open checkouts of the service, since their payments could not be refunded",
  async (t) => {
    const { service, owner, stripe } = await start(t);
    await owner.post(`${owned}/event-types`).send(paidType).expect(201);
    await owner.post("/v2/handles/acme/pages").send(course).expect(201);
    const { credentialId } = await connect(owner);
    await bookPaid(service, stripe);
    const { answer } = await book(service, 1);
    await service.visitor.post(checkout).expect(200);
    const own = { ...sessionOf(stripe, answer.bookingUid), id: "cs_of_the_owner", form: {} };
    stripe.sessions.set(own.id, own);
    await owner.delete(`${owned}/integrations/stripe/credentials/${credentialId}`).expect(204);
    const states = [...stripe.sessions.values()].map(({ status }) => status);
    t.same(states, ["complete", "expired", "expired", "open"]);
    t.same(stripe.revoked, [stripeClient.account]);
  },
);

t.test("disconnecting closes more open checkouts than one page of their list holds", async (t) => {
  const { service, owner, stripe } = await start(t);
  await owner.post("/v2/handles/acme/pages").send(course).expect(201);
  const { credentialId } = await connect(owner);
  await service.visitor.post(checkout).expect(200);
  const [first] = [...stripe.sessions.values()];
  for (let n = 2; n <= 250; n++)
    stripe.sessions.set(`cs_test_${n}`, { ...(first as StripeSession), id: `cs_test_${n}` });
  await owner.delete(`${owned}/integrations/stripe/credentials/${credentialId}`).expect(204);
  t.same(
    [...stripe.sessions.values()].filter(({ status }) => status === "open").map(({ id }) => id),
    [],
  );
});

t.test("disconnecting closes the open checkouts that were listed before a page of the list failed", async (t) => {
  const { service, owner, stripe } = await start(t);
  await owner.post("/v2/handles/acme/pages").send(course).expect(201);
  const { credentialId } = await connect(owner);
  await service.visitor.post(checkout).expect(200);
  const [first] = [...stripe.sessions.values()] as [StripeSession];
  const unreadable = { ...first, id: "cs_unreadable" };
  Object.defineProperty(unreadable, "form", { value: undefined });
  stripe.sessions.clear();
  stripe.sessions.set(unreadable.id, unreadable);
  for (let n = 1; n <= 100; n++) stripe.sessions.set(`cs_test_${n}`, { ...first, id: `cs_test_${n}` });
  await owner.delete(`${owned}/integrations/stripe/credentials/${credentialId}`).expect(204);
  const states = [...stripe.sessions.values()].map(({ status }) => status);
  t.same(states, ["open", ...Array.from({ length: 100 }, () => "expired")]);
});

t.test("a payment that comes later counts when it comes, in any order of notices", async (t) => {
  const { service, owner, stripe } = await start(t);
  await owner.post(`${owned}/event-types`).send(paidType).expect(201);
  await connect(owner);
  const { answer } = await book(service);
  const session = sessionOf(stripe, answer.bookingUid);
  await tell(service, stripe.notice(session, "checkout.session.completed"));
  t.equal((await statusOf(service, answer.bookingUid)).status, "PENDING_PAYMENT", "it is complete and not yet paid");
  const paid = stripe.pay(session.id);
  await tell(service, stripe.notice(paid, "checkout.session.async_payment_succeeded"));
  await tell(service, stripe.notice(paid, "checkout.session.completed"));
  await tell(service, stripe.notice(session, "checkout.session.expired"));
  t.match(await statusOf(service, answer.bookingUid), { status: "ACCEPTED", payment: { status: "PAID" } });
  t.equal(await settlePayment(service.runtime, { handle: "acme", bookingUid: answer.bookingUid }), "repeated");
});

for (const type of ["checkout.session.expired", "checkout.session.async_payment_failed"])
  t.test(`${type} gives the slot back; a payment after that takes it again, or is refunded once`, async (t) => {
    const { service, owner, stripe } = await start(t, { workers: ["scheduling"] });
    await owner.post(`${owned}/event-types`).send(paidType).expect(201);
    await connect(owner);
    const [late, lost] = [await book(service, 0), await book(service, 1)];
    for (const { answer } of [late, lost]) {
      await tell(service, stripe.notice(sessionOf(stripe, answer.bookingUid), type));
      t.equal((await statusOf(service, answer.bookingUid)).status, "REJECTED");
    }
    const sent = { attendee: { name: "Bob", email: "bob@example.com" }, slot: lost.slot };
    await service.visitor.post(`${EVENT_PATH}/bookings`).send(sent).expect(201);
    for (const { answer } of [late, lost]) {
      const notice = stripe.notice(stripe.pay(sessionOf(stripe, answer.bookingUid).id), "checkout.session.completed");
      await tell(service, notice);
      await tell(service, notice);
    }
    t.equal((await statusOf(service, late.answer.bookingUid)).status, "ACCEPTED");
    await eventually(async () => (await statusOf(service, lost.answer.bookingUid)).payment.status === "REFUNDED");
    t.match(await statusOf(service, lost.answer.bookingUid), { status: "REJECTED" });
    t.match(stripe.refunds, [{ payment_intent: `pi_${sessionOf(stripe, lost.answer.bookingUid).id}` }]);
    t.equal(stripe.refunds.length, 1);
  });

t.test("cancelling an unpaid booking closes its checkout, also once a provider that fails works again", async (t) => {
  const { service, owner, stripe } = await start(t, { workers: ["scheduling"] });
  await owner.post(`${owned}/event-types`).send(paidType).expect(201);
  await connect(owner);
  const [byVisitor, byOwner, payer] = [await book(service, 0), await book(service, 1), await book(service, 2)];
  const uids = [byVisitor, byOwner, payer].map(({ answer }) => answer.bookingUid) as [string, string, string];
  t.notOk("session" in (await statusOf(service, uids[0])).payment);
  stripe.isDown = true;
  await service.visitor.post(`${EVENT_PATH}/bookings/${uids[0]}/cancel`).expect(200);
  await eventually(async () => (await service.runtime.queues.queue("scheduling").getDelayedCount()) > 3);
  stripe.isDown = false;
  await owner.post(`${owned}/bookings/${uids[1]}/cancel`).expect(200);
  const states = () => uids.map((uid) => sessionOf(stripe, uid).status);
  await eventually(() =>
    states()
      .slice(0, 2)
      .every((status) => status === "expired"),
  );
  const session = stripe.pay(sessionOf(stripe, uids[2]).id);
  await service.visitor.post(`${EVENT_PATH}/bookings/${uids[2]}/cancel`).expect(200);
  await eventually(async () => (await service.runtime.queues.queue("scheduling").getCompletedCount()) > 2);
  await tell(service, stripe.notice(session, "checkout.session.completed"));
  await eventually(async () => (await statusOf(service, uids[2])).payment.status === "REFUNDED");
  t.same(await service.runtime.queues.queue("scheduling").getFailedCount(), 0, "one that was paid meanwhile stays");
});

t.test("payer and owner are notified once of a returned payment", async (t) => {
  const mail = await startMailServer(t);
  const { service, owner, stripe } = await start(t, { workers: ["scheduling", "email"], env: { SMTP_URL: mail.url } });
  await attachDomain(service.runtime, { account: "acct_acme", domain: "acme.example", ready: true });
  const sender = { domain: "acme.example", localPart: "calendar", displayName: "Acme", purposes: ["CALENDAR"] };
  await owner.put("/v2/handles/acme/email/senders/sender_main").send(sender).expect(200);
  await service.runtime.redis.hset(keys.user("user_acme"), "email", "owner@acme.example");
  await owner.post(`${owned}/event-types`).send(paidType).expect(201);
  await connect(owner);
  const { answer } = await book(service);
  await owner.post(`${owned}/bookings/${answer.bookingUid}/cancel`).send({}).expect(200);
  const notice = stripe.notice(stripe.pay(sessionOf(stripe, answer.bookingUid).id), "checkout.session.completed");
  await tell(service, notice);
  await tell(service, notice);
  await eventually(() => mail.mails.length === 2);
  for (const { to, headers, raw } of mail.mails) {
    t.match(headers.subject, /^Refund on its way: Talk/, String(to));
    t.match(raw, /is being refunded/);
    t.notMatch(raw, /text\/calendar|Change or cancel/);
  }
  t.same(mail.mails.flatMap(({ to }) => to).sort(), ["ada@example.com", "owner@acme.example"]);
});

/** A paid booking that stands. */
async function bookPaid(service: Service, stripe: StripeServer, at = 0): Promise<string> {
  const { bookingUid } = (await book(service, at)).answer;
  await tell(service, stripe.notice(stripe.pay(sessionOf(stripe, bookingUid).id), "checkout.session.completed"));
  return bookingUid;
}

const refundedOf = (service: Service, uid: string) =>
  eventually(async () => (await statusOf(service, uid)).payment.status === "REFUNDED");

t.test("a cancellation in time is refunded, an owner's cancellation always, and the answer says which", async (t) => {
  const { service, owner, stripe } = await start(t, { workers: ["scheduling"] });
  const made = await owner.post(`${owned}/event-types`).send(paidType).expect(201);
  t.equal(made.body.eventType.payment.refundUntilMinutes, 1440);
  await connect(owner);
  const early = await bookPaid(service, stripe, 0);
  t.match(await statusOf(service, early), { payment: { status: "PAID", refundable: true } });
  const one = `${owned}/event-types/${made.body.eventType.eventTypeId}`;
  await owner
    .put(one)
    .send({ payment: { refundUntilMinutes: 525_600 } })
    .expect(200);
  const [late, ownersOwn] = [await bookPaid(service, stripe, 1), await bookPaid(service, stripe, 2)];
  const { start: begins, payment } = await statusOf(service, late);
  t.match(payment, { status: "PAID", refundable: false });
  t.equal(Date.parse(begins) - Date.parse(payment.refundUntil), 525_600 * 60_000);
  t.notOk("paid" in payment || "refundUntilMinutes" in payment, "what the provider knows stays inside");
  const cancel = async (uid: string) =>
    (await service.visitor.post(`${EVENT_PATH}/bookings/${uid}/cancel`).expect(200)).body.booking;
  t.equal((await cancel(late)).payment.status, "PAID");
  t.equal((await cancel(early)).payment.status, "REFUND_DUE", "the terms are those of the booking");
  const cancelled = await owner.post(`${owned}/bookings/${ownersOwn}/cancel`).send({}).expect(200);
  t.equal(cancelled.body.booking.payment.status, "REFUND_DUE");
  await refundedOf(service, early);
  await refundedOf(service, ownersOwn);
  t.equal((await cancel(early)).payment.status, "REFUNDED", "again changes nothing");
  t.equal((await statusOf(service, late)).payment.status, "PAID");
  const intents = stripe.refunds.map(({ payment_intent }) => payment_intent).sort();
  t.same(intents, [early, ownersOwn].map((uid) => `pi_${sessionOf(stripe, uid).id}`).sort());
});

t.test("a paid booking that was moved and is declined then is paid back", async (t) => {
  const { service, owner, stripe } = await start(t, { workers: ["scheduling"] });
  await owner
    .post(`${owned}/event-types`)
    .send({ ...paidType, confirmationRequired: true })
    .expect(201);
  await connect(owner);
  const uid = await bookPaid(service, stripe);
  const { start: begins } = await statusOf(service, uid);
  const [from, to] = [0, 14].map((days) => new Date(Date.parse(begins) + days * 86_400_000).toISOString());
  const { slots } = (await service.visitor.get(`${EVENT_PATH}/slots`).query({ start: from, end: to }).expect(200)).body;
  const slot = { start: slots[3].start, end: slots[3].end };
  const moved = await service.visitor.post(`${EVENT_PATH}/reschedule`).send({ bookingUid: uid, slot }).expect(200);
  t.equal(moved.body.status, "PENDING");
  await owner.post(`${owned}/bookings/${uid}/decline`).send({ reason: "Full" }).expect(200);
  await refundedOf(service, uid);
  t.equal((await statusOf(service, uid)).status, "REJECTED");
  t.equal(stripe.refunds.length, 1);
});

t.test("a refund counts once the provider reports it, no matter the requester", async (t) => {
  const { service, owner, stripe } = await start(t, { workers: ["scheduling"] });
  await owner.post(`${owned}/event-types`).send(paidType).expect(201);
  await connect(owner);
  const [slow, byHand] = [await bookPaid(service, stripe, 0), await bookPaid(service, stripe, 1)];
  stripe.refundStatus = "pending";
  await owner.post(`${owned}/bookings/${slow}/cancel`).send({}).expect(200);
  await eventually(() => stripe.refunds.length === 1);
  const metadata = Object.fromEntries(
    Object.entries(stripe.refunds[0] ?? {}).flatMap(([name, value]) => {
      const [, field] = /^metadata\[(.*)\]$/.exec(name) ?? [];
      return field ? [[field, value]] : [];
    }),
  );
  await tell(service, stripe.noticeOf({ object: "refund", status: "pending", metadata }, "refund.created"));
  t.equal((await statusOf(service, slow)).payment.status, "REFUND_DUE");
  const done = stripe.noticeOf({ object: "refund", status: "succeeded", metadata }, "refund.updated");
  await tell(service, done);
  await tell(service, done);
  t.match(await statusOf(service, slow), { status: "CANCELLED", payment: { status: "REFUNDED", refundable: false } });
  const { form } = sessionOf(stripe, byHand);
  t.equal(form["payment_intent_data[metadata][bookingUid]"], byHand);
  const charge = { object: "charge", metadata: { kind: "booking", handle: "acme", bookingUid: byHand } };
  await tell(service, stripe.noticeOf({ ...charge, refunded: false }, "charge.refunded"));
  t.equal((await statusOf(service, byHand)).payment.status, "PAID", "a part is not the whole");
  await tell(service, stripe.noticeOf({ ...charge, refunded: true }, "charge.refunded"));
  t.match(await statusOf(service, byHand), { status: "ACCEPTED", payment: { status: "REFUNDED" } });
});

t.test("a payment that was refunded before it is reported accepts no booking", async (t) => {
  const { service, owner, stripe } = await start(t);
  await owner.post(`${owned}/event-types`).send(paidType).expect(201);
  await connect(owner);
  const { answer } = await book(service);
  const session = stripe.pay(sessionOf(stripe, answer.bookingUid).id);
  await tell(service, stripe.refundNotice(session));
  await tell(service, stripe.notice(session, "checkout.session.completed"));
  const { status, payment } = await statusOf(service, answer.bookingUid);
  t.match({ status, payment }, { status: "PENDING_PAYMENT", payment: { status: "REFUNDED" } });
  await tell(service, stripe.notice(session, "checkout.session.expired"));
  t.equal((await statusOf(service, answer.bookingUid)).status, "REJECTED");
});

const faults: [name: string, begin: (stripe: StripeServer) => void][] = [
  ["is down", (stripe) => Object.assign(stripe, { isDown: true })],
  ["is busy", (stripe) => Object.assign(stripe, { isBusy: true })],
  ...['"ok"', "7", "null", "[]", "{}", "<html>"].map((nonsense): [string, (stripe: StripeServer) => void] => [
    `answers ${nonsense}`,
    (stripe) => Object.assign(stripe, { nonsense }),
  ]),
];
for (const [fault, begin] of faults)
  t.test(`a refund is retried while the provider ${fault}`, async (t) => {
    const { service, owner, stripe } = await start(t, { workers: ["scheduling"] });
    await owner.post(`${owned}/event-types`).send(paidType).expect(201);
    await connect(owner);
    const uid = await bookPaid(service, stripe);
    begin(stripe);
    await owner.post(`${owned}/bookings/${uid}/cancel`).send({}).expect(200);
    const queue = service.runtime.queues.queue("scheduling");
    await eventually(async () => (await queue.getJobs(["delayed"])).some(({ attemptsMade }) => attemptsMade > 0));
    t.equal((await statusOf(service, uid)).payment.status, "REFUND_DUE");
    Object.assign(stripe, { isDown: false, isBusy: false, nonsense: undefined });
    await refundedOf(service, uid);
    t.equal(stripe.refunds.length, 1);
  });

/** The mails about failed refunds. */
const failures = ({ mails }: MailServer) =>
  mails.filter(({ headers }) => /^Refund failed: Talk/.test(headers.subject ?? ""));

/** How often refunds of a handle's bookings were tried in vain. */
async function attempts({ runtime }: Service): Promise<number> {
  const jobs = await runtime.queues.queue("scheduling").getJobs(["delayed", "failed"]);
  return jobs.reduce((sum, { name, attemptsMade }) => sum + (name === "payments.refund" ? attemptsMade : 0), 0);
}

t.test(
  "a refund after a disconnect is told to the owner once, and made when the account is connected again",
  async (t) => {
    const mail = await startMailServer(t);
    const { service, owner, stripe } = await start(t, {
      workers: ["scheduling", "email"],
      env: { SMTP_URL: mail.url },
    });
    await service.runtime.redis.hset(keys.user("user_acme"), "email", "owner@acme.example");
    await owner.post(`${owned}/event-types`).send(paidType).expect(201);
    const { credentialId } = await connect(owner);
    const uid = await bookPaid(service, stripe);
    await owner.delete(`${owned}/integrations/stripe/credentials/${credentialId}`).expect(204);
    await owner.post(`${owned}/bookings/${uid}/cancel`).send({}).expect(200);
    await eventually(() => failures(mail).length === 1);
    t.match(failures(mail), [{ to: ["owner@acme.example"], raw: /49\.00 is retried/ }]);
    const before = await attempts(service);
    await owner.post(`${owned}/bookings/${uid}/sync`).expect(202);
    await eventually(async () => (await attempts(service)) > before);
    t.equal((await statusOf(service, uid)).payment.status, "REFUND_DUE");
    await connect(owner);
    await refundedOf(service, uid);
    t.equal(stripe.refunds.length, 1);
    t.equal(failures(mail).length, 1);
    t.equal(await service.runtime.redis.exists(keys.unrefunded("acme")), 0);
  },
);

t.test("a refund that fails at once or later is told to the owner", async (t) => {
  const mail = await startMailServer(t);
  const { service, owner, stripe } = await start(t, { workers: ["scheduling", "email"], env: { SMTP_URL: mail.url } });
  await service.runtime.redis.hset(keys.user("user_acme"), "email", "owner@acme.example");
  await owner.post(`${owned}/event-types`).send(paidType).expect(201);
  await connect(owner);
  for (const [at, status] of (["failed", "pending"] as const).entries()) {
    const bookingUid = await bookPaid(service, stripe, at);
    stripe.refundStatus = status;
    await owner.post(`${owned}/bookings/${bookingUid}/cancel`).send({}).expect(200);
    await eventually(() => stripe.refunds.length === at + 1);
    const refund = { object: "refund", status: "failed", metadata: { kind: "booking", handle: "acme", bookingUid } };
    if (status === "pending") await tell(service, stripe.noticeOf(refund, "refund.failed"));
    await eventually(() => failures(mail).length === at + 1);
  }
});

t.test("a refund that fails after it was made is due again, in any order of notices", async (t) => {
  const mail = await startMailServer(t);
  const { service, owner, stripe } = await start(t, { workers: ["scheduling", "email"], env: { SMTP_URL: mail.url } });
  await service.runtime.redis.hset(keys.user("user_acme"), "email", "owner@acme.example");
  await owner.post(`${owned}/event-types`).send(paidType).expect(201);
  await connect(owner);
  const uid = await bookPaid(service, stripe);
  stripe.refundStatus = "pending";
  await owner.post(`${owned}/bookings/${uid}/cancel`).send({}).expect(200);
  await eventually(() => stripe.refunds.length === 1);
  const now = Math.floor(Date.now() / 1000);
  const metadata = { kind: "booking", handle: "acme", bookingUid: uid };
  const notice = (type: string, status: string, age: number) =>
    stripe.noticeOf({ object: "refund", status, metadata }, type, { timestamp: now - age });
  const [made, failed] = [
    await notice("refund.updated", "succeeded", 20),
    // The provider's clock is ahead.
    await notice("charge.refund.updated", "failed", -100),
  ];
  const payment = async () => (await statusOf(service, uid)).payment;
  await tell(service, made);
  t.match(await payment(), { status: "REFUNDED" });
  t.notOk("refundReportedAt" in (await payment()));
  for (const one of [failed, made, failed]) {
    await tell(service, one);
    t.match(await payment(), { status: "REFUND_DUE" });
  }
  await eventually(() => failures(mail).length === 1);
  stripe.refundStatus = "succeeded";
  await connect(owner);
  await refundedOf(service, uid);
  t.equal(stripe.refunds.length, 2, "a failed refund is followed by another one");
  await tell(service, failed);
  t.match(await payment(), { status: "REFUNDED" });
  t.equal(failures(mail).length, 1);
  t.equal(await service.runtime.redis.exists(keys.unrefunded("acme")), 0);
});

t.test("a provider that can't be reached is logged with what failed", async (t) => {
  const { service, owner, stripe } = await start(t);
  await owner.post("/v2/handles/acme/pages").send(course).expect(201);
  await connect(owner);
  const logged: unknown[] = [];
  t.intercept(service.runtime.log, "warn", { value: (...line: unknown[]) => void logged.push(line) });
  stripe.nonsense = "<html>Secret</html>";
  await service.visitor.post(checkout).expect(503);
  await stripe.close();
  t.match((await service.visitor.post(checkout).expect(503)).body, { code: "service_unavailable" });
  const failures = logged.filter((line) => (line as string[])[1] === "payment.checkout_failed");
  t.match(failures, [[{ error: "Stripe answered 200." }], [{ handle: "acme", error: /ECONNREFUSED|refused/ }]]);
  t.notMatch(JSON.stringify(logged), /Secret/);
});

t.test("an account that its provider refuses is degraded until it is connected again", async (t) => {
  const { service, owner, stripe } = await start(t, { workers: ["webhooks"] });
  const receiver = await startReceiver(t);
  await owner
    .post(`${owned}/webhooks`)
    .send({ url: receiver.url, events: ["scheduling.sync.degraded"] })
    .expect(201);
  const { eventTypeId } = (await owner.post(`${owned}/event-types`).send(paidType).expect(201)).body.eventType;
  await owner.post("/v2/handles/acme/pages").send(course).expect(201);
  const { credentialId } = await connect(owner);
  const health = async () => (await owner.get(`${owned}/integrations`).expect(200)).body.credentials;
  const bookable = async () => (await owner.get(`${owned}/event-types/${eventTypeId}`)).body.eventType;
  stripe.isRevoked = true;
  t.match((await service.visitor.post(checkout).expect(409)).body, { code: "payment_provider_not_connected" });
  t.match(await health(), [{ credentialId, status: "DEGRADED", detail: /reconnect the account/ }]);
  t.match(await bookable(), { bookable: false, reason: "payment_provider_not_connected" });
  stripe.isRevoked = false;
  await book(service);
  t.match(await health(), [{ credentialId, status: "OK", detail: undefined }]);
  t.match(await bookable(), { bookable: true, reason: null });
  stripe.isRevoked = true;
  await service.visitor.post(checkout).expect(409);
  await service.visitor.post(checkout).expect(409);
  await connect(owner);
  t.match(await health(), [{ credentialId, status: "OK", detail: undefined }]);
  const events = await eventually(() => receiver.received.length >= 2 && receiver.received);
  const data = { handle: "acme", providerKey: "stripe", credentialId, reason: "integration_revoked" };
  t.match(
    events.map(({ event }) => event.data),
    [data, data],
  );
  t.same(await undocumented(service, events), []);
});

t.test("a checkout that fails holds no slot", async (t) => {
  const { service, owner, stripe } = await start(t);
  await owner.post(`${owned}/event-types`).send(paidType).expect(201);
  await connect(owner);
  stripe.isDown = true;
  const slots = {
    start: new Date(Date.now() + 86_400_000).toISOString(),
    end: new Date(Date.now() + 7 * 86_400_000).toISOString(),
  };
  const [slot] = (await service.visitor.get(`${EVENT_PATH}/slots`).query(slots)).body.slots;
  const body = { attendee: { name: "Ada", email: "ada@example.com" }, slot: { start: slot.start, end: slot.end } };
  const failed = await service.visitor.post(`${EVENT_PATH}/bookings`).send(body).expect(503);
  t.equal(failed.body.code, "service_unavailable");
  stripe.isDown = false;
  await service.visitor.post(`${EVENT_PATH}/bookings`).send(body).expect(201);
});

t.test("a price that the provider does not accept is refused as such, and holds no slot", async (t) => {
  const { service, owner } = await start(t);
  const payment = { enabled: true, amountMinor: 49, currency: "EUR" };
  const { eventTypeId } = (
    await owner
      .post(`${owned}/event-types`)
      .send({ ...paidType, payment })
      .expect(201)
  ).body.eventType;
  await connect(owner);
  const [from, to] = [1, 7].map((days) => new Date(Date.now() + days * 86_400_000).toISOString());
  const [{ start: first, end }] = (
    await service.visitor.get(`${EVENT_PATH}/slots`).query({ start: from, end: to }).expect(200)
  ).body.slots;
  const body = { attendee: { name: "Ada", email: "ada@example.com" }, slot: { start: first, end } };
  for (let times = 0; times < 2; times++) {
    const refused = await service.visitor.post(`${EVENT_PATH}/bookings`).send(body).expect(409);
    t.match(refused.body, { code: "payment_provider_not_connected", detail: /amount_too_small/ });
  }
  const unknown = { payment: { amountMinor: 4900, currency: "QQQ" } };
  await owner.put(`${owned}/event-types/${eventTypeId}`).send(unknown).expect(200);
  t.match((await service.visitor.post(`${EVENT_PATH}/bookings`).send(body).expect(409)).body, {
    code: "payment_provider_not_connected",
  });
  await owner
    .post("/v2/handles/acme/pages")
    .send({ ...course, price: { amountMinor: 49, currency: "EUR" } })
    .expect(201);
  t.match((await service.visitor.post(checkout).expect(409)).body, { code: "payment_provider_not_connected" });
});

const course = {
  pageSlug: "course",
  title: "Course",
  accessMode: "PAID",
  status: "PUBLISHED",
  content: "<p>secret</p>",
  teaser: "<p>teaser</p>",
  price: { amountMinor: 900, currency: "EUR" },
};
const checkout = "/v2/public/pages/acme/course/checkout";

/** The way back from the newest checkout, as the provider leads there. */
function wayBack(stripe: StripeServer): { back: URL; sessionId: string } {
  const session = [...stripe.sessions.values()].at(-1) as StripeSession;
  const back = new URL((session.form.success_url ?? "").replace("{CHECKOUT_SESSION_ID}", session.id));
  return { back, sessionId: session.id };
}

/** A paid checkout of the course: the way back, and a browser that asks for addresses at their hosts. */
async function buyCourse(
  { service, stripe }: { service: Service; stripe: StripeServer },
  host = "service.test",
): Promise<{ back: URL; sessionId: string; open: (url: URL, verb?: "get" | "head") => SuperTest }> {
  await service.visitor.post(checkout).set("Host", host).expect(200);
  const { back, sessionId } = wayBack(stripe);
  stripe.pay(sessionId);
  const open = (url: URL, verb: "get" | "head" = "get") =>
    request(service.url)
      [verb](url.pathname + url.search)
      .set("Host", url.host);
  return { back, sessionId, open };
}

t.test("a paid page leads to a checkout whose way back opens the page, only when paid", async (t) => {
  const { service, owner, stripe } = await start(t);
  await owner.post("/v2/handles/acme/pages").send(course).expect(201);
  const refused = async (path: string, status: number) => (await service.visitor.post(path).expect(status)).body;
  t.match(await refused(checkout, 409), {
    code: "payment_provider_not_connected",
    detail: "No payment provider is connected.",
  });
  t.equal((await refused("/v2/public/pages/acme/none/checkout", 404)).code, "page_not_found");
  await connect(owner);
  const { nextAction } = (await service.visitor.post(checkout).expect(200)).body;
  const { back, sessionId } = wayBack(stripe);
  t.same(nextAction, { type: "redirect_to_checkout", url: `${stripe.url}/pay/${sessionId}` });
  const unpaid = await service.visitor.get(back.pathname + back.search).expect(303);
  t.equal(unpaid.headers.location, "http://service.test/p/acme/course");
  stripe.pay(sessionId);
  const paid = new URL((await service.visitor.get(back.pathname + back.search).expect(303)).headers.location as string);
  const lifetime = await service.runtime.redis.ttl(keys.pageAccess(paid.searchParams.get("access") ?? ""));
  t.ok(lifetime > 850 && lifetime <= 900, "a code that no browser brings is soon over");
  const opened = await service.visitor.get(paid.pathname + paid.search).expect(200);
  t.match(opened.text, /secret/);
  const [cookie = ""] = opened.headers["set-cookie"] as unknown as string[];
  t.match(cookie, /HttpOnly/);
  const check = await service.visitor
    .get("/v2/public/pages/acme/course/access-check")
    .set("Cookie", cookie.split(";")[0] ?? "");
  t.same(check.body, { accessMode: "PAID", hasAccess: true });
  t.match((await service.visitor.get(paid.pathname + paid.search).expect(200)).text, /teaser/, "a code works once");
  await owner.put("/v2/handles/acme/pages/course").send({ price: null }).expect(200);
  t.match(await refused(checkout, 409), { code: "payment_provider_not_connected", detail: "The page has no price." });
  await owner.put("/v2/handles/acme/pages/course").send({ accessMode: "PUBLIC" }).expect(200);
  t.match(await refused(checkout, 409), { detail: "The page is free; there is nothing to pay." });
});

t.test("a buyer whose answer was lost gets in: GET alone redeems a code, and the return gives another", async (t) => {
  const { service, owner, stripe } = await start(t);
  await owner.post("/v2/handles/acme/pages").send(course).expect(201);
  await connect(owner);
  const { back, sessionId, open } = await buyCourse({ service, stripe });
  const returned = async () => new URL((await open(back).expect(303)).headers.location as string);
  const paid = await returned();
  await open(paid, "head").expect(200);
  const check = `/v2/public/pages/acme/course/access-check?access=${paid.searchParams.get("access")}`;
  t.same((await service.visitor.get(check).expect(200)).body, { accessMode: "PAID", hasAccess: false });
  t.match((await open(paid).expect(200)).text, /secret/);
  const again = await returned();
  t.not(again.searchParams.get("access"), paid.searchParams.get("access"));
  const opened = await open(again).expect(200);
  t.match(opened.text, /secret/);
  await service.runtime.redis.set(keys.pageCheckout(sessionId), Date.now() - 3_600_001);
  t.notOk((await returned()).searchParams.has("access"), "an hour later the return gives no code");
  const [cookie = ""] = opened.headers["set-cookie"] as unknown as string[];
  t.match(cookie, /; Max-Age=31536000;/);
  const kept = cookie.split(";")[0] ?? "";
  const time = stopDate(t);
  t.intercept(service.runtime, "now", { value: Date.now });
  time.at += 365 * 86_400_000 - 60_000;
  t.match((await service.visitor.get("/p/acme/course").set("Cookie", kept).expect(200)).text, /secret/);
  time.at += 60_000;
  t.notMatch(
    (await service.visitor.get("/p/acme/course").set("Cookie", kept).expect(200)).text,
    /secret/,
    "a year later",
  );
});

t.test("a page that is paid after its account was disconnected opens all the same", async (t) => {
  const { service, owner, stripe } = await start(t);
  await owner.post("/v2/handles/acme/pages").send(course).expect(201);
  const { credentialId } = await connect(owner);
  const { back, sessionId, open } = await buyCourse({ service, stripe });
  await owner.delete(`${owned}/integrations/stripe/credentials/${credentialId}`).expect(204);
  const session = stripe.sessions.get(sessionId) as StripeSession;
  const bought = async () => (await owner.get("/v2/handles/acme/pages/course/purchases").expect(200)).body.purchases;
  await tell(service, stripe.notice(session, "checkout.session.completed", { account: "acct_of_a_stranger" }));
  const old = { ...session, form: { ...session.form, "metadata[until]": "1" } };
  await tell(service, stripe.notice(old, "checkout.session.completed"));
  t.same(await bought(), []);
  await tell(service, stripe.notice(session, "checkout.session.completed"));
  t.match(await bought(), [{ sessionId, refundedAt: null }]);
  stripe.isDown = true;
  const paid = new URL((await open(back).expect(303)).headers.location as string);
  t.match((await open(paid).expect(200)).text, /secret/, "a recorded purchase needs no provider");
  await tell(service, stripe.refundNotice(session));
  t.match(await bought(), [{ sessionId, refundedAt: String }]);
  t.notOk(new URL((await open(back).expect(303)).headers.location as string).searchParams.has("access"));
});

t.test("a checkout leads back to the host on which it was started, and opens the page there", async (t) => {
  const { service, owner, stripe } = await start(t, { env: { PUBLIC_DOMAIN: "pages.test" } });
  await owner.post("/v2/handles/acme/pages").send(course).expect(201);
  await connect(owner);
  const { redis } = service.runtime;
  await redis.hset(keys.domain("learn.example"), { handle: "acme", account: "acct_acme", owned: "1" });
  await redis.hset(keys.domain("other.example"), { handle: "other", account: "acct_other", owned: "1" });
  for (const host of ["learn.example", "learn.example:8443", "acme.pages.test"]) {
    const { back, open } = await buyCourse({ service, stripe }, host);
    t.equal(back.host, host);
    const paid = new URL((await open(back).expect(303)).headers.location as string);
    t.same([paid.host, paid.pathname], [host, "/course"]);
    t.match((await open(paid).expect(200)).text, /secret/);
  }
  for (const host of ["other.example", "evil.example", "service.test"])
    t.equal((await buyCourse({ service, stripe }, host)).back.host, "acme.pages.test", host);
});

t.test(
  "an invented return leads to the page; a return that can't be checked answers a person with a page",
  async (t) => {
    const { service, owner, stripe } = await start(t);
    await owner.post("/v2/handles/acme/pages").send(course).expect(201);
    await connect(owner);
    const back = `${checkout}/return?session=cs_bogus`;
    const invented = await service.visitor.get(back).expect(303);
    t.equal(invented.headers.location, "http://service.test/p/acme/course");
    stripe.isDown = true;
    const down = await service.visitor.get(back).expect(503).expect("content-type", /html/);
    t.match(down.text, /payment provider/);
    t.ok(down.headers["retry-after"]);
    await service.visitor.get(back.replace("course", "none")).expect(404).expect("content-type", /html/);
  },
);

t.test("one network can't make the payment provider work without a bound", async (t) => {
  const { service, owner, stripe } = await start(t);
  await owner.post("/v2/handles/acme/pages").send(course).expect(201);
  await connect(owner);
  const statuses = [];
  for (let at = 0; at < 30; at++) statuses.push((await service.visitor.post(checkout)).status);
  t.same([statuses[0], statuses.at(-1)], [200, 429]);
  t.ok(stripe.sessions.size < 25, `${stripe.sessions.size} sessions`);
});

t.test("states and verifiers are not to be found by their owner's handle, and challenges fit", async (t) => {
  const { service, owner } = await start(t);
  const { authorizeUrl, state } = (await owner.post(`${owned}/integrations/stripe/oauth/start`).expect(200)).body;
  const started = JSON.parse((await service.runtime.redis.get(keys.oauthState(state))) as string);
  const challenge = createHash("sha256").update(started.verifier).digest("base64url");
  t.equal(new URL(authorizeUrl).searchParams.get("code_challenge"), challenge);
  t.ok((await service.runtime.redis.ttl(keys.oauthState(state))) <= 600);
});
