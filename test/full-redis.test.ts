import type { Response as Answer } from "supertest";
import t, { type Test as TapTest } from "tap";
import { writeReading } from "../core/scheduling/busy-objects.ts";
import { keys } from "../core/store/keys.ts";
import { job } from "../core/store/outbox.ts";
import { mastersOf } from "../core/store/redis.ts";
import { startMailing } from "../fixtures/email.ts";
import { fuzz } from "../fixtures/fuzz.ts";
import { startFuzzed } from "../fixtures/fuzzed-service.ts";
import { live, openTown } from "../fixtures/mixed-life.ts";
import { keyNames, startRedis } from "../fixtures/redis.ts";
import { eventually, type Service, startService } from "../fixtures/service.ts";
import { startMailServer } from "../fixtures/smtp.ts";

/** Makes Redis refuse each write that may need memory. */
async function fill(runtime: Service["runtime"]): Promise<void> {
  await limit(runtime, "1");
}

async function limit({ redis }: Service["runtime"], bytes: string): Promise<void> {
  await Promise.all(mastersOf(redis).map((server) => server.config("SET", "maxmemory", bytes)));
}

t.test("while Redis is full no route answers 500, and a refused write says when to come again", async (t) => {
  const target = await startFuzzed(t);
  const seen = new Map();
  t.same((await fuzz(target, { cases: 2000, seed: 2, seen })).unavailable, []);
  await fill(target.runtime);
  const { faults, unavailable } = await fuzz(target, { cases: 2000, seed: 3, seen, isFull: true });
  t.same(faults, []);
  t.ok(unavailable.length > 20, `${unavailable.length} routes`);
});

t.test("while Redis is full every noun refuses new things with 503 and Retry-After", async (t) => {
  const redis = await startRedis();
  t.teardown(() => redis.stop());
  const town = await openTown(t, redis, { LOGIN_BUILTIN: "1" });
  const { bookingUid, leadId } = await live(town, "acme");
  const { visitor, runtime, as } = town.service;
  const owner = await as("user_acme");
  const root = "/v2/handles/acme";
  const talk = "/v2/public/scheduling/acme/talk";
  const read = async (path: string) => (await owner.get(`${root}/${path}`).expect(200)).body;
  const { rules } = await read("campaigns/cmp_spring/email-rules");
  const { documents } = await read("knowledge/documents");
  const { eventTypes } = await read("scheduling/event-types");
  const { webhooks } = await read("scheduling/webhooks");
  const hook = `scheduling/webhooks/${webhooks[0].webhookId}`;
  const { deliveries } = await read(`${hook}/deliveries`);
  const { slots } = (await visitor.get(`${talk}/slots?start=${inDays(5)}&end=${inDays(6)}`).expect(200)).body;
  const slot = { start: slots[0].start, end: slots[0].end };
  const attendee = { name: "Ann", email: "full@far.example" };
  const mail = {
    senderId: "sender_main",
    purpose: "TRANSACTIONAL_API",
    templateId: "tmpl_hello",
    variables: { name: "A" },
  };
  const rule = { trigger: "LEAD_CAPTURED", templateId: "tmpl_hello", senderId: "sender_main" };
  const document = { title: "More", content: "More", containerTags: ["strategy"] };
  await fill(runtime);
  const refused: [string, object][] = [
    ["post pages", { pageSlug: "full", title: "Full", content: "<p>Full</p>" }],
    ["put pages/index", { title: "Full" }],
    ["post knowledge/documents", document],
    [`put knowledge/documents/${documents[0].documentId}`, { title: "Full" }],
    ["post agent/strategy/retrieve", { query: "money back" }],
    ["post campaigns", { campaignId: "cmp_full", name: "Full" }],
    ["post campaigns/cmp_spring/email-rules", { ...rule, variableMappings: { name: "email" } }],
    [`put campaigns/cmp_spring/email-rules/${rules[0].ruleId}`, { enabled: false }],
    ["post conversions", { leadId, campaignId: "cmp_spring" }],
    ["put email/senders/sender_main", { domain: "acme.example", localPart: "hello", purposes: ["CALENDAR"] }],
    ["post email/templates", { templateId: "tmpl_full", name: "Full", subject: "Full", html: "<p>Full</p>" }],
    ["put email/templates/tmpl_hello", { subject: "Full {{name}}" }],
    ["post email/messages", { ...mail, to: ["full@far.example"], consentAttestation: true }],
    ["post email/suppressions", { email: "full@far.example" }],
    ["post scheduling/schedules", { timeZone: "UTC", weeklyAvailability: [] }],
    ["post scheduling/event-types", { slug: "full", title: "Full", durationMinutes: 30 }],
    [`put scheduling/event-types/${eventTypes[0].eventTypeId}`, { title: "Full" }],
    [`post scheduling/bookings/${bookingUid}/sync`, {}],
    ["post scheduling/webhooks", { url: town.hook }],
    [`post ${hook}/rotate-secret`, {}],
    [`post ${hook}/test`, {}],
    [`post ${hook}/deliveries/${deliveries[0].deliveryId}/redeliver`, {}],
  ];
  const anonymous: [string, object][] = [
    ["/v2/public/handles/acme/leads", { email: "full@far.example", pageSlug: "index" }],
    ["/v2/public/pages/acme/index/agentic-question", { question: "Refunds?" }],
    [
      "/v2/public/pages/acme/index/agentic-chat",
      { messages: [{ role: "user", parts: [{ type: "text", text: "Hi" }] }] },
    ],
    [`${talk}/bookings`, { attendee, slot }],
    ["/oauth/assistant/desktop/start", { deviceProofChallenge: "c".repeat(43), deviceName: "Laptop" }],
    ["/login", { email: "user_acme@example.com" }],
  ];
  for (const [line, body] of refused) {
    const [method, path] = line.split(" ") as ["post" | "put", string];
    isRefused(t, line, await owner[method](`${root}/${path}`).send(body));
  }
  isRefused(t, "tokens", await owner.post("/v2/account/tokens").send({ name: "Full", scopes: ["agent.pages.read"] }));
  isRefused(t, "domains", await owner.post("/v2/account/domains").send({ domain: "full.example", handle: "acme" }));
  for (const [path, body] of anonymous) isRefused(t, path, await visitor.post(path).send(body));
  await owner.get(`${root}/pages`).expect(200);
  await visitor.get("/p/acme/index").expect(200);
});

t.test("workers pause while Redis refuses, and then continue", async (t) => {
  const { runtime, startWorkers } = await startService(t);
  await startWorkers(["knowledge"]);
  const due = Array.from({ length: 20 }, (_, count) =>
    job("knowledge.index", `job-${count}`, { handle: "acme", documentId: `doc_${count}` }, { delay: 500 }),
  );
  await runtime.queues.later(...due);
  let refusals = 0;
  runtime.log.warn = () => void refusals++;
  await fill(runtime);
  await new Promise((resolve) => setTimeout(resolve, 4000));
  t.ok(refusals > 0 && refusals < 30, `${refusals} refusals were logged in 4 s`);
  await limit(runtime, "0");
  const counts = () => runtime.queues.queue("knowledge").getJobCounts("delayed", "waiting", "active");
  await eventually(async () => Object.values(await counts()).every((count) => count === 0), 10_000);
});

t.test("an outage of Redis is logged once by the dispatcher of mails", async (t) => {
  const { runtime, startWorkers } = await startMailing(t, (await startMailServer(t)).url);
  const logged: string[] = [];
  t.intercept(runtime.log, "warn", { value: (_fields: object, event: string) => void logged.push(event) });
  const outages = () => logged.filter((event) => event === "email.dispatch.redis_unavailable").length;
  await startWorkers(["email"]);
  for (const outage of [1, 2]) {
    await fill(runtime);
    await eventually(() => outages() === outage);
    await new Promise((resolve) => setTimeout(resolve, 1000));
    t.equal(outages(), outage);
    await limit(runtime, "0");
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
});

t.test("a calendar that doesn't fit gives its memory back at once", async (t) => {
  const { runtime } = await startService(t);
  const { redis } = runtime;
  const sizes = mastersOf(redis).map(async (server) => /used_memory:(\d+)/.exec(await server.info("memory"))?.[1]);
  const room = 4 * 1_048_576;
  await limit(runtime, String(Math.max(...(await Promise.all(sizes)).map(Number)) + room));
  const busy = [{ uid: "u".repeat(1000), from: 0, to: 1 }];
  const changed = Array.from({ length: 20_000 }, (_, at) => ({ objectId: `o${at}`, tag: "", busy }));
  const reading = { mark: null, from: 0, to: 1, zone: "UTC", state: "" };
  const answer = { mark: null, isWhole: true, changed, removed: [] };
  const key = keys.calendarObjects("acme", "calendar");
  await t.rejects(writeReading(runtime, "acme", { key, last: "", answer, reading }), /EXECABORT/);
  t.same(await keyNames(redis, "calendar-*"), []);
  // Valkey frees it in the background.
  await eventually(() => redis.set("news", "x").catch(() => undefined));
  await limit(runtime, "0");
});

function isRefused(t: TapTest, line: string, { status, headers, text }: Answer): void {
  t.same([status, Number(headers["retry-after"]) > 0], [503, true], `${line}: ${status} ${text.slice(0, 200)}`);
}

function inDays(days: number): string {
  return new Date(Date.now() + days * 86_400_000).toISOString();
}
