import type { ChildProcess } from "node:child_process";
import process from "node:process";
import { createHandle } from "../../core/account/handles.ts";
import { sendJob } from "../../core/campaigns/delayed-sends.ts";
import { readEnv } from "../../core/platform/env.ts";
import { openRuntime } from "../../core/open.ts";
import type { Job, Runtime } from "../../core/platform/runtime.ts";
import { createEventType } from "../../core/scheduling/event-types.ts";
import { createBooking } from "../../core/scheduling/reservations.ts";
import { putSchedule } from "../../core/scheduling/schedules.ts";
import { startRedis } from "../../fixtures/redis.ts";
import { endChild, measureRelay, openRelayStage, type RelayRow, warmUp } from "./relay.ts";

const rounds = Number(process.env.BENCH_ROUNDS ?? 2);
const minute = 60_000;
const day = 1440 * minute;

/** Growth of the service: delay with streams, bookings with owners, memory with delayed jobs. Each row has a plot. */
export async function bench(): Promise<RelayRow[]> {
  return [await streams(), ...(await stored(bookings)), ...(await stored(delayedJobs))];
}

/** Delay that the relay adds at 10 chunks a second, with more and more streams. */
async function streams(): Promise<RelayRow> {
  const redis = await startRedis();
  const children: ChildProcess[] = [];
  try {
    const stage = await openRelayStage(redis.url, children);
    await warmUp(stage);
    const [p50, p99]: [number, number][][] = [[], []];
    for (const count of [50, 100, 200, 400, 800]) {
      const size = { streams: count, rate: 10, chunks: 30 };
      const direct = await measureRelay(stage.client, { ...size, path: "/", port: stage.model });
      const relay = await measureRelay(stage.client, { ...size, path: "/relay", port: stage.web });
      p50?.push([count, Math.max(0, relay.p50 - direct.p50)]);
      p99?.push([count, Math.max(0, relay.p99 - direct.p99)]);
    }
    const lines = { p50: p50 ?? [], p99: p99 ?? [] };
    const plot = { file: "streams", x: "streams of 10 chunks a second", y: "added delay, ms", lines };
    return { name: "relay 800 x 10/s, added p50", value: lines.p50.at(-1)?.[1] ?? 0, unit: "ms", plot };
  } finally {
    await Promise.all(children.map(endChild));
    await redis.stop();
  }
}

async function stored(run: (runtime: Runtime) => Promise<RelayRow>): Promise<RelayRow[]> {
  const redis = await startRedis();
  const runtime = await openRuntime(
    readEnv({ REDIS_URL: redis.url, LOG_LEVEL: "silent", PUBLIC_BOOKINGS_PER_ATTENDEE: "0" }),
  );
  try {
    return [await run(runtime)];
  } finally {
    await runtime.close();
    await redis.stop();
  }
}

/** Bookings a second of one process, spread over more and more owners. */
async function bookings(runtime: Runtime): Promise<RelayRow> {
  const line: [number, number][] = [];
  const next = new Map<string, number>();
  for (const owners of [1, 10, 100, 1000]) {
    for (let at = next.size; at < owners; at++) await furnish(runtime, `owner${at}`, next);
    const rates: number[] = [];
    for (let round = 0; round < rounds; round++)
      rates.push(await rateOf(runtime, [...next.keys()].slice(0, owners), next));
    line.push([owners, Math.max(...rates)]);
  }
  const plot = { file: "bookings", x: "owners", y: "bookings a second", lines: { "one process": line } };
  const [[, alone] = [0, 0]] = line;
  const value = (line.at(-1)?.[1] ?? 0) / alone;
  const baseline = `${Math.round(line.at(-1)?.[1] ?? 0)}/s, one owner ${Math.round(alone)}/s`;
  return { name: "bookings over 1,000 owners / at one owner", value, unit: "", baseline, plot };
}

async function furnish(runtime: Runtime, handle: string, next: Map<string, number>): Promise<void> {
  await createHandle(runtime, { handle, account: "bench", owner: "user", assistant: false });
  const weeklyAvailability = [0, 1, 2, 3, 4, 5, 6].map((of) => ({ day: of, startTime: "00:00", endTime: "24:00" }));
  await putSchedule(runtime, { handle, scheduleId: "all", timeZone: "UTC", overrides: [], weeklyAvailability });
  await createEventType(runtime, { ...half, handle } as Parameters<typeof createEventType>[1]);
  next.set(handle, Math.ceil(Date.now() / day) * day + day);
}

const half = {
  ...{ slug: "half", title: "Half an hour", description: "", durationMinutes: 30, status: "ACTIVE", hidden: false },
  ...{ confirmationRequired: false, minimumNoticeMinutes: 0, locations: [], bookingFields: [] },
  ...{ buffers: { beforeMinutes: 0, afterMinutes: 0 }, payment: { enabled: false } },
};

async function rateOf(runtime: Runtime, owners: string[], next: Map<string, number>): Promise<number> {
  const count = 3000;
  const begun = performance.now();
  let made = 0;
  const lane = async (): Promise<void> => {
    while (made < count) {
      const handle = owners[made++ % owners.length] as string;
      const start = next.get(handle) as number;
      next.set(handle, start + 30 * minute);
      const slot = { start: new Date(start).toISOString(), end: new Date(start + 30 * minute).toISOString() };
      const attendee = { name: "Ada Lovelace", email: "ada@example.com" };
      await createBooking(runtime, { handle, eventSlug: "half", attendee, slot, answers: {}, guests: [] }, asking);
    }
  };
  await Promise.all(Array.from({ length: 32 }, lane));
  return (count * 1000) / (performance.now() - begun);
}

const asking = { requestId: "bench" };

/** Redis's memory with more and more delayed jobs of a rule. */
async function delayedJobs(runtime: Runtime): Promise<RelayRow> {
  const empty = await usedMemory(runtime);
  const line: [number, number][] = [];
  let made = 0;
  for (const count of [1000, 10_000, 100_000]) {
    while (made < count) await runtime.queues.later(...Array.from({ length: 500 }, () => sendOf(runtime, made++)));
    line.push([count, ((await usedMemory(runtime)) - empty) / 1_048_576]);
  }
  const plot = { file: "delayed", x: "delayed jobs", y: "MB of Redis", lines: { jobs: line } };
  const value = ((line.at(-1)?.[1] ?? 0) * 1_048_576) / made;
  return { name: "Redis for a delayed job of a rule", value, unit: "bytes", bar: "<= 1024", plot };
}

function sendOf(runtime: Runtime, at: number): Job {
  const leadId = `lead_${String(at).padStart(22, "0")}`;
  const data = { handle: "acme", campaignId: "cmp_main", ruleId: "rule_0000000000000000000000", leadId };
  return sendJob(runtime, { data, due: runtime.now() + day + at });
}

async function usedMemory({ redis }: Runtime): Promise<number> {
  return Number(/^used_memory:(\d+)/m.exec(await redis.info("memory"))?.[1]);
}
