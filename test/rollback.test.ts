import t, { type Test } from "tap";
import { keys } from "../core/store/keys.ts";
import { makeSending } from "../fixtures/email.ts";
import { keyNames } from "../fixtures/redis.ts";
import { type Service, startService } from "../fixtures/service.ts";

const root = "/v2/handles/acme";
const always = [0, 1, 2, 3, 4, 5, 6].map((day) => ({ day, startTime: "00:00", endTime: "24:00" }));

/** A field as a newer release may store it, in a record and in its parts. */
const newer = "storedByANewerRelease";

/** Adds the field to every record of a kind, as a newer release that was rolled back has left it. */
async function addNewerField({ runtime: { redis } }: Service, pattern: string): Promise<void> {
  const names = await keyNames(redis, pattern);
  for (const name of names) {
    const { payment, ...record } = JSON.parse((await redis.hget(name, "json")) ?? "{}");
    const parts = payment ? { payment: { ...payment, [newer]: 1 } } : { payment };
    await redis.hset(name, "json", JSON.stringify({ ...record, ...parts, [newer]: 1 }));
  }
}

/** Whether every record of a kind still has the field. */
async function stillHasIt({ runtime: { redis } }: Service, pattern: string): Promise<boolean> {
  const names = await keyNames(redis, pattern);
  const stored = await Promise.all(names.map((name) => redis.hget(name, "json")));
  return stored.length > 0 && stored.every((json) => json?.includes(newer));
}

/** A handle with a record of each kind. */
async function open(t: Test) {
  const service = await startService(t, { env: { PUBLIC_PAGE_AGENT_ENABLED: "1", SMTP_URL: "smtp://127.0.0.1:9" } });
  const { owner } = await makeSending(service);
  const make = async (path: string, body: object) => (await owner.post(`${root}/${path}`).send(body).expect(201)).body;
  await make("pages", { pageSlug: "index", title: "Home", status: "PUBLISHED", content: "<p>Hello</p>" });
  await make("campaigns", { campaignId: "cmp_spring", name: "Spring" });
  const mail = { trigger: "LEAD_CAPTURED", templateId: "tmpl_hello", senderId: "sender_main" };
  const { rule } = await make("campaigns/cmp_spring/email-rules", { ...mail, variableMappings: { name: "email" } });
  await make("scheduling/schedules", { scheduleId: "main", timeZone: "UTC", weeklyAvailability: always });
  const { eventType } = await make("scheduling/event-types", { slug: "talk", title: "Talk", durationMinutes: 30 });
  const { webhook } = await make("webhooks", { url: "http://127.0.0.1:9/hook" });
  const lead = { email: "ann@far.example", pageSlug: "index" };
  const capture = () => service.visitor.post("/v2/public/handles/acme/leads").send(lead).expect(202);
  const { leadId } = (await capture()).body.lead;
  const day = new Date(Date.now() + 2 * 86_400_000).toISOString().slice(0, 10);
  const slot = { start: `${day}T10:00:00Z`, end: `${day}T10:30:00Z` };
  const attendee = { name: "Ann", email: "ann@far.example" };
  const booking = service.visitor.post("/v2/public/scheduling/acme/talk/bookings").send({ slot, attendee });
  const { bookingUid } = (await booking.expect(201)).body;
  return { service, owner, rule, eventType, webhook, capture, leadId, bookingUid, day };
}

t.test("a change keeps what a newer release has stored in a record", async (t) => {
  const { service, owner, rule, eventType, webhook, capture, bookingUid, day } = await open(t);
  const put = (path: string, body: object) => owner.put(`${root}/${path}`).send(body).expect(200);
  const change: Record<string, [pattern: string, change: () => Promise<unknown>]> = {
    page: [keys.page("acme", "*"), () => put("pages/index", { title: "New", content: "<p>New</p>" })],
    template: [
      keys.template("acme", "*"),
      () => put("email/templates/tmpl_hello", { name: "New", subject: "New", html: "<p>New</p>" }),
    ],
    sender: [
      keys.sender("acme", "*"),
      () =>
        put("email/senders/sender_main", {
          domain: "acme.example",
          localPart: "noreply",
          displayName: "New",
          purposes: ["TRANSACTIONAL_API"],
        }),
    ],
    rule: [
      keys.rule("acme", "*", "*"),
      () => put(`campaigns/cmp_spring/email-rules/${rule.ruleId}`, { enabled: false }),
    ],
    schedule: [
      keys.schedule("acme", "*"),
      () =>
        owner
          .post(`${root}/scheduling/schedules`)
          .send({ scheduleId: "main", timeZone: "Europe/Berlin", weeklyAvailability: always })
          .expect(200),
    ],
    "event type": [
      keys.eventType("acme", "*"),
      () => put(`scheduling/event-types/${eventType.eventTypeId}`, { title: "New" }),
    ],
    webhook: [
      keys.webhook("acme", "*"),
      () => owner.post(`${root}/webhooks/${webhook.webhookId}/rotate-secret`).expect(200),
    ],
    lead: [keys.lead("acme", "*"), () => capture()],
    booking: [
      keys.booking("acme", "*"),
      () =>
        service.visitor
          .post("/v2/public/scheduling/acme/talk/reschedule")
          .send({ bookingUid, slot: { start: `${day}T12:00:00Z`, end: `${day}T12:30:00Z` } })
          .expect(200),
    ],
  };
  for (const [kind, [pattern, make]] of Object.entries(change)) {
    await addNewerField(service, pattern);
    await make();
    t.ok(await stillHasIt(service, pattern), kind);
  }
});

t.test("no visitor or owner sees what a newer release has stored in a booking, a lead or a template", async (t) => {
  const { service, owner, leadId, bookingUid } = await open(t);
  const before = { payment: { amountMinor: 100, currency: "EUR", status: "PAID" } };
  const { redis } = service.runtime;
  const key = keys.booking("acme", bookingUid);
  const paid = { ...JSON.parse((await redis.hget(key, "json")) as string), ...before };
  await redis.hset(key, "json", JSON.stringify(paid));
  const patterns = [key, keys.lead("acme", leadId), keys.template("acme", "*")];
  for (const pattern of patterns) await addNewerField(service, pattern);
  const bookings = `${root}/scheduling/bookings`;
  const visitors = `/v2/public/scheduling/acme/talk/bookings/${bookingUid}`;
  const lists = [bookings, `${root}/leads`, `${root}/email/templates`];
  for (const path of [visitors, `${bookings}/${bookingUid}`, `${root}/leads/${leadId}`, ...lists])
    t.notMatch((await owner.get(path).expect(200)).text, newer, path);
  t.match((await service.visitor.get(visitors).expect(200)).text, "amountMinor");
});
