import t from "tap";
import { writeBusy } from "../core/scheduling/times.ts";
import { keys } from "../core/store/keys.ts";
import { mastersOf } from "../core/store/redis.ts";
import { repeatScripts } from "../fixtures/redis.ts";
import { ada, monday, openStage, PUBLIC_EVENTS_PATH } from "../fixtures/scheduling/owner.ts";

const base = "/v2/handles/acme/scheduling";
const day = (date: string) => [`${date}T00:00:00Z`, `${date}T23:59:59Z`] as const;
const slot = (start: string, end: string) => ({ start: `2026-10-05T${start}:00Z`, end: `2026-10-05T${end}:00Z` });

t.test("a listed slot is booked, and then it is gone", async (t) => {
  const { event, slots, service, book } = await openStage(t);
  const eventTypeId = await event({ slug: "intro", locations: [{ type: "in_person", label: "Office" }] });
  const before = await service.visitor
    .get(`${PUBLIC_EVENTS_PATH}/intro/slots?start=${monday}&end=2026-10-05T10:00:00Z`)
    .expect(200);
  t.same(Object.keys(before.body), ["slots", "displayTimeZone"]);
  t.equal(before.body.displayTimeZone, "UTC");
  t.match(before.body.slots, [
    {
      start: "2026-10-05T09:00:00.000Z",
      end: "2026-10-05T09:30:00.000Z",
      timeZone: "UTC",
      sourceAvailability: { kind: "weekly", label: String },
      bookingNonce: /^v1\./,
    },
    { start: "2026-10-05T09:30:00.000Z" },
  ]);
  const tracking = { source: "newsletter", placement: "footer" };
  const made = await book("intro", "2026-10-05T09:30:00Z", 30, { tracking, extra: "ignored" }).expect(201);
  const { booking } = made.body;
  t.match(made.body.bookingUid, /^[0-9A-Za-z]{22}$/);
  t.equal(made.body.status, "ACCEPTED");
  t.equal(made.body.nextAction, undefined);
  t.match(booking, {
    bookingUid: made.body.bookingUid,
    handle: "acme",
    eventTypeId,
    eventSlug: "intro",
    title: "A talk",
    status: "ACCEPTED",
    start: "2026-10-05T09:30:00.000Z",
    end: "2026-10-05T10:00:00.000Z",
    durationMinutes: 30,
    timeZone: "UTC",
    attendee: { ...ada, timeZone: "UTC" },
    guests: [],
    answers: {},
    tracking,
    location: { type: "in_person", label: "Office" },
    meetingUrl: null,
    sequence: 0,
    syncStatus: "OK",
    payment: null,
    version: 1,
  });
  t.same(await slots("intro", monday, "2026-10-05T10:30:00Z"), ["10-05T09:00", "10-05T10:00"]);
  t.match((await book("intro", "2026-10-05T09:30:00Z", 30).expect(409)).body, { code: "scheduling_slot_unavailable" });
  const read = await service.visitor.get(`${PUBLIC_EVENTS_PATH}/intro/bookings/${made.body.bookingUid}`).expect(200);
  t.same(read.body, { booking });
  await service.visitor.get(`${PUBLIC_EVENTS_PATH}/intro/bookings/unknown`).expect(404);
});

t.test("start and end may be at the top level, and the attendee's zone is stored", async (t) => {
  const { event, service } = await openStage(t);
  await event({ slug: "intro" });
  const attendee = { ...ada, timeZone: "Asia/Kathmandu" };
  const body = { attendee, start: "2026-10-05T14:45:00+05:45", end: "2026-10-05T15:15:00+05:45" };
  const made = await service.visitor.post(`${PUBLIC_EVENTS_PATH}/intro/bookings`).send(body).expect(201);
  t.match(made.body.booking, { start: "2026-10-05T09:00:00.000Z", attendee });
});

t.test("a visitor's booking is never refused over decoration", async (t) => {
  const { event, service } = await openStage(t);
  await event({
    slug: "intro",
    locations: [
      { type: "phone", label: "Phone" },
      { type: "in_person", label: "Here" },
    ],
  });
  const post = (start: string, end: string, more: object) =>
    service.visitor
      .post(`${PUBLIC_EVENTS_PATH}/intro/bookings`)
      .send({ slot: slot(start, end), attendee: ada, ...more });
  const nothing = { guests: null, answers: null, tracking: null, location: null, start: null, end: null };
  const attendee = { name: "  Ada Lovelace ", email: " ada@example.com ", timeZone: null };
  const plain = await post("09:00", "09:30", { ...nothing, attendee }).expect(201);
  t.match(plain.body.booking, { attendee: { ...ada, timeZone: "UTC" }, guests: [], answers: {}, tracking: null });
  const tracking = { source: ` ${"https://news.example/".padEnd(300, "x")}`, placement: 5 };
  const cut = await post("09:30", "10:00", { tracking, guests: [" bob@example.com "], location: { type: "inPerson" } });
  t.match(cut.body.booking, {
    tracking: { source: tracking.source.trim().slice(0, 200), placement: "5" },
    guests: [{ email: "bob@example.com" }],
    location: { type: "in_person" },
  });
  const odd = { tracking: { source: { a: 1 }, placement: null }, location: "here" };
  t.match((await post("10:00", "10:30", odd).expect(201)).body.booking, { tracking: {}, location: { type: "phone" } });
  await post("10:30", "11:00", { tracking: "newsletter", language: "" }).expect(201);
  const unknown = await post("11:00", "11:30", { language: "de_DE.UTF-8" }).set("Accept-Language", "fr").expect(201);
  t.match(unknown.body.booking, { language: "fr" }, "a malformed language tag counts as none");
  const blank = { attendee: { ...ada, timeZone: " " }, slot: { ...slot("11:30", "12:00"), bookingNonce: "" } };
  t.match((await post("", "", blank).expect(201)).body.booking, { attendee: { timeZone: "UTC" } }, "blank is absent");
});

t.test("a request waits once for a Redis that hangs, whatever it names", async (t) => {
  const { event, service } = await openStage(t);
  await event({ slug: "intro" });
  const servers = mastersOf(service.runtime.redis);
  await Promise.all(servers.map((server) => server.call("CLIENT", "PAUSE", "4500", "ALL")));
  const since = Date.now();
  const slots = `${PUBLIC_EVENTS_PATH}/intro/slots?start=${monday}&end=2026-10-06T00:00:00Z`;
  t.match((await service.visitor.get(slots).expect(503)).body, { code: "service_unavailable" });
  t.ok(Date.now() - since < 3500, `${Date.now() - since} ms`);
});

t.test("unknown, hidden and inactive event types are 404 for any input", async (t) => {
  const { event, service } = await openStage(t);
  await event({ slug: "hidden", hidden: true });
  await event({ slug: "paused", status: "PAUSED" });
  const bodies = [
    {},
    [],
    "no json",
    { attendee: "Ada" },
    { attendee: ada },
    { bookingUid: "none" },
    { attendee: ada, slot: slot("09:00", "09:30") },
    "x".repeat(70_000),
  ];
  for (const name of ["hidden", "paused", "unknown", "NO SLUG"])
    for (const route of ["bookings", "reschedule"])
      for (const [body, key] of bodies.flatMap((body) =>
        [300, 1].map((length) => [body, "k".repeat(length)] as const),
      )) {
        const post = service.visitor.post(`${PUBLIC_EVENTS_PATH}/${encodeURIComponent(name)}/${route}`).type("json");
        const { status, body: problem } = await post.set("Idempotency-Key", key).send(body as object);
        t.match({ status, code: problem.code }, { status: 404, code: "event_type_not_found" }, `${name} ${route}`);
      }
  for (const body of bodies) {
    const post = service.visitor.post(`${PUBLIC_EVENTS_PATH}/unknown/bookings/none/cancel`).type("json");
    t.equal((await post.send(body as object).expect(404)).body.code, "booking_not_found");
  }
  const backwards = "?start=2026-10-05T00:00:00Z&end=2026-10-04T00:00:00Z";
  for (const query of [
    "",
    "?start=tomorrow",
    backwards,
    "?start=2026-10-05T00:00:00Z&end=2027-10-05T00:00:00Z&timeZone=Mars",
  ])
    t.match((await service.visitor.get(`${PUBLIC_EVENTS_PATH}/hidden/slots${query}`).expect(404)).body, {
      code: "event_type_not_found",
    });
  await service.visitor.post("/v2/public/scheduling/nobody/intro/bookings").send("x").expect(404);
});

t.test("types of locations and questions are accepted in any case and with - or _", async (t) => {
  const { owner } = await openStage(t);
  const types = {
    TEXTAREA: "textarea",
    textArea: "textarea",
    "TEXT-AREA": "text-area",
    Text_Area: "text_area",
    BOOLEAN: "boolean",
  };
  const places = {
    IN_PERSON: "in_person",
    inPerson: "in_person",
    "in-person": "in_person",
    GoogleMeet: "google_meet",
    VIDEO: "video",
    "Video-Call": "video-call",
  };
  const made = await owner.post(`${base}/event-types`).send({
    slug: "intro",
    title: "Introduction",
    durationMinutes: 30,
    bookingFields: Object.keys(types).map((type, at) => ({ id: `f${at}`, label: "?", type })),
    locations: Object.keys(places).map((type) => ({ type, label: "Somewhere" })),
  });
  t.equal(made.status, 201, JSON.stringify(made.body));
  const { bookingFields, locations, eventTypeId } = made.body.eventType;
  const typesOf = (list: { type: string }[]) => list.map(({ type }) => type);
  t.same([typesOf(bookingFields), typesOf(locations)], [Object.values(types), Object.values(places)]);
  const change = { bookingFields: [{ id: "a", label: "?", type: "Text" }] };
  t.match((await owner.put(`${base}/event-types/${eventTypeId}`).send(change).expect(200)).body.eventType, {
    bookingFields: [{ type: "text" }],
  });
  for (const wrong of [{ bookingFields: [{ id: "a", label: "?", type: "colour" }] }, { locations: [{ type: "5th" }] }])
    await owner.put(`${base}/event-types/${eventTypeId}`).send(wrong).expect(400);
});

t.test("missing inputs have their own code, malformed ones are named", async (t) => {
  const { event, service } = await openStage(t);
  await event({ slug: "intro" });
  const at = slot("09:00", "09:30");
  const missing: object[] = [
    {},
    { slot: at },
    { attendee: ada },
    { attendee: "Ada", slot: at },
    { attendee: { email: ada.email }, slot: at },
    { attendee: { name: ada.name }, slot: at },
    { attendee: { ...ada, name: "  " }, slot: at },
    ...["\u200b", "\u2800 \u3164", "\u{e0041}\u{e007f}", "\ufe0f\ufff9"].map((name) => ({
      attendee: { ...ada, name },
      slot: at,
    })),
    { attendee: { ...ada, name: 5 }, slot: at },
    { attendee: { ...ada, name: null }, slot: at },
    { attendee: { ...ada, email: "" }, slot: at },
    { attendee: ada, slot: { start: at.start } },
    { attendee: ada, slot: { end: at.end } },
    { attendee: ada, slot: { ...at, start: "" } },
    { attendee: ada, slot: { ...at, end: null } },
    { attendee: ada, slot: "now" },
    { attendee: ada, start: at.start },
  ];
  for (const body of missing) {
    const answer = await service.visitor.post(`${PUBLIC_EVENTS_PATH}/intro/bookings`).send(body);
    t.match(answer.body, { status: 400, code: "booking_required_fields" }, JSON.stringify(body));
  }
  const malformed: [string, object][] = [
    ["/attendee/email", { attendee: { ...ada, email: "ada at example" }, slot: at }],
    ["/attendee/name", { attendee: { ...ada, name: "Ada\r\nBcc: all@example.com" }, slot: at }],
    ["/attendee/timeZone", { attendee: { ...ada, timeZone: "Mars/Olympus" }, slot: at }],
    ["/attendee/timeZone", { attendee: { ...ada, timeZone: "IST" }, slot: at }],
    ["/attendee/timeZone", { attendee: { ...ada, timeZone: 5 }, slot: at }],
    ["/slot/start", { attendee: ada, slot: { ...at, start: "tomorrow" } }],
    ["/slot/start", { attendee: ada, slot: { ...at, start: "2026-10-05T09:00:00" } }],
    ["/slot/end", { attendee: ada, slot: { ...at, end: "2026-02-30T09:30:00Z" } }],
    ["/guests", { attendee: ada, slot: at, guests: Array.from({ length: 21 }, (_, n) => `g${n}@example.com`) }],
    ["/guests/0", { attendee: ada, slot: at, guests: ["nobody"] }],
    ["/guests/0/name", { attendee: ada, slot: at, guests: [{ email: "g@example.com", name: "a\nb" }] }],
  ];
  for (const [path, body] of malformed) {
    const answer = await service.visitor.post(`${PUBLIC_EVENTS_PATH}/intro/bookings`).send(body);
    t.match(answer.body, { status: 400, code: "invalid_request" }, JSON.stringify(body).slice(0, 100));
    t.ok(
      answer.body.errors.some((fault: { path: string }) => fault.path === path),
      `${path}: ${JSON.stringify(answer.body.errors)}`,
    );
  }
  const both = await service.visitor
    .post(`${PUBLIC_EVENTS_PATH}/intro/bookings`)
    .send({ attendee: { email: "x" }, slot: at });
  t.match(both.body, { code: "booking_required_fields" }, "the specific code wins");
  const guests = ["g@example.com", { email: "h@example.com", name: "Hugo" }, "G@example.com", ada.email];
  const made = await service.visitor
    .post(`${PUBLIC_EVENTS_PATH}/intro/bookings`)
    .send({ attendee: ada, slot: at, guests })
    .expect(201);
  t.same(made.body.booking.guests, [{ email: "g@example.com" }, { email: "h@example.com", name: "Hugo" }]);
});

t.test("a slot that is off the grid, over, too near or too far, or of another length is not there", async (t) => {
  const { event, book, service, at } = await openStage(t);
  await event({ slug: "intro", minimumNoticeMinutes: 60, bookingWindowDays: 7 });
  const gone = async (start: string, minutes = 30) =>
    t.match(
      (await book("intro", start, minutes)).body,
      { status: 409, code: "scheduling_slot_unavailable" },
      `${start} ${minutes}`,
    );
  await gone("2026-10-05T09:10:00Z");
  await gone("2026-10-05T09:00:01Z");
  await gone("2026-10-05T17:00:00Z");
  await gone("2026-10-05T08:30:00Z");
  await gone("2026-10-05T09:00:00Z", 60);
  await gone("2026-10-05T09:00:00Z", 0);
  await gone("2026-10-05T09:00:00Z", -30);
  await gone("2026-10-13T09:00:00Z");
  await gone("2026-10-01T09:00:00Z");
  await event({ slug: "any" });
  const beyond = { start: "9999-12-31T23:00:00-12:00", end: "9999-12-31T23:30:00-12:00" };
  t.match((await book("any", beyond.start, 30, { slot: beyond })).body, { code: "scheduling_slot_unavailable" });
  await book("intro", "2026-10-12T16:30:00Z", 30).expect(201);
  at("2026-10-05T08:00:00.001Z");
  await gone("2026-10-05T09:00:00Z");
  at("2026-10-05T08:00:00Z");
  await book("intro", "2026-10-05T09:00:00Z", 30).expect(201);
  t.equal((await service.runtime.redis.zcard(keys.blocks("acme"))) as number, 2, "the refused ones left nothing");
});

t.test("the grid of the visitor's zone counts too, and a nonce proves that of any other", async (t) => {
  const { event, service, slots } = await openStage(t);
  await event({ slug: "hour", durationMinutes: 60 });
  const other = await event({ slug: "other", durationMinutes: 60 });
  t.same(await slots("hour", monday, "2026-10-05T11:00:00Z"), ["10-05T09:00", "10-05T10:00"]);
  t.same(await slots("hour", monday, "2026-10-05T11:00:00Z", "&timeZone=Asia/Kathmandu"), [
    "10-05T09:15",
    "10-05T10:15",
  ]);
  const book = (slug: string, body: object) =>
    service.visitor.post(`${PUBLIC_EVENTS_PATH}/${slug}/bookings`).send(body);
  const quarter = slot("09:15", "10:15");
  await book("hour", { attendee: ada, slot: quarter }).expect(409);
  const listed = await service.visitor.get(
    `${PUBLIC_EVENTS_PATH}/hour/slots?start=${monday}&end=2026-10-05T17:00:00Z&timeZone=Asia/Kathmandu`,
  );
  t.equal(listed.body.displayTimeZone, "Asia/Kathmandu");
  const [first, second, third] = listed.body.slots;
  await book("other", { attendee: ada, slot: first }).expect(409);
  await book("hour", { attendee: ada, slot: { ...quarter, bookingNonce: second.bookingNonce } }).expect(409);
  const altered = first.bookingNonce.replace(/.$/, (last: string) => (last === "_" ? "-" : "_"));
  await book("hour", { attendee: ada, slot: { ...first, bookingNonce: altered } }).expect(409);
  await book("hour", { attendee: ada, slot: first }).expect(201);
  await book("hour", { attendee: ada, slot: first }).expect(409);
  t.pass("a nonce never replaces the check for conflicts");
  await book("hour", {
    attendee: { ...ada, timeZone: "Asia/Kathmandu" },
    slot: { start: second.start, end: second.end },
  }).expect(201);
  // On the grid of the event's own zone, yet the nonce says that it was offered for another event.
  const foreign = await service.visitor.get(
    `${PUBLIC_EVENTS_PATH}/other/slots?start=2026-10-06T09:00:00Z&end=2026-10-06T10:00:00Z`,
  );
  t.match((await book("hour", { attendee: ada, slot: foreign.body.slots[0] })).body, {
    status: 409,
    code: "scheduling_slot_unavailable",
  });
  const outdated = await service.visitor.get(
    `${PUBLIC_EVENTS_PATH}/other/slots?start=2026-10-07T09:00:00Z&end=2026-10-07T10:00:00Z`,
  );
  const owner = await service.as("user_acme");
  await owner.put(`${base}/event-types/${other}`).send({ title: "Another" }).expect(200);
  await book("other", { attendee: ada, slot: outdated.body.slots[0] }).expect(201);
  await book("hour", {
    attendee: ada,
    slot: { ...third, start: "2026-10-05T08:15:00Z", end: "2026-10-05T09:15:00Z" },
  }).expect(409);
});

t.test("a slot with its nonce is refused on busy time and on a full day", async (t) => {
  const { event, service } = await openStage(t);
  await event({ slug: "few", maxBookingsPerDay: 1 });
  const path = `${PUBLIC_EVENTS_PATH}/few`;
  const { body } = await service.visitor.get(`${path}/slots?start=${monday}&end=2026-10-05T12:00:00Z`);
  const [first, second, third] = body.slots;
  const book = (listed: object) => service.visitor.post(`${path}/bookings`).send({ attendee: ada, slot: listed });
  const blocks = [{ from: Date.parse(first.start), to: Date.parse(first.end) }];
  await writeBusy(service.runtime, "acme", { blocks, source: "", readAt: Date.now() });
  t.match((await book(first).expect(409)).body, { code: "scheduling_slot_unavailable" });
  await book(second).expect(201);
  t.match((await book(third).expect(409)).body, { code: "scheduling_slot_unavailable" });
});

t.test("a null nonce counts as none", async (t) => {
  const { event, service } = await openStage(t);
  await event({ slug: "intro" });
  const book = (bookingNonce: unknown) => {
    const body = { attendee: ada, slot: { ...slot("09:00", "09:30"), bookingNonce } };
    return service.visitor.post(`${PUBLIC_EVENTS_PATH}/intro/bookings`).send(body);
  };
  t.match((await book(5).expect(400)).body, { code: "invalid_request", errors: [{ path: "/slot/bookingNonce" }] });
  await book(null).expect(201);
});

t.test("a tab that is pasted into one line counts as a space", async (t) => {
  const { event, book } = await openStage(t);
  const bookingFields = ["text", "phone"].map((type) => ({ id: type, type, label: type, required: true }));
  await event({ slug: "intro", bookingFields });
  const { body } = await book("intro", "2026-10-05T09:00:00Z", 30, {
    attendee: { ...ada, name: "Ada\tLovelace\t" },
    guests: [{ email: "bob@example.com", name: "Bob\tBee" }],
    answers: { text: "Engines\tLondon", phone: "+44\t20 7946 0018" },
  }).expect(201);
  t.match(body.booking, {
    attendee: { name: "Ada Lovelace" },
    guests: [{ name: "Bob Bee" }],
    answers: { text: "Engines London", phone: "+44 20 7946 0018" },
  });
});

t.test("questions are answered as their kind asks", async (t) => {
  const { event, book } = await openStage(t);
  const field = (id: string, type: string, more: object = {}) => ({ id, type, label: id, required: false, ...more });
  const bookingFields = [
    field("company", "text", { required: true }),
    field("story", "text_area"),
    field("mail", "email"),
    field("phone", "phone"),
    field("size", "number"),
    field("plan", "select", { options: ["small", " large "] }),
    field("day", "radio", { options: ["Mon", "Tue"] }),
    field("terms", "checkbox", { required: true }),
    field("guest", "boolean"),
    field("site", "url"),
    field("constructor", "text"),
  ];
  await event({ slug: "intro", bookingFields });
  const good = { company: "Acme", terms: "true" };
  const refused: [string, unknown][] = [
    ["company", undefined],
    ["company", "  "],
    ["company", null],
    ["company", ["Acme"]],
    ["company", "a\nb"],
    ["company", "x".repeat(1001)],
    ["company", "\u{1f600}".repeat(1001)],
    ["story", "x".repeat(10_001)],
    ["mail", "nobody"],
    ["phone", "call me"],
    ["phone", "12"],
    ["size", "many"],
    ["size", `${"1".repeat(60_000)}x`],
    ["phone", `${"1 ".repeat(30_000)}x`],
    ["site", `https://${"a".repeat(60_000)}`],
    ["site", "https://["],
    ["plan", "medium"],
    ["day", "Wed"],
    ["terms", "false"],
    ["guest", "perhaps"],
    ["site", "javascript:alert(1)"],
    ["site", "acme"],
  ];
  for (const [id, answer] of refused) {
    const { body } = await book("intro", "2026-10-05T09:00:00Z", 30, { answers: { ...good, [id]: answer } });
    t.match(
      body,
      { status: 400, code: "invalid_booking_answers", errors: [{ path: `/answers/${id}` }] },
      `${id}: ${String(answer).slice(0, 20)}`,
    );
  }
  for (const answers of ["Acme", ["Acme"], 5])
    t.match((await book("intro", "2026-10-05T09:00:00Z", 30, { answers })).body, {
      status: 400,
      code: "invalid_booking_answers",
    });
  const answers = {
    company: " Acme ",
    story: `one\n${"\u{1f600}".repeat(9_996)}`,
    mail: "a@example.com",
    phone: "+49 (0)30 12 34 56",
    size: 12.5,
    plan: "large",
    day: "",
    terms: true,
    guest: false,
    site: "https://example.com/a?b=c",
    unknown: { any: "thing" },
  };
  const made = await book("intro", "2026-10-05T09:00:00Z", 30, { answers }).expect(201);
  const { day: _blank, unknown: _unknown, ...kept } = answers;
  t.same(made.body.booking.answers, { ...kept, company: "Acme", size: "12.5", terms: "true", guest: "false" });
});

t.test("pasted direction marks, wide letters and the digits of other scripts are read as they are meant", async (t) => {
  const { event, service } = await openStage(t);
  const field = (id: string, type: string) => ({ id, type, label: id, required: true });
  await event({
    slug: "intro",
    bookingFields: [field("mail", "email"), field("phone", "phone"), field("size", "number")],
  });
  const asked = {
    slot: { start: "2026-10-05T09:00:00Z", end: "2026-10-05T09:30:00Z" },
    attendee: { name: "Ada", email: "\u202aada@example.com\u202c" },
    guests: ["bob\u200b@example.com", { email: "ｃａｒｏｌ＠example.com" }],
    answers: { mail: "dan@example.com\u200e", phone: "\u202a(+٤٩)\u00a0٣٠\u2011١٢٣٤٥٦\u202c", size: "１２．５" },
  };
  const { booking } = (await service.visitor.post(`${PUBLIC_EVENTS_PATH}/intro/bookings`).send(asked).expect(201)).body;
  t.equal(booking.attendee.email, "ada@example.com");
  t.same(booking.guests, [{ email: "bob@example.com" }, { email: "carol@example.com" }]);
  t.same(booking.answers, { mail: "dan@example.com", phone: "(+49) 30\u2010123456", size: "12.5" });
});

t.test("a repeated request with the same key gets the first answer, another body a conflict", async (t) => {
  const { event, book, owner, service } = await openStage(t);
  await event({ slug: "intro" });
  await event({ slug: "other" });
  const ask = (slug: string, start: string, more: object = {}) =>
    book(slug, start, 30, { ...more }).set("Idempotency-Key", "key-1");
  const first = await ask("intro", "2026-10-05T09:00:00Z", { unknown: 1 }).expect(201);
  t.equal(first.headers["idempotency-replayed"], undefined);
  const again = await ask("intro", "2026-10-05T09:00:00Z", { unknown: 1 }).expect(201);
  t.same(again.body, first.body);
  t.equal(again.headers["idempotency-replayed"], "true");
  t.match((await ask("intro", "2026-10-05T09:30:00Z").expect(409)).body, { code: "idempotency_conflict" });
  t.match(
    (await ask("intro", "2026-10-05T09:00:00Z", { unknown: 2 }).expect(409)).body,
    { code: "idempotency_conflict" },
    "any other body",
  );
  await ask("other", "2026-10-05T09:30:00Z").expect(201);
  await service.visitor.post(`${PUBLIC_EVENTS_PATH}/intro/bookings/${first.body.bookingUid}/cancel`).expect(200);
  t.same((await ask("intro", "2026-10-05T09:00:00Z", { unknown: 1 }).expect(201)).body, first.body, "as it was");
  t.equal((await owner.get(`${base}/bookings`)).body.bookings.length, 2);
  await ask("intro", "2026-10-05T09:00:00Z").set("Idempotency-Key", "k".repeat(256)).expect(400);
});

t.test("a stored answer is not repeated for an event type that is not public any more", async (t) => {
  const { event, book, owner, service } = await openStage(t);
  const eventTypeId = await event({ slug: "intro" });
  const ask = (more = {}) => book("intro", "2026-10-05T09:00:00Z", 30, more).set("Idempotency-Key", "key-1");
  const first = await ask().expect(201);
  const change = (fields: object) => owner.put(`${base}/event-types/${eventTypeId}`).send(fields).expect(200);
  for (const hidden of [{ hidden: true }, { hidden: false, status: "PAUSED" }]) {
    await change(hidden);
    for (const more of [{}, { unknown: 1 }])
      t.match((await ask(more).expect(404)).body, { code: "event_type_not_found" }, JSON.stringify(hidden));
  }
  await change({ status: "ACTIVE" });
  t.same((await ask().expect(201)).body, first.body);
  await service.runtime.redis.hset(keys.handle("acme"), "status", "INACTIVE");
  await ask().expect(404);
});

t.test("only successes are stored under a key", async (t) => {
  const { event, book, owner } = await openStage(t);
  await event({ slug: "intro" });
  const first = await book("intro", "2026-10-05T09:00:00Z", 30).expect(201);
  const ask = () => book("intro", "2026-10-05T09:00:00Z", 30).set("Idempotency-Key", "key-2");
  await ask().expect(409);
  await owner.post(`${base}/bookings/${first.body.bookingUid}/cancel`).expect(200);
  const second = await ask().expect(201);
  t.equal((await ask().expect(201)).body.bookingUid, second.body.bookingUid);
});

t.test("a booking whose reply is lost with the connection is made once, and is no taken slot", async (t) => {
  const { event, book, owner, service } = await openStage(t);
  await event({ slug: "intro" });
  repeatScripts(service.runtime.redis);
  const { body } = await book("intro", "2026-10-05T09:00:00Z", 30).expect(201);
  t.match((await owner.get(`${base}/bookings`)).body.bookings, [{ bookingUid: body.bookingUid, version: 1 }]);
});

t.test("many requests with one key make one booking", async (t) => {
  const { event, book, owner } = await openStage(t);
  await event({ slug: "intro" });
  const ask = () => book("intro", "2026-10-05T09:00:00Z", 30).set("Idempotency-Key", "key-3");
  const answers = await Promise.all(Array.from({ length: 30 }, ask));
  t.same([...new Set(answers.map(({ status }) => status))], [201]);
  t.equal(new Set(answers.map(({ body }) => body.bookingUid)).size, 1);
  t.equal(answers.filter(({ headers }) => headers["idempotency-replayed"] === undefined).length, 1);
  t.equal((await owner.get(`${base}/bookings`)).body.bookings.length, 1);
});

t.test("buffers of two event types add up, and a booking keeps those it was made with", async (t) => {
  const { event, book, slots, owner } = await openStage(t);
  const wide = await event({ slug: "wide", buffers: { beforeMinutes: 10, afterMinutes: 20 } });
  await event({ slug: "plain" });
  await event({ slug: "careful", buffers: { beforeMinutes: 15, afterMinutes: 0 } });
  await book("wide", "2026-10-05T11:00:00Z", 30).expect(201);
  await owner
    .put(`${base}/event-types/${wide}`)
    .send({ buffers: { beforeMinutes: 0, afterMinutes: 0 } })
    .expect(200);
  const around = (slug: string) => slots(slug, "2026-10-05T10:00:00Z", "2026-10-05T13:00:00Z");
  // The block is 10:50 to 11:50; a careful one needs another 15 minutes before it.
  t.same(await around("plain"), ["10-05T10:00", "10-05T12:00", "10-05T12:30"]);
  t.same(await around("careful"), ["10-05T10:00", "10-05T12:30"]);
  t.same(await around("wide"), ["10-05T10:00", "10-05T12:00", "10-05T12:30"]);
  await book("careful", "2026-10-05T12:00:00Z", 30).expect(409);
  await book("plain", "2026-10-05T12:00:00Z", 30).expect(201);
});

t.test("most bookings a day are counted by the local date of the schedule, for one event type", async (t) => {
  const { event, book, slots, owner } = await openStage(t);
  await event({ slug: "few", maxBookingsPerDay: 2 });
  await event({ slug: "many" });
  await book("many", "2026-10-05T09:00:00Z", 30).expect(201);
  await book("few", "2026-10-05T10:00:00Z", 30).expect(201);
  const second = await book("few", "2026-10-05T11:00:00Z", 30).expect(201);
  t.same(await slots("few", ...day("2026-10-05")), []);
  t.equal((await slots("few", ...day("2026-10-06"))).length, 16);
  await book("few", "2026-10-05T12:00:00Z", 30).expect(409);
  await owner.post(`${base}/bookings/${second.body.bookingUid}/cancel`).expect(200);
  const race = await Promise.all(
    ["12:00", "13:00", "14:00", "15:00"].map((time) => book("few", `2026-10-05T${time}:00Z`, 30)),
  );
  t.same(race.map(({ status }) => status).sort(), [201, 409, 409, 409]);
});

t.test("busy time of calendars blocks with the event's own buffers", async (t) => {
  const { event, book, slots, service } = await openStage(t);
  await event({ slug: "intro", durationMinutes: 60, buffers: { beforeMinutes: 30, afterMinutes: 15 } });
  const at = (time: string) => Date.parse(`2026-10-05T${time}Z`);
  const blocks = [
    { from: at("11:30"), to: at("12:00") },
    { from: at("11:00"), to: at("11:40") },
    { from: at("16:10"), to: at("18:00") },
    { from: Date.parse("2026-09-01T00:00Z"), to: at("09:20") },
  ];
  await writeBusy(service.runtime, "acme", { blocks, source: "", readAt: Date.now() });
  // Free: 09:50 to 10:45, 12:30 to 15:55.
  t.same(await slots("intro", ...day("2026-10-05")), ["10-05T13:00", "10-05T14:00"]);
  await book("intro", "2026-10-05T10:00:00Z", 60).expect(409);
  await book("intro", "2026-10-05T14:00:00Z", 60).expect(201);
  await writeBusy(service.runtime, "acme", { blocks: [], source: "", readAt: Date.now() });
  t.same(await slots("intro", "2026-10-05T09:00:00Z", "2026-10-05T12:00:00Z"), [
    "10-05T09:00",
    "10-05T10:00",
    "10-05T11:00",
  ]);
});

t.test("busy times that are too old are read again before a booking", async (t) => {
  const { event, book, service } = await openStage(t);
  await event({ slug: "intro" });
  const pulls = async () => (await service.runtime.queues.queue("scheduling").getDelayed()).length;
  await book("intro", "2026-10-05T12:00:00Z", 30).expect(201);
  t.equal(await pulls(), 0, "no calendar is selected");
  const blocks = [{ from: Date.parse("2026-10-05T09:00Z"), to: Date.parse("2026-10-05T10:00Z") }];
  await writeBusy(service.runtime, "acme", { blocks, source: "", readAt: Date.now() });
  await book("intro", "2026-10-05T09:00:00Z", 30).expect(409);
  t.equal(await pulls(), 0, "they were just read");
  await writeBusy(service.runtime, "acme", { blocks, source: "", readAt: Date.now() - 61_000 });
  await book("intro", "2026-10-05T09:00:00Z", 30).expect(201);
  t.equal(await pulls(), 1, "the calendar that blocked the time is not selected any more");
});

t.test("a request is confirmed until it begins, and declined afterwards too", async (t) => {
  const { event, book, owner, at } = await openStage(t);
  await event({ slug: "intro", confirmationRequired: true });
  const { bookingUid } = (await book("intro", "2026-10-05T09:00:00Z", 30).expect(201)).body;
  at("2026-10-05T09:00:00Z");
  const late = await owner.post(`${base}/bookings/${bookingUid}/confirm`).expect(409);
  t.match(late.body, { code: "booking_not_pending", detail: /time has begun/ });
  const declined = await owner.post(`${base}/bookings/${bookingUid}/decline`).expect(200);
  t.match(declined.body.booking, { status: "REJECTED" });
});

t.test("an owner confirms or declines requests, and the slot is held meanwhile", async (t) => {
  const { event, book, slots, owner } = await openStage(t);
  await event({ slug: "intro", confirmationRequired: true });
  const first = await book("intro", "2026-10-05T09:00:00Z", 30).expect(201);
  t.match(first.body, { status: "PENDING", booking: { status: "PENDING", confirmedAt: null } });
  await book("intro", "2026-10-05T09:00:00Z", 30).expect(409);
  const path = (uid: string, verb: string) => `${base}/bookings/${uid}/${verb}`;
  const confirmed = await owner.post(path(first.body.bookingUid, "confirm")).expect(200);
  t.match(confirmed.body.booking, { status: "ACCEPTED", version: 2, confirmedAt: String });
  t.match((await owner.post(path(first.body.bookingUid, "confirm")).expect(409)).body, { code: "booking_not_pending" });
  t.match((await owner.post(path(first.body.bookingUid, "decline")).expect(409)).body, { code: "booking_not_pending" });
  const second = await book("intro", "2026-10-05T10:00:00Z", 30).expect(201);
  const declined = await owner.post(path(second.body.bookingUid, "decline")).send({ reason: "On holiday" }).expect(200);
  t.match(declined.body.booking, { status: "REJECTED", cancellationReason: "On holiday", cancelledBy: "owner" });
  t.ok((await slots("intro", ...day("2026-10-05"))).includes("10-05T10:00"), "free again");
  t.match((await owner.post(path("unknown", "confirm")).expect(404)).body, { code: "booking_not_found" });
  const race = await Promise.all([
    ...Array.from({ length: 5 }, () => owner.post(path(first.body.bookingUid, "cancel"))),
    book("intro", "2026-10-05T11:00:00Z", 30),
  ]);
  t.same(
    race.map(({ status }) => status),
    [200, 200, 200, 200, 200, 201],
  );
});

t.test("a visitor cancels once and for all, while there is something to cancel", async (t) => {
  const { event, book, service, slots, at } = await openStage(t);
  await event({ slug: "intro" });
  await event({ slug: "other" });
  const made = await book("intro", "2026-10-05T09:00:00Z", 30).expect(201);
  const cancel = (slug: string, uid: string, body: object = {}) =>
    service.visitor.post(`${PUBLIC_EVENTS_PATH}/${slug}/bookings/${uid}/cancel`).send(body);
  const { bookingUid } = made.body;
  t.match((await cancel("other", bookingUid).expect(404)).body, { code: "booking_not_found" });
  const done = await cancel("intro", bookingUid, { cancellationReason: "Ill" }).expect(200);
  t.match(done.body, {
    bookingUid,
    status: "CANCELLED",
    booking: { cancellationReason: "Ill", cancelledBy: "visitor" },
  });
  t.same((await cancel("intro", bookingUid).expect(200)).body, done.body, "again is the same");
  t.ok((await slots("intro", ...day("2026-10-05"))).includes("10-05T09:00"));
  const late = await book("intro", "2026-10-05T10:00:00Z", 30).expect(201);
  at("2026-10-05T10:00:00Z");
  t.match((await cancel("intro", late.body.bookingUid).expect(409)).body, { code: "booking_not_cancellable" });
  t.match((await cancel("intro", "x".repeat(22)).expect(404)).body, { code: "booking_not_found" });
});

t.test("a booking moves in one step, under the same uid", async (t) => {
  const { event, book, service, slots, at } = await openStage(t);
  await event({ slug: "intro", durationMinutes: 60 });
  await event({ slug: "other", durationMinutes: 60 });
  const made = await book("intro", "2026-10-05T09:00:00Z", 60).expect(201);
  await book("intro", "2026-10-05T11:00:00Z", 60).expect(201);
  const { bookingUid } = made.body;
  const move = (slug: string, start: string, minutes = 60, more: object = {}) => {
    const end = new Date(Date.parse(start) + minutes * 60_000).toISOString();
    return service.visitor
      .post(`${PUBLIC_EVENTS_PATH}/${slug}/reschedule`)
      .send({ bookingUid, slot: { start, end }, ...more });
  };
  const moved = await move("intro", "2026-10-05T10:00:00Z", 60, { reschedulingReason: "Later is better" }).expect(200);
  t.match(moved.body, {
    bookingUid,
    status: "ACCEPTED",
    booking: {
      start: "2026-10-05T10:00:00.000Z",
      sequence: 1,
      reschedulingReason: "Later is better",
      rescheduledFrom: { start: "2026-10-05T09:00:00.000Z" },
    },
  });
  t.ok((await slots("intro", ...day("2026-10-05"))).includes("10-05T09:00"), "the old slot is free");
  t.match((await move("intro", "2026-10-05T11:00:00Z").expect(409)).body, { code: "scheduling_slot_unavailable" });
  t.match((await move("intro", "2026-10-05T12:10:00Z").expect(409)).body, { code: "scheduling_slot_unavailable" });
  t.match((await move("intro", "2026-10-05T12:00:00Z", 30).expect(409)).body, { code: "scheduling_slot_unavailable" });
  await book("other", "2026-10-05T10:00:00Z", 60).expect(409);
  t.pass("the slot was kept where a move failed");
  t.match((await move("other", "2026-10-05T13:00:00Z").expect(404)).body, { code: "booking_not_found" });
  const { body } = await service.visitor
    .post(`${PUBLIC_EVENTS_PATH}/intro/reschedule`)
    .send({ bookingUid })
    .expect(400);
  t.match(body, { code: "booking_required_fields" });
  await service.visitor
    .post(`${PUBLIC_EVENTS_PATH}/intro/reschedule`)
    .send({ slot: slot("13:00", "14:00") })
    .expect(400);
  const overlap = await service.visitor.get(
    `${PUBLIC_EVENTS_PATH}/intro/slots?start=${monday}&end=2026-10-05T17:00:00Z&bookingUid=${bookingUid}`,
  );
  t.ok(
    overlap.body.slots.some(({ start }: { start: string }) => start === "2026-10-05T10:00:00.000Z"),
    "its own time is free to it",
  );
  await move("intro", "2026-10-05T10:00:00Z").expect(200);
  at("2026-10-05T10:00:00Z");
  t.match((await move("intro", "2026-10-05T13:00:00Z").expect(409)).body, { code: "booking_not_reschedulable" });
  at(monday);
  await service.visitor.post(`${PUBLIC_EVENTS_PATH}/intro/bookings/${bookingUid}/cancel`).expect(200);
  t.match((await move("intro", "2026-10-05T13:00:00Z").expect(409)).body, { code: "booking_not_reschedulable" });
});

t.test("a repeated move changes nothing, and a request stays confirmed", async (t) => {
  const { event, book, service, owner } = await openStage(t);
  await event({ slug: "intro", confirmationRequired: true });
  const { bookingUid } = (await book("intro", "2026-10-05T09:00:00Z", 30).expect(201)).body;
  const move = () =>
    service.visitor
      .post(`${PUBLIC_EVENTS_PATH}/intro/reschedule`)
      .send({ bookingUid, slot: slot("10:00", "10:30") })
      .expect(200);
  t.match((await move()).body, { status: "PENDING", booking: { sequence: 1 } });
  await owner.post(`/v2/handles/acme/scheduling/bookings/${bookingUid}/confirm`).expect(200);
  t.match((await move()).body, {
    status: "ACCEPTED",
    booking: { sequence: 1, rescheduledFrom: { start: "2026-10-05T09:00:00.000Z" } },
  });
});

t.test("a move doesn't count the booking it moves against the day's limit", async (t) => {
  const { event, book, service } = await openStage(t);
  await event({ slug: "few", maxBookingsPerDay: 1 });
  const made = await book("few", "2026-10-05T09:00:00Z", 30).expect(201);
  const move = (date: string, time: string) =>
    service.visitor.post(`${PUBLIC_EVENTS_PATH}/few/reschedule`).send({
      bookingUid: made.body.bookingUid,
      slot: { start: `${date}T${time}:00Z`, end: `${date}T${time.slice(0, 3)}30:00Z` },
    });
  await move("2026-10-05", "11:00").expect(200);
  await book("few", "2026-10-06T09:00:00Z", 30).expect(201);
  await move("2026-10-06", "11:00").expect(409);
});

t.test("bookings can be read and cancelled after the event type is hidden, renamed or gone", async (t) => {
  const { event, book, service, owner } = await openStage(t);
  const eventTypeId = await event({ slug: "intro" });
  const [first, second] = [
    await book("intro", "2026-10-05T09:00:00Z", 30),
    await book("intro", "2026-10-05T10:00:00Z", 30),
  ];
  const path = `${base}/event-types/${eventTypeId}`;
  await owner.put(path).send({ hidden: true, slug: "secret" }).expect(200);
  await service.visitor.get(`${PUBLIC_EVENTS_PATH}/intro/bookings/${first.body.bookingUid}`).expect(200);
  await service.visitor.get(`${PUBLIC_EVENTS_PATH}/secret/bookings/${first.body.bookingUid}`).expect(200);
  await service.visitor.post(`${PUBLIC_EVENTS_PATH}/intro/bookings/${first.body.bookingUid}/cancel`).expect(200);
  await owner.delete(path).expect(204);
  await service.visitor.post(`${PUBLIC_EVENTS_PATH}/intro/bookings/${second.body.bookingUid}/cancel`).expect(200);
});

t.test("the owner's list is by start, filtered by status and time, and pages meet no booking twice", async (t) => {
  const { event, book, owner } = await openStage(t);
  await event({ slug: "intro" });
  const times = ["09:00", "09:30", "10:00", "10:30", "11:00"];
  const uids: string[] = [];
  for (const time of times) uids.push((await book("intro", `2026-10-05T${time}:00Z`, 30).expect(201)).body.bookingUid);
  const list = async (query: string) => (await owner.get(`${base}/bookings${query}`).expect(200)).body;
  const starts = async (query: string) =>
    (await list(query)).bookings.map(({ start }: { start: string }) => start.slice(11, 16));
  t.same(await starts(""), [...times].reverse());
  t.same(await starts("?order=asc"), times);
  t.same(await starts("?order=asc&from=2026-10-05T09:30:00Z&to=2026-10-05T10:30:00Z"), ["09:30", "10:00"]);
  await owner.post(`${base}/bookings/${uids[2]}/cancel`).expect(200);
  t.same(await starts("?status=CANCELLED"), ["10:00"]);
  t.same(await starts("?status=ACCEPTED&order=asc"), ["09:00", "09:30", "10:30", "11:00"]);
  // Three bookings with one start, two of them cancelled.
  for (const _ of [1, 2]) {
    const again = await book("intro", "2026-10-05T10:00:00Z", 30).expect(201);
    await owner.post(`${base}/bookings/${again.body.bookingUid}/cancel`).expect(200);
  }
  for (const order of ["asc", "desc"]) {
    const seen: string[] = [];
    let cursor: string | null = "";
    while (cursor !== null) {
      const page: { bookings: { bookingUid: string }[]; nextCursor: string | null } = await list(
        `?order=${order}&limit=2${cursor && `&cursor=${cursor}`}`,
      );
      seen.push(...page.bookings.map(({ bookingUid }) => bookingUid));
      cursor = page.nextCursor;
    }
    t.equal(seen.length, 7, order);
    t.equal(new Set(seen).size, 7);
  }
  const next = async (query: string) => (await list(`${query}&limit=1`)).nextCursor as string;
  const between = "from=2026-10-05T09:30:00Z&to=2026-10-05T10:00:00Z";
  t.same(await starts(`?${between}&cursor=${await next("?order=desc")}`), ["09:30"], "a cursor widens no filter");
  t.same(await starts(`?order=asc&${between}&cursor=${await next("?order=asc")}`), ["09:30"]);
  await owner.get(`${base}/bookings?limit=0`).expect(400);
  await owner.get(`${base}/bookings?status=LATE`).expect(400);
  await owner.get(`${base}/bookings?from=today`).expect(400);
  await owner.get(`${base}/bookings?cursor=nonsense`).expect(400);
  t.match((await owner.get(`${base}/bookings/${uids[0]}`).expect(200)).body.booking, { bookingUid: uids[0] });
});

t.test("an inactive handle has no events, slots or bookings", async (t) => {
  const { event, book, service } = await openStage(t);
  await event({ slug: "intro" });
  const made = await book("intro", "2026-10-05T09:00:00Z", 30).expect(201);
  await service.runtime.redis.hset(keys.handle("acme"), "status", "INACTIVE");
  await service.visitor.get(PUBLIC_EVENTS_PATH).expect(404);
  await service.visitor.get(`${PUBLIC_EVENTS_PATH}/intro`).expect(404);
  await book("intro", "2026-10-05T10:00:00Z", 30).expect(404);
  await service.visitor.get(`${PUBLIC_EVENTS_PATH}/intro/bookings/${made.body.bookingUid}`).expect(404);
  await service.visitor.post(`${PUBLIC_EVENTS_PATH}/intro/bookings/${made.body.bookingUid}/cancel`).expect(404);
});

t.test("visitors are throttled per handle if the installation configures it", async (t) => {
  const { event, service } = await openStage(t, { env: { PUBLIC_SCHEDULING_RATE: "1", PUBLIC_SCHEDULING_BURST: "3" } });
  await event({ slug: "intro" });
  const answers = [];
  for (let at = 0; at < 5; at++) answers.push(await service.visitor.get(`${PUBLIC_EVENTS_PATH}/intro`));
  t.same(
    answers.map(({ status }) => status),
    [200, 200, 200, 429, 429],
  );
  t.match(answers[4], { body: { code: "rate_limited" }, headers: { "retry-after": "1" } });
});
