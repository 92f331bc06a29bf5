import t from "tap";
import { acceptMessage } from "../core/email/acceptance.ts";
import { keys } from "../core/store/keys.ts";
import { makeSending, startMailing } from "../fixtures/email.ts";
import { repeatScripts } from "../fixtures/redis.ts";
import { stopClock } from "../fixtures/time.ts";
import type { MessageEvent } from "../schemas/email.ts";

const nowhere = "smtp://127.0.0.1:9";
const day = 86_400_000;

t.test("a repeated send is the first one's answer", async (t) => {
  const service = await startMailing(t, nowhere);
  const { ask, owner, root } = await makeSending(service);
  const body = {
    to: ["a@far.example", "b@far.example"],
    idempotencyKey: "order/1",
    variables: { name: "Ann", other: "x" },
  };
  const first = await ask(body).expect(202);
  t.equal(first.headers["idempotency-replayed"], undefined);
  const again = await ask({ variables: { other: "x", name: "Ann" }, idempotencyKey: "order/1", to: body.to }).expect(
    202,
  );
  t.equal(again.headers["idempotency-replayed"], "true");
  t.same(again.body, first.body);
  t.match((await ask({ ...body, to: ["a@far.example"] })).body, { status: 409, code: "idempotency_conflict" });
  await owner.put(`${root}/senders/sender_main`).send({ enabled: false }).expect(200);
  t.same((await ask(body).expect(202)).body, first.body, "whatever became of the sender since");
  t.match((await ask({ ...body, idempotencyKey: "order/2" })).body, { code: "sender_not_ready" });
  await owner.put(`${root}/senders/sender_main`).send({ enabled: true }).expect(200);
  await ask({ ...body, idempotencyKey: "order/2" }).expect(202);
  t.equal(
    (await owner.get(`${root}/messages`)).body.messages.length,
    2,
    "a refusal takes no key, and each key makes one message",
  );
});

t.test("the Idempotency-Key header is used if the body has no key, and null counts as no key", async (t) => {
  const service = await startMailing(t, nowhere);
  const { ask, owner, root } = await makeSending(service);
  const first = await ask({}).set("Idempotency-Key", "order/1").expect(202);
  for (const idempotencyKey of [undefined, null, "order/1"]) {
    const again = await ask({ idempotencyKey }).set("Idempotency-Key", "order/1").expect(202);
    t.equal(again.headers["idempotency-replayed"], "true");
    t.same(again.body, first.body);
  }
  const other = ask({ to: ["b@far.example"], idempotencyKey: null }).set("Idempotency-Key", "order/1");
  t.match((await other.expect(409)).body, { code: "idempotency_conflict" });
  await ask({ idempotencyKey: "order/2" }).set("Idempotency-Key", "order/1").expect(202);
  await ask({ idempotencyKey: null }).expect(202);
  await ask({ idempotencyKey: null }).expect(202);
  t.equal((await owner.get(`${root}/messages`)).body.messages.length, 4);
});

t.test("a send whose reply is lost with the connection is accepted once, with its owner", async (t) => {
  const service = await startMailing(t, nowhere);
  const { ask, read } = await makeSending(service);
  const { redis } = service.runtime;
  repeatScripts(redis);
  for (const more of [{}, { idempotencyKey: "k" }]) {
    const { messageId } = (await ask(more).expect(202)).body.message;
    t.equal((await read(messageId)).timeline.length, 1);
    t.equal(await redis.get(keys.messageOwner(messageId)), "acme", "unsubscribing and bounces find it");
  }
});

t.test("on a cluster no send is accepted without its owner", async (t) => {
  const service = await startMailing(t, nowhere);
  const { ask, owner, root } = await makeSending(service);
  const { redis } = service.runtime;
  Object.assign(service.runtime, { redisKind: "cluster" });
  // The node of the owner is away.
  const set = redis.set.bind(redis) as (...given: unknown[]) => Promise<unknown>;
  const failing = (key: string, ...more: unknown[]) =>
    key.startsWith("message-owner:") ? Promise.reject(new Error("Connection is closed.")) : set(key, ...more);
  Object.assign(redis, { set: failing });
  t.match((await ask()).body, { status: 503, code: "transactional_email_queue_unavailable" });
  t.same((await owner.get(`${root}/messages`)).body.messages, []);
});

t.test("of many equal sends at once one is accepted", async (t) => {
  const service = await startMailing(t, nowhere);
  const { ask, owner, root } = await makeSending(service);
  const answers = await Promise.all(Array.from({ length: 20 }, () => ask({ idempotencyKey: "same" })));
  t.same([...new Set(answers.map(({ status }) => status))], [202]);
  t.equal(new Set(answers.map(({ body }) => body.message.messageId)).size, 1);
  t.equal(answers.filter(({ headers }) => headers["idempotency-replayed"] === undefined).length, 1);
  t.equal((await owner.get(`${root}/messages`)).body.messages.length, 1);
});

t.test("a key in the header makes a send safe to repeat too, and one in the body beats it", async (t) => {
  const service = await startMailing(t, "smtp://127.0.0.1:9");
  const { ask } = await makeSending(service);
  const first = await ask().set("Idempotency-Key", "welcome-ann").expect(202);
  const again = await ask({ idempotencyKey: null }).set("Idempotency-Key", "welcome-ann").expect(202);
  t.equal(again.headers["idempotency-replayed"], "true");
  t.equal(again.body.message.messageId, first.body.message.messageId);
  const inBody = await ask({ idempotencyKey: "welcome-ann" }).set("Idempotency-Key", "other").expect(202);
  t.equal(inBody.headers["idempotency-replayed"], "true");
  const other = await ask({ to: ["bob@far.example"] }).set("Idempotency-Key", "welcome-ann");
  t.match(other.body, { status: 409, code: "idempotency_conflict" });
});

t.test("the quota counts recipients of a handle and day, also in a race", async (t) => {
  const service = await startMailing(t, nowhere, { env: { EMAIL_QUOTA_PER_DAY: "10" } });
  const acme = await makeSending(service);
  const other = await makeSending(service, "other");
  let moved = 0;
  const real = service.runtime.now;
  Object.assign(service.runtime, { now: () => real() + moved });
  const answers = await Promise.all(
    Array.from({ length: 9 }, (_, at) => acme.ask({ to: [`a${at}@far.example`, `b${at}@far.example`] })),
  );
  const accepted = answers.filter(({ status }) => status === 202).length;
  t.equal(accepted, 5);
  t.match(answers.find(({ status }) => status !== 202)?.body, { status: 429, code: "email_quota_exceeded" });
  await other.ask().expect(202);
  moved += day;
  await acme.ask().expect(202);
});

t.test("a suppressed address gets no mail until its owner removes the suppression", async (t) => {
  const service = await startMailing(t, nowhere);
  const { ask, owner, root } = await makeSending(service);
  const other = await makeSending(service, "other");
  const made = (
    await owner.post(`${root}/suppressions`).send({ email: "Ann@Far.example", reason: "asked by phone" }).expect(201)
  ).body.suppression;
  t.match(made, { email: "ann@far.example", reason: "asked by phone", source: "OWNER", messageId: null });
  t.same(
    (await owner.post(`${root}/suppressions`).send({ email: "ann@far.example" }).expect(201)).body.suppression,
    made,
    "the first one stays",
  );
  t.match((await ask({ to: ["ANN@far.example"] })).body, { status: 409, code: "email_recipient_suppressed" });
  await other.ask({ to: ["ann@far.example"] }).expect(202);
  for (const name of ["b", "c"])
    await owner
      .post(`${root}/suppressions`)
      .send({ email: `${name}@far.example` })
      .expect(201);
  const first = (await owner.get(`${root}/suppressions?limit=2`)).body;
  const second = (await owner.get(`${root}/suppressions?limit=2&cursor=${first.nextCursor}`)).body;
  t.same(
    [...first.suppressions, ...second.suppressions].map(({ email }) => email),
    ["c@far.example", "b@far.example", "ann@far.example"],
  );
  await owner.delete(`${root}/suppressions/ANN@far.example`).expect(204);
  await owner.delete(`${root}/suppressions/ann@far.example`).expect(204);
  await ask({ to: ["ann@far.example"] }).expect(202);
});

t.test("a suppression whose reason is half a character bars no later one", async (t) => {
  const service = await startMailing(t, nowhere);
  const { owner, root } = await makeSending(service);
  const suppress = () => owner.post(`${root}/suppressions`).send({ email: "ann@far.example", reason: "no \ud83d" });
  for (let times = 0; times < 2; times++) t.match((await suppress().expect(201)).body.suppression.reason, "no \ufffd");
});

t.test("events are found by message, recipient, purpose and time, the newest first, page by page", async (t) => {
  const service = await startMailing(t, nowhere);
  const { send, owner, root } = await makeSending(service);
  const one = await send(["ann@far.example", "bob@far.example"]);
  const since = new Date(service.runtime.now() + 1).toISOString();
  await new Promise((resolve) => setTimeout(resolve, 5));
  const two = await send(["Ann@far.example"], { purpose: "PRODUCT_NOTIFICATION" });
  await owner.post(`${root}/messages/${one}/cancel`).expect(200);
  const events = async (query: string): Promise<MessageEvent[]> =>
    (await owner.get(`${root}/events?${query}`).expect(200)).body.events;
  const brief = (list: MessageEvent[]) =>
    list.map(({ messageId, type, recipient }) => `${messageId === one ? 1 : 2} ${type} ${recipient}`);
  t.same(brief(await events(`messageId=${two}`)), ["2 QUEUED Ann@far.example"]);
  t.same(brief(await events("recipient=ANN@far.example")), [
    "1 CANCELLED ann@far.example",
    "2 QUEUED Ann@far.example",
    "1 QUEUED ann@far.example",
  ]);
  t.same(brief(await events("purpose=PRODUCT_NOTIFICATION")), ["2 QUEUED Ann@far.example"]);
  t.same(brief(await events(`recipient=ann@far.example&purpose=TRANSACTIONAL_API&messageId=${one}`)), [
    "1 CANCELLED ann@far.example",
    "1 QUEUED ann@far.example",
  ]);
  t.equal((await events(`since=${since}`)).length, 3);
  t.same(await events("recipient=nobody@far.example"), []);
  t.same(await events("messageId=msg_none"), []);
  const all = await events("since=2000-01-01T00:00:00Z");
  t.equal(all.length, 5);
  const paged: MessageEvent[] = [];
  let cursor = "";
  for (let pages = 0; pages < 3; pages++) {
    const { body } = await owner.get(`${root}/events?since=2000-01-01T00:00:00Z&limit=2${cursor}`).expect(200);
    paged.push(...body.events);
    cursor = `&cursor=${body.nextCursor}`;
    t.equal(body.nextCursor === null, pages === 2);
  }
  t.same(paged, all);
  t.match(all[0], { eventId: /^mev_\d+$/, attempt: 0, purpose: "TRANSACTIONAL_API", at: /Z$/ });
});

t.test("the times of a timeline are in order, though clocks of processes differ", async (t) => {
  const service = await startMailing(t, nowhere);
  const { send, read, owner, root } = await makeSending(service);
  const clock = stopClock(service.runtime);
  const id = await send(["a@far.example", "b@far.example"]);
  clock.move(-2000);
  await owner.post(`${root}/messages/${id}/cancel`).expect(200);
  const { timeline } = await read(id);
  t.equal(timeline.length, 4);
  t.same(new Set(timeline.map(({ at }) => at)), new Set([timeline[0]?.at]));
});

t.test("messages are listed, and one is read with its timeline", async (t) => {
  const service = await startMailing(t, nowhere);
  const { send, owner, root } = await makeSending(service);
  const ids = [await send(["a@far.example"]), await send(["b@far.example"]), await send(["c@far.example"])];
  const first = (await owner.get(`${root}/messages?limit=2`).expect(200)).body;
  const second = (await owner.get(`${root}/messages?limit=2&cursor=${first.nextCursor}`).expect(200)).body;
  t.same(
    [...first.messages, ...second.messages].map(({ messageId }) => messageId),
    ids.reverse(),
  );
  t.equal(second.nextCursor, null);
  const { message, timeline } = (await owner.get(`${root}/messages/${ids[0]}`).expect(200)).body;
  t.match(message, {
    ...{
      messageId: ids[0],
      handle: "acme",
      status: "QUEUED",
      purpose: "TRANSACTIONAL_API",
      senderId: "sender_main",
      recipientCount: 1,
    },
    ...{ fromEmail: "Acme <noreply@acme.example>", templateId: "tmpl_hello", templateVersion: 1 },
    ...{ deliveries: [{ recipient: "c@far.example", status: "QUEUED" }], createdAt: /^\d{4}-\d\d-\d\dT[\d:.]+Z$/ },
  });
  t.match(timeline, [{ type: "QUEUED", recipient: "c@far.example", attempt: 0 }]);
  const key = keys.message("acme", ids[0] as string);
  const stored = JSON.parse((await service.runtime.redis.hget(key, "json")) as string);
  await service.runtime.redis.hset(key, "json", JSON.stringify({ ...stored, origin: "api" }));
  const earlier = (await owner.get(`${root}/messages/${ids[0]}`)).body.message;
  t.same(earlier, message, "one of an earlier version has an origin");
  const other = await makeSending(service, "other");
  t.match((await other.owner.get(`/v2/handles/other/email/messages/${ids[0]}`)).body, { code: "message_not_found" });
});

t.test("templates keep their versions", async (t) => {
  const service = await startMailing(t, nowhere);
  const { owner, root, send } = await makeSending(service);
  const put = async (body: object) =>
    (await owner.put(`${root}/templates/tmpl_hello`).send(body).expect(200)).body.template;
  const id = await send(["ann@far.example"]);
  t.match(await put({ name: "Other" }), { activeVersion: 1, name: "Other", status: "ACTIVE" }, "a name is no content");
  t.match(await put({ subject: "Hello {{name}}" }), { activeVersion: 1 }, "nor is the same content");
  t.match(await put({ html: null, text: "Hi {{name}}" }), { activeVersion: 2, html: null, text: "Hi {{name}}" });
  t.match(await put({ status: "PAUSED" }), { activeVersion: 2, status: "PAUSED" });
  const version = async (n: number | string) => (await owner.get(`${root}/templates/tmpl_hello/versions/${n}`)).body;
  t.match(await version(1), { template: { activeVersion: 1, html: "<p>Hello {{name}}</p>", text: null } });
  t.match(await version(2), { template: { activeVersion: 2, text: "Hi {{name}}" } });
  for (const none of [3, 0, "x", "01", "1.0"])
    t.match(await version(none), { status: 404, code: "email_template_not_found" });
  t.match((await owner.get(`${root}/messages/${id}`)).body.message, { templateVersion: 1 });
  const preview = await owner
    .post(`${root}/templates/tmpl_hello/preview`)
    .send({ variables: { name: "A&B" } })
    .expect(200);
  t.same(preview.body, { subject: "Hello A&B", html: null, text: "Hi A&B" });
  t.match((await owner.post(`${root}/templates/tmpl_hello/preview`).send({})).body, {
    status: 400,
    code: "template_variables_missing",
  });
  t.match((await owner.get(`${root}/templates`)).body, {
    templates: [{ templateId: "tmpl_hello", handle: "acme" }],
    nextCursor: null,
  });
});

t.test("concurrent changes of a template both take effect, each with its own version", async (t) => {
  const service = await startMailing(t, nowhere);
  const { owner, root } = await makeSending(service);
  const texts = Array.from({ length: 8 }, (_, at) => `Text ${at}`);
  await Promise.all(texts.map((text) => owner.put(`${root}/templates/tmpl_hello`).send({ text }).expect(200)));
  const versions = await Promise.all(
    texts.map(async (_, at) => (await owner.get(`${root}/templates/tmpl_hello/versions/${at + 2}`)).body.template.text),
  );
  t.same(versions.sort(), texts);
});

t.test("only unsent deliveries can be cancelled", async (t) => {
  const service = await startMailing(t, nowhere);
  const { send, owner, root, read } = await makeSending(service);
  const id = await send(["a@far.example", "b@far.example"]);
  const { message } = (await owner.post(`${root}/messages/${id}/cancel`).expect(200)).body;
  t.match(message, { status: "CANCELLED", deliveries: [{ status: "CANCELLED" }, { status: "CANCELLED" }] });
  t.same(
    (await read(id)).timeline.map(({ type }) => type),
    ["QUEUED", "QUEUED", "CANCELLED", "CANCELLED"],
  );
  t.equal(await service.runtime.redis.zcard(keys.emailQueue("acme", 1)), 0);
  t.equal(await service.runtime.redis.hexists(keys.message("acme", id), "content"), 0, "what was to be sent is gone");
});

t.test("the service's own mails are accepted once by their key, and refusals are recorded", async (t) => {
  const service = await startMailing(t, nowhere);
  const { owner, root } = await makeSending(service);
  const mail = {
    handle: "acme",
    senderId: "sender_main",
    to: ["ann@far.example"],
    purpose: "PRODUCT_NOTIFICATION",
    templateId: "tmpl_hello",
    variables: { name: "Ann" },
  } as const;
  const all = await Promise.all(
    Array.from({ length: 8 }, () => acceptMessage(service.runtime, { ...mail, key: "rule-1-lead-1" })),
  );
  t.equal(new Set(all.map(({ message }) => message.messageId)).size, 1);
  const denied = async (more: object, code: string) => {
    const { message } = await acceptMessage(service.runtime, { ...mail, ...more });
    t.match(message, { status: "DENIED", deliveries: [{ status: "DENIED" }] });
    const { timeline } = (await owner.get(`${root}/messages/${message.messageId}`)).body;
    t.match(timeline, [{ type: "DENIED", reason: code }], code);
  };
  await denied({ senderId: "sender_none" }, "sender_profile_not_found");
  await denied({ templateId: "tmpl_none" }, "email_template_not_found");
  await denied({ variables: {} }, "template_variables_missing");
  await denied({ denied: 'the "rule" is off' }, 'the "rule" is off');
  await owner.post(`${root}/suppressions`).send({ email: "gone@far.example" }).expect(201);
  await denied({ to: ["gone@far.example"] }, "email_recipient_suppressed");
  const both = await acceptMessage(service.runtime, { ...mail, to: ["gone@far.example", "ann@far.example"] });
  t.match(
    both.message,
    { status: "QUEUED", deliveries: [{ status: "DENIED" }, { status: "QUEUED" }] },
    "one suppressed guest keeps nobody else from the mail",
  );
  await t.rejects(acceptMessage(service.runtime, { ...mail, to: ["a@far.example, b@far.example"] }), {
    code: "invalid_request",
  });
});

t.test("a deactivated handle sends nothing", async (t) => {
  const service = await startMailing(t, nowhere);
  const { ask } = await makeSending(service);
  await service.runtime.redis.hset(keys.handle("acme"), "status", "INACTIVE");
  t.match((await ask()).body, { status: 403, code: "forbidden" });
});
