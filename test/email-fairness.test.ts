import { getEventListeners } from "node:events";
import t from "tap";
import { dispatchMail } from "../core/email/dispatch.ts";
import { mailQueue, park, scheduleHandle } from "../core/email/mail-queues.ts";
import { keys } from "../core/store/keys.ts";
import { fillQueue, makeSending, type Sending, startMailing } from "../fixtures/email.ts";
import { eventually, type Service } from "../fixtures/service.ts";
import { startMailServer } from "../fixtures/smtp.ts";

t.test("the long queue of one handle does not delay another's single mail", async (t) => {
  const server = await startMailServer(t);
  server.delay = 5;
  const service = await startMailing(t, server.url);
  const [big, small] = [await makeSending(service, "big"), await makeSending(service, "small")];
  await fillQueue(service, big, 2000);
  await service.startWorkers(["email"]);
  await eventually(() => server.mails.length > 100);
  const id = await small.send(["one@far.example"]);
  const before = server.mails.length;
  await small.until(id, "SENT");
  const place = server.mails.findIndex(({ to }) => to[0] === "one@far.example");
  t.ok(place - before < 100, `${place - before} mails of the other one came between`);
  t.ok(server.mails.length < 1500, "whose queue is still long");
});

t.test("a code goes before everything else, of its own handle too", async (t) => {
  const server = await startMailServer(t);
  server.delay = 5;
  const service = await startMailing(t, server.url);
  const all = [await makeSending(service, "a"), await makeSending(service, "b"), await makeSending(service, "c")];
  for (const sending of all) await fillQueue(service, sending, 400);
  await service.startWorkers(["email"]);
  await eventually(() => server.mails.length > 50);
  const [a] = all as [Sending];
  const id = await a.send(["code@far.example"], { purpose: "LEAD_VERIFICATION" });
  const before = server.mails.length;
  await a.until(id, "SENT");
  const place = server.mails.findIndex(({ to }) => to[0] === "code@far.example");
  t.ok(place - before < 60, `${place - before} others came between`);
});

t.test("within a handle, transactional mails precede notifications", async (t) => {
  const server = await startMailServer(t);
  const service = await startMailing(t, `${server.url}?maxConnections=1`);
  const acme = await makeSending(service);
  await acme.send(["news@far.example"], { purpose: "PRODUCT_NOTIFICATION" });
  await acme.send(["receipt@far.example"]);
  const last = await acme.send(["code@far.example"], { purpose: "LEAD_VERIFICATION" });
  await service.startWorkers(["email"]);
  await acme.until(last, "SENT");
  await eventually(() => server.mails.length === 3);
  t.same(
    server.mails.map(({ to }) => to[0]),
    ["code@far.example", "receipt@far.example", "news@far.example"],
  );
});

t.test("hanging mails of one handle delay no other handle", async (t) => {
  const server = await startMailServer(t, {
    onRcptTo: ({ address }, _session, done) => {
      if (!address.startsWith("slow")) done();
    },
  });
  const service = await startMailing(t, `${server.url}?socketTimeout=4000`);
  const [slow, quick] = [await makeSending(service, "slow"), await makeSending(service, "quick")];
  await fillQueue(service, slow, 50);
  await service.startWorkers(["email"]);
  await eventually(async () => (await service.runtime.redis.zcard(keys.emailLeases("slow"))) >= 8);
  const id = await quick.send(["one@far.example"]);
  await quick.until(id, "SENT");
  const { message } = await quick.read(id);
  t.match(message.deliveries, [{ status: "SENT" }]);
  t.same(
    server.mails.map(({ to }) => to[0]),
    ["one@far.example"],
    "while the slow ones hang",
  );
});

/** Makes the next attempt at a message of acme due now. */
async function makeDue({ runtime: { redis } }: Service, messageId: string): Promise<void> {
  await redis.zadd(keys.emailQueue("acme", 1), 1, `${messageId}:0`);
  await redis.zadd(keys.emailLanes("normal"), 1, "acme");
}

t.test("a damaged message waits alone to be restored, and is logged by its key, without its content", async (t) => {
  const mail = await startMailServer(t);
  const service = await startMailing(t, mail.url);
  const { redis } = service.runtime;
  const [acme, beta] = [await makeSending(service, "acme"), await makeSending(service, "beta")];
  const messageId = await acme.send(["damaged@far.example"]);
  const key = keys.message("acme", messageId);
  const copy = await redis.dumpBuffer(key);
  await redis.hset(key, "json", "{damaged@far.example");
  for (const { send } of [acme, acme, beta]) await send(["good@far.example"]);
  const logged: object[] = [];
  t.intercept(service.runtime.log, "error", { value: (fields: object) => void logged.push(fields) });
  const stopping = new AbortController();
  const dispatching = dispatchMail(service.runtime, stopping.signal);
  await eventually(() => mail.mails.length === 3, 14_000);
  t.equal(await redis.hget(key, "status"), "DEFERRED");
  t.match(logged, [{ handle: "acme", step: "read", error: `The record ${key} is no JSON.` }]);
  t.equal(logged.length, 1);
  const due = async () => Number(await redis.zscore(keys.emailQueue("acme", 1), `${messageId}:0`)) - Date.now();
  t.ok((await due()) > 3_500_000 && (await due()) <= 3_600_000, "an hour later");
  await redis.restore(key, 0, copy, "REPLACE");
  await makeDue(service, messageId);
  await eventually(() => mail.mails.length === 4);
  await eventually(async () => (await redis.hget(key, "status")) === "SENT");
  stopping.abort();
  await dispatching;
});

t.test("a message that stays damaged fails after a day", async (t) => {
  const mail = await startMailServer(t);
  const service = await startMailing(t, mail.url, { workers: ["email"] });
  const { redis } = service.runtime;
  const { send } = await makeSending(service);
  mail.refuseRecipient = () => ({ code: 451, words: "4.3.0 later" });
  const messageId = await send(["damaged@far.example"]);
  const key = keys.message("acme", messageId);
  await eventually(async () => (await redis.hget(key, "status")) === "DEFERRED");
  await redis.hset(key, "json", "{", "attempt:0", 23);
  await makeDue(service, messageId);
  await eventually(async () => (await redis.hget(key, "status")) === "FAILED");
  t.equal(await redis.exists(keys.emailQueue("acme", 1)), 0);
});

t.test("attempts that end one by one leave one wait for the next poll", async (t) => {
  const server = await startMailServer(t, {
    onRcptTo: ({ address }, _session, done) => void setTimeout(done, 10 * Number(address.match(/\d+/)?.[0])),
  });
  const service = await startMailing(t, server.url);
  const sending = await makeSending(service);
  await fillQueue(service, sending, 20);
  const stop = new AbortController();
  const dispatching = dispatchMail(service.runtime, stop.signal);
  let most = 0;
  await eventually(() => {
    most = Math.max(most, getEventListeners(stop.signal, "abort").length);
    return server.mails.length === 20;
  });
  stop.abort();
  await dispatching;
  t.ok(most <= 1, `${most} waits at once`);
});

t.test("all workers together send as many mails as the server's limit allows", async (t) => {
  const server = await startMailServer(t);
  const service = await startMailing(t, `${server.url}?rateLimit=5&rateDelta=1000`);
  const sending = await makeSending(service);
  await fillQueue(service, sending, 12);
  const begun = Date.now();
  await Promise.all([service.startWorkers(["email"]), service.startWorkers(["email"])]);
  await eventually(() => server.mails.length === 12);
  const took = Date.now() - begun;
  t.ok(took >= 1_200, `five at once, then one in 200 ms: ${took} ms`);
});

t.test("turns go round by weight", async (t) => {
  const server = await startMailServer(t);
  server.delay = 10;
  const service = await startMailing(t, `${server.url}?maxConnections=4`);
  const [heavy, light] = [await makeSending(service, "heavy"), await makeSending(service, "light")];
  await service.runtime.redis.hset(keys.handle("heavy"), "mailWeight", "3");
  await fillQueue(service, heavy, 300);
  await fillQueue(service, light, 300);
  await service.startWorkers(["email"]);
  await eventually(() => server.mails.length >= 200);
  const share = server.mails.slice(0, 200).filter(({ to }) => to[0]?.startsWith("heavy")).length;
  t.ok(share > 100 && share < 190, `${share} of 200`);
});

t.test("a handle that rests is woken by mail that comes at any moment", async (t) => {
  const service = await startMailing(t, "smtp://127.0.0.1:9");
  const { redis } = service.runtime;
  const late = Date.now() + 900_000;
  await scheduleHandle(redis, "acme", 1);
  const { claimed } = await mailQueue(redis, "normal").claim(5);
  t.match(claimed, [{ lane: "acme" }]);
  // Mail arrives after the handle was found empty and before it rests.
  await redis.zadd(keys.emailQueue("acme", 1), Date.now(), "msg_x:0");
  await scheduleHandle(redis, "acme", 1);
  await park(redis, "normal", claimed[0] as (typeof claimed)[number], late);
  t.match(await mailQueue(redis, "normal").claim(5), { claimed: [{ lane: "acme" }], due: 1 });
  await redis.del(keys.emailQueue("acme", 1));
  const [turn] = (await mailQueue(redis, "normal").claim(5)).claimed;
  await park(redis, "normal", turn as (typeof claimed)[number], late);
  t.match(await mailQueue(redis, "normal").claim(5), { claimed: [], due: 0 }, "it rests where there is nothing");
  await scheduleHandle(redis, "acme", 1);
  t.match(await mailQueue(redis, "normal").claim(5), { claimed: [{ lane: "acme" }] });
});
