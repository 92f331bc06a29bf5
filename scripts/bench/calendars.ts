import { monitorEventLoopDelay } from "node:perf_hooks";
import process from "node:process";
import { createHandle } from "../../core/account/handles.ts";
import { openRuntime } from "../../core/open.ts";
import { readEnv } from "../../core/platform/env.ts";
import type { Runtime } from "../../core/platform/runtime.ts";
import { refreshBusy } from "../../core/scheduling/busy-calendars.ts";
import { connectCaldav, selectCalendars } from "../../core/scheduling/calendars.ts";
import { createEventType } from "../../core/scheduling/event-types.ts";
import { createBooking } from "../../core/scheduling/reservations.ts";
import { putSchedule } from "../../core/scheduling/schedules.ts";
import { keys } from "../../core/store/keys.ts";
import { hasRadicale, type Radicale, startRadicale } from "../../fixtures/providers/radicale.ts";
import { startRedis } from "../../fixtures/redis.ts";
import { startWorkers } from "../../workers/run.ts";
import type { BenchRow } from "./figures.ts";

const hour = 3_600_000;
const day = 24 * hour;
/** The midnight after tomorrow, UTC. */
const soon = Math.ceil(Date.now() / day) * day + day;
/** Events of the large calendar, how many of them are series, readings (the best counts), and timed bookings. */
const events = Number(process.env.BENCH_EVENTS ?? 5000);
const series = events / 25;
const rounds = Number(process.env.BENCH_ROUNDS ?? 3);
const bookings = 60;

/** Time to read a large calendar, its effect on the process, and the delay of a booking's calendar event. */
export async function bench(): Promise<BenchRow[]> {
  if (!hasRadicale()) {
    process.stderr.write("calendars: radicale and apache2-utils are not installed\n");
    return [];
  }
  const endings: (() => unknown)[] = [];
  const server = await startRadicale({ teardown: (end: () => unknown) => void endings.push(end) } as never);
  const redis = await startRedis();
  const runtime = await openRuntime(
    readEnv({ REDIS_URL: redis.url, LOG_LEVEL: "silent", PUBLIC_BOOKINGS_PER_ATTENDEE: "0" }),
  );
  try {
    await createHandle(runtime, { handle: "acme", account: "acct_acme", owner: "user_1", assistant: true });
    const login = { serverUrl: server.url, username: server.username, password: server.password };
    const { credentialId } = (await connectCaldav(runtime, { handle: "acme", ...login })).credential;
    return [
      ...(await reading({ runtime, server, credentialId })),
      ...(await writing({ runtime, server, credentialId })),
    ];
  } finally {
    await runtime.close();
    await redis.stop();
    for (const end of endings) await end();
  }
}

interface Stage {
  runtime: Runtime;
  server: Radicale;
  credentialId: string;
}

async function reading({ runtime, server, credentialId }: Stage): Promise<BenchRow[]> {
  const calendar = await server.calendar("large");
  server.fill(calendar, new Map(Array.from({ length: events }, (_, at) => [`${at}.ics`, event(at)])));
  // The server reads each file once and caches it: that time is not ours.
  await (await server.dav("PROPFIND", calendar, undefined, { depth: "1" })).text();
  const whole = { ms: Number.POSITIVE_INFINITY, blocked: Number.POSITIVE_INFINITY };
  const change = { ...whole };
  await selectCalendars(runtime, { handle: "acme", credentialId, busyCalendarIds: [calendar] });
  for (let round = 0; round < rounds; round++) {
    await runtime.redis.del("", ...(await runtime.redis.keys("calendar-objects:*")));
    best(whole, await timed(runtime));
    await server.put(calendar, `new-${round}`, `DTSTART:${stamp(soon)}`, "DURATION:PT1H", "RRULE:FREQ=DAILY");
    best(change, await timed(runtime));
  }
  const size = `${events} events, ${series} of them series`;
  const taken = `${await runtime.redis.zcard(keys.busy("acme"))} stretches of busy time`;
  return [
    { name: `calendar of ${size}, read whole`, value: whole.ms, unit: "ms", bar: "<= 2000", baseline: taken },
    { name: "longest pause of the process meanwhile", value: whole.blocked, unit: "ms", bar: "<= 50" },
    { name: "the same calendar after one change", value: change.ms, unit: "ms", bar: "<= 2000" },
    { name: "longest pause of the process meanwhile, one change", value: change.blocked, unit: "ms", bar: "<= 50" },
  ];
}

interface Figures {
  ms: number;
  blocked: number;
}

function best(kept: Figures, seen: Figures): void {
  kept.ms = Math.min(kept.ms, seen.ms);
  kept.blocked = Math.min(kept.blocked, seen.blocked);
}

async function timed(runtime: Runtime): Promise<Figures> {
  const pauses = monitorEventLoopDelay({ resolution: 1 });
  const begun = performance.now();
  pauses.enable();
  await refreshBusy(runtime, "acme");
  pauses.disable();
  return { ms: performance.now() - begun, blocked: pauses.max / 1e6 };
}

/** Times from the response to a booking until the event can be read at the calendar server. */
async function writing({ runtime, server, credentialId }: Stage): Promise<BenchRow[]> {
  const calendar = await server.calendar("office");
  await selectCalendars(runtime, {
    handle: "acme",
    credentialId,
    busyCalendarIds: [],
    destinationCalendarId: calendar,
  });
  const hours = { startTime: "00:00", endTime: "24:00" };
  const weeklyAvailability = [0, 1, 2, 3, 4, 5, 6].map((one) => ({ day: one, ...hours }));
  await putSchedule(runtime, { handle: "acme", timeZone: "UTC", weeklyAvailability, overrides: [] });
  await createEventType(runtime, {
    ...{ handle: "acme", slug: "talk", title: "Talk", durationMinutes: 60, description: "", locations: [] },
    ...{ hidden: false, status: "ACTIVE", confirmationRequired: false, bookingFields: [], minimumNoticeMinutes: 0 },
    ...{ buffers: { beforeMinutes: 0, afterMinutes: 0 }, payment: { enabled: false } },
  });
  const workers = await startWorkers(runtime, ["scheduling"]);
  const times: number[] = [];
  for (let at = 0; at < bookings; at++) times.push(await arrival({ runtime, server, calendar }, soon + at * hour));
  await workers.close();
  const sorted = times.sort((one, other) => one - other);
  const baseline = `median ${Math.round(sorted[bookings >> 1] as number)} ms`;
  const value = sorted[Math.floor(bookings * 0.95)] as number;
  return [{ name: "a booking's event in the calendar, p95", value, unit: "ms", bar: "<= 1000", baseline }];
}

async function arrival(
  { runtime, server, calendar }: { runtime: Runtime; server: Radicale; calendar: string },
  start: number,
): Promise<number> {
  const slot = { start: new Date(start).toISOString(), end: new Date(start + hour).toISOString() };
  const attendee = { name: "Ada", email: "ada@example.com" };
  const asked = { handle: "acme", eventSlug: "talk", attendee, slot, answers: {}, guests: [] };
  const { bookingUid } = await createBooking(runtime, asked, { requestId: "bench" });
  const begun = performance.now();
  while (!(await isThere(server, `${calendar}${bookingUid}.ics`)))
    if (performance.now() - begun > 30_000) throw new Error("The event did not arrive.");
  return performance.now() - begun;
}

async function isThere(server: Radicale, address: string): Promise<boolean> {
  return server.dav("GET", address).then(
    async (answer) => (await answer.text()) !== "",
    () => false,
  );
}

/** Every 25th is a weekly series; the others are spread over the window. */
function event(at: number): string {
  const isSeries = at % (events / series) === 0;
  const start = isSeries ? soon - 300 * day + at * hour : soon + Math.floor((at * 380 * 24) / events) * hour;
  const lines = [
    ...["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//bench//EN", "BEGIN:VEVENT", `UID:${at}@example.com`],
    ...["DTSTAMP:20260101T000000Z", `DTSTART;TZID=Europe/Berlin:${stamp(start).slice(0, -1)}`, "DURATION:PT45M"],
    ...(isSeries ? ["RRULE:FREQ=WEEKLY;BYDAY=MO,TH"] : []),
    ...[`SUMMARY:Event ${at}`, `DESCRIPTION:${"What there is to say. ".repeat(6)}`, "END:VEVENT", "END:VCALENDAR", ""],
  ];
  return lines.join("\r\n");
}

function stamp(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replace(/[-:]/g, "")}Z`;
}
