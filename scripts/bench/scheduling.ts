import { Buffer } from "node:buffer";
import type { ChildProcess } from "node:child_process";
import process from "node:process";
import { createHandle } from "../../core/account/handles.ts";
import { openRuntime } from "../../core/open.ts";
import { readEnv } from "../../core/platform/env.ts";
import type { Runtime } from "../../core/platform/runtime.ts";
import { createEventType } from "../../core/scheduling/event-types.ts";
import { createBooking } from "../../core/scheduling/reservations.ts";
import { putSchedule } from "../../core/scheduling/schedules.ts";
import { writeBusy } from "../../core/scheduling/times.ts";
import { keys } from "../../core/store/keys.ts";
import { pipelined } from "../../core/store/redis.ts";
import { freePort } from "../../fixtures/ports.ts";
import { startRedis } from "../../fixtures/redis.ts";
import { type BenchRow, quantile } from "./figures.ts";
import { type Load, load } from "./loads.ts";
import { endProcess, messenger, program } from "./programs.ts";

const minute = 60_000;
const day = 86_400_000;
/** Length of the slots that are booked in sequence. */
const length = 30 * minute;
/** The midnight after tomorrow, UTC. */
const soon = Math.ceil(Date.now() / day) * day + day;
/** The best round counts, since other work only slows a side down. */
const rounds = Number(process.env.BENCH_ROUNDS ?? 3);
const attempts = Number(process.env.BENCH_ATTEMPTS ?? 40_000);
/** Visitors' limits that count but are never reached. */
const counted = {
  PUBLIC_BOOKINGS_RATE: "1000000",
  PUBLIC_BOOKINGS_BURST: "1000000",
  PUBLIC_BOOKINGS_PER_ATTENDEE: "1000000",
};

const unlimited = {
  PUBLIC_BOOKINGS_RATE: "0",
  PUBLIC_BOOKINGS_BURST: "0",
  PUBLIC_BOOKINGS_PER_ATTENDEE: "0",
};

const caller = { requestId: "bench", network: "192.0.2.1" };

/** The slots route, bookings next to their bare script, and races of several processes. */
export async function bench(): Promise<BenchRow[]> {
  const redis = await startRedis();
  const children: ChildProcess[] = [];
  try {
    const runtime = await openRuntime(readEnv({ REDIS_URL: redis.url, LOG_LEVEL: "silent", ...counted }));
    await furnish(runtime);
    const stage = { runtime, redisUrl: redis.url, children };
    const rows = [...(await slots(stage)), ...(await bookings(stage)), await limits(stage), ...(await races(stage))];
    await runtime.close();
    return rows;
  } finally {
    for (const child of children) await endProcess(child, "SIGKILL");
    await redis.stop();
  }
}

interface Stage {
  runtime: Runtime;
  redisUrl: string;
  children: ChildProcess[];
}

async function furnish(runtime: Runtime): Promise<void> {
  await createHandle(runtime, { handle: "acme", account: "acct_acme", owner: "user_1", assistant: true });
  const hours = (days: number[], rows: [string, string][]) =>
    days.flatMap((one) => rows.map(([startTime, endTime]) => ({ day: one, startTime, endTime })));
  const schedule = (scheduleId: string, timeZone: string, weeklyAvailability: ReturnType<typeof hours>) =>
    putSchedule(runtime, { handle: "acme", scheduleId, timeZone, weeklyAvailability, overrides: [] });
  const office: [string, string][] = [
    ["09:00", "12:00"],
    ["13:00", "17:00"],
  ];
  await schedule("office", "Europe/Berlin", hours([1, 2, 3, 4, 5], office));
  await schedule("always", "UTC", hours([0, 1, 2, 3, 4, 5, 6], [["00:00", "24:00"]]));
  await event(runtime, {
    slug: "office",
    scheduleId: "office",
    durationMinutes: 30,
    slotIntervalMinutes: 15,
    buffers: [5, 10],
  });
  await event(runtime, { slug: "half", scheduleId: "always", durationMinutes: 30, buffers: [0, 0] });
  const mixed = [
    [15, 0, 5],
    [30, 10, 0],
    [60, 0, 0],
    [100, 20, 20],
  ] as const;
  for (const [minutes, before, after] of mixed)
    await event(runtime, {
      slug: `m${minutes}`,
      scheduleId: "always",
      durationMinutes: minutes,
      slotIntervalMinutes: 5,
      buffers: [before, after],
    });
}

async function event(
  runtime: Runtime,
  given: {
    slug: string;
    scheduleId: string;
    durationMinutes: number;
    slotIntervalMinutes?: number;
    buffers: readonly [number, number];
  },
): Promise<void> {
  const [beforeMinutes, afterMinutes] = given.buffers;
  const plain = {
    description: "",
    hidden: false,
    status: "ACTIVE" as const,
    confirmationRequired: false,
    locations: [],
    bookingFields: [],
  };
  const more = { minimumNoticeMinutes: 0, payment: { enabled: false }, title: given.slug };
  await createEventType(runtime, {
    handle: "acme",
    ...plain,
    ...more,
    ...given,
    buffers: { beforeMinutes, afterMinutes },
  });
}

function someBusy(days: number): { from: number; to: number }[] {
  let state = 7;
  const roll = (limit: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
  const blocks = Array.from({ length: 400 }, () => {
    const from = soon + roll(days * 96) * 15 * minute;
    return { from, to: from + (15 + roll(6) * 15) * minute };
  });
  return blocks.sort((one, other) => one.from - other.from);
}

const path = "/v2/public/scheduling/acme/office/slots";

async function slots(stage: Stage): Promise<BenchRow[]> {
  await writeBusy(stage.runtime, "acme", { blocks: someBusy(60), source: "", readAt: Date.now() });
  const web = await freePort();
  await start(stage, "dist/api/server.js", { PORT: String(web) });
  const query = (shift: number) =>
    `${path}?start=${new Date(soon + shift).toISOString()}&end=${new Date(soon + 31 * day + shift).toISOString()}`;
  const answer = await fetch(`http://127.0.0.1:${web}${query(0)}`);
  const etag = answer.headers.get("etag") as string;
  const bytes = await answer.text();
  const bare = await freePort();
  const body = Buffer.from(bytes).toString("base64");
  const bodies = JSON.stringify([{ path, type: answer.headers.get("content-type"), body }]);
  await start(stage, "scripts/bench/bare-koa.ts", { BENCH_PORT: String(bare), BENCH_BODIES: bodies });
  let shift = 0;
  const same = { path: () => query(0) };
  // A new window each time, so that no response is cached; the busy blocks of a month may be.
  const other = { path: () => query(++shift) };
  const best = { bare: 0, cached: 0, coded: 0, uncached: 0, fresh: 0 };
  for (let round = 0; round <= rounds; round++) {
    best.bare = Math.max(best.bare, (await load(bare, same)).perSecond);
    best.cached = Math.max(best.cached, (await load(web, same)).perSecond);
    best.coded = Math.max(best.coded, (await load(web, { ...same, headers: { "accept-encoding": "br" } })).perSecond);
    best.uncached = Math.max(best.uncached, (await load(web, other)).perSecond);
    best.fresh = Math.max(best.fresh, (await load(web, { ...same, headers: { "if-none-match": etag } })).perSecond);
  }
  const halfLoads = { own: [] as number[], bare: [] as number[] };
  const half = { ...same, perSecond: best.cached / 2 };
  for (let round = 0; round < rounds; round++) {
    halfLoads.bare.push((await load(bare, half)).p99);
    halfLoads.own.push((await load(web, half)).p99);
  }
  const beside = (rate: number) => `${Math.round(rate)}/s, bare Koa ${Math.round(best.bare)}/s`;
  const rows = [
    {
      name: `slots of 31 days (${bytes.length} bytes), uncached / bare Koa`,
      value: best.uncached / best.bare,
      unit: "",
      bar: ">= 0.25",
      baseline: beside(best.uncached),
    },
    {
      name: "slots of 31 days, cached / bare Koa",
      value: best.cached / best.bare,
      unit: "",
      bar: ">= 0.6",
      baseline: beside(best.cached),
    },
    {
      name: "slots of 31 days, cached, in br as browsers read them / bare Koa",
      value: best.coded / best.bare,
      unit: "",
      bar: ">= 0.2",
      baseline: beside(best.coded),
    },
    {
      name: "slots not modified (304) / bare Koa",
      value: best.fresh / best.bare,
      unit: "",
      baseline: beside(best.fresh),
    },
    {
      name: "slots at half load, p99",
      value: quantile(halfLoads.own, 0.5),
      unit: "ms",
      bar: "<= 10",
      baseline: `${Math.round(half.perSecond)}/s, bare Koa ${quantile(halfLoads.bare, 0.5).toFixed(1)} ms`,
    },
  ];
  return [...rows, await withPast(stage, web, other)];
}

/** The effect of 100,000 past bookings. */
async function withPast({ runtime }: Stage, web: number, slots: Load): Promise<BenchRow> {
  const [before, after]: number[][] = [[], []];
  for (let round = 0; round < rounds; round++) before?.push((await load(web, { ...slots, lanes: 1 })).p50);
  const past = Array.from({ length: 100_000 }, (_, at) => Date.UTC(2020, 0, 1) + at * 30 * minute);
  for (let from = 0; from < past.length; from += 5000)
    await pipelined(runtime.redis, (pipeline) => {
      for (const at of past.slice(from, from + 5000))
        pipeline.zadd(keys.blocks("acme"), at, `${at}:${at + 30 * minute}:0:${at}:evt_past:uid${at}`);
    });
  await runtime.redis.incr(keys.timesVersion("acme"));
  for (let round = 0; round < rounds; round++) after?.push((await load(web, { ...slots, lanes: 1 })).p50);
  const [without, withAll] = [Math.min(...(before ?? [])), Math.min(...(after ?? []))];
  const baseline = `${without.toFixed(2)} ms and ${withAll.toFixed(2)} ms`;
  return {
    name: "slots, p50 with 100,000 bookings of the past / without",
    value: withAll / without,
    unit: "",
    bar: "<= 1.1",
    baseline,
  };
}

async function bookings(stage: Stage): Promise<BenchRow[]> {
  const template = await recorded(stage.runtime);
  const settings = { BENCH_SCRIPT: JSON.stringify(template) };
  const best = { core: 0, script: 0, web: 0, bare: 0 };
  const [web, bare] = [await freePort(), await freePort()];
  await start(stage, "dist/api/server.js", { PORT: String(web) });
  await start(stage, "scripts/bench/scheduling-process.ts", settings, ["bare", String(bare)]);
  let next = soon + 200 * day;
  const take = (slots: number) => {
    next += slots * length;
    return next - slots * length;
  };
  const count = 6000;
  const one = () => bookingAt(take(1));
  const inProcess = async (role: string) =>
    (await outcome(stage, settings, [role, String(take(count)), String(count)])).perSecond ?? 0;
  for (let round = 0; round < rounds; round++) {
    best.script = Math.max(best.script, await inProcess("script"));
    best.core = Math.max(best.core, await inProcess("core"));
    best.bare = Math.max(best.bare, (await load(bare, { path: () => "/", body: one })).perSecond);
    best.web = Math.max(best.web, (await load(web, { path: bookingsPath, body: one })).perSecond);
  }
  const beside = (rate: number, other: number, name: string) => `${Math.round(rate)}/s, ${name} ${Math.round(other)}/s`;
  return [
    {
      name: "bookings / their bare script",
      value: best.core / best.script,
      unit: "",
      bar: ">= 0.5",
      baseline: beside(best.core, best.script, "bare script"),
    },
    {
      name: "bookings over HTTP / bare Koa with the script",
      value: best.web / best.bare,
      unit: "",
      bar: ">= 0.25",
      baseline: beside(best.web, best.bare, "bare Koa"),
    },
  ];
}

/** The cost of visitors' limits: bookings of as many attendees over HTTP, with and without limits, in turns. */
async function limits(stage: Stage): Promise<BenchRow> {
  const [limited, open] = [await freePort(), await freePort()];
  await start(stage, "dist/api/server.js", { PORT: String(limited) });
  await start(stage, "dist/api/server.js", { PORT: String(open), ...unlimited });
  let taken = 0;
  const body = () => bookingAt(soon + 8000 * day + length * taken, `ada${taken++}@example.com`);
  const book = async (port: number) => (await load(port, { path: bookingsPath, body, ms: 500 })).perSecond;
  await book(limited);
  await book(open);
  const seen: { own: number; other: number }[] = [];
  for (let round = 0; round < 8 * rounds; round++) seen.push({ own: await book(limited), other: await book(open) });
  seen.sort((one, other) => one.own / one.other - other.own / other.other);
  const { own, other } = seen[seen.length >> 1] as (typeof seen)[0];
  return {
    name: "bookings over HTTP with visitors' limits / without",
    value: own / other,
    unit: "",
    bar: ">= 0.9",
    baseline: `${Math.round(own)}/s, without ${Math.round(other)}/s`,
  };
}

const bookingsPath = () => "/v2/public/scheduling/acme/half/bookings";

function bookingAt(start: number, email = "ada@example.com"): string {
  const slot = { start: new Date(start).toISOString(), end: new Date(start + length).toISOString() };
  return JSON.stringify({ attendee: { name: "Ada Lovelace", email }, slot });
}

/** The script's input for a booking. */
async function recorded(runtime: Runtime): Promise<{ names: string[]; values: string[]; uid: string; start: number }> {
  let seen: string[] = [];
  const recorder = new Proxy(runtime.redis, {
    get(redis, name) {
      const found = Reflect.get(redis, name);
      if (typeof found !== "function") return found;
      return (...args: unknown[]) => {
        if (name === "evalsha" && args.includes(keys.blocks("acme"))) seen = args.slice(2).map(String);
        return found.apply(redis, args);
      };
    },
  });
  const start = soon + 90 * day;
  const input = { handle: "acme", eventSlug: "half", answers: {}, guests: [], ...JSON.parse(bookingAt(start)) };
  const made = await createBooking({ ...runtime, redis: recorder }, input, caller);
  const names = seen.filter((word) => /^[a-z-]+:\{acme\}/.test(word));
  return { names, values: seen.slice(names.length), uid: made.bookingUid, start };
}

/** 2,000 attempts at one slot, and random attempts from four processes at four event types with mixed buffers. */
async function races(stage: Stage): Promise<BenchRow[]> {
  const { runtime } = stage;
  await writeBusy(runtime, "acme", { blocks: [], source: "", readAt: Date.now() });
  const at = soon + 80 * day;
  const input = { handle: "acme", eventSlug: "m30", answers: {}, guests: [], ...JSON.parse(bookingAt(at)) };
  const told = await Promise.allSettled(Array.from({ length: 2000 }, () => createBooking(runtime, input, caller)));
  const winners = told.filter(({ status }) => status === "fulfilled").length;
  const begun = performance.now();
  const seeds = [1, 2, 3, 4];
  const results = await Promise.all(
    seeds.map((seed) => outcome(stage, {}, ["random", String(seed), String(attempts / 4)])),
  );
  const seconds = (performance.now() - begun) / 1000;
  const sum = (name: string) => results.reduce((total, one) => total + (one[name] ?? 0), 0);
  const words = new Set(results.flatMap((one) => Object.keys(one)));
  const others = [...words].filter((word) => word !== "ACCEPTED" && word !== "scheduling_slot_unavailable");
  return [
    { name: "winners of 2,000 attempts at one slot", value: winners, unit: "", bar: "<= 1" },
    {
      name: `overlaps after ${attempts} attempts of four processes`,
      value: await overlaps(runtime),
      unit: "",
      bar: "<= 0",
      baseline: `${sum("ACCEPTED")} booked, ${Math.round(attempts / seconds)} attempts/s`,
    },
    {
      name: "losers that were told something else",
      value: others.reduce((total, word) => total + sum(word), 0),
      unit: "",
      bar: "<= 0",
      baseline: others.join(" "),
    },
  ];
}

async function overlaps({ redis }: Runtime): Promise<number> {
  const blocks = (await redis.zrange(keys.blocks("acme"), "0", "-1")).map((member) => member.split(":").map(Number));
  return blocks.filter(([from = 0], at) => at > 0 && from < (blocks[at - 1]?.[1] ?? 0)).length;
}

/** The result of a process of the bench. */
async function outcome(
  stage: Stage,
  settings: Record<string, string>,
  words: string[],
): Promise<Record<string, number>> {
  const env = { REDIS_URL: stage.redisUrl, ...counted, ...settings };
  const [child, result] = await messenger<Record<string, number>>(stage.children, "scheduling-process.ts", env, words);
  await endProcess(child);
  return result;
}

function start({ children, redisUrl }: Stage, path: string, settings: Record<string, string>, words: string[] = []) {
  return program(children, path, { REDIS_URL: redisUrl, ...counted, ...settings }, words);
}
