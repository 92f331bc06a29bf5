/**
 * The cost in Redis of a lead, a booking, a message, a document and an answer: stored bytes, and commands per visitor. `node --import tsx
 * scripts/bench/sizes.ts` prints one JSON object, on which docs/scale.md is based.
 */
import process from "node:process";
import type { Redis } from "ioredis";
import { makeSending, startMailing } from "../../fixtures/email.ts";
import { startRedis } from "../../fixtures/redis.ts";
import { eventually, type Service } from "../../fixtures/service.ts";
import { startMailServer } from "../../fixtures/smtp.ts";

/** The cost of one item of a kind. */
interface Cost {
  stays: number;
  goes: number;
  processorMs: number;
  commands: number;
}

type Life = Parameters<typeof startMailing>[0];

/** Commands of an idle service, or of this script. */
const idle = new Set(["info", "zrangebyscore", "bzpopmin", "xread", "ping"]);

const count = Number(process.argv[2] ?? 200);
const endings: (() => unknown)[] = [];
const life = { teardown: (end: () => unknown) => void endings.push(end) } as unknown as Life;

const server = await startRedis();
const mail = await startMailServer(life);
const env = {
  PUBLIC_PAGE_AGENT_ENABLED: "1",
  PUBLIC_PAGE_AGENT_BURST: "1000000",
  PUBLIC_LEADS_BURST: "1000000",
};
const service = await startMailing(life, mail.url, { env, redis: server, workers: true });
const { owner, root, send } = await makeSending(service);
const { visitor, runtime } = service;
const { redis } = runtime;
await prepare();

const words = "A sentence about repairs, prices and the hours of the workshop. ".repeat(12);
const documents = async (at: number): Promise<unknown> =>
  owner
    .post("/v2/handles/acme/knowledge/documents")
    .send({ title: `Note ${at}`, content: words })
    .expect(202);
const question = { question: "What does the small plan cost?" };
const rows: Record<string, Cost> = {
  "page view": await measured(async () => void (await visitor.get("/p/acme/index").expect(200))),
  "question answered": await measured(
    async () => void (await visitor.post("/v2/public/pages/acme/index/agentic-question").send(question).expect(200)),
  ),
  "lead with no mail": await measured(
    async (at) =>
      void (await visitor
        .post("/v2/public/handles/acme/leads")
        .send({ email: `p${at}@far.example` })
        .expect(202)),
  ),
  "lead with a rule's mail": await measured(async (at) => {
    if (at === -1) await addRule();
    const lead = { email: `r${at}@far.example`, campaignId: "cmp_spring" };
    await visitor.post("/v2/public/handles/acme/leads").send(lead).expect(202);
  }),
  "direct mail": await measured(async (at) => void (await send([`d${at}@far.example`]))),
  "slots asked": await measured(async () => void (await visitor.get(slotsOf(0)).expect(200))),
  "booking with its mail": await measured(book),
  "document of one chunk": await measured(documents),
};
process.stdout.write(`${JSON.stringify({ count, connections: await connections(redis), rows }, null, 2)}\n`);
for (const end of endings.reverse()) await end();
await server.stop();

async function prepare(): Promise<void> {
  const made = (path: string, body: object) => owner.post(`/v2/handles/acme/${path}`).send(body).expect(201);
  const content = "<p>The small plan costs 12 EUR a month.</p>";
  await made("pages", { pageSlug: "index", title: "Prices", status: "PUBLISHED", content });
  await made("campaigns", { campaignId: "cmp_spring", name: "Spring" });
  const always = [0, 1, 2, 3, 4, 5, 6].map((day) => ({ day, startTime: "00:00", endTime: "24:00" }));
  await made("scheduling/schedules", { scheduleId: "main", timeZone: "UTC", weeklyAvailability: always });
  await made("scheduling/event-types", { slug: "talk", title: "A talk", durationMinutes: 30 });
}

async function addRule(): Promise<void> {
  const rule = { trigger: "LEAD_CAPTURED", templateId: "tmpl_hello", senderId: "sender_main" };
  const body = { ...rule, variableMappings: { name: "email" } };
  await owner.post("/v2/handles/acme/campaigns/cmp_spring/email-rules").send(body).expect(201);
}

/**
 * Means over many: bytes of keys that stay, bytes of keys that expire within the hour, ms of Redis's CPU time, and commands, including
 * those in scripts, without those of an idle service.
 */
async function measured(one: (at: number) => Promise<unknown>): Promise<Cost> {
  await one(-1);
  await quiet(service);
  const [bytes, cpu, before] = [await held(redis), await processor(redis), await calls(redis)];
  for (let at = 0; at < count; at++) await one(at);
  await quiet(service);
  const [after, spent, then] = [await calls(redis), await processor(redis), await held(redis)];
  const counted = [...after].filter(([name]) => !idle.has(name));
  const commands = counted.reduce((sum, [name, n]) => sum + n - (before.get(name) ?? 0), 0);
  return {
    stays: Math.round((then.stays - bytes.stays) / count),
    goes: Math.round((then.goes - bytes.goes) / count),
    processorMs: Math.round(((spent - cpu) / count) * 100) / 100,
    commands: Math.round(commands / count),
  };
}

function slotsOf(days: number): string {
  const [from, to] = [days + 2, days + 9].map((day) => new Date(Date.now() + day * 86_400_000).toISOString());
  return `/v2/public/scheduling/acme/talk/slots?start=${from}&end=${to}`;
}

async function book(at: number): Promise<void> {
  const start = new Date(Math.ceil(Date.now() / 86_400_000) * 86_400_000 + 86_400_000 + (at + 1) * 1_800_000);
  const slot = { start: start.toISOString(), end: new Date(start.getTime() + 1_800_000).toISOString() };
  const body = { attendee: { name: "Ann", email: `b${at}@far.example` }, slot };
  await visitor.post("/v2/public/scheduling/acme/talk/bookings").send(body).expect(201);
}

/** Waits until no queue has work and no mail waits. */
async function quiet({ runtime }: Service): Promise<void> {
  await eventually(async () => {
    const text = (await visitor.get("/metrics").expect(200)).text;
    const busy = /^queue_jobs\{[^}]*state="(waiting|active|prioritized)"\} [1-9]/m.test(text);
    const { body } = await owner.get(`${root}/messages?limit=100`);
    return !busy && body.messages.every(({ status }: { status: string }) => !/QUEUED|SENDING/.test(status));
  }, 120_000);
  await runtime.queues.sweep(-1000);
  await new Promise((resolve) => setTimeout(resolve, 500));
}

/** Bytes of all keys by lifetime; BullMQ keeps a finished job for an hour, so its keys count as temporary. */
async function held(from: Redis): Promise<{ stays: number; goes: number }> {
  const sum = { stays: 0, goes: 0 };
  const names = await from.keys("*");
  await Promise.all(
    names.map(async (name) => {
      const [bytes, left] = await Promise.all([from.memory("USAGE", name, "SAMPLES", 0), from.pttl(name)]);
      const goes = name.startsWith("queue:") || (left > 0 && left <= 3_600_000);
      sum[goes ? "goes" : "stays"] += bytes ?? 0;
    }),
  );
  return sum;
}

/** Ms of CPU time that Redis has used. */
async function processor(from: Redis): Promise<number> {
  const info = await from.info("cpu");
  const seconds = [...info.matchAll(/^used_cpu_(?:sys|user):([\d.]+)/gm)].map(([, value]) => Number(value));
  return seconds.reduce((sum, one) => sum + one, 0) * 1000;
}

async function calls(from: Redis): Promise<Map<string, number>> {
  const stats = await from.info("commandstats");
  return new Map([...stats.matchAll(/^cmdstat_([\w|]+):calls=(\d+)/gm)].map(([, name = "", n]) => [name, Number(n)]));
}

async function connections(from: Redis): Promise<number> {
  return Number(/^connected_clients:(\d+)/m.exec(await from.info("clients"))?.[1]);
}
