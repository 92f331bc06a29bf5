import fc from "fast-check";
import t from "tap";
import { timetableOf } from "../core/engines/slots/availability.ts";
import { availableSlots, isOpen, type SlotRequest } from "../core/engines/slots/slots.ts";
import { day, minute } from "../core/platform/clock.ts";
import { iso, naiveSlots } from "../fixtures/scheduling/naive.ts";
import type { Override, StoredSchedule } from "../schemas/scheduling.ts";

interface Case {
  zone?: string;
  /** Rows as `weekday HH:MM-HH:MM`; `*` for every day. */
  weekly?: string[];
  overrides?: Override[];
  duration?: number;
  interval?: number;
  before?: number;
  after?: number;
  clock?: string;
  notice?: number;
  windowDays?: number;
  perDay?: number;
  /** Blocks as `start/end` in UTC. */
  busy?: string[];
  booked?: string[];
  now?: string;
}

const everyDay = [0, 1, 2, 3, 4, 5, 6];

function scheduleOf({ zone = "UTC", weekly = [], overrides = [] }: Case): StoredSchedule {
  const weeklyAvailability = weekly.flatMap((text) => {
    const [weekday = "", startTime = "", endTime = ""] = text.split(/[ -]/);
    return (weekday === "*" ? everyDay : [Number(weekday)]).map((one) => ({ day: one, startTime, endTime }));
  });
  const at = "2026-01-01T00:00:00.000Z";
  return { scheduleId: "sched", timeZone: zone, weeklyAvailability, overrides, createdAt: at, updatedAt: at };
}

function offeringOf(given: Case): SlotRequest & { schedule: StoredSchedule } {
  const schedule = scheduleOf(given);
  const { duration = 60, interval, before = 0, after = 0, notice = 0 } = given;
  return {
    schedule,
    timetable: timetableOf(schedule, "UTC"),
    event: {
      durationMinutes: duration,
      slotIntervalMinutes: interval,
      buffers: { beforeMinutes: before, afterMinutes: after },
      minimumNoticeMinutes: notice,
      bookingWindowDays: given.windowDays,
      maxBookingsPerDay: given.perDay,
    },
    clock: given.clock ?? schedule.timeZone,
    busy: (given.busy ?? []).map((text) => {
      const [from, to] = text.split("/").map(Date.parse) as [number, number];
      return { from, to };
    }),
    booked: (given.booked ?? []).map((text) => Date.parse(text)),
    now: Date.parse(given.now ?? "2020-01-01T00:00Z"),
  };
}

/** The slots of a case as `YYYY-MM-DDTHH:MMZ`. */
function starts(given: Case, from: string, to: string): string[] {
  return availableSlots(offeringOf(given), { from: Date.parse(from), to: Date.parse(to) }).at.map(iso);
}

const times = (list: string[]): string => list.map((text) => text.slice(11, 16)).join(" ");
/** The times of day, UTC, of a case on one UTC date. */
const on = (date: string, given: Case): string => times(starts(given, `${date}T00:00Z`, `${date}T24:00Z`));

t.test("the first start of a range is the first whole clock step in it, then every interval", async (t) => {
  const from = (start: string, interval: number) =>
    on("2026-10-12", { weekly: [`1 ${start}-12:00`], duration: 30, interval });
  t.equal(from("09:10", 60), "10:00 11:00");
  t.equal(from("09:10", 30), "09:30 10:00 10:30 11:00 11:30");
  t.equal(from("09:10", 20), "09:20 09:40 10:00 10:20 10:40 11:00 11:20");
  t.equal(from("09:10", 15), "09:15 09:30 09:45 10:00 10:15 10:30 10:45 11:00 11:15 11:30");
  t.equal(from("09:10", 45), "09:15 10:00 10:45 11:30", "45 is divided by 15");
  t.equal(from("09:10", 40), "09:20 10:00 10:40 11:20", "40 by 20");
  t.equal(from("09:11", 50), "09:20 10:10 11:00", "50 by 10");
  t.equal(from("09:11", 25), "09:15 09:40 10:05 10:30 10:55 11:20", "25 by 5");
  t.equal(from("09:11", 90), "09:30 11:00", "90 by 30");
  t.equal(from("09:11", 17), "09:11 09:28 09:45 10:02 10:19 10:36 10:53 11:10 11:27", "17 by 1");
});

t.test("the grid follows the clock of the requested zone", async (t) => {
  const kathmandu = { weekly: ["1 09:00-12:00"], duration: 60 };
  t.equal(on("2026-10-12", kathmandu), "09:00 10:00 11:00");
  t.equal(on("2026-10-12", { ...kathmandu, clock: "Asia/Kathmandu" }), "09:15 10:15", "+05:45");
  t.equal(on("2026-10-12", { ...kathmandu, clock: "Pacific/Chatham" }), "09:15 10:15", "+13:45");
  t.equal(on("2026-10-12", { ...kathmandu, clock: "Australia/Adelaide" }), "09:30 10:30", "+10:30");
  t.equal(
    on("2026-10-12", { ...kathmandu, duration: 30, clock: "Australia/Adelaide" }),
    "09:00 09:30 10:00 10:30 11:00 11:30",
  );
});

t.test("the grid restarts at the padded end of a busy block", async (t) => {
  const given: Case = { weekly: ["1 09:00-13:00"], duration: 45 };
  t.equal(on("2026-10-12", given), "09:00 09:45 10:30 11:15 12:00");
  const busy = ["2026-10-12T09:50Z/2026-10-12T10:05Z"];
  t.equal(on("2026-10-12", { ...given, busy }), "09:00 10:15 11:00 11:45");
  t.equal(on("2026-10-12", { ...given, busy, before: 15 }), "09:00 10:30 11:15 12:00", "free from 10:20");
  t.equal(on("2026-10-12", { ...given, busy, after: 10 }), "10:15 11:00 11:45", "09:45 + 10 min is past 09:50");
  t.equal(
    on("2026-10-12", { ...given, busy: ["2026-10-12T09:45Z/2026-10-12T10:30Z"] }),
    "09:00 10:30 11:15 12:00",
    "touching is free",
  );
  t.equal(
    on("2026-10-12", { ...given, busy: ["2026-10-12T09:50:20Z/2026-10-12T10:15:10Z"] }),
    "09:00 10:30 11:15 12:00",
    "seconds count",
  );
});

t.test("blocks that overlap, touch or contain each other are one", async (t) => {
  const given: Case = { weekly: ["1 09:00-17:00"], duration: 60 };
  const blocks = [
    "2026-10-12T08:00Z/2026-10-12T10:00Z",
    "2026-10-12T09:30Z/2026-10-12T09:40Z",
    "2026-10-12T10:00Z/2026-10-12T11:00Z",
    "2026-10-12T13:30Z/2026-10-12T14:30Z",
  ];
  t.equal(on("2026-10-12", { ...given, busy: blocks }), "11:00 12:00 15:00 16:00");
});

t.test("buffers may cross the edges of the hours, the slot may not", async (t) => {
  const given: Case = { weekly: ["1 09:00-11:00"], duration: 60, before: 60, after: 60 };
  t.equal(on("2026-10-12", given), "09:00 10:00");
  t.equal(
    on("2026-10-12", { ...given, busy: ["2026-10-12T11:30Z/2026-10-12T12:00Z"] }),
    "09:00",
    "10:00 would need 12:00 free",
  );
  t.equal(on("2026-10-12", { ...given, busy: ["2026-10-12T07:00Z/2026-10-12T08:30Z"] }), "10:00", "free from 09:30");
});

t.test("ranges that touch at midnight join, and the grid restarts there", async (t) => {
  const given: Case = { weekly: ["1 22:00-24:00", "2 00:00-02:00"], duration: 90, clock: "UTC" };
  const night = (more: Case) => times(starts({ ...given, ...more }, "2026-10-12T12:00Z", "2026-10-13T12:00Z"));
  t.equal(night({}), "22:00 23:30 00:00", "one runs across midnight, one starts there anew, 01:30 does not fit");
  t.equal(night({ duration: 50 }), "22:00 22:50 23:40 00:00 00:50", "a start at midnight whatever the steps before");
  t.equal(night({ weekly: ["1 22:00-23:59", "2 00:00-02:00"] }), "22:00 23:30 00:00", "23:59 is the end of the day");
  t.equal(night({ weekly: ["1 22:00-23:58", "2 00:00-02:00"] }), "22:00 00:00", "23:58 is not");
  t.equal(night({ weekly: ["1 22:00-24:00"] }), "22:00", "nobody runs into a date whose rows don't continue it");
  t.equal(night({ weekly: ["1 22:00-24:00", "2 00:30-02:00"] }), "22:00 00:30", "a gap after midnight");
  const inParts = ["1 22:00-24:00", "2 00:00-01:00", "2 01:00-02:00"];
  t.equal(night({ weekly: inParts, duration: 180, interval: 60 }), "22:00 23:00", "rows of the last open date merge");
  t.equal(
    night({ busy: ["2026-10-12T22:10Z/2026-10-12T22:40Z"] }),
    "23:00 00:00",
    "anew after the block and at midnight",
  );
});

t.test("midnight is the schedule's, the clock is the visitor's", async (t) => {
  const given: Case = { zone: "Asia/Kathmandu", weekly: ["* 00:00-24:00"], duration: 60, clock: "UTC" };
  // Midnight in Kathmandu is 18:15 UTC: the grid starts again and finds the next whole hour of UTC.
  t.same(
    starts(given, "2026-10-12T16:00Z", "2026-10-12T21:00Z").map((text) => text.slice(11, 16)),
    ["16:00", "17:00", "18:00", "19:00", "20:00"],
  );
  t.equal(
    times(starts({ ...given, duration: 50 }, "2026-10-12T16:00Z", "2026-10-12T21:00Z")),
    "16:00 16:50 17:40 18:20 19:10 20:00 20:50",
  );
});

t.test("overrides replace the weekly hours of their dates", async (t) => {
  const given: Case = { weekly: ["* 09:00-11:00"], duration: 60 };
  const overrides: Override[] = [
    { date: "2026-10-12", startTime: "13:00", endTime: "14:00" },
    { date: "2026-10-12", startTime: "16:00", endTime: "17:00" },
    { date: "2026-10-13", unavailable: true },
    { from: "2026-10-15", to: "2026-10-16", unavailable: true },
  ];
  const list = starts({ ...given, overrides }, "2026-10-12T00:00Z", "2026-10-18T00:00Z");
  t.same(
    list.map((text) => text.slice(8, 16)),
    ["12T13:00", "12T16:00", "14T09:00", "14T10:00", "17T09:00", "17T10:00"],
  );
  const { kinds } = availableSlots(offeringOf({ ...given, overrides }), {
    from: Date.parse("2026-10-12T00:00Z"),
    to: Date.parse("2026-10-15T00:00Z"),
  });
  t.same(kinds, ["override", "override", "weekly", "weekly"]);
});

t.test("without a schedule, Monday to Friday from nine to five in the event's zone", async (t) => {
  const offering = { ...offeringOf({}), timetable: timetableOf(undefined, "America/New_York"), clock: "UTC" };
  const { at, kinds } = availableSlots(offering, {
    from: Date.parse("2026-10-10T00:00Z"),
    to: Date.parse("2026-10-13T00:00Z"),
  });
  t.equal(times(at.map(iso)), "13:00 14:00 15:00 16:00 17:00 18:00 19:00 20:00", "Monday only, UTC-4");
  t.equal(kinds[0], "default");
});

t.test("notice, window, day limit and the query's ends only filter and never move the grid", async (t) => {
  const given: Case = { weekly: ["* 09:00-12:00"], duration: 40, now: "2026-10-12T08:00Z" };
  t.equal(on("2026-10-12", given), "09:00 09:40 10:20 11:00");
  t.equal(on("2026-10-12", { ...given, notice: 101 }), "10:20 11:00");
  t.equal(on("2026-10-12", { ...given, notice: 60 }), "09:00 09:40 10:20 11:00", "exactly the notice is enough");
  t.equal(on("2026-10-12", { ...given, notice: 60, now: "2026-10-12T08:00:00.001Z" }), "09:40 10:20 11:00");
  t.equal(times(starts(given, "2026-10-12T09:05Z", "2026-10-12T10:20Z")), "09:40", "from the start, before the end");
  t.equal(times(starts(given, "2026-10-12T09:40Z", "2026-10-12T10:21Z")), "09:40 10:20");
  const days = (more: Case) =>
    [
      ...new Set(
        starts({ ...given, ...more }, "2026-10-12T00:00Z", "2026-10-20T00:00Z").map((text) => text.slice(8, 10)),
      ),
    ].join(" ");
  t.equal(days({ windowDays: 2 }), "12 13 14");
  t.equal(
    days({ windowDays: 2, zone: "Pacific/Apia", now: "2026-10-12T08:00Z" }),
    "12 13",
    "the schedule's today decides",
  );
  t.equal(
    days({ perDay: 2, booked: ["2026-10-13T09:00Z", "2026-10-13T11:00Z", "2026-10-14T09:00Z"] }),
    "12 14 15 16 17 18 19",
  );
});

t.test("a window after the notice or before the past has no slots", async (t) => {
  const given: Case = { weekly: ["* 09:00-12:00"], now: "2026-10-12T08:00Z", windowDays: 3 };
  t.same(starts(given, "2026-10-01T00:00Z", "2026-10-12T00:00Z"), []);
  t.same(starts(given, "2026-11-01T00:00Z", "2026-11-12T00:00Z"), []);
  t.same(starts({ ...given, now: "0001-01-01T00:00Z" }, "9999-12-30T00:00Z", "9999-12-31T23:00Z"), []);
});

/** Slots of 30 minutes from 01:00 to 04:00 wall time around a transition, as local times with offsets. */
const golden: [zone: string, date: string, elapsedHours: number, first: string, last: string][] = [
  ["America/New_York", "2026-03-08", 2, "2026-03-08T06:00Z", "2026-03-08T07:30Z"],
  ["America/New_York", "2026-11-01", 4, "2026-11-01T05:00Z", "2026-11-01T08:30Z"],
  ["Europe/Berlin", "2026-03-29", 2, "2026-03-29T00:00Z", "2026-03-29T01:30Z"],
  ["Europe/Berlin", "2026-10-25", 4, "2026-10-24T23:00Z", "2026-10-25T02:30Z"],
  ["Australia/Lord_Howe", "2026-04-05", 3.5, "2026-04-04T14:00Z", "2026-04-04T17:00Z"],
  ["Australia/Lord_Howe", "2026-10-04", 2.5, "2026-10-03T14:30Z", "2026-10-03T16:30Z"],
  ["Pacific/Chatham", "2026-04-05", 4, "2026-04-04T11:15Z", "2026-04-04T14:45Z"],
  ["Antarctica/Troll", "2026-03-29", 1, "2026-03-29T01:00Z", "2026-03-29T01:30Z"],
  ["Antarctica/Troll", "2026-10-25", 5, "2026-10-24T23:00Z", "2026-10-25T03:30Z"],
  ["Africa/Casablanca", "2026-02-15", 4, "2026-02-15T00:00Z", "2026-02-15T03:30Z"],
  ["Africa/Casablanca", "2026-03-22", 2, "2026-03-22T01:00Z", "2026-03-22T02:30Z"],
  ["Africa/Cairo", "2026-04-24", 3, "2026-04-23T22:00Z", "2026-04-24T00:30Z"],
  ["America/Santiago", "2026-09-06", 3, "2026-09-06T04:00Z", "2026-09-06T06:30Z"],
  ["Asia/Kathmandu", "2026-03-29", 3, "2026-03-28T19:15Z", "2026-03-28T21:45Z"],
  ["Pacific/Apia", "2026-03-29", 3, "2026-03-28T12:00Z", "2026-03-28T14:30Z"],
];

for (const [zone, date, hours, first, last] of golden) {
  t.test(`01:00 to 04:00 in ${zone} on ${date} lasts ${hours} hours`, async (t) => {
    const overrides: Override[] = [{ date, startTime: "01:00", endTime: "04:00" }];
    const list = starts(
      { zone, overrides, duration: 30 },
      `${new Date(Date.parse(first) - day).toISOString()}`,
      `${new Date(Date.parse(last) + day).toISOString()}`,
    );
    t.same([list.length, list[0], list.at(-1)], [hours * 2, first, last]);
  });
}

t.test("a row whose ends meet at a gap is empty, and a day without midnight has its first hour", async (t) => {
  const gap: Override[] = [{ date: "2026-03-29", startTime: "02:15", endTime: "02:45" }];
  t.equal(
    on("2026-03-29", { zone: "Europe/Berlin", overrides: gap, duration: 15 }),
    "01:15 01:30",
    "both ends move forward by the hour",
  );
  const swallowed: Override[] = [{ date: "2026-03-29", startTime: "02:30", endTime: "03:15" }];
  t.equal(
    on("2026-03-29", { zone: "Europe/Berlin", overrides: swallowed, duration: 15 }),
    "",
    "03:30 to 03:15 is empty",
  );
  const cairo: Override[] = [{ date: "2026-04-24", startTime: "00:00", endTime: "24:00" }];
  const list = starts({ zone: "Africa/Cairo", overrides: cairo }, "2026-04-23T00:00Z", "2026-04-26T00:00Z");
  t.same([list.length, list[0], list.at(-1)], [23, "2026-04-23T22:00Z", "2026-04-24T20:00Z"]);
});

t.test("a clock that jumps by half an hour keeps whole hours after the jump", async (t) => {
  const overrides: Override[] = [{ date: "2026-04-05", startTime: "01:45", endTime: "05:00" }];
  // 01:45 is followed by 01:30 again at 02:00 (15:00Z); the first whole hour is then 02:00 at 15:30Z.
  t.equal(on("2026-04-04", { zone: "Australia/Lord_Howe", overrides, duration: 60 }), "15:30 16:30 17:30");
});

const zones = [
  "Australia/Lord_Howe",
  "Pacific/Chatham",
  "Antarctica/Troll",
  "Africa/Casablanca",
  "Africa/Cairo",
  "America/Santiago",
  "Asia/Kathmandu",
  "Pacific/Apia",
  "Europe/Berlin",
  "UTC",
];
/** Days on which some of them change their clocks. */
const days = [
  "2026-02-14",
  "2026-03-21",
  "2026-03-28",
  "2026-04-04",
  "2026-04-23",
  "2026-09-05",
  "2026-10-03",
  "2026-10-24",
  "2026-10-29",
  "2026-06-10",
];

const clockTime = fc
  .nat({ max: 287 })
  .map((fives) => `${String(Math.floor(fives / 12)).padStart(2, "0")}:${String((fives % 12) * 5).padStart(2, "0")}`);
const hours = fc
  .tuple(fc.oneof(clockTime, fc.constantFrom("00:00")), fc.oneof(clockTime, fc.constantFrom("24:00", "23:59")))
  .filter(([from, to]) => from < to);
const row = fc
  .tuple(fc.constantFrom("*", "*", "0", "1", "2", "3", "4", "5", "6"), hours)
  .map(([weekday, [from, to]]) => `${weekday} ${from}-${to}`);
const someCase = fc.constantFrom(...days).chain((date) => {
  const base = Date.parse(`${date}T00:00Z`);
  const near = fc.integer({ min: -1440, max: 4320 }).map((minutes) => base + minutes * minute);
  const dated = fc.integer({ min: -1, max: 3 }).map((more) => new Date(base + more * day).toISOString().slice(0, 10));
  const override = fc.oneof(
    fc.tuple(dated, hours).map(([one, [startTime, endTime]]): Override => ({ date: one, startTime, endTime })),
    dated.map((one): Override => ({ date: one, unavailable: true })),
    fc.tuple(dated, dated).map(([from, to]): Override => ({ from, to, unavailable: true })),
  );
  const block = fc
    .tuple(near, fc.integer({ min: 1, max: 20_000 }))
    .map(([from, seconds]) => [from, from + seconds * 1000] as const);
  return fc.record({
    zone: fc.constantFrom(...zones),
    clock: fc.constantFrom(...zones),
    weekly: fc.array(row, { minLength: 1, maxLength: 9 }),
    overrides: fc.array(override, { maxLength: 3 }),
    duration: fc.oneof(fc.constantFrom(15, 30, 45, 60, 90), fc.integer({ min: 5, max: 1440 })),
    interval: fc.option(fc.oneof(fc.constantFrom(15, 30, 60), fc.integer({ min: 5, max: 200 })), { nil: undefined }),
    before: fc.constantFrom(0, 0, 5, 60, 300),
    after: fc.constantFrom(0, 0, 10, 45, 600),
    blocks: fc.array(block, { maxLength: 6 }),
    booked: fc.array(near, { maxLength: 4 }),
    perDay: fc.constantFrom(undefined, undefined, 1, 2),
    notice: fc.constantFrom(0, 30, 700),
    windowDays: fc.constantFrom(undefined, undefined, 1, 3),
    now: near.map((at) => new Date(at - day).toISOString()),
    from: near,
    length: fc.integer({ min: 1, max: 2880 }),
  });
});

/** Overrides as a schedule accepts them: a date is either closed or has hours. */
function consistent(list: Override[]): Override[] {
  const isClosed = (date: string) =>
    list.some((row) =>
      "date" in row ? row.date === date && "unavailable" in row : row.from <= date && date <= row.to,
    );
  return list.filter((row) => !("startTime" in row) || !isClosed(row.date));
}

t.test("the engine finds the same slots as a check of every minute with Temporal", async (t) => {
  let slots = 0;
  const same = fc.property(
    someCase,
    ({ blocks, booked, overrides, from, length, interval, perDay, windowDays, ...given }) => {
      const optional = {
        ...(interval ? { interval } : {}),
        ...(perDay ? { perDay } : {}),
        ...(windowDays === undefined ? {} : { windowDays }),
      };
      const asked = offeringOf({ ...given, ...optional, overrides: consistent(overrides) });
      const busy = blocks.map(([from, to]) => ({ from, to })).sort((one, other) => one.from - other.from);
      const offering = { ...asked, busy, booked };
      const window = { from, to: from + length * minute };
      const { at, kinds } = availableSlots(offering, window);
      const naive = naiveSlots(offering, window);
      slots += naive.length;
      const found = at.map((start, index) => `${iso(start)} ${kinds[index]}`);
      return found.join() === naive.join() && at.every((start) => isOpen(offering, start));
    },
  );
  fc.assert(same, { numRuns: 1000 });
  t.ok(slots > 1000, `${slots} slots were compared`);
});
