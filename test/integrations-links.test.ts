import PostalMime from "postal-mime";
import t, { type Test as TapTest } from "tap";
import { attachDomain } from "../core/account/domains.ts";
import { Inbox } from "../fixtures/inbox.ts";
import { startZoom } from "../fixtures/providers/zoom.ts";
import { openDesk } from "../fixtures/scheduling/desk.ts";
import { eventually } from "../fixtures/service.ts";

/** A handle whose talks take place at Zoom and that can send mail. */
async function open(t: TapTest) {
  const zoom = await startZoom();
  t.teardown(() => zoom.close());
  const inbox = new Inbox();
  const env = { ...zoom.env, SMTP_URL: await inbox.start(t), APP_URL: "https://app.test" };
  const workers = ["scheduling", "email"];
  const desk = await openDesk(t, { providerKey: "zoom", env, location: "zoom", workers });
  await attachDomain(desk.service.runtime, { account: "acct_acme", domain: "acme.example", ready: true });
  const sender = { domain: "acme.example", localPart: "calendar", displayName: "Acme", purposes: ["CALENDAR"] };
  await desk.owner.put("/v2/handles/acme/email/senders/sender_cal").send(sender).expect(200);
  /** The mails to the visitor, once there are so many. */
  const mails = async (count: number) => {
    const own = () => inbox.mails.filter(({ to }) => to === "ada@example.com");
    await eventually(() => own().length >= count);
    return Promise.all(own().map(({ source }) => PostalMime.parse(source)));
  };
  return { zoom, desk, mails };
}

t.test("a confirmation waits for the link of its meeting", async (t) => {
  const { zoom, desk, mails } = await open(t);
  await desk.booked("2026-10-06T10:00:00Z");
  const [mail, ...more] = await mails(1);
  const [meeting] = zoom.meetings.values();
  t.match(mail?.subject, /^Confirmed: Talk/);
  t.match(mail?.text, meeting?.join_url);
  t.equal(more.length, 0);
});

t.test("so does the mail about a move that comes before the link", async (t) => {
  const { zoom, desk, mails } = await open(t);
  zoom.oauth.pausedUntil = Date.now() + 2500;
  const uid = await desk.booked("2026-10-06T10:00:00Z");
  await desk.moved(uid, "2026-10-07T10:00:00Z").expect(200);
  const [mail, ...more] = await mails(1);
  const [meeting] = zoom.meetings.values();
  t.match(mail?.subject, /^New time: Talk/);
  t.match(mail?.text, meeting?.join_url);
  t.equal(more.length, 0);
});

t.test("a confirmation that went without a link is followed by one with it", async (t) => {
  const { zoom, desk, mails } = await open(t);
  zoom.oauth.pausedUntil = Number.POSITIVE_INFINITY;
  const uid = await desk.booked("2026-10-06T10:00:00Z");
  const [first] = await mails(1);
  t.match(first?.text, "Where: Online");
  zoom.oauth.pausedUntil = 0;
  await desk.owner.post(`/v2/handles/acme/scheduling/bookings/${uid}/sync`).expect(202);
  const [, second] = await mails(2);
  const [meeting] = zoom.meetings.values();
  t.match(second?.subject, /^Link to your meeting: Talk/);
  t.match(second?.text, meeting?.join_url);
});
