import ICAL from "ical.js";
import t from "tap";
import { setHandleActive } from "../core/account/handles.ts";
import { keys } from "../core/store/keys.ts";
import { openStage, PUBLIC_EVENTS_PATH } from "../fixtures/scheduling/owner.ts";

const route = "/v2/handles/acme/scheduling/calendar-feed";

/** The events of a calendar file as a calendar reads them. */
function eventsIn(text: string): { uid: string; status: string; start: string }[] {
  const calendar = new ICAL.Component(ICAL.parse(text));
  return calendar.getAllSubcomponents("vevent").map((event) => ({
    uid: String(event.getFirstPropertyValue("uid")),
    status: String(event.getFirstPropertyValue("status")),
    start: String(event.getFirstPropertyValue("dtstart")),
  }));
}

t.test("a handle's bookings are one calendar under a secret address that can be rotated and revoked", async (t) => {
  const { owner, service, event, book } = await openStage(t);
  await event({ slug: "intro", title: "Intro" });
  await event({ slug: "asked", title: "Asked", confirmationRequired: true });
  const first = (await book("intro", "2026-10-05T09:00:00Z", 30).expect(201)).body.bookingUid;
  const second = (await book("asked", "2026-10-05T11:00:00Z", 30).expect(201)).body.bookingUid;
  t.equal((await owner.get(route).expect(404)).body.code, "not_found");
  const { feed } = (await owner.post(route).expect(201)).body;
  const { pathname } = new URL(feed.url);
  t.same((await owner.get(route).expect(200)).body, { feed: { createdAt: feed.createdAt } }, "shown once");
  const stored = await service.runtime.redis.get("calendar-feed:{acme}");
  t.notOk(stored?.includes(pathname.split("/").at(-1)?.slice(0, 22) ?? ""), "the secret is stored as a digest");

  const read = await service.visitor
    .get(pathname)
    .expect(200)
    .expect("content-type", /^text\/calendar/);
  const events = eventsIn(read.text);
  t.match(events, [
    { uid: `${first}@service.test`, status: "CONFIRMED", start: "2026-10-05T09:00:00Z" },
    { uid: `${second}@service.test`, status: "TENTATIVE", start: "2026-10-05T11:00:00Z" },
  ]);
  t.match(read.headers.etag, /^W\//, "all content codings share the tag, so it is weak (RFC 9110, section 8.8.3)");
  await service.visitor
    .get(pathname)
    .set("If-None-Match", read.headers.etag ?? "")
    .expect(304);
  await owner.post(`/v2/handles/acme/scheduling/bookings/${first}/cancel`).send({}).expect(200);
  const later = await service.visitor
    .get(pathname)
    .set("If-None-Match", read.headers.etag ?? "")
    .expect(200);
  t.same(
    eventsIn(later.text).map(({ uid }) => uid),
    [`${second}@service.test`],
  );

  const { feed: rotated } = (await owner.post(route).expect(201)).body;
  const wrong = (await service.visitor.get(pathname).expect(404)).body;
  const unknown = (await service.visitor.get(pathname.replace("/acme/", "/nobody/")).expect(404)).body;
  t.same({ ...unknown, requestId: "" }, { ...wrong, requestId: "" }, "nobody learns who has a feed");
  await service.visitor.get(new URL(rotated.url).pathname).expect(200);
  for (const [isActive, status] of [
    [false, 404],
    [true, 200],
  ] as const) {
    await setHandleActive(service.runtime.redis, "acme", isActive);
    await service.visitor.get(new URL(rotated.url).pathname).expect(status);
  }
  await owner.delete(route).expect(204);
  await service.visitor.get(new URL(rotated.url).pathname).expect(404);
  await service.visitor.get(route).expect(401);
});

t.test("an owner's calendar speaks the handle's language, and no name turns round an address in it", async (t) => {
  const { owner, service, event, book } = await openStage(t);
  await owner.put("/v2/handles/acme/settings").send({ language: "de" }).expect(200);
  await event({ slug: "intro", title: "Beratung" });
  const attendee = { name: "Ada \u202e", email: "ada@example.com" };
  await book("intro", "2026-10-05T09:00:00Z", 30).expect(201);
  await book("intro", "2026-10-05T10:00:00Z", 30, { attendee }).expect(201);
  const { feed } = (await owner.post(route).expect(201)).body;
  const { text } = await service.visitor.get(new URL(feed.url).pathname).expect(200);
  t.match(text, "SUMMARY:Beratung mit Ada Lovelace\r\n");
  t.match(text, /DESCRIPTION:Wer: Ada\s+<ada@example\.com>/);
});

t.test("no character of a visitor makes a calendar unreadable to programs that exchange it as XML", async (t) => {
  const { owner, service, event, book } = await openStage(t);
  await event({ slug: "intro", bookingFields: [{ id: "note", label: "Anything else?", type: "textarea" }] });
  const attendee = { name: "Ada\uffff 😀", email: "ada@example.com" };
  const answers = { note: "first\u0000\u0007\u001b\nsecond\ufffe" };
  const { bookingUid } = (await book("intro", "2026-10-05T09:00:00Z", 30, { attendee, answers }).expect(201)).body;
  const { pathname } = new URL((await owner.post(route).expect(201)).body.feed.url);
  const feed = (await service.visitor.get(pathname).expect(200)).text;
  t.match(feed, "Ada 😀");
  t.match(feed, "Anything else? first\\nsecond");
  const file = await service.visitor.get(`${PUBLIC_EVENTS_PATH}/intro/bookings/${bookingUid}/calendar.ics`).expect(200);
  for (const text of [feed, file.text]) t.notMatch(text, /[^\t\r\n\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u);
});

t.test("a feed of more than 1,000 bookings has those ahead, and an address only for a link", async (t) => {
  const { owner, service, event, book } = await openStage(t);
  await event({ slug: "room", locations: [{ type: "in_person", label: "Room: 5" }] });
  await event({ slug: "link", locations: [{ type: "link", label: "https://meet.example/acme" }] });
  await book("room", "2026-10-06T09:00:00Z", 30).expect(201);
  const { bookingUid } = (await book("link", "2026-10-06T10:00:00Z", 30).expect(201)).body;
  const { redis } = service.runtime;
  const stored = await redis.hgetall(keys.booking("acme", bookingUid));
  const past = { ...JSON.parse(stored.json ?? ""), start: "2026-09-05T10:00:00Z", end: "2026-09-05T10:30:00Z" };
  const writes = redis.pipeline();
  for (let at = 0; at < 1000; at++) {
    writes.hset(keys.booking("acme", `past${at}`), {
      version: 1,
      json: JSON.stringify({ ...past, bookingUid: `past${at}` }),
    });
    writes.zadd(keys.bookings("acme", "ACCEPTED"), Date.parse(past.start) + at, `past${at}`);
  }
  await writes.exec();
  const { feed } = (await owner.post(route).expect(201)).body;
  const { text } = await service.visitor.get(new URL(feed.url).pathname).expect(200);
  const starts = eventsIn(text).map(({ start }) => start);
  t.equal(starts.length, 1000);
  t.same(starts.slice(-3), ["2026-09-05T10:00:00Z", "2026-10-06T09:00:00Z", "2026-10-06T10:00:00Z"]);
  const [room = "", link = ""] = text.split("BEGIN:VEVENT").slice(-2);
  t.match(room, "LOCATION:Room: 5");
  t.notMatch(room, /^URL/m);
  t.match(link, "URL:https://meet.example/acme");
});

t.test("a feed has the handle's name as programs expect it, and no empty line", async (t) => {
  const { owner, service } = await openStage(t);
  const displayName = "Acme; bikes, \\ and more";
  await owner.put("/v2/handles/acme/settings").send({ displayName }).expect(200);
  const { feed } = (await owner.post(route).expect(201)).body;
  const { text } = await service.visitor.get(new URL(feed.url).pathname).expect(200);
  const lines = text.split("\r\n");
  for (const name of ["NAME", "X-WR-CALNAME"]) t.ok(lines.includes(`${name}:Acme\\; bikes\\, \\\\ and more`), name);
  t.same(lines.splice(-2), ["END:VCALENDAR", ""]);
  t.notOk(lines.includes(""));
  t.match(text, /^BEGIN:VTIMEZONE\r$/m, "without bookings it has a component all the same (RFC 5545, section 3.6)");
});

t.test("a feed allows 30 requests at once, and then answers 429", async (t) => {
  const { owner, service } = await openStage(t);
  const { pathname } = new URL((await owner.post(route).expect(201)).body.feed.url);
  const answers = await Promise.all(Array.from({ length: 40 }, () => service.visitor.get(pathname)));
  t.equal(answers.filter(({ status }) => status === 200).length, 30);
  t.match(
    answers.find(({ status }) => status === 429),
    { body: { code: "rate_limited" } },
  );
});
