import { Temporal } from "@js-temporal/polyfill";
import fc from "fast-check";
import t from "tap";
import { day, minute } from "../core/platform/clock.ts";
import { isZone, storedZone, zoneOver } from "../core/platform/zones.ts";

/** Half hours and quarters of offset, shifts of half an hour and of two, DST the other way round, gaps at midnight. */
const odd = [
  "Australia/Lord_Howe",
  "Pacific/Chatham",
  "Antarctica/Troll",
  "Africa/Casablanca",
  "Africa/Cairo",
  "America/Santiago",
  "Asia/Kathmandu",
  "Pacific/Apia",
];
const plain = ["Europe/Berlin", "America/New_York", "America/Havana", "Asia/Beirut", "America/Nuuk", "UTC"];

function truth(name: string, local: number): number {
  const wall = Temporal.PlainDateTime.from(new Date(local).toISOString().slice(0, -1));
  return wall.toZonedDateTime(name, { disambiguation: "compatible" }).epochMilliseconds;
}

function transitions(name: string, from: number, to: number): number[] {
  const found: number[] = [];
  let at = Temporal.Instant.fromEpochMilliseconds(from).toZonedDateTimeISO(name).getTimeZoneTransition("next");
  while (at && at.epochMilliseconds < to) {
    found.push(at.epochMilliseconds);
    at = at.getTimeZoneTransition("next");
  }
  return found;
}

for (const name of [...odd, ...plain]) {
  t.test(
    `the table of ${name} reads every wall time around the transitions of ten years as Temporal does`,
    async (t) => {
      const [from, to] = [Date.UTC(2026, 0, 1), Date.UTC(2036, 0, 1)];
      const zone = zoneOver(name, from, to);
      const wrong: string[] = [];
      let looks = 0;
      for (const change of transitions(name, from, to)) {
        const local = change + zone.offsetAt(change - 1);
        for (let at = local - 150 * minute; at <= local + 150 * minute; at += 5 * minute, looks++)
          if (zone.toInstant(at) !== truth(name, at)) wrong.push(new Date(at).toISOString());
      }
      t.same(wrong, [], `${looks} wall times`);
    },
  );
}

t.test("instants, offsets, dates and midnights are Temporal's in any zone and year", async (t) => {
  const names = fc.constantFrom(...odd, ...plain);
  const instants = fc.integer({ min: Date.UTC(2012, 0, 1) / minute, max: Date.UTC(2080, 0, 1) / minute });
  const same = fc.property(names, instants, (name, minutes) => {
    const instant = minutes * minute;
    const zone = zoneOver(name, instant, instant);
    const there = Temporal.Instant.fromEpochMilliseconds(instant).toZonedDateTimeISO(name);
    const date = zone.dateAt(instant);
    return (
      zone.offsetAt(instant) === there.offsetNanoseconds / 1e6 &&
      new Date(date * day).toISOString().slice(0, 10) === there.toPlainDate().toString() &&
      zone.startOfDate(date) === there.startOfDay().epochMilliseconds &&
      zone.toInstant(instant) === truth(name, instant)
    );
  });
  t.doesNotThrow(() => fc.assert(same, { numRuns: 2000 }));
});

t.test("a zone is known if Temporal accepts it, and names of ICU alone are not", async (t) => {
  const known = [...odd, ...plain, "Etc/GMT+12", "EST", "europe/berlin", "Europe/Kyiv", "Asia/Calcutta"];
  t.same(
    known.filter((name) => !isZone(name)),
    [],
  );
  for (const name of known) t.ok(Temporal.Now.zonedDateTimeISO(name), name);
  const icu = "ACT AET AGT ART AST BET BST CAT CNT CST CTT EAT ECT IET IST JST MIT NET NST PLT PNT PRT PST SST VST";
  const unknown = [...icu.split(" "), "Factory", "GMT+5", "+05:00", "Mars/Olympus", "", "Etc/Unknown"];
  t.same(
    unknown.filter((name) => isZone(name)),
    [],
  );
  t.equal(storedZone("Europe/Berlin"), "Europe/Berlin");
  t.equal(storedZone("Mars/Olympus"), "UTC");
  t.equal(zoneOver("Mars/Olympus", 0, 0).offsetAt(0), 0);
});

t.test("a date that a zone left out begins with the next one", async (t) => {
  const zone = zoneOver("Pacific/Apia", Date.UTC(2011, 11, 28), Date.UTC(2012, 0, 2));
  const thirtieth = Date.UTC(2011, 11, 30) / day;
  t.equal(new Date(zone.startOfDate(thirtieth)).toISOString(), "2011-12-30T10:00:00.000Z");
  t.equal(zone.startOfDate(thirtieth), zone.startOfDate(thirtieth + 1));
  t.equal(new Date(zone.toInstant(Date.UTC(2011, 11, 30, 9))).toISOString(), "2011-12-30T19:00:00.000Z", "forward");
});

t.test("a date without midnight starts at 01:00", async (t) => {
  const starts = [
    ["Africa/Cairo", "2026-04-24", "2026-04-23T22:00:00.000Z"],
    ["Asia/Beirut", "2026-03-29", "2026-03-28T22:00:00.000Z"],
    ["America/Santiago", "2026-09-06", "2026-09-06T04:00:00.000Z"],
    ["America/Asuncion", "2023-10-01", "2023-10-01T04:00:00.000Z"],
    ["America/Sao_Paulo", "2018-11-04", "2018-11-04T03:00:00.000Z"],
  ] as const;
  for (const [name, date, expected] of starts) {
    const at = Date.parse(`${date}T00:00Z`);
    const zone = zoneOver(name, at, at);
    t.equal(new Date(zone.startOfDate(at / day)).toISOString(), expected, `${name} ${date}`);
    t.equal(zone.startOfDate(at / day + 1) - zone.startOfDate(at / day), 23 * 60 * minute, "a day of 23 hours");
  }
});
