import ICAL from "ical.js";
import PostalMime from "postal-mime";
import t, { type Test } from "tap";
import { attachDomain } from "../core/account/domains.ts";
import { calendarFile } from "../core/engines/calendars/calendar-file.ts";
import type { PaymentProvider } from "../core/platform/runtime.ts";
import { sendBookingDigest, sendMails } from "../core/scheduling/booking-mails.ts";
import { settlePayment } from "../core/scheduling/booking-payments.ts";
import { presentableName } from "../core/scheduling/booking-texts.ts";
import { keys } from "../core/store/keys.ts";
import { Inbox } from "../fixtures/inbox.ts";
import { openStage, PUBLIC_EVENTS_PATH, type Stage, unlimited } from "../fixtures/scheduling/owner.ts";
import { eventually } from "../fixtures/service.ts";
import { passDelays } from "../fixtures/time.ts";
import { startReceiver } from "../fixtures/webhook-receiver.ts";
import { languages } from "../schemas/languages.ts";
import type { Booking } from "../schemas/scheduling.ts";

const base = "/v2/handles/acme/scheduling";

/** A calendar file as another library reads it. */
function read(text: string) {
  const calendar = new ICAL.Component(ICAL.parse(text));
  for (const zone of calendar.getAllSubcomponents("vtimezone")) ICAL.TimezoneService.register(zone);
  const component = calendar.getFirstSubcomponent("vevent") as ICAL.Component;
  const event = new ICAL.Event(component);
  const people = component
    .getAllProperties("attendee")
    .map((person) => `${person.getFirstValue()} ${person.getParameter("partstat")}`);
  const value = (name: string) => component.getFirstPropertyValue(name)?.toString();
  return {
    method: calendar.getFirstPropertyValue("method"),
    uid: event.uid,
    sequence: event.sequence,
    status: value("status"),
    summary: event.summary,
    location: event.location,
    url: value("url"),
    zone: event.startDate.zone?.tzid,
    wall: event.startDate.toString(),
    start: event.startDate.toJSDate().toISOString(),
    end: event.endDate.toJSDate().toISOString(),
    organizer: value("organizer"),
    people,
  };
}

const booking: Booking = {
  bookingUid: "uid1",
  handle: "acme",
  eventTypeId: "etp_1",
  eventSlug: "intro",
  title: 'Talk; with, signs\\ and "quotes"',
  status: "ACCEPTED",
  start: "2026-10-12T09:00:00.000Z",
  end: "2026-10-12T09:45:00.000Z",
  durationMinutes: 45,
  timeZone: "UTC",
  attendee: { name: 'Ada "the first" Lovelace', email: "ada@example.com", timeZone: "Europe/Berlin" },
  guests: [{ email: "guest@example.com" }],
  answers: {},
  tracking: null,
  location: { type: "in_person", label: "Main street 1, Berlin" },
  meetingUrl: null,
  sequence: 0,
  syncStatus: "OK",
  payment: null,
  holdUntil: null,
  cancellationReason: null,
  cancelledBy: null,
  reschedulingReason: null,
  rescheduledFrom: null,
  confirmedAt: null,
  version: 1,
  createdAt: "2026-10-05T06:00:00.000Z",
  updatedAt: "2026-10-05T06:00:00.000Z",
};
const organizer = { name: "Acme", email: "calendar@acme.example", host: "service.test" };
const file = (more: Partial<Booking>) => read(calendarFile({ ...booking, ...more }, organizer).text);

t.test("a calendar file contains the booking, and another library reads the same", async (t) => {
  t.same(file({}), {
    method: "REQUEST",
    uid: "uid1@service.test",
    sequence: 0,
    status: "CONFIRMED",
    summary: 'Talk; with, signs\\ and "quotes"',
    location: "Main street 1, Berlin",
    url: undefined,
    zone: "UTC",
    wall: "2026-10-12T09:00:00Z",
    start: booking.start,
    end: booking.end,
    organizer: "mailto:calendar@acme.example",
    people: ["mailto:ada@example.com ACCEPTED", "mailto:guest@example.com NEEDS-ACTION"],
  });
  t.match(file({ status: "PENDING" }), { method: "REQUEST", status: "TENTATIVE" });
  t.match(file({ sequence: 2 }), { method: "REQUEST", sequence: 2, uid: "uid1@service.test" });
  t.match(file({ sequence: 2, status: "CANCELLED" }), {
    method: "CANCEL",
    status: "CANCELLED",
    sequence: 3,
    uid: "uid1@service.test",
  });
  t.match(file({ meetingUrl: "https://meet.example/1" }), {
    location: "https://meet.example/1",
    url: "https://meet.example/1",
  });
  t.match(file({ guests: [{ email: "ada@bücher.example" }] }).people, ["mailto:ada@example.com ACCEPTED", /@xn--/]);
  const { text } = calendarFile({ ...booking, title: "Talk\r\nATTENDEE:mailto:evil@example.com" }, organizer);
  t.notMatch(text, /^ATTENDEE:mailto:evil/m);
});

t.test("times are in the event's zone, with the zone's rules, on both sides of a change", async (t) => {
  const zones = [
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "America/New_York",
    "Asia/Kathmandu",
    "Africa/Casablanca",
    "Pacific/Chatham",
    "Antarctica/Troll",
  ];
  const starts = [
    "2026-01-15T09:00:00.000Z",
    "2026-03-29T00:30:00.000Z",
    "2026-07-15T09:00:00.000Z",
    "2026-10-25T03:30:00.000Z",
    "2026-12-31T23:30:00.000Z",
  ];
  for (const timeZone of zones)
    for (const start of starts) {
      const end = new Date(Date.parse(start) + 45 * 60_000).toISOString();
      t.match(file({ timeZone, start, end }), { zone: timeZone, start, end }, `${timeZone} ${start}`);
    }
  t.equal(file({ timeZone: "Europe/Berlin" }).wall, "2026-10-12T11:00:00");
});

t.test("a time that occurs twice is in UTC, whichever of the two it is", async (t) => {
  const timeZone = "America/New_York";
  const starts = ["2026-11-01T04:30:00.000Z", "2026-11-01T05:30:00.000Z", "2026-11-01T06:30:00.000Z"];
  for (const start of starts) {
    const end = new Date(Date.parse(start) + 45 * 60_000).toISOString();
    t.match(file({ timeZone, start, end }), { zone: "UTC", start, end }, start);
  }
  t.match(file({ timeZone, start: "2026-11-01T07:00:00.000Z", end: "2026-11-01T07:30:00.000Z" }), { zone: timeZone });
});

t.test("a link of several words is a label and no address", async (t) => {
  const { event, book } = await openStage(t);
  for (const [hour, label, meetingUrl] of [
    [10, "https://meet.example/acme", "https://meet.example/acme"],
    [11, "https://meet.example/acme (door 2)", null],
    [12, "Link: you get it by mail", null],
  ] as const) {
    const slug = `at-${hour}`;
    await event({ slug, locations: [{ type: "link", label }] });
    const { booking } = (await book(slug, `2026-10-05T${hour}:00:00Z`, 30).expect(201)).body;
    t.match(booking, { location: { label }, meetingUrl });
  }
});

t.test("a calendar file's stamp is UTC, and its properties precede its components", async (t) => {
  for (const timeZone of ["UTC", "Europe/Berlin", "America/New_York"]) {
    const { text } = calendarFile({ ...booking, timeZone }, organizer);
    t.match(text, "\r\nDTSTAMP:20261005T060000Z\r\n", timeZone);
    const [head = "", ...components] = text.split(/^(?=BEGIN:V(?:TIMEZONE|EVENT))/m);
    t.match(head, /^METHOD:REQUEST\r$/m);
    t.equal(components.length, timeZone === "UTC" ? 1 : 2);
    for (const component of components) t.match(component, /^END:(VTIMEZONE|VEVENT)\r\n(END:VCALENDAR)?$/m);
    t.notMatch(text, /^(X-WR-TIMEZONE|TIMEZONE-ID)/m);
  }
});

t.test("no line of a calendar file has more than 75 octets, and no character is torn", async (t) => {
  const { event, book, service } = await openStage(t);
  const title = `${"Größe ".repeat(20)}${"😀".repeat(20)}`;
  await event({ slug: "intro", title, description: "https://example.com/a/very/long/address/".repeat(8) });
  const { bookingUid } = (await book("intro", "2026-10-05T09:00:00Z", 30).expect(201)).body;
  const { text } = await service.visitor.get(`${PUBLIC_EVENTS_PATH}/intro/bookings/${bookingUid}/calendar.ics`);
  t.equal(read(text).summary, title);
  const longest = Math.max(...text.split("\r\n").map((line) => Buffer.byteLength(line)));
  t.ok(longest > 70 && longest <= 75, `${longest} octets (RFC 5545, section 3.1)`);
});

t.test("the visitor's calendar file follows the booking", async (t) => {
  const { event, book, service } = await openStage(t);
  await event({ slug: "intro", locations: [{ type: "link", label: "https://meet.example/acme" }] });
  const { bookingUid } = (await book("intro", "2026-10-05T09:00:00Z", 30).expect(201)).body;
  const path = `${PUBLIC_EVENTS_PATH}/intro/bookings/${bookingUid}`;
  const fetched = async () => {
    const answer = await service.visitor.get(`${path}/calendar.ics`).expect(200);
    t.match(answer.headers["content-type"], /^text\/calendar; charset=utf-8; method=/);
    return read(answer.text);
  };
  const first = await fetched();
  t.match(first, {
    method: "REQUEST",
    sequence: 0,
    start: "2026-10-05T09:00:00.000Z",
    url: "https://meet.example/acme",
  });
  const slot = { start: "2026-10-05T10:00:00Z", end: "2026-10-05T10:30:00Z" };
  await service.visitor.post(`${PUBLIC_EVENTS_PATH}/intro/reschedule`).send({ bookingUid, slot }).expect(200);
  t.match(await fetched(), { uid: first.uid, sequence: 1, start: "2026-10-05T10:00:00.000Z" });
  await service.visitor.post(`${path}/cancel`).expect(200);
  t.match(await fetched(), { uid: first.uid, sequence: 2, method: "CANCEL", status: "CANCELLED" });
  await service.visitor.get(`${PUBLIC_EVENTS_PATH}/intro/bookings/unknown/calendar.ics`).expect(404);
});

/** A stage that sends mail into an inbox, with workers. */
async function openMailing(t: Test, env: Record<string, string> = {}): Promise<{ stage: Stage; inbox: Inbox }> {
  const inbox = new Inbox();
  const settings = { SMTP_URL: await inbox.start(t), APP_URL: "https://app.test", ...env };
  const stage = await openStage(t, { env: settings, workers: ["scheduling", "email"] });
  await attachDomain(stage.service.runtime, { account: "acct_acme", domain: "acme.example", ready: true });
  const sender = { domain: "acme.example", localPart: "calendar", displayName: "Acme", purposes: ["CALENDAR"] };
  await stage.owner.put("/v2/handles/acme/email/senders/sender_cal").send(sender).expect(200);
  return { stage, inbox };
}

/** A mail as another library reads it: its subject, its text and its calendar file. */
async function partsOf({ to, source }: { to: string; source: string }) {
  const mail = await PostalMime.parse(source);
  const calendar = mail.attachments.find(({ mimeType }) => mimeType === "text/calendar")?.content ?? "";
  const text = typeof calendar === "string" ? calendar : new TextDecoder().decode(calendar);
  const replyTo = mail.replyTo?.map(({ address }) => address).join();
  return { to, subject: mail.subject ?? "", text: mail.text ?? "", html: mail.html ?? "", calendar: text, replyTo };
}

t.test(
  "attendee, guests and owner hear of a booking, its move and its end, each once, with the calendar file",
  async (t) => {
    const { stage, inbox } = await openMailing(t);
    await stage.event({
      slug: "intro",
      title: "Introduction",
      locations: [{ type: "link", label: "https://meet.example/room" }],
      bookingFields: [{ id: "topic", label: "Topic", type: "text" }],
    });
    const everyone = ["ada@example.com", "guest@example.com", "user_acme@example.com"];
    const wave = async (count: number) => {
      await eventually(() => inbox.mails.length >= count);
      const mails = inbox.mails.slice(count - everyone.length);
      t.same(mails.map(({ to }) => to).sort(), everyone);
      return Object.fromEntries((await Promise.all(mails.map(partsOf))).map((mail) => [mail.to, mail]));
    };
    const more = { guests: ["guest@example.com"], answers: { topic: "<b>Engines</b>" } };
    const { bookingUid } = (await stage.book("intro", "2026-10-05T09:00:00Z", 30, more).expect(201)).body;
    const confirmed = await wave(3);
    t.match(confirmed["ada@example.com"]?.subject, /^Confirmed: Introduction/);
    t.match(
      confirmed["ada@example.com"]?.text,
      `https://app.test/apps/public/scheduling/acme/intro?booking=${bookingUid}`,
    );
    t.match(confirmed["ada@example.com"]?.text, "Topic: <b>Engines</b>");
    t.match(confirmed["user_acme@example.com"]?.subject, /^New booking: Introduction with Ada/);
    t.same(
      everyone.map((address) => confirmed[address]?.replyTo),
      [undefined, undefined, "ada@example.com"],
      "the owner's reply reaches the attendee",
    );
    t.match(confirmed["guest@example.com"]?.text, /the person who booked added you as a guest\.\n*$/);
    t.notMatch(confirmed["ada@example.com"]?.text, "as a guest");
    for (const address of everyone) t.match(confirmed[address]?.text, "https://meet.example/room");
    t.notMatch(confirmed["guest@example.com"]?.text, bookingUid, "a guest can't manage it");
    t.notMatch(confirmed["guest@example.com"]?.calendar, bookingUid, "nor by the UID of the invitation");
    const invitation = read(confirmed["guest@example.com"]?.calendar ?? "");
    const file = read(confirmed["ada@example.com"]?.calendar ?? "");
    for (const one of [invitation, file])
      t.match(one, { method: "REQUEST", sequence: 0, organizer: "mailto:calendar@acme.example" });
    t.equal(file.uid, `${bookingUid}@service.test`);
    const owners = read(confirmed["user_acme@example.com"]?.calendar ?? "");
    t.match(owners, { uid: file.uid, summary: "Introduction with Ada Lovelace" });
    for (const one of [invitation, file]) t.equal(one.summary, "Introduction");
    const slot = { start: "2026-10-05T10:00:00Z", end: "2026-10-05T10:30:00Z" };
    await stage.service.visitor
      .post(`${PUBLIC_EVENTS_PATH}/intro/reschedule`)
      .send({ bookingUid, slot, reschedulingReason: "Train" })
      .expect(200);
    const moved = await wave(6);
    t.match(moved["ada@example.com"]?.text, "Reason: Train");
    t.match(moved["user_acme@example.com"]?.text, "Reason: Train");
    t.notMatch(moved["guest@example.com"]?.text, "Train");
    t.match(read(moved["ada@example.com"]?.calendar ?? ""), {
      uid: file.uid,
      sequence: 1,
      start: "2026-10-05T10:00:00.000Z",
    });
    await stage.owner.post(`${base}/bookings/${bookingUid}/cancel`).send({ cancellationReason: "Ill" }).expect(200);
    const cancelled = await wave(9);
    t.match(cancelled["ada@example.com"]?.subject, /^Cancelled: Introduction/);
    t.match(cancelled["guest@example.com"]?.text, "Reason: Ill", "the owner's words reach everybody");
    for (const address of everyone) t.notMatch(cancelled[address]?.text, "https://meet.example/room");
    t.match(read(cancelled["ada@example.com"]?.calendar ?? ""), { uid: file.uid, method: "CANCEL", sequence: 2 });
    const ended = read(cancelled["guest@example.com"]?.calendar ?? "");
    t.match(ended, { uid: invitation.uid, method: "CANCEL", sequence: 2 });
    const again = { handle: "acme", bookingUid, kind: "cancelled" as const, sequence: 1 };
    await sendMails(stage.service.runtime, again);
    await sendMails(stage.service.runtime, { ...again, kind: "confirmed", sequence: 0 });
    const messages = await stage.service.runtime.redis.zcard(keys.messages("acme"));
    t.equal(messages, 9, "a repeated job and one that is out of date send nothing");
  },
);

t.test("mails about a paid booking say what was paid, and the visitor's last one leads to another time", async (t) => {
  const { stage, inbox } = await openMailing(t);
  const payments: PaymentProvider = {
    accountStatus: async () => "OK",
    openCheckout: async () => ({ url: "https://pay.example/1" }),
  };
  Object.assign(stage.service.runtime, { payments });
  await stage.event({ slug: "paid", payment: { enabled: true, amountMinor: 5000, currency: "EUR" } });
  const more = { guests: ["guest@example.com"] };
  const { bookingUid } = (await stage.book("paid", "2026-10-08T09:00:00Z", 30, more).expect(201)).body;
  await settlePayment(stage.service.runtime, { handle: "acme", bookingUid });
  const textTo = async (address: string, words: RegExp): Promise<string> => {
    const all = await Promise.all(inbox.mails.map(partsOf));
    return all.find(({ to, subject }) => to === address && words.test(subject))?.text ?? "";
  };
  await eventually(() => inbox.mails.length === 3);
  t.match(await textTo("ada@example.com", /^Confirmed/), "Paid: €50.00");
  t.match(await textTo("user_acme@example.com", /^New booking/), "Paid: €50.00");
  t.notMatch(await textTo("guest@example.com", /^Confirmed/), "€");
  await stage.owner.post(`${base}/bookings/${bookingUid}/cancel`).expect(200);
  const last = await eventually(() => textTo("ada@example.com", /^Cancelled/));
  t.match(last, `Book another time:\nhttps://app.test/apps/public/scheduling/acme/paid?booking=${bookingUid}`);
  t.notMatch(last, "Paid:");
});

t.test("a request is mailed to its visitor alone; guests are invited once it is confirmed", async (t) => {
  const { stage, inbox } = await openMailing(t);
  await stage.event({ slug: "intro", title: "Introduction", confirmationRequired: true });
  const book = (start: string) => stage.book("intro", start, 30, { guests: ["guest@example.com"] }).expect(201);
  const [first, second] = [
    (await book("2026-10-05T09:00:00Z")).body.bookingUid,
    (await book("2026-10-05T10:00:00Z")).body.bookingUid,
  ];
  const heard = async (words: RegExp) => {
    const mails = await Promise.all(inbox.mails.map(partsOf));
    return mails.filter(({ to, subject }) => words.test(`${to}: ${subject}`)).length;
  };
  await eventually(() => inbox.mails.length === 4);
  t.equal(await heard(/^ada@example.com: Request received/), 2);
  t.equal(await heard(/^user_acme@example.com: Please confirm/), 2);
  t.notOk((await Promise.all(inbox.mails.map(partsOf))).some(({ calendar }) => calendar));
  await stage.owner.post(`${base}/bookings/${first}/confirm`).expect(200);
  await stage.owner.post(`${base}/bookings/${second}/decline`).send({ reason: "Full" }).expect(200);
  await eventually(() => inbox.mails.length === 9);
  t.equal(await heard(/^guest@example.com: Confirmed/), 1);
  t.equal(await heard(/^ada@example.com: Confirmed/), 1);
  t.equal(await heard(/^ada@example.com: Declined/), 1);
});

t.test(
  "a request is in no calendar file before it is confirmed, whether it is moved, declined or cancelled",
  async (t) => {
    const { stage, inbox } = await openMailing(t);
    await stage.event({ slug: "intro", confirmationRequired: true });
    const slot = { start: "2026-10-05T10:00:00Z", end: "2026-10-05T10:30:00Z" };
    for (const [round, end] of ["decline", "cancel"].entries()) {
      const mailed = (waves: number) => eventually(() => inbox.mails.length === 6 * round + 2 * waves);
      const { bookingUid } = (await stage.book("intro", "2026-10-05T09:00:00Z", 30).expect(201)).body;
      await mailed(1);
      await stage.service.visitor.post(`${PUBLIC_EVENTS_PATH}/intro/reschedule`).send({ bookingUid, slot }).expect(200);
      await mailed(2);
      await stage.owner.post(`${base}/bookings/${bookingUid}/${end}`).send({}).expect(200);
      await mailed(3);
    }
    const mails = await Promise.all(inbox.mails.map(partsOf));
    t.same(
      mails.filter(({ calendar }) => calendar).map(({ subject }) => subject),
      [],
    );
  },
);

t.test("a visitor's text reaches the owner and its author, but no guest", async (t) => {
  const { stage, inbox } = await openMailing(t);
  await stage.event({
    slug: "intro",
    title: "Introduction",
    bookingFields: [{ id: "notes", label: "Notes", type: "textarea" }],
  });
  const evil = "Your account is locked. Sign in at https://evil.example/login";
  const attendee = { name: "You won a prize! Claim at evil.example", email: "mallory@example.com" };
  const guests = ["guest@example.com", { email: "other@example.com", name: "Call 0900 123456 now" }];
  const booked = await stage
    .book("intro", "2026-10-05T09:00:00Z", 30, {
      attendee,
      guests,
      answers: { notes: evil },
      tracking: { source: evil },
    })
    .expect(201);
  const { bookingUid } = booked.body;
  t.match(booked.body.booking.attendee, attendee, "the owner's record keeps what was sent");
  const slot = { start: "2026-10-05T10:00:00Z", end: "2026-10-05T10:30:00Z" };
  await eventually(() => inbox.mails.length === 4);
  const move = { bookingUid, slot, reschedulingReason: evil };
  await stage.service.visitor.post(`${PUBLIC_EVENTS_PATH}/intro/reschedule`).send(move).expect(200);
  await eventually(() => inbox.mails.length === 8);
  const cancellation = { cancellationReason: evil };
  await stage.service.visitor
    .post(`${PUBLIC_EVENTS_PATH}/intro/bookings/${bookingUid}/cancel`)
    .send(cancellation)
    .expect(200);
  await eventually(() => inbox.mails.length === 12);
  const mails = await Promise.all(inbox.mails.map(partsOf));
  const to = (address: string) => mails.filter((mail) => mail.to === address);
  for (const mail of [...to("guest@example.com"), ...to("other@example.com")]) {
    const all = `${mail.subject}\n${mail.text}\n${mail.html}\n${mail.calendar}`;
    t.notMatch(all, /evil|locked|prize|123456/i, `${mail.to}: ${mail.subject}`);
  }
  for (const address of ["mallory@example.com", "user_acme@example.com"]) {
    t.equal(to(address).filter(({ text }) => text.includes(`Reason: ${evil}`)).length, 2, address);
    t.equal(to(address).filter(({ text }) => text.includes(`Notes: ${evil}`)).length, 3, address);
    t.ok(to(address).every(({ calendar }) => !/evil|prize|123456/.test(calendar)));
  }
  t.ok(to("mallory@example.com").every(({ subject, text }) => !/prize/.test(`${subject}${text}`)));
  t.ok(to("user_acme@example.com").every(({ text }) => text.includes(attendee.name)));
});

t.test("names are shown as given, unless they could be a message", async (t) => {
  const names = [
    "Ada Lovelace",
    "J. R. R. Tolkien",
    "J.R.R. Tolkien",
    "Nguyễn Thị Minh Khai",
    "李小龍",
    "O'Brien-Smith, Jr.",
    "Bureau 42",
  ];
  for (const name of names) t.equal(presentableName(name), name);
  const messages = [
    "Sign in at https://evil.example",
    "see www.evil.example",
    "evil.example/login",
    "evil。example",
    "write to eve@evil.example",
    "call +1 (555) 010-999",
    "Ada\u2028Lovelace",
    "Ada \u202elovelace",
    "<b>Ada</b>",
    `Dear customer, ${"your account is locked ".repeat(3)}`,
  ];
  for (const message of messages) t.equal(presentableName(message), undefined, encodeURI(message));
});

t.test(
  "a visitor's bookings cause at most 20 mails a day for an address, and the owners hear of them all",
  async (t) => {
    const { stage, inbox } = await openMailing(t, unlimited);
    await stage.event({ slug: "intro", durationMinutes: 10 });
    const book = (at: number, attendee: string, guest: string) => {
      const start = new Date(Date.parse("2026-10-05T09:00:00Z") + at * 600_000).toISOString();
      return stage
        .book("intro", start, 10, { attendee: { name: "Ada", email: attendee }, guests: [guest] })
        .expect(201);
    };
    // The mailbox is the same one, whatever the case, the detail of a subaddress and the dots.
    const spellings = ["victim@example.com", "Victim@Example.com", "victim+1@example.com", "V.IC.TIM+2@example.com"];
    const uids: string[] = [];
    for (let at = 0; at < 24; at++)
      uids.push((await book(at, `p${at}@example.com`, spellings[at % 4] as string)).body.bookingUid);
    const { redis } = stage.service.runtime;
    await eventually(async () => (await redis.zcard(keys.messages("acme"))) === 72);
    await eventually(() => inbox.mails.length === 68);
    const count = (like: RegExp) => inbox.mails.filter(({ to }) => like.test(to)).length;
    t.same([count(/^v\.?ic\.?tim/i), count(/^p\d+@/), count(/^user_acme@/)], [20, 24, 24]);
    const denied: object[] = [];
    for (let cursor = ""; cursor !== null; ) {
      const path = `/v2/handles/acme/email/events?purpose=CALENDAR&limit=100${cursor}`;
      const { events, nextCursor } = (await stage.owner.get(path).expect(200)).body;
      denied.push(...events.filter(({ type }: { type: string }) => type === "DENIED"));
      cursor = nextCursor && `&cursor=${nextCursor}`;
    }
    t.equal(denied.length, 4);
    t.match(denied[0], { reason: "visitor_mail_limit", recipient: /^v\.?ic\.?tim/i });
    await stage.owner.post(`${base}/bookings/${uids[0]}/cancel`).expect(200);
    await eventually(() => count(/^v\.?ic\.?tim/i) === 21);
    stage.at("2026-10-06T06:00:00Z");
    await book(24 * 6, "p1@example.com", "victim@example.com");
    await eventually(() => count(/^v\.?ic\.?tim/i) === 22);
  },
);

t.test("an owner whose address is given as the attendee's is mailed about every booking", async (t) => {
  const { stage, inbox } = await openMailing(t, unlimited);
  await stage.event({ slug: "intro", durationMinutes: 10 });
  const attendee = { name: "Ada", email: "user_acme@example.com" };
  for (let at = 0; at < 22; at++) {
    const start = new Date(Date.parse("2026-10-05T09:00:00Z") + at * 600_000).toISOString();
    await stage.book("intro", start, 10, { attendee }).expect(201);
  }
  await eventually(() => inbox.mails.length === 22);
});

t.test("a confirmed booking that its visitor moves waits for its owner again", async (t) => {
  const { stage, inbox } = await openMailing(t);
  const receiver = await startReceiver(t);
  await stage.owner.post(`${base}/webhooks`).send({ url: receiver.url }).expect(201);
  await stage.service.startWorkers(["webhooks"]);
  await stage.event({ slug: "intro", title: "Introduction", confirmationRequired: true });
  const guests = ["guest@example.com"];
  const { bookingUid } = (await stage.book("intro", "2026-10-05T09:00:00Z", 30, { guests }).expect(201)).body;
  await eventually(() => inbox.mails.length === 2);
  const own = `${base}/bookings/${bookingUid}`;
  await stage.owner.post(`${own}/confirm`).expect(200);
  await eventually(() => inbox.mails.length === 5);
  const move = (hour: number) => {
    const slot = { start: `2026-10-05T${hour}:00:00Z`, end: `2026-10-05T${hour}:30:00Z` };
    return stage.service.visitor.post(`${PUBLIC_EVENTS_PATH}/intro/reschedule`).send({ bookingUid, slot });
  };
  const moved = (await move(12).expect(200)).body;
  t.match(moved, { status: "PENDING", booking: { status: "PENDING", confirmedAt: null, sequence: 1 } });
  t.notOk("everConfirmed" in moved.booking);
  const wave = async (count: number, from: number) => {
    await eventually(() => inbox.mails.length === count);
    const mails = await Promise.all(inbox.mails.slice(from).map(partsOf));
    return new Map(mails.map((mail) => [mail.to, mail]));
  };
  const asked = await wave(8, 5);
  t.match(asked.get("user_acme@example.com"), {
    subject: /^Please confirm the new time/,
    text: /until you confirm or decline/,
  });
  for (const address of ["ada@example.com", "guest@example.com"]) {
    t.match(asked.get(address), { subject: /^New time requested/, text: /as soon as it is confirmed/ });
    const { calendar = "" } = asked.get(address) ?? {};
    t.match(read(calendar), { status: "TENTATIVE", sequence: 1 });
  }
  await stage.owner.post(`${own}/confirm`).expect(200);
  t.match((await wave(11, 8)).get("guest@example.com"), { subject: /^Confirmed/ });
  t.match((await move(14).expect(200)).body, { status: "PENDING" });
  await wave(14, 11);
  t.match((await stage.owner.post(`${own}/decline`).send({ reason: "Full" }).expect(200)).body.booking, {
    status: "REJECTED",
  });
  const declined = await wave(17, 14);
  t.match(declined.get("guest@example.com"), { subject: /^Declined/, text: /Reason: Full/ });
  t.match(read(declined.get("guest@example.com")?.calendar ?? ""), { method: "CANCEL" });
  await eventually(() => receiver.received.length === 6);
  t.same(
    receiver.received.map(({ event }) => `${event.type.split(".")[2]} ${(event.data.booking as Booking).status}`),
    [
      "created PENDING",
      "confirmed ACCEPTED",
      "rescheduled PENDING",
      "confirmed ACCEPTED",
      "rescheduled PENDING",
      "cancelled REJECTED",
    ],
  );
});

t.test("a reminder comes before the booking, and not for one that was cancelled or moved", async (t) => {
  const { stage, inbox } = await openMailing(t);
  const { runtime } = stage.service;
  await stage.event({ slug: "intro", title: "Introduction", reminderMinutes: 60 });
  const book = async (start: string) => (await stage.book("intro", start, 30).expect(201)).body.bookingUid as string;
  const [kept, cancelled, moved] = [
    await book("2026-10-05T11:00:00Z"),
    await book("2026-10-05T12:00:00Z"),
    await book("2026-10-05T12:30:00Z"),
  ];
  await stage.service.visitor.post(`${PUBLIC_EVENTS_PATH}/intro/bookings/${cancelled}/cancel`).expect(200);
  const slot = { start: "2026-10-07T12:00:00Z", end: "2026-10-07T12:30:00Z" };
  await stage.service.visitor
    .post(`${PUBLIC_EVENTS_PATH}/intro/reschedule`)
    .send({ bookingUid: moved, slot })
    .expect(200);
  const reminders = async () =>
    (await Promise.all(inbox.mails.map(partsOf))).filter(({ subject }) => subject.startsWith("Reminder"));
  // The reminders of all three are due an hour before their first times.
  stage.at("2026-10-05T10:00:00Z");
  const hours = (await passDelays(runtime, "email", 5.5 * 3_600_000)).map((ms) => ms / 3_600_000);
  t.same(hours.sort(), [4, 5, 5.5]);
  const queue = runtime.queues.queue("email");
  await eventually(async () => (await queue.getJobCountByTypes("waiting", "active")) === 0);
  await eventually(async () => (await reminders()).length >= 2);
  t.equal((await reminders()).length, 2);
  t.ok((await reminders()).every(({ calendar }) => calendar.includes(kept)));
});

t.test("without a sender or a mail server a booking is still made", async (t) => {
  const stage = await openStage(t, { workers: ["email"] });
  await stage.event({ slug: "intro" });
  const { bookingUid } = (await stage.book("intro", "2026-10-05T09:00:00Z", 30).expect(201)).body;
  const queue = stage.service.runtime.queues.queue("email");
  await eventually(async () => (await queue.getJobCounts("completed")).completed === 1);
  t.equal((await queue.getJobCounts("failed")).failed, 0);
  await stage.service.visitor.get(`${PUBLIC_EVENTS_PATH}/intro/bookings/${bookingUid}`).expect(200);
});

t.test(
  "without a sender for bookings only owners are mailed, and no page promises a mail to the visitor",
  async (t) => {
    const inbox = new Inbox();
    const env = { SMTP_URL: await inbox.start(t) };
    const stage = await openStage(t, { env, workers: ["email"] });
    await stage.event({ slug: "intro", title: "Introduction", confirmationRequired: true });
    const { bookingUid } = (await stage.book("intro", "2026-10-05T09:00:00Z", 30).expect(201)).body;
    const [mail] = await eventually(() => (inbox.mails.length > 0 ? Promise.all(inbox.mails.map(partsOf)) : undefined));
    t.match(mail, {
      to: "user_acme@example.com",
      subject: /^Please confirm: Introduction/,
      replyTo: "ada@example.com",
    });
    t.match(mail?.text, "Your visitor has had no mail about this, because acme has no ready sender");
    const confirm = /https?:\/\/\S+\/confirm\/\S+/.exec(mail?.text ?? "")?.[0] ?? "";
    const done = await stage.service.visitor.post(new URL(confirm).pathname).expect(200);
    t.match(done.text, "Done. Please tell your visitor yourself");
    await eventually(() => inbox.mails.length === 2);
    t.match(await partsOf(inbox.mails[1]!), {
      subject: /^Confirmed: Introduction/,
      text: /^This booking is confirmed\./,
      calendar: /^BEGIN:VCALENDAR/,
    });
    t.same(
      inbox.mails.map(({ to }) => to),
      ["user_acme@example.com", "user_acme@example.com"],
    );
    const page = await stage.service.visitor
      .get(`/apps/public/scheduling/acme/intro?booking=${bookingUid}`)
      .expect(200);
    t.match(page.text, /"isMailed":false/);
  },
);

t.test("after twenty mails of the service in an hour, owners hear of further bookings in one digest", async (t) => {
  const inbox = new Inbox();
  const env = { SMTP_URL: await inbox.start(t), PUBLIC_BOOKINGS_BURST: "0", PUBLIC_BOOKINGS_PER_ATTENDEE: "0" };
  const stage = await openStage(t, { env });
  const { runtime, visitor } = stage.service;
  await stage.event({ slug: "intro", title: "Introduction", durationMinutes: 15, confirmationRequired: true });
  const uids: string[] = [];
  for (let n = 0; n < 24; n++) {
    const start = new Date(Date.parse("2026-10-05T09:00:00Z") + n * 900_000).toISOString();
    uids.push((await stage.book("intro", start, 15).expect(201)).body.bookingUid);
  }
  const tell = (bookingUid: string, kind: "requested" | "cancelled" | "reminder", by?: "owner") =>
    sendMails(runtime, { handle: "acme", bookingUid, kind, sequence: 0, ...(by && { by }) });
  for (const uid of [...uids, ...uids]) await tell(uid, "requested");
  t.equal(inbox.mails.length, 20);
  const cancelled = uids.at(-1) as string;
  await visitor.post(`${PUBLIC_EVENTS_PATH}/intro/bookings/${cancelled}/cancel`).expect(200);
  await tell(cancelled, "cancelled");
  const declined = uids[0] as string;
  await stage.owner.post(`/v2/handles/acme/scheduling/bookings/${declined}/cancel`).expect(200);
  await tell(declined, "cancelled", "owner");
  t.equal(inbox.mails.length, 21, "an owner's own change is mailed at once");
  const confirmed = uids[1] as string;
  await stage.owner.post(`/v2/handles/acme/scheduling/bookings/${confirmed}/confirm`).expect(200);
  await tell(confirmed, "reminder");
  t.equal(inbox.mails.length, 22, "a reminder is mailed at once: in a digest it could come after the start");
  const [digest, ...others] = await runtime.queues.queue("email").getDelayed();
  t.match(digest, { name: "scheduling.digest", data: { handle: "acme" } });
  t.same(others, []);
  t.ok((digest?.delay ?? 0) > 3_400_000 && (digest?.delay ?? 0) <= 3_605_000);
  const obsolete = JSON.stringify({ handle: "acme", bookingUid: cancelled, kind: "requested", sequence: 0 });
  await runtime.redis.lpush(keys.bookingDigest("acme", digest?.data.round), ...Array(50).fill(obsolete));
  await sendBookingDigest(runtime, digest?.data);
  await sendBookingDigest(runtime, digest?.data);
  t.equal(inbox.mails.length, 23, "as many obsolete ones as a digest has items don't take its place");
  const mail = await partsOf(inbox.mails.at(-1)!);
  t.match(mail, { to: "user_acme@example.com", subject: "More news of bookings: 4" });
  t.equal(mail.text.match(/^Confirm: Please confirm: Introduction/gm)?.length, 3);
  t.equal(mail.text.match(/^Decline: /gm)?.length, 3);
  t.match(mail.text, /^Open the booking: Cancelled: Introduction/m);
  const confirm = /https?:\/\/\S+\/confirm\/\S+/.exec(mail.text)?.[0] ?? "";
  t.match((await visitor.post(new URL(confirm).pathname).expect(200)).text, "Done.");
});

t.test("what was ticked or decided is a yes or no in the reader's language", async (t) => {
  const { stage, inbox } = await openMailing(t);
  const bookingFields = [
    { id: "terms", label: "Terms", type: "checkbox", required: true },
    { id: "first", label: "First visit", type: "boolean" },
    { id: "word", label: "Word", type: "text" },
  ];
  await stage.event({ slug: "intro", bookingFields });
  const answers = { terms: "on", first: false, word: "true" };
  await stage.book("intro", "2026-10-05T09:00:00Z", 30, { language: "de", answers }).expect(201);
  await eventually(() => inbox.mails.length === 2);
  const mails = new Map((await Promise.all(inbox.mails.map(partsOf))).map(({ to, text }) => [to, text]));
  t.match(mails.get("ada@example.com"), "Terms: Ja\nFirst visit: Nein\nWord: true");
  t.match(mails.get("user_acme@example.com"), "Terms: Yes\nFirst visit: No\nWord: true");
});

t.test(
  "the visitor's file says how to change the booking, the owner's is taken over by calendars, guests' say neither",
  async (t) => {
    const { stage, inbox } = await openMailing(t);
    const description = "Bring questions.\nWe meet online; no cost, really.";
    await stage.event({ slug: "intro", title: "Introduction", description });
    await stage.owner.put("/v2/handles/acme/settings").send({ displayName: "Café Ada" }).expect(200);
    const booked = await stage.book("intro", "2026-10-05T09:00:00Z", 30, { guests: ["guest@example.com"] }).expect(201);
    const manage = `https://app.test/apps/public/scheduling/acme/intro?booking=${booked.body.bookingUid}`;
    await eventually(() => inbox.mails.length === 3);
    const mails = new Map((await Promise.all(inbox.mails.map(partsOf))).map((mail) => [mail.to, mail.calendar]));
    const described = (calendar = "") =>
      new ICAL.Event(new ICAL.Component(ICAL.parse(calendar)).getFirstSubcomponent("vevent") as ICAL.Component)
        .description;
    const visitors = mails.get("ada@example.com");
    t.equal(described(visitors), `${description}\n\nChange or cancel this booking: ${manage}`);
    t.equal(described(mails.get("guest@example.com")), description);
    const owners = mails.get("user_acme@example.com");
    t.equal(described(owners), description);
    t.match(read(owners ?? "").people, [
      "mailto:user_acme@example.com ACCEPTED",
      "mailto:ada@example.com ACCEPTED",
      "mailto:guest@example.com NEEDS-ACTION",
    ]);
    t.match(owners, /ATTENDEE;[^:]*CN="?Café Ada"?/);
    t.notMatch(read(visitors ?? "").people.join(), /user_acme/);
    const { text } = await stage.service.visitor.get(
      `${PUBLIC_EVENTS_PATH}/intro/bookings/${booked.body.bookingUid}/calendar.ics`,
    );
    t.equal(described(text), described(visitors), "the file of the booking page is the same");
  },
);

t.test("the old time is in the mail about the move, and in no later one", async (t) => {
  const { stage, inbox } = await openMailing(t);
  await stage.event({ slug: "intro", title: "Introduction" });
  const { bookingUid } = (await stage.book("intro", "2026-10-05T09:00:00Z", 30).expect(201)).body;
  await eventually(() => inbox.mails.length === 2);
  const slot = { start: "2026-10-05T10:00:00Z", end: "2026-10-05T10:30:00Z" };
  await stage.service.visitor.post(`${PUBLIC_EVENTS_PATH}/intro/reschedule`).send({ bookingUid, slot }).expect(200);
  await eventually(() => inbox.mails.length === 4);
  await stage.owner.post(`${base}/bookings/${bookingUid}/cancel`).send({}).expect(200);
  await eventually(() => inbox.mails.length === 6);
  const texts = (await Promise.all(inbox.mails.map(partsOf))).map(({ text }) => /Before: .*09:00/.test(text));
  t.same(texts, [false, false, true, true, false, false]);
});

const wordings: [accepted: string, state: string, date: RegExp, length: string][] = [
  ["de-AT,de;q=0.9", "Bestätigt: ", /Montag, 5\. Oktober 2026 um 09:00 UTC/, "30 Minuten"],
  ["fr", "Confirmé : ", /lundi 5 octobre 2026/, "30 minutes"],
  ["es-MX", "Confirmada: ", /lunes, 5 de octubre de 2026/, "30 minutos"],
  ["it", "Confermata: ", /lunedì 5 ottobre 2026/, "30 minuti"],
  ["nl", "Bevestigd: ", /maandag 5 oktober 2026/, "30 minuten"],
  ["pt-BR", "Confirmada: ", /segunda-feira, 5 de outubro de 2026/, "30 minutos"],
  ["en-US", "Confirmed: ", /Monday, October 5, 2026 at 3:00 PM UTC/, "30 minutes"],
  ["sv, en;q=0.1", "Confirmed: ", /Monday,? 5 October 2026 at 16:00 UTC/, "30 minutes"],
];
t.test("visitors are written to in their language, owners in that of the handle", async (t) => {
  const { stage, inbox } = await openMailing(t);
  await stage.event({ slug: "intro", title: "Introduction", locations: [{ type: "phone", label: "" }] });
  await stage.owner.put("/v2/handles/acme/settings").send({ language: "de", displayName: "Café Ada" }).expect(200);
  for (const [place, [accepted, state, date, length]] of wordings.entries()) {
    const email = `v${place}@example.com`;
    await stage
      .book("intro", `2026-10-05T${String(9 + place).padStart(2, "0")}:00:00Z`, 30, {
        attendee: { name: "Ada", email, timeZone: "UTC" },
      })
      .set("Accept-Language", accepted)
      .expect(201);
    const [mail] = await eventually(async () => {
      const found = inbox.mails.filter(({ to }) => to === email);
      return found.length > 0 && Promise.all(found.map(partsOf));
    });
    t.ok(mail?.subject.startsWith(`${state}Introduction, `), `${accepted}: ${mail?.subject}`);
    const told = mail?.text.replace(/\s/g, " ") ?? "";
    t.match(told, date, accepted);
    t.match(told, length, accepted);
    t.match(mail?.text, "Café Ada");
    t.match(mail?.html, `<html lang="${accepted.startsWith("sv") ? "en" : accepted.split(",")[0]}"`);
  }
  const owners = await eventually(async () => {
    const found = inbox.mails.filter(({ to }) => to === "user_acme@example.com");
    return found.length === wordings.length && Promise.all(found.map(partsOf));
  });
  t.ok(owners.every(({ subject }) => subject.startsWith("Neue Buchung: Introduction mit Ada, ")));
  t.ok(owners.every(({ text }) => text.includes(`Wo: ${languages.de!.bookingPage.phone}`)));
  const named = { language: "fr", attendee: { name: "Ada", email: "page@example.com" } };
  const booked = await stage.book("intro", "2026-10-06T09:00:00Z", 30, named).set("Accept-Language", "de").expect(201);
  t.equal(booked.body.booking.language, "fr", "the page's language counts before the browser's");
});
