import PostalMime from "postal-mime";
import t, { type Test } from "tap";
import { attachDomain } from "../core/account/domains.ts";
import { revokeRole, setHandleActive } from "../core/account/handles.ts";
import { keys } from "../core/store/keys.ts";
import { Inbox } from "../fixtures/inbox.ts";
import { openStage, PUBLIC_EVENTS_PATH, type Stage } from "../fixtures/scheduling/owner.ts";
import { eventually } from "../fixtures/service.ts";

const base = "/v2/handles/acme/scheduling";
const owner = "user_acme@example.com";

async function open(t: Test): Promise<{ stage: Stage; inbox: Inbox }> {
  const inbox = new Inbox();
  const stage = await openStage(t, { env: { SMTP_URL: await inbox.start(t) }, workers: ["scheduling", "email"] });
  await attachDomain(stage.service.runtime, { account: "acct_acme", domain: "acme.example", ready: true });
  const sender = { domain: "acme.example", localPart: "calendar", purposes: ["CALENDAR"] };
  await stage.owner.put("/v2/handles/acme/email/senders/sender_cal").send(sender).expect(200);
  await stage.event({ slug: "intro", title: "Introduction", confirmationRequired: true });
  return { stage, inbox };
}

type Links = Record<"open" | "confirm" | "decline", string>;

/** The paths of the links in the newest of so many mails to the owner, by purpose. */
async function linksOf(inbox: Inbox, count = 1): Promise<Links> {
  const mails = await eventually(() => {
    const found = inbox.mails.filter(({ to }) => to === owner);
    return found.length >= count && found;
  });
  return linksIn(mails.at(-1)?.source ?? "");
}

/** The paths of the links in one of the mails to the owner, by its position from 1. */
async function linksAt(inbox: Inbox, position: number): Promise<Links> {
  return linksIn(inbox.mails.filter(({ to }) => to === owner).at(position - 1)?.source ?? "");
}

async function linksIn(source: string): Promise<Links> {
  const { text = "" } = await PostalMime.parse(source);
  const found = [...text.matchAll(/http:\/\/service\.test(\/apps\/scheduling\/acme\/\w+\/(\w+)\/\S+)/g)];
  return Object.fromEntries(found.map(([, path, purpose]) => [purpose, path])) as Links;
}

async function request(stage: Stage, hour = "09"): Promise<string> {
  return (await stage.book("intro", `2026-10-05T${hour}:00:00Z`, 30).expect(201)).body.bookingUid;
}

const booking = async (stage: Stage, uid: string) =>
  (await stage.owner.get(`${base}/bookings/${uid}`).expect(200)).body.booking;

t.test("an owner confirms from the mail without signing in; looking changes nothing", async (t) => {
  const { stage, inbox } = await open(t);
  const { visitor } = stage.service;
  const uid = await request(stage);
  const links = await linksOf(inbox);
  t.same(Object.keys(links).sort(), ["confirm", "decline", "open"]);
  for (const path of Object.values(links)) {
    const page = await visitor.get(path).expect(200);
    t.match(page.headers["content-type"], "text/html");
    t.match(page.headers["content-security-policy"], "form-action 'self'");
    t.match(page.headers, { "cache-control": "no-store", "referrer-policy": "no-referrer" });
    for (const told of ["Introduction", "Ada Lovelace", "09:00"]) t.match(page.text, told);
  }
  t.match((await visitor.get(links.confirm)).text, /<form method="post"><button type="submit">Confirm</);
  const seen = (await visitor.get(links.open)).text;
  t.match(seen, /waiting for your answer/);
  t.notMatch(seen, /<form/);
  t.equal((await booking(stage, uid)).status, "PENDING");
  await visitor.post(links.open).type("form").send({}).expect(200);
  t.equal((await booking(stage, uid)).status, "PENDING", "a link has one purpose");
  const done = await visitor.post(links.confirm).type("form").send({}).expect(200);
  t.match(done.text, /Confirmed\. Your visitor will get a mail\./);
  t.equal((await booking(stage, uid)).status, "ACCEPTED");
  for (const path of [links.confirm, links.decline]) {
    t.match((await visitor.get(path).expect(200)).text, /This booking is confirmed\./);
    const again = await visitor.post(path).type("form").send({ reason: "No" }).expect(200);
    t.match(again.text, /This booking is confirmed\./);
  }
  t.equal((await booking(stage, uid)).status, "ACCEPTED", "what is decided stays");
});

t.test("a decision by a link is audited as its owner's, without the link", async (t) => {
  const { stage, inbox } = await open(t);
  const { visitor, runtime } = stage.service;
  const [confirmed, declined] = [await request(stage), await request(stage, "10")];
  await eventually(() => inbox.mails.filter(({ to }) => to === owner).length >= 2);
  const all = await Promise.all([1, 2].map((count) => linksAt(inbox, count)));
  const linkOf = (uid: string, purpose: keyof Links) =>
    all.map((links) => links[purpose]).find((path) => path.includes(uid)) as string;
  const route = "POST /apps/scheduling/:handle/:bookingUid/:purpose/:token";
  const audited = async () => {
    const entries = await runtime.redis.xrange(keys.audit("acme"), "-", "+");
    return entries.map(([, fields]) => fields.slice(0, 6)).filter((fields) => fields.includes(route));
  };
  for (const path of [linkOf(confirmed, "open"), linkOf(confirmed, "confirm"), linkOf(confirmed, "decline")])
    await visitor.post(path).type("form").send({}).expect(200);
  await visitor.post(linkOf(declined, "decline")).type("form").send({}).expect(200);
  await eventually(async () => (await audited()).length === 2);
  t.same(await audited(), [
    ["who", "user_acme", "route", route, "id", `${confirmed}/confirm`],
    ["who", "user_acme", "route", route, "id", `${declined}/decline`],
  ]);
});

t.test("a name can't turn round the address beside it on the owner's page", async (t) => {
  const { stage, inbox } = await open(t);
  const attendee = { name: "Bob \u202e", email: "ada@example.com" };
  await stage.book("intro", "2026-10-05T09:00:00Z", 30, { attendee }).expect(201);
  const { confirm } = await linksOf(inbox);
  t.match((await stage.service.visitor.get(confirm).expect(200)).text, /Bob\s+&lt;ada@example\.com&gt;/);
});

t.test("an owner declines from the mail with a reason that the visitor reads", async (t) => {
  const { stage, inbox } = await open(t);
  const uid = await request(stage);
  const { confirm, decline } = await linksOf(inbox);
  const done = await stage.service.visitor.post(decline).type("form").send({ reason: " Full <today> " }).expect(200);
  t.match(done.text, /Declined\. Your visitor will get a mail\./);
  t.match(await booking(stage, uid), { status: "REJECTED", cancelledBy: "owner", cancellationReason: "Full <today>" });
  await eventually(() =>
    inbox.mails.some(({ to, source }) => to === "ada@example.com" && /Reason: Full <today>/.test(source)),
  );
  t.match((await stage.service.visitor.post(confirm).expect(200)).text, /This booking was declined\./);
});

t.test(
  "a link is good until the start, for the time it spoke of, for an owner of an active handle, and unchanged",
  async (t) => {
    const { stage, inbox } = await open(t);
    const { visitor, runtime } = stage.service;
    const uid = await request(stage);
    const first = await linksOf(inbox);
    const refused = async (path: string, status: number, words: RegExp) => {
      for (const verb of ["get", "post"] as const) {
        const page = await visitor[verb](path).expect(status);
        t.match(page.headers["content-type"], "text/html", path);
        t.match(page.text, words, path);
        t.equal(page.text.includes('href="/"'), status >= 400, "a dead link leads on");
      }
    };
    for (const path of [
      first.confirm.replace("/confirm/", "/decline/"),
      first.open.replace("/open/", "/confirm/"),
      first.confirm.replace("/0.", "/1."),
      `${first.confirm.slice(0, -4)}AAAA`,
      first.confirm.replace(uid, "unknown"),
      "/apps/scheduling/acme/x/y/z",
    ])
      await refused(path, 404, /This link does not work/);
    const slot = { start: "2026-10-05T12:00:00Z", end: "2026-10-05T12:30:00Z" };
    await visitor.post(`${PUBLIC_EVENTS_PATH}/intro/reschedule`).send({ bookingUid: uid, slot }).expect(200);
    await refused(first.confirm, 200, /has changed since this mail/);
    t.equal((await booking(stage, uid)).status, "PENDING");
    const moved = await linksOf(inbox, 2);
    await setHandleActive(runtime.redis, "acme", false);
    await refused(moved.confirm, 404, /This link does not work/);
    await setHandleActive(runtime.redis, "acme", true);
    stage.at("2026-10-05T12:00:00Z");
    await refused(moved.confirm, 410, /the booking has begun/);
    t.match((await visitor.get(moved.open).expect(200)).text, /Introduction/);
    stage.at("2026-10-05T12:30:00Z");
    await refused(moved.open, 410, /the booking is over/);
    t.notMatch((await visitor.get(moved.open)).text, /Ada/);
    stage.at("2026-10-05T11:00:00Z");
    await revokeRole(runtime.redis, { handle: "acme", userId: "user_acme" });
    await refused(moved.confirm, 404, /This link does not work/);
  },
);

t.test("two answers at once are one, and the page speaks the browser's language, else the handle's", async (t) => {
  const { stage, inbox } = await open(t);
  const { visitor } = stage.service;
  const uid = await request(stage);
  const { confirm, decline } = await linksOf(inbox);
  await stage.owner.put("/v2/handles/acme/settings").send({ language: "fr", displayName: "Café Ada" }).expect(200);
  const french = await visitor.get(confirm).expect(200);
  for (const told of ['<html lang="fr" dir="ltr">', "Café Ada", "Confirmer ce rendez-vous"]) t.match(french.text, told);
  t.match(french.text, /lundi 5 octobre 2026/);
  t.equal(french.headers.vary, "Accept-Encoding, Origin, Accept-Language", "a cache tells the languages apart");
  t.match((await visitor.get(confirm).set("Accept-Language", "de")).text, /Diesen Termin bestätigen\?/);
  await Promise.all(
    [confirm, decline, confirm, decline].map((path) => visitor.post(path).type("form").send({}).expect(200)),
  );
  const { status, version } = await booking(stage, uid);
  t.match(status, /^(ACCEPTED|REJECTED)$/);
  t.equal(version, 2, "it was decided once");
});
