import type { ServerResponse } from "node:http";
import t, { type Test } from "tap";
import { eraseHandle } from "../core/operations/erasure.ts";
import { keys } from "../core/store/keys.ts";
import { makeSending, startMailing } from "../fixtures/email.ts";
import { startModelServer } from "../fixtures/model-server.ts";
import { agree, connectAccount } from "../fixtures/providers/consent.ts";
import { startGoogle } from "../fixtures/providers/google.ts";
import { startStripe } from "../fixtures/providers/stripe.ts";
import { keyNames, storedText } from "../fixtures/redis.ts";
import { eventually, type Service, startService } from "../fixtures/service.ts";
import { startMailServer } from "../fixtures/smtp.ts";
import { startReceiver } from "../fixtures/webhook-receiver.ts";
import type { Delivery } from "../schemas/webhooks.ts";

const root = "/v2/handles/acme";

/** A call to another server that the service has made, and that ends only when the test lets it. */
function gate(): { wait: () => Promise<void>; isReached: () => Promise<unknown>; open: () => void } {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  let reached = false;
  const wait = () => {
    reached = true;
    return opened;
  };
  return { wait, isReached: () => eventually(() => reached), open };
}

/** Holds the answers to calls of addresses like this one. */
function holdCalls({ runtime: { outbound } }: Service, like: RegExp): ReturnType<typeof gate> {
  const held = gate();
  for (const name of ["request", "check"] as const) {
    const call = outbound[name].bind(outbound) as (url: string, ...more: unknown[]) => Promise<unknown>;
    const answer = async (url: string, ...more: unknown[]) => {
      const given = await call(url, ...more);
      if (like.test(url)) await held.wait();
      return given;
    };
    Object.assign(outbound, { [name]: answer });
  }
  return held;
}

/** Erases the handle while a call waits, and lets that end. */
async function eraseDuring<T>(service: Service, held: ReturnType<typeof gate>, answer: PromiseLike<T>): Promise<T> {
  const answered = Promise.resolve(answer);
  await held.isReached();
  await eraseHandle(service.runtime, "acme");
  held.open();
  return answered;
}

/** Keys of the handle; visitors' buckets come and go. */
async function left({ runtime: { redis } }: Service): Promise<string[]> {
  return (await keyNames(redis, "*{acme}*")).filter((key) => !key.startsWith("bucket:"));
}

async function openDesk(t: Test) {
  const google = await startGoogle();
  t.teardown(() => google.close());
  const service = await startService(t, { env: google.env });
  return { google, service, owner: await service.handle("acme") };
}

t.test("an account that is connected while its handle is erased is not stored, and its grant is revoked", async (t) => {
  const { google, service, owner } = await openDesk(t);
  const oauth = `${root}/scheduling/integrations/google/oauth`;
  const { authorizeUrl } = (await owner.post(`${oauth}/start`).expect(200)).body;
  const { code, state } = Object.fromEntries((await agree(authorizeUrl)).searchParams);
  const held = holdCalls(service, /\/token$/);
  const answer = await eraseDuring(service, held, owner.post(`${oauth}/callback`).send({ code, state }));
  t.match(answer.body, { status: 403, code: "forbidden" });
  t.same(await left(service), []);
  t.equal(google.oauth.revoked.length, 1);
});

t.test("what an owner asks of another server writes nothing once the handle is erased", async (t) => {
  const { service, owner } = await openDesk(t);
  const credentialId = await connectAccount(owner, "google");
  const requests = [
    [/calendarList/, "scheduling/selected-calendars", { credentialId, busyCalendarIds: ["owner@gmail.test"] }],
    [/hook\.example/, "webhooks", { url: "http://127.0.0.1:9/hook.example" }],
  ] as const;
  const held = requests.map(([like]) => holdCalls(service, like));
  const answers = requests.map(([, path, body]) => owner.post(`${root}/${path}`).send(body).then());
  for (const one of held) await one.isReached();
  await eraseHandle(service.runtime, "acme");
  for (const one of held) one.open();
  t.same(
    (await Promise.all(answers)).map(({ status }) => status),
    [403, 403],
  );
  t.same(await left(service), []);
});

t.test("a purchase that the provider confirms after the erasure of its handle is not recorded", async (t) => {
  const stripe = await startStripe();
  t.teardown(() => stripe.close());
  const service = await startService(t, { env: { ...stripe.env, SMTP_URL: "smtp://127.0.0.1:9" } });
  const owner = await service.handle("acme");
  await connectAccount(owner, "stripe");
  const paid = { accessMode: "PAID", status: "PUBLISHED", price: { amountMinor: 1900, currency: "EUR" } };
  await owner
    .post(`${root}/pages`)
    .send({ pageSlug: "course", title: "Course", ...paid })
    .expect(201);
  const course = "/v2/public/pages/acme/course/checkout";
  await service.visitor.post(course).expect(200);
  const [session = ""] = stripe.sessions.keys();
  stripe.pay(session, "ann@far.example");
  const held = holdCalls(service, new RegExp(`/sessions/${session}$`));
  await eraseDuring(service, held, service.visitor.get(`${course}/return?session=${session}`));
  t.same(await left(service), []);
  t.same(await keyNames(service.runtime.redis, "page-access:*"), []);
});

t.test("an answer that ends after the erasure of its handle stores no form", async (t) => {
  const model = await startModelServer();
  t.teardown(() => model.close());
  const env = { PUBLIC_PAGE_AGENT_ENABLED: "1", OLLAMA_HOST: model.url, PUBLIC_PAGE_AGENT_MODEL_ID: "scripted:chat" };
  for (const name of ["write", "propose"] as const) {
    const service = await startService(t, { env, workers: ["generation"] });
    const owner = await service.handle("acme");
    const page = { pageSlug: "index", title: "Home", status: "PUBLISHED", content: "<p>The plan costs 12 EUR.</p>" };
    await owner.post(`${root}/pages`).send(page).expect(201);
    const held = gate();
    const writer = service.runtime.model.writer as unknown as Record<string, (...more: unknown[]) => unknown>;
    const call = writer[name]?.bind(writer);
    const slow = { propose: async (...more: unknown[]) => held.wait().then(() => call?.(...more)) };
    const slowly = {
      write: async function* (...more: unknown[]) {
        await held.wait();
        yield* call?.(...more) as AsyncIterable<unknown>;
      },
    };
    Object.assign(writer, name === "propose" ? slow : slowly);
    const messages = [{ role: "user", parts: [{ type: "text", text: "I want a quote, please call me" }] }];
    const chat = service.visitor.post("/v2/public/pages/acme/index/agentic-chat").send({ messages });
    const { text } = await eraseDuring(service, held, chat);
    t.match(text, '"type":"finish"');
    t.same(await left(service), [], name);
  }
});

t.test("a strategy retrieval that ends after the erasure of its handle is not stored", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const held = gate();
  const { index } = service.runtime;
  const search = index.search.bind(index);
  Object.assign(index, { search: (...more: Parameters<typeof search>) => held.wait().then(() => search(...more)) });
  const answer = owner.post(`${root}/agent/strategy/retrieve`).send({ query: "refunds" });
  t.match((await eraseDuring(service, held, answer)).body, { code: "forbidden" });
  t.same(await left(service), []);
});

t.test("a mail that is deferred after the erasure of its handle schedules nothing", async (t) => {
  const server = await startMailServer(t);
  const service = await startMailing(t, server.url, { workers: ["email"] });
  const { send } = await makeSending(service);
  const held = gate();
  server.refuseContent = () => held.wait().then(() => ({ code: 451, words: "4.3.0 later" }));
  await send(["ann@far.example"]);
  await eraseDuring(service, held, Promise.resolve());
  await eventually(
    () => server.mails.length === 0 && service.runtime.redis.zcard(keys.emailLanes("normal")).then((n) => n === 0),
  );
  await new Promise((resolve) => setTimeout(resolve, 500));
  t.same(await service.runtime.redis.zrange(keys.emailLanes("normal"), 0, "-1"), []);
  t.same(await left(service), []);
});

/** A handle with an endpoint that answers as told; its visitor's lead can be captured again and again, and be erased. */
async function openHook(t: Test, answer: (response: ServerResponse, body: string) => void) {
  const receiver = await startReceiver(t, (response) => answer(response, receiver.received.at(-1)?.body ?? ""));
  const service = await startService(t, {
    env: { PUBLIC_PAGE_AGENT_ENABLED: "1" },
    workers: ["webhooks", "campaigns"],
  });
  const owner = await service.handle("acme");
  const { webhook } = (await owner.post(`${root}/webhooks`).send({ url: receiver.url }).expect(201)).body;
  const hook = `${root}/webhooks/${webhook.webhookId}/deliveries`;
  const lead = { email: "ann@far.example", name: "Ann Marker", message: "Please call." };
  const capture = async (): Promise<string> =>
    (await service.visitor.post("/v2/public/handles/acme/leads").send(lead).expect(202)).body.lead.leadId;
  const erase = (leadId: string) => owner.delete(`${root}/leads/${leadId}`).expect(204);
  const deliveries = async (): Promise<Delivery[]> => (await owner.get(hook).expect(200)).body.deliveries;
  return { service, owner, hook, receiver, capture, erase, deliveries };
}

/** Every key whose name or content has these words. */
async function keysWith({ runtime: { redis } }: Service, words: RegExp): Promise<string[]> {
  const found: string[] = [];
  for (const key of await keyNames(redis, "*")) {
    const type = await redis.type(key);
    if (type !== "stream" && words.test(`${key} ${await storedText(redis, key)}`)) found.push(key);
  }
  return found;
}

t.test("what endpoints answered is erased with the person whom it quotes", async (t) => {
  const desk = await openHook(t, (response, body) => void response.writeHead(200).end(`got ${body}`));
  const leadId = await desk.capture();
  const [sent] = await eventually(async () => {
    const all = await desk.deliveries();
    return all[0]?.status === "SUCCEEDED" && all;
  });
  await desk.owner.post(`${desk.hook}/${sent?.deliveryId}/redeliver`).expect(202);
  const both = await eventually(async () => {
    const all = await desk.deliveries();
    return all.every(({ status }) => status === "SUCCEEDED") && all.length === 2 && all;
  });
  for (const { attempts } of both) t.match(attempts[0]?.responseSnippet, /^got .*Ann Marker/);
  await desk.erase(leadId);
  t.same(await keysWith(desk.service, /ann@far|Ann Marker|Please call/i), []);
  const left = await desk.deliveries();
  t.same(
    left.map(({ status }) => status),
    ["SUCCEEDED", "SUCCEEDED"],
  );
  t.same(
    left.map(({ attempts }) => attempts[0]?.responseSnippet),
    ["", ""],
  );
});

t.test(
  "an answer that an earlier version stored with its delivery stays after a retry, and is erased too",
  async (t) => {
    const codes = [500, 200];
    const desk = await openHook(
      t,
      (response, body) => void response.writeHead(codes.shift() ?? 200).end(`got ${body}`),
    );
    const leadId = await desk.capture();
    const [sent] = await eventually(async () => {
      const all = await desk.deliveries();
      return all[0]?.attempts.length === 1 && all;
    });
    const { redis } = desk.service.runtime;
    const key = keys.webhookDelivery("acme", sent?.deliveryId ?? "");
    const stored = JSON.parse((await redis.get(key)) as string);
    await redis.set(key, JSON.stringify({ ...stored, attempts: sent?.attempts }), "KEEPTTL");
    await redis.del(keys.webhookAnswers("acme", stored.eventId));
    await eventually(async () => (await desk.deliveries())[0]?.status === "SUCCEEDED", 14_000);
    const [retried] = await desk.deliveries();
    t.match(retried?.attempts, [{ responseSnippet: /^got .*Ann Marker/ }, { responseSnippet: /^got .*Ann Marker/ }]);
    await desk.erase(leadId);
    t.same(await keysWith(desk.service, /ann@far|Ann Marker/i), []);
  },
);

t.test("an answer that comes after the erasure of its person is not stored", async (t) => {
  const held = gate();
  const desk = await openHook(t, (response, body) => void held.wait().then(() => response.writeHead(200).end(body)));
  const leadId = await desk.capture();
  await held.isReached();
  await desk.erase(leadId);
  held.open();
  await eventually(async () => (await desk.deliveries())[0]?.status === "SUCCEEDED");
  t.same(await keysWith(desk.service, /ann@far|Ann Marker/i), []);
});

t.test("an event that waits for an earlier one is not sent once its person is erased", async (t) => {
  const held = gate();
  const desk = await openHook(t, (response) => void held.wait().then(() => response.writeHead(204).end()));
  const leadId = await desk.capture();
  await held.isReached();
  await desk.capture();
  // The sender takes it, and holds it back.
  await eventually(async () => (await desk.deliveries()).length === 2);
  await new Promise((resolve) => setTimeout(resolve, 2500));
  await desk.erase(leadId);
  held.open();
  await eventually(async () => (await desk.deliveries()).every(({ status }) => status !== "PENDING"));
  t.same(
    (await desk.deliveries()).map(({ status }) => status),
    ["FAILED", "SUCCEEDED"],
  );
  t.equal(desk.receiver.received.length, 1);
});
