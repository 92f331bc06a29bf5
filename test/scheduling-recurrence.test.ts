import t from "tap";
import { expandApart } from "../core/engines/calendars/expansion.ts";
import { type ExpandedObject, type Expansion, expandObject } from "../core/engines/calendars/recurrence.ts";
import windowsZones from "../core/platform/windows-zones.json" with { type: "json" };
import { isZone, zoneOfWindows } from "../core/platform/zones.ts";

const calendar = (...events: string[]): string =>
  ["BEGIN:VCALENDAR", "VERSION:2.0", ...events, "END:VCALENDAR"].join("\r\n");
const event = (...lines: string[]): string =>
  ["BEGIN:VEVENT", "UID:1", "DTSTAMP:20260101T000000Z", ...lines, "END:VEVENT"].join("\r\n");

const asked = (more: Partial<Expansion> = {}): Expansion => ({
  from: Date.parse("2026-10-01T00:00:00Z"),
  to: Date.parse("2026-12-01T00:00:00Z"),
  zone: "Europe/Berlin",
  owners: ["ada@example.com"],
  maxInstances: 10_000,
  ...more,
});

/** Busy times as `from/to`, without seconds. */
function busy(objects: string[], more: Partial<Expansion> = {}): string[] {
  const short = (ms: number) => new Date(ms).toISOString().slice(5, 16);
  return objects
    .flatMap((object) => expandObject(object, asked(more)).busy)
    .sort((one, other) => one.from - other.from)
    .map(({ from, to }) => `${short(from)}/${short(to)}`);
}

const weekly = [
  "DTSTART;TZID=Europe/Berlin:20261012T090000",
  "DTEND;TZID=Europe/Berlin:20261012T100000",
  "RRULE:FREQ=WEEKLY;COUNT=5",
];

t.test("a weekly series keeps its wall time over the change of the clocks, less its exceptions", async (t) => {
  const moved = event(
    "RECURRENCE-ID;TZID=Europe/Berlin:20261102T090000",
    "DTSTART;TZID=Europe/Berlin:20261102T110000",
    "DTEND;TZID=Europe/Berlin:20261102T120000",
  );
  const master = event(...weekly, "EXDATE;TZID=Europe/Berlin:20261019T090000");
  t.same(busy([calendar(master, moved)]), [
    "10-12T07:00/10-12T08:00",
    "10-26T08:00/10-26T09:00",
    "11-02T10:00/11-02T11:00",
    "11-09T08:00/11-09T09:00",
  ]);
});

t.test("cancelled, transparent and declined events block no time; tentative ones do", async (t) => {
  const times = ["DTSTART:20261012T090000Z", "DTEND:20261012T100000Z"];
  t.same(busy([calendar(event(...times, "STATUS:CANCELLED"))]), []);
  t.same(busy([calendar(event(...times, "TRANSP:TRANSPARENT"))]), []);
  t.same(busy([calendar(event(...times, "ATTENDEE;PARTSTAT=DECLINED:mailto:Ada@Example.com"))]), []);
  t.equal(busy([calendar(event(...times, "ATTENDEE;PARTSTAT=DECLINED:mailto:bob@example.com"))]).length, 1);
  t.equal(busy([calendar(event(...times, "ATTENDEE;PARTSTAT=ACCEPTED:mailto:ada@example.com"))]).length, 1);
  t.equal(busy([calendar(event(...times, "STATUS:TENTATIVE"))]).length, 1);
  const off = event(
    "RECURRENCE-ID;TZID=Europe/Berlin:20261019T090000",
    "DTSTART;TZID=Europe/Berlin:20261019T090000",
    "STATUS:CANCELLED",
  );
  t.equal(busy([calendar(event(...weekly), off)]).length, 4);
});

t.test("only VEVENTs count, and a timed event without end or duration takes no time", async (t) => {
  t.same(busy([calendar("BEGIN:VTODO", "UID:t", "DTSTART:20261012T090000Z", "DUE:20261012T100000Z", "END:VTODO")]), []);
  t.same(busy([calendar(event("DTSTART:20261012T090000Z"))]), []);
  t.same(busy([calendar(event("DTSTART:20261012T090000Z", "DURATION:-PT1H"))]), []);
});

t.test("dates cover local days, floating times are read in the calendar's zone", async (t) => {
  t.same(busy([calendar(event("DTSTART;VALUE=DATE:20261025"))]), ["10-24T22:00/10-25T23:00"], "the day of 25 hours");
  t.same(busy([calendar(event("DTSTART;VALUE=DATE:20261012", "DTEND;VALUE=DATE:20261014"))]), [
    "10-11T22:00/10-13T22:00",
  ]);
  const days = event("DTSTART;VALUE=DATE:20261016", "DTEND;VALUE=DATE:20261019", "RRULE:FREQ=WEEKLY;COUNT=2");
  t.same(busy([calendar(days)]), ["10-15T22:00/10-18T22:00", "10-22T22:00/10-25T23:00"], "one day has 25 hours");
  t.same(busy([calendar(event("DTSTART:20261012T090000", "DURATION:PT30M"))], { zone: "America/New_York" }), [
    "10-12T13:00/10-12T13:30",
  ]);
  t.same(busy([calendar(event("DTSTART:20261012T090000", "DURATION:P1DT2H"))]), ["10-12T07:00/10-13T09:00"]);
});

t.test("zones are recognised by IANA, Windows and vendor names, or by the calendar's definition", async (t) => {
  const at = (zone: string, ...more: string[]) =>
    busy([calendar(...more, event(`DTSTART;TZID=${zone}:20261012T090000`, "DURATION:PT1H"))], { zone: "UTC" });
  for (const zone of ["Europe/Berlin", "W. Europe Standard Time", "/freeassociation.sourceforge.net/Europe/Berlin"])
    t.same(at(zone), ["10-12T07:00/10-12T08:00"], zone);
  const described = [
    "BEGIN:VTIMEZONE",
    "TZID:Our office",
    "BEGIN:STANDARD",
    "DTSTART:20200101T000000",
    "TZOFFSETFROM:+0300",
    "TZOFFSETTO:+0300",
    "END:STANDARD",
    "END:VTIMEZONE",
  ];
  t.same(at("Our office", ...described), ["10-12T06:00/10-12T07:00"]);
  t.same(at("Nowhere at all"), ["10-12T09:00/10-12T10:00"], "else the calendar's own");
  const named = described.map((line) => line.replace("Our office", "PST"));
  t.same(at("PST", ...named), ["10-12T06:00/10-12T07:00"], "a name that only ICU knows is none");
  t.same(at("PST"), ["10-12T09:00/10-12T10:00"]);
});

t.test("a definition says what an abbreviation means, and Exchange's names are read without quotes", async (t) => {
  const rules = (name: string, standard: string, daylight: string) => [
    ...["BEGIN:VTIMEZONE", `TZID:${name}`],
    ...["BEGIN:STANDARD", "DTSTART:16011104T020000", "RRULE:FREQ=YEARLY;BYDAY=1SU;BYMONTH=11"],
    ...[`TZOFFSETFROM:${daylight}`, `TZOFFSETTO:${standard}`, "END:STANDARD"],
    ...["BEGIN:DAYLIGHT", "DTSTART:16010311T020000", "RRULE:FREQ=YEARLY;BYDAY=2SU;BYMONTH=3"],
    ...[`TZOFFSETFROM:${standard}`, `TZOFFSETTO:${daylight}`, "END:DAYLIGHT", "END:VTIMEZONE"],
  ];
  const at = (name: string, ...more: string[]) =>
    busy([calendar(...more, event(`DTSTART;TZID=${name}:20261012T090000`, "DURATION:PT1H"))]);
  t.same(at("EST", ...rules("EST", "-0500", "-0400")), ["10-12T13:00/10-12T14:00"], "summer time");
  t.same(at("GMT", ...rules("GMT", "+0000", "+0100")), ["10-12T08:00/10-12T09:00"]);
  t.same(at("EST"), ["10-12T14:00/10-12T15:00"], "without a definition");
  t.same(at("America/New_York", ...rules("America/New_York", "+0300", "+0300")), ["10-12T13:00/10-12T14:00"]);
  t.same(at("tzone://Microsoft/Utc"), ["10-12T09:00/10-12T10:00"]);
  t.same(at("tzone://Microsoft/Olson/America/New_York"), ["10-12T13:00/10-12T14:00"]);
  const custom = rules("tzone://Microsoft/Custom", "-0500", "-0400");
  t.same(at("tzone://Microsoft/Custom", ...custom), ["10-12T13:00/10-12T14:00"]);
  t.same(at('"tzone://Microsoft/Custom"', ...custom), ["10-12T13:00/10-12T14:00"]);
  t.same(at("tzone://Microsoft/Custom;VALUE=DATE-TIME", ...custom), ["10-12T13:00/10-12T14:00"]);
});

t.test("a text whose lines are broken without a fold hides no event", async (t) => {
  const times = ["DTSTART:20261012T090000Z", "DTEND:20261012T100000Z"];
  const broken = event("DESCRIPTION:Hello", "Bring a cake", "", " and tea", "Tea; if any", "<b>See you</b>", ...times);
  const text = calendar(broken);
  for (const end of ["\r\n", "\n", "\r", "\r\r\n", "\r\n\r\n"])
    t.same(busy([text.replaceAll("\r\n", end)]), ["10-12T09:00/10-12T10:00"], JSON.stringify(end));
  const folded = event(...times.map((time) => time.replace(";", ";\r\n ").replace(":", "\r\n :")));
  t.same(busy([calendar(folded)]), ["10-12T09:00/10-12T10:00"]);
});

t.test("words of a rule and of a range are read in either case", async (t) => {
  const days = ["DTSTART:20261012T090000Z", "DURATION:PT1H"];
  const upper = event(...days, "RRULE:FREQ=WEEKLY;COUNT=3;BYDAY=MO,TU");
  const lower = event(...days, "rrule:freq=weekly;count=3;\r\n byday=mo,tu");
  t.same(busy([calendar(lower)]), busy([calendar(upper)]));
  t.equal(busy([calendar(lower)]).length, 3);
  const moved = event(
    "RECURRENCE-ID;RANGE=thisandfuture:20261013T090000Z",
    "DTSTART:20261013T120000Z",
    "DURATION:PT1H",
  );
  t.equal(busy([calendar(upper, moved)]).at(-1), "10-19T12:00/10-19T13:00");
});

t.test("a leap second is the second before it", async (t) => {
  t.same(busy([calendar(event("DTSTART:20261012T085960Z", "DTEND:20261012T235960Z"))]), ["10-12T08:59/10-12T23:59"]);
});

t.test("a described zone reads the times around its changes as RFC 5545 does", async (t) => {
  const rule = (name: string, [start, from, to, month]: string[]) => [
    `BEGIN:${name}`,
    `DTSTART:1970${start}`,
    `TZOFFSETFROM:${from}`,
    `TZOFFSETTO:${to}`,
    `RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=${month}`,
    `END:${name}`,
  ];
  const zone = [
    ...["BEGIN:VTIMEZONE", "TZID:Customized Time Zone"],
    ...rule("DAYLIGHT", ["0329T020000", "+0100", "+0200", "3"]),
    ...rule("STANDARD", ["1025T030000", "+0200", "+0100", "10"]),
    "END:VTIMEZONE",
  ];
  const at = (time: string) => {
    const day = Date.parse(`${time.slice(0, 4)}-${time.slice(4, 6)}-${time.slice(6, 8)}T00:00Z`);
    const object = calendar(...zone, event(`DTSTART;TZID=Customized Time Zone:${time}00`, "DURATION:PT1M"));
    return busy([object], { from: day - 86_400_000, to: day + 2 * 86_400_000 }).map((one) => one.slice(6, 11));
  };
  const times = (date: string) => ["0130", "0200", "0230", "0300", "0330"].flatMap((time) => at(`${date}T${time}`));
  t.same(times("20260329"), ["00:30", "01:00", "01:30", "01:00", "01:30"], "the offset before a gap");
  t.same(times("20261025"), ["23:30", "00:00", "00:30", "02:00", "02:30"], "the first of two");
});

t.test("the calendar's own zone is read like an event's, and an unreadable one loses no event", async (t) => {
  const rules = ["BEGIN:STANDARD", "DTSTART:20200101T000000", "TZOFFSETFROM:+0300", "TZOFFSETTO:+0300", "END:STANDARD"];
  const zone = (name: string, ...lines: string[]) => ["BEGIN:VTIMEZONE", `TZID:${name}`, ...lines, "END:VTIMEZONE"];
  const own = (...lines: string[]) => calendar(...lines);
  const [newYork, office, schedule] = ["13:00", "06:00", "07:00"];
  const cases: [string, string, string][] = [
    ["IANA", own(...zone("America/New_York", ...rules)), newYork],
    ["Windows", own(...zone("Eastern Standard Time", ...rules)), newYork],
    ["vendor", own(...zone("/freeassociation.sourceforge.net/Tzfile/America/New_York", ...rules)), newYork],
    ["place", own(...zone("custom", "X-LIC-LOCATION:America/New_York", ...rules)), newYork],
    ["rules", own(...zone("My Zone", ...rules)), office],
    ["ICU's name", own(...zone("PST", ...rules)), office],
    ["without a calendar around it", zone("My Zone", ...rules).join("\n"), office],
    ["no rules", own(...zone("My Zone")), schedule],
    ["half a rule", own(...zone("My Zone", "BEGIN:STANDARD", "TZOFFSETTO:+0300", "END:STANDARD")), schedule],
    ["no rule at all", own(...zone("My Zone", "BEGIN:STANDARD", "DTSTART:soon", "END:STANDARD")), schedule],
    ["no zone", own(), schedule],
    ["no calendar", "America/New_York", schedule],
    ["nothing", "", schedule],
  ];
  const floating = calendar(event("DTSTART:20261012T090000", "DURATION:PT1H"));
  const allDay = calendar(event("DTSTART;VALUE=DATE:20261012"));
  for (const [name, calendarZone, at] of cases) {
    t.match(busy([floating], { calendarZone }), [new RegExp(`^10-12T${at}/`)], name);
    t.equal(busy([allDay], { calendarZone }).length, 1, `${name}: a whole day`);
  }
});

t.test("an instance that is given as a period has its own end", async (t) => {
  const times = ["DTSTART;TZID=Europe/Berlin:20261012T090000", "DURATION:PT30M"];
  const rdates = [
    "RDATE;VALUE=PERIOD:20261013T160000Z/PT2H,20261014T160000Z/20261014T193000Z",
    "RDATE;VALUE=PERIOD;TZID=Europe/Berlin:20261024T160000/P1DT2H,20261026T160000/20261026T170000",
    "RDATE;TZID=Europe/Berlin:20261015T090000",
  ];
  t.same(busy([calendar(event(...times, ...rdates))]), [
    "10-12T07:00/10-12T07:30",
    "10-13T16:00/10-13T18:00",
    "10-14T16:00/10-14T19:30",
    "10-15T07:00/10-15T07:30",
    "10-24T14:00/10-25T17:00",
    "10-26T15:00/10-26T16:00",
  ]);
});

t.test("every Windows name is that of a zone", async (t) => {
  t.same(
    Object.values(windowsZones).filter((zone) => !isZone(zone)),
    [],
  );
  t.equal(Object.keys(windowsZones).length, 141);
  for (const [name, zone] of [
    ["Turks And Caicos Standard Time", "America/Grand_Turk"],
    ["Central Asia Standard Time", "Asia/Bishkek"],
    ["UTC-11", "Etc/GMT+11"],
    ["constructor", undefined],
  ] as const)
    t.equal(zoneOfWindows(name), zone);
});

t.test("an instance that was moved into the window counts, one that was moved out doesn't", async (t) => {
  const master = event("DTSTART:20260901T090000Z", "DTEND:20260901T100000Z", "RRULE:FREQ=MONTHLY;COUNT=2");
  const into = event("RECURRENCE-ID:20260901T090000Z", "DTSTART:20261015T090000Z", "DTEND:20261015T100000Z");
  const out = event("RECURRENCE-ID:20261001T090000Z", "DTSTART:20270101T090000Z", "DTEND:20270101T100000Z");
  t.same(busy([calendar(master, into, out)]), ["10-15T09:00/10-15T10:00"]);
  t.same(busy([calendar(into)]), ["10-15T09:00/10-15T10:00"], "also without its master");
});

t.test("THISANDFUTURE shifts that and all later instances", async (t) => {
  const shifted = event(
    "RECURRENCE-ID;RANGE=THISANDFUTURE;TZID=Europe/Berlin:20261026T090000",
    "DTSTART;TZID=Europe/Berlin:20261027T100000",
    "DTEND;TZID=Europe/Berlin:20261027T103000",
  );
  t.same(busy([calendar(event(...weekly), shifted)]), [
    "10-12T07:00/10-12T08:00",
    "10-19T07:00/10-19T08:00",
    "10-27T09:00/10-27T09:30",
    "11-03T09:00/11-03T09:30",
    "11-10T09:00/11-10T09:30",
  ]);
  const earlier = event("RECURRENCE-ID;RANGE=THISANDFUTURE:20261019T070000Z", "DTSTART:20261019T080000Z");
  t.same(busy([calendar(event(...weekly), shifted, earlier)]).length, 4, "in any order");
});

t.test("RDATE adds, UNTIL ends, and old series are found in the window", async (t) => {
  t.same(
    busy([
      calendar(event("DTSTART:20261012T090000Z", "DTEND:20261012T100000Z", "RDATE:20261015T090000Z,20261016T090000Z")),
    ]).length,
    3,
  );
  t.same(
    busy([
      calendar(
        event("DTSTART;TZID=Europe/Berlin:20261012T090000", "DURATION:PT1H", "RRULE:FREQ=DAILY;UNTIL=20261014T070000Z"),
      ),
    ]).length,
    3,
  );
  const nights = ["DTSTART;TZID=America/New_York:20261012T010000", "DURATION:PT1H"];
  const ended = event(...nights, "RRULE:FREQ=DAILY;UNTIL=20261014T045959Z");
  t.equal(busy([calendar(ended)]).length, 2, "a second before the third night");
  t.same(busy([calendar(event("DTSTART;VALUE=DATE:20261012", "RRULE:FREQ=DAILY;UNTIL=20261014"))]).length, 3);
  const old = event(
    "DTSTART;TZID=Europe/Berlin:20151012T090000",
    "DURATION:PT1H",
    "RRULE:FREQ=WEEKLY;BYDAY=MO,WE,FR;WKST=SU",
  );
  t.equal(busy([calendar(old)]).length, 26);
});

t.test("a whole day that ends on its own date is one, as calendars show it", async (t) => {
  const day = ["10-12T22:00/10-13T22:00"];
  for (const end of ["DTEND;VALUE=DATE:20261013", "DTEND;VALUE=DATE:20261012", "DURATION:PT0S", "DTEND:20261013"])
    t.same(busy([calendar(event("DTSTART;VALUE=DATE:20261013", end))]), day, end);
  const series = event("DTSTART;VALUE=DATE:20261012", "DTEND;VALUE=DATE:20261012", "RRULE:FREQ=DAILY;COUNT=3");
  t.same(busy([calendar(series)]), ["10-11T22:00/10-12T22:00", "10-12T22:00/10-13T22:00", "10-13T22:00/10-14T22:00"]);
  t.same(busy([calendar(event("DTSTART:20261013", "DTEND:20261014"))]), day, "without VALUE=DATE");
  t.same(busy([calendar(event("DTSTART:20261013T090000Z", "DTEND:20261013T090000Z"))]), [], "a time that takes none");
});

t.test("UNTIL of whole days may be a time: a local midnight, or one on the last date", async (t) => {
  const lengthOf = (until: string, zone: string): number =>
    busy([calendar(event("DTSTART;VALUE=DATE:20261012", `RRULE:FREQ=DAILY;UNTIL=${until}`))], { zone }).length;
  t.equal(lengthOf("20261013T220000Z", "Europe/Berlin"), 3, "midnight of the 14th, as Outlook writes it");
  t.equal(lengthOf("20261013T230000Z", "Europe/Berlin"), 3, "midnight of the 14th in London");
  t.equal(lengthOf("20261014T000000Z", "Europe/Berlin"), 3);
  t.equal(lengthOf("20261014T235959Z", "Europe/Berlin"), 3);
  t.equal(lengthOf("20261014T040000Z", "America/New_York"), 3, "midnight of the 14th");
  t.equal(lengthOf("20261014T000000Z", "America/New_York"), 3);
  t.equal(lengthOf("20261014T235959Z", "America/New_York"), 3);
  t.equal(lengthOf("20261014T235959", "Europe/Berlin"), 3);
  t.equal(lengthOf("20261014T215959Z", "Europe/Berlin"), 3, "the end of the 14th");
  t.equal(lengthOf("20261015T035959Z", "America/New_York"), 3, "the end of the 14th");
});

t.test("a date excludes or replaces the instance that starts on it", async (t) => {
  const excluded = event(...weekly, "EXDATE;VALUE=DATE:20261019,20261109");
  t.same(busy([calendar(excluded)]), ["10-12T07:00/10-12T08:00", "10-26T08:00/10-26T09:00", "11-02T08:00/11-02T09:00"]);
  const moved = event("RECURRENCE-ID;VALUE=DATE:20261102", "DTSTART:20261102T120000Z", "DURATION:PT1H");
  t.same(busy([calendar(excluded, moved)]), [
    "10-12T07:00/10-12T08:00",
    "10-26T08:00/10-26T09:00",
    "11-02T12:00/11-02T13:00",
  ]);
});

t.test(
  "a midnight excludes or replaces the whole day that it begins, in whatever zone the days are read",
  async (t) => {
    const days = ["DTSTART;VALUE=DATE:20261012", "DTEND;VALUE=DATE:20261013", "RRULE:FREQ=DAILY;COUNT=4"];
    const excluded = event(...days, "EXDATE;TZID=W. Europe Standard Time:20261013T000000");
    const moved = event("RECURRENCE-ID;TZID=W. Europe Standard Time:20261015T000000", "DTSTART;VALUE=DATE:20261020");
    for (const zone of ["Europe/Berlin", "America/New_York", "Asia/Tokyo"]) {
      const dates = busy([calendar(excluded, moved)], { zone });
      const plain = event("DTSTART;VALUE=DATE:20261012", "RDATE;VALUE=DATE:20261014,20261020");
      t.same(dates, busy([calendar(plain)], { zone }), zone);
    }
    const timed = event("DTSTART:20261012T000000Z", "DURATION:PT1H", "RRULE:FREQ=DAILY;COUNT=2");
    t.equal(busy([calendar(timed.replace("END:V", "EXDATE;TZID=Asia/Tokyo:20261013T000000\r\nEND:V"))]).length, 2);
  },
);

t.test("the start of a series is its first instance, even where its own rule leaves it out", async (t) => {
  const tuesday = ["DTSTART:20261013T090000Z", "DURATION:PT1H"];
  t.same(busy([calendar(event(...tuesday, "RRULE:FREQ=WEEKLY;BYDAY=MO;COUNT=3"))]), [
    "10-13T09:00/10-13T10:00",
    "10-19T09:00/10-19T10:00",
    "10-26T09:00/10-26T10:00",
  ]);
  t.same(busy([calendar(event(...tuesday, "RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"))]), ["10-13T09:00/10-13T10:00"]);
  const excluded = event(...tuesday, "RRULE:FREQ=WEEKLY;BYDAY=MO;COUNT=2", "EXDATE:20261013T090000Z");
  t.same(busy([calendar(excluded)]), ["10-19T09:00/10-19T10:00"]);
  const ended = event(...tuesday, "RRULE:FREQ=WEEKLY;BYDAY=MO;UNTIL=20261012T235959Z");
  t.same(busy([calendar(ended)]), [], "a series that ended before it began");
});

t.test("what can't be read of an object leaves its other events as they are", async (t) => {
  const series = event("DTSTART:20261012T090000Z", "DTEND:20261012T100000Z", "RRULE:FREQ=WEEKLY;COUNT=2");
  const whole = ["10-12T09:00/10-12T10:00", "10-19T09:00/10-19T10:00"];
  const second = "RECURRENCE-ID:20261019T090000Z";
  for (const broken of [
    event(second, "DTSTART:20261019T120000Z", "DURATION:garbage"),
    event(second, "DTSTART:20261399T120000Z", "DURATION:PT1H"),
    event(second, "DTSTART:20261019T120000Z", "DTEND:garbage"),
    event("DTSTART:20261012T120000Z", "DURATION:garbage").replace("UID:1", "UID:2"),
  ]) {
    t.same(busy([calendar(series, broken)]), whole, broken);
    t.match(expandObject(calendar(series, broken), asked()).fault, /can't be read/, broken);
  }
  t.same(
    busy([calendar(series.replace("END:VEVENT", "EXDATE:garbage\r\nRDATE:20261399T000000Z\r\nEND:VEVENT"))]),
    whole,
  );
});

async function apart(objects: string[], more: Partial<Expansion> = {}): Promise<ExpandedObject[]> {
  const expanded: ExpandedObject[] = [];
  for await (const one of expandApart(objects, asked(more), "acme")) expanded.push(one);
  return expanded;
}

t.test("rules on which others spin end, and those that never do are ended with their thread", async (t) => {
  const rule = (text: string) => calendar(event("DTSTART:20261001T090000Z", "DURATION:PT1H", `RRULE:${text}`));
  const endless = rule("FREQ=SECONDLY");
  const objects = [rule("FREQ=DAILY;BYMONTHDAY=-1,-2;COUNT=5"), rule("FREQ=MINUTELY"), "no calendar at all"];
  const [short, many, none] = await apart(objects);
  t.equal(short?.busy.length, 5, "its start, and the last days of two months");
  t.match(many, { busy: [], fault: /too (many|long)/ });
  t.match(none, { busy: [], fault: /calendar object/ });
  t.match(await apart([objects[0] as string], { maxInstances: 4 }), [{ busy: [], fault: /too many/ }]);
  const to = Date.parse("2030-01-01T00:00:00Z");
  const found = await apart([objects[0] as string, endless], { to, maxInstances: 1_000_000_000 });
  t.equal(found[0]?.busy.length, 5, "those beside it are read");
  t.match(found[1], { busy: [], fault: String });
});
