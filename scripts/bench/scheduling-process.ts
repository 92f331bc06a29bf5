import { createServer } from "node:http";
import process from "node:process";
import Koa, { type Context } from "koa";
import { koaBody } from "koa-body";
import { openRuntime } from "../../core/open.ts";
import { readEnv } from "../../core/platform/env.ts";
import { Fail } from "../../core/platform/errors.ts";
import type { Runtime } from "../../core/platform/runtime.ts";
import { createBooking } from "../../core/scheduling/reservations.ts";
import { scripts } from "../../core/store/scripts.ts";

/** One process of the scheduling bench: `random` attempts at slots, `core` bookings or their bare `script`, or `bare` Koa. */
const [role = "", ...words] = process.argv.slice(2);
const env = readEnv({ ...process.env, LOG_LEVEL: "silent" });
const runtime = await openRuntime(env);
const minute = 60_000;
/** Length of the slots that are booked in sequence. */
const length = 30 * minute;
const attendee = { name: "Ada Lovelace", email: "ada@example.com" };

if (role === "random") await random(runtime, Number(words[0]), Number(words[1]));
if (role === "core") await core(runtime, Number(words[0]), Number(words[1]));
if (role === "script") await bareScript(runtime, Number(words[0]), Number(words[1]));
if (role === "bare") bare(runtime, Number(words[0]));

/** Attempts at random slots of the four event types, 24 at a time; counts the outcomes. */
async function random(runtime: Runtime, seed: number, attempts: number): Promise<void> {
  const types = [15, 30, 60, 100].map((minutes) => ({ slug: `m${minutes}`, minutes }));
  const tomorrow = Math.ceil(Date.now() / 86_400_000) * 86_400_000 + 86_400_000;
  const told: Record<string, number> = {};
  let state = seed;
  const roll = (limit: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
  let left = attempts;
  const lane = async (): Promise<void> => {
    while (left-- > 0) {
      const { slug, minutes } = types[roll(types.length)] as (typeof types)[number];
      const word = await attempt(runtime, slug, tomorrow + roll(10 * 288) * 5 * minute, minutes);
      told[word] = (told[word] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: 24 }, lane));
  await finish(told);
}

/** Distinct slots from a first one on, 32 at a time: bookings per second. */
async function core(runtime: Runtime, first: number, count: number): Promise<void> {
  await inFlight(count, "ACCEPTED", (at) => attempt(runtime, "half", first + at * length, 30));
}

/** The same with the script alone, on a booking's input. */
async function bareScript(runtime: Runtime, first: number, count: number): Promise<void> {
  const template = JSON.parse(process.env.BENCH_SCRIPT as string) as Template;
  await inFlight(count, "written", async (at) => {
    const [word] = await rewrite(runtime, retimed(template, first + at * length));
    return word;
  });
}

/** Koa and the script alone. */
function bare(runtime: Runtime, port: number): void {
  const template = JSON.parse(process.env.BENCH_SCRIPT as string) as Template;
  const app = new Koa();
  app.use(koaBody());
  app.use(async (ctx: Context) => {
    const { slot } = ctx.request.body as { slot: { start: string } };
    const [names, values] = retimed(template, Date.parse(slot.start));
    const [word] = await rewrite(runtime, [names, values]);
    ctx.status = word === "written" ? 201 : 409;
    ctx.body = values[1];
  });
  createServer(app.callback()).listen(port, "127.0.0.1", () => process.stdout.write("bare.ready\n"));
}

/** Runs the script as it was recorded, which Redis knows since then: its keys, the JSON of its input, then the booking's. */
function rewrite({ redis }: Runtime, [names, values]: [string[], string[]]): Promise<[string]> {
  return redis.evalsha(scripts.writeBooking.sha, names.length, ...names, ...values) as Promise<[string]>;
}

interface Template {
  names: string[];
  values: string[];
  uid: string;
  start: number;
}

/** The arguments of the template's booking, moved to another time. */
function retimed(template: Template, start: number): [string[], string[]] {
  const uid = runtime.id("");
  const times = [0, length].map((more) => [template.start + more, start + more] as const);
  const replaced = (text: string): string => {
    let next = text.replaceAll(template.uid, uid);
    for (const [before, after] of times)
      next = next
        .replaceAll(String(before), String(after))
        .replaceAll(new Date(before).toISOString(), new Date(after).toISOString());
    return next;
  };
  return [template.names.map(replaced), template.values.map(replaced)];
}

/** Acts that many times, 32 at a time; each must come out as expected. */
async function inFlight(count: number, expected: string, act: (at: number) => Promise<string>): Promise<void> {
  const begun = performance.now();
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) {
      const came = await act(next++);
      if (came !== expected) throw new Error(`A booking came out as ${came}.`);
    }
  };
  await Promise.all(Array.from({ length: 32 }, lane));
  await finish({ perSecond: (count * 1000) / (performance.now() - begun) });
}

async function attempt(runtime: Runtime, eventSlug: string, start: number, minutes: number): Promise<string> {
  const slot = { start: new Date(start).toISOString(), end: new Date(start + minutes * minute).toISOString() };
  const input = { handle: "acme", eventSlug, attendee, slot, answers: {}, guests: [] };
  try {
    return (await createBooking(runtime, input, { requestId: "bench", network: "192.0.2.1" })).status;
  } catch (error) {
    return error instanceof Fail ? error.code : String(error);
  }
}

async function finish(result: Record<string, number>): Promise<void> {
  await new Promise<void>((resolve) => process.send?.(result, () => resolve()));
  await runtime.close();
  process.exit(0);
}
