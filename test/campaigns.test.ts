import t from "tap";
import { sendJob } from "../core/campaigns/delayed-sends.ts";
import { fireRules, sendRule } from "../core/campaigns/rule-sends.ts";
import { sendLeadCode, verifyLead } from "../core/leads/verification.ts";
import { addressDigest } from "../core/platform/address.ts";
import { sixDigits } from "../core/platform/sealing.ts";
import { keys } from "../core/store/keys.ts";
import { rules, startCampaign } from "../fixtures/campaigns.ts";
import { eraseAfter } from "../fixtures/leads.ts";
import { afterReply, keyNames, storedText } from "../fixtures/redis.ts";
import { eventually } from "../fixtures/service.ts";
import { passDelays, stopClock } from "../fixtures/time.ts";

const rule = { trigger: "LEAD_CAPTURED", templateId: "tmpl_hello", senderId: "sender_main" };

/** Creates the campaign `cmp_checked`, whose leads are verified. */
async function checkLeads(owner: Awaited<ReturnType<typeof startCampaign>>["sending"]["owner"]): Promise<void> {
  const campaign = { campaignId: "cmp_checked", name: "Checked", verifyLeads: true };
  await owner.post("/v2/handles/acme/campaigns").send(campaign).expect(201);
}

t.test("a rule is made, changed at its version, listed and deleted for good", async (t) => {
  const { sending, service } = await startCampaign(t, { workers: false });
  const { owner } = sending;
  const made = (
    await owner
      .post(rules)
      .send({ ...rule, delayMinutes: 5, variableMappings: { size: "fields.size" } })
      .expect(201)
  ).body.rule;
  t.match(made, {
    ruleId: /^cer_[0-9a-f-]{36}$/,
    campaignId: "cmp_spring",
    trigger: "LEAD_CAPTURED",
    delayMinutes: null,
    enabled: true,
    version: 1,
  });
  t.match(made.variableMappings, { size: "fields.size" });
  const changed = await owner
    .put(`${rules}/${made.ruleId}`)
    .send({ trigger: "LEAD_CAPTURED_DELAYED", delayMinutes: 60, expectedVersion: 1 })
    .expect(200);
  t.match(changed.body.rule, { delayMinutes: 60, version: 2, templateId: "tmpl_hello" });
  t.match((await owner.put(`${rules}/${made.ruleId}`).send({ enabled: false, expectedVersion: 1 }).expect(409)).body, {
    code: "version_conflict",
    currentVersion: 2,
  });
  const both = await Promise.all(
    [true, false].map((enabled) => owner.put(`${rules}/${made.ruleId}`).send({ enabled, expectedVersion: 2 })),
  );
  t.same(both.map(({ status }) => status).sort(), [200, 409]);
  await service.grant("acme", "user_creator", "CREATOR");
  const creator = await service.as("user_creator");
  t.match((await creator.get(rules).expect(200)).body, {
    rules: [{ ruleId: made.ruleId, counts: { waiting: 0, sent: 0, denied: 0 } }],
    nextCursor: null,
  });
  t.match((await creator.post(rules).send(rule).expect(403)).body, { code: "insufficient_role" });
  await owner.delete(`${rules}/${made.ruleId}`).expect(204);
  await owner.delete(`${rules}/${made.ruleId}`).expect(204);
  await owner.delete(`${rules}/cer_00000000-0000-4000-8000-000000000000`).expect(204);
  t.match((await owner.put(`${rules}/${made.ruleId}`).send({ enabled: true }).expect(404)).body, {
    code: "email_rule_not_found",
  });
  t.same((await owner.get(rules).expect(200)).body.rules, []);
});

t.test("each wrong rule gets its code, in the documented order", async (t) => {
  const { sending } = await startCampaign(t, { workers: false });
  const { owner } = sending;
  const root = "/v2/handles/acme/email";
  await owner
    .put(`${root}/senders/sender_calendar`)
    .send({ domain: "acme.example", localPart: "calendar", purposes: ["CALENDAR"] })
    .expect(200);
  await owner
    .put(`${root}/senders/sender_off`)
    .send({ domain: "acme.example", localPart: "hello", purposes: ["PRODUCT_NOTIFICATION"], enabled: false })
    .expect(200);
  await owner
    .post(`${root}/templates`)
    .send({ templateId: "tmpl_paused", name: "P", subject: "s", text: "t" })
    .expect(201);
  await owner.put(`${root}/templates/tmpl_paused`).send({ status: "PAUSED" }).expect(200);
  const delayed = { ...rule, trigger: "LEAD_CAPTURED_DELAYED" };
  const wrong: [object, number, string][] = [
    [{ ...rule, trigger: "NEVER" }, 400, "invalid_trigger"],
    [{ templateId: "tmpl_hello", senderId: "sender_main" }, 400, "invalid_trigger"],
    [{ ...rule, trigger: 5 }, 400, "invalid_trigger"],
    [delayed, 400, "delay_minutes_required_for_delayed_trigger"],
    [{ ...delayed, delayMinutes: null }, 400, "delay_minutes_required_for_delayed_trigger"],
    [{ ...delayed, delayMinutes: 14 }, 400, "delay_minutes_below_minimum"],
    [{ ...delayed, delayMinutes: 43_201 }, 400, "delay_minutes_above_maximum"],
    [{ ...delayed, delayMinutes: 15.5 }, 400, "invalid_request"],
    [{ ...rule, templateId: undefined }, 400, "invalid_request"],
    [{ ...rule, variableMappings: { "bad name": "name" } }, 400, "invalid_request"],
    [{ ...rule, senderId: "sender_none", templateId: "tmpl_none" }, 404, "sender_profile_not_found"],
    [{ ...rule, senderId: "sender_off", templateId: "tmpl_none" }, 409, "sender_profile_not_ready"],
    [
      { ...rule, senderId: "sender_calendar", templateId: "tmpl_none" },
      409,
      "sender_missing_product_notification_purpose",
    ],
    [{ ...rule, templateId: "tmpl_none" }, 404, "email_template_not_found"],
    [{ ...rule, templateId: "tmpl_paused" }, 409, "email_template_not_active"],
  ];
  for (const [body, status, code] of wrong) {
    const named = status === 400 ? { errors: [{ path: /^\/\w/, message: /\w/ }] } : {};
    t.match((await owner.post(rules).send(body)).body, { status, code, ...named }, code);
  }
  t.match(
    (await owner.post("/v2/handles/acme/campaigns/cmp_none/email-rules").send({ ...rule, senderId: "sender_none" }))
      .body,
    { status: 404, code: "campaign_not_found" },
  );
  t.match((await owner.get("/v2/handles/acme/campaigns/cmp_none/email-rules")).body, {
    status: 404,
    code: "campaign_not_found",
  });
  for (const delayMinutes of [15, 43_200])
    await owner
      .post(rules)
      .send({ ...delayed, delayMinutes })
      .expect(201);
});

t.test("a campaign has at most 200 rules, and a deleted one makes room", async (t) => {
  const { sending, service, rule: make } = await startCampaign(t, { workers: false });
  const { ruleId } = await make();
  const others = Array.from({ length: 199 }, (_, at) => [at, `cer_${at}`]).flat();
  await service.runtime.redis.zadd(keys.rules("acme", "cmp_spring"), ...others);
  t.match((await sending.owner.post(rules).send(rule).expect(400)).body, { code: "invalid_request", detail: /200/ });
  await sending.owner.delete(`${rules}/${ruleId}`).expect(204);
  await make();
});

t.test("a mapping reads only the lead, whatever the names and order of other mappings", async (t) => {
  const campaign = await startCampaign(t, { workers: false });
  const { owner } = campaign.sending;
  const text = "name={{name}} person={{person}} company={{company}} page={{page}} size={{size}} first={{firstName}}";
  await owner
    .post("/v2/handles/acme/email/templates")
    .send({ templateId: "tmpl_map", name: "M", subject: "s", text })
    .expect(201);
  const leadId = await campaign.capture({ email: "ada@x.example", name: "Ada L", company: "Engines", size: "XL" });
  const mappings = { name: "company", person: "name", company: "fields.size", size: "company", page: "pageSlug" };
  for (const variableMappings of [mappings, Object.fromEntries(Object.entries(mappings).reverse())]) {
    const { ruleId } = await campaign.rule({ templateId: "tmpl_map", variableMappings });
    const { body } = await owner.get(`${rules}/${ruleId}/preview?leadId=${leadId}`).expect(200);
    t.match(body.text, "name=Engines person=Ada L company=XL page= size=Engines first=Ada\n");
  }
});

t.test(
  "a mapping names a field of the snapshot or of the lead, or a custom one; all else is refused by its key",
  async (t) => {
    const { sending } = await startCampaign(t, { workers: false });
    const { owner } = sending;
    const names = ["leadId", "email", "name", "firstName", "phone", "company", "service", "message", "source"];
    for (const field of [...names, "pageSlug", "campaignId", "fields.size", "fields.a-b_c.d"])
      await owner
        .post(rules)
        .send({ ...rule, variableMappings: { "my.name": field } })
        .expect(201);
    const { ruleId } = (await owner.post(rules).send(rule).expect(201)).body.rule;
    const wrong = [
      "nonsense",
      "fields.",
      "fields",
      "leadContext",
      "consent",
      "fields.a b",
      "constructor",
      "__proto__",
      "",
      5,
    ];
    for (const field of wrong)
      for (const request of [owner.post(rules), owner.put(`${rules}/${ruleId}`)]) {
        const { status, body } = await request.send({ ...rule, variableMappings: { good: "name", bad: field } });
        t.match({ status, ...body }, { status: 400, code: "invalid_request" }, String(field));
        t.same(
          body.errors.map(({ path }: { path: string }) => path),
          ["/variableMappings/bad"],
        );
      }
  },
);

t.test("a rule can be stopped while its template is paused or its sender is off", async (t) => {
  const { sending, service } = await startCampaign(t, { workers: false });
  const { owner, root } = sending;
  const { ruleId } = (await owner.post(rules).send(rule).expect(201)).body.rule;
  await owner.put(`${root}/templates/tmpl_hello`).send({ status: "PAUSED" }).expect(200);
  await owner.put(`${root}/senders/sender_main`).send({ enabled: false }).expect(200);
  const change = (body: object) => owner.put(`${rules}/${ruleId}`).send(body);
  t.match((await change({ enabled: false }).expect(200)).body.rule, { enabled: false });
  await change({ variableMappings: {} }).expect(200);
  t.match((await change({ enabled: true }).expect(409)).body, { code: "sender_profile_not_ready" });
  t.match((await change({ senderId: "sender_none" }).expect(404)).body, { code: "sender_profile_not_found" });
  t.match((await change({ templateId: "tmpl_none" }).expect(404)).body, { code: "email_template_not_found" });
  await owner.put(`${root}/senders/sender_main`).send({ enabled: true }).expect(200);
  t.match((await change({ enabled: true }).expect(409)).body, { code: "email_template_not_active" });
  await service.runtime.redis.hset(keys.emailIdentity("acme.example", "acct_acme"), "status", "PENDING");
  t.match((await change({ enabled: true }).expect(409)).body, { code: "domain_email_identity_not_ready" });
});

t.test("a deleted rule is hidden, sends nothing, and is removed after a while", async (t) => {
  const campaign = await startCampaign(t);
  const { owner } = campaign.sending;
  const { redis } = campaign.service.runtime;
  const { ruleId } = await campaign.rule();
  const leadId = await campaign.capture({ email: "ada@example.com" });
  await eventually(() => campaign.mails.length === 1);
  const all = () => Promise.all([1, 2, 3].map(() => owner.delete(`${rules}/${ruleId}`).expect(204)));
  await owner.post("/v2/handles/acme/campaigns").send({ campaignId: "cmp_other", name: "Other" }).expect(201);
  await owner.delete(`${rules.replace("cmp_spring", "cmp_other")}/${ruleId}`).expect(204);
  t.equal(await redis.ttl(keys.ruleSends("acme", ruleId)), -1, "a rule of another campaign stays");
  await all();
  await all();
  t.same((await owner.get(rules).expect(200)).body.rules, []);
  for (const answer of [
    owner.put(`${rules}/${ruleId}`).send({ enabled: false }),
    owner.get(`${rules}/${ruleId}/preview?leadId=${leadId}`),
  ])
    t.match((await answer.expect(404)).body, { code: "email_rule_not_found" });
  const kept = keys.rule("acme", "cmp_spring", ruleId);
  t.match(JSON.parse((await redis.hget(kept, "json")) as string), { ruleId, deletedAt: /^2026-11-2\d.*Z$/ });
  // As a crash in the middle of the deletion would leave it.
  await redis.persist(kept);
  await redis.zadd(keys.rules("acme", "cmp_spring"), 1, ruleId);
  await all();
  t.same(await redis.zrange(keys.rules("acme", "cmp_spring"), 0, "-1"), []);
  await redis.zadd(keys.rules("acme", "cmp_spring"), 1, ruleId);
  const lead = await campaign.capture({ email: "bob@example.com" });
  const trigger = { handle: "acme", leadId: lead, campaignId: "cmp_spring", trigger: "LEAD_CAPTURED" as const };
  await fireRules(campaign.service.runtime, { ...trigger, triggerId: "late", at: campaign.service.runtime.now() });
  t.same(await redis.hgetall(keys.ruleSends("acme", ruleId)), { [leadId]: "sent" }, "a trigger under way is too late");
  const names = (await keyNames(redis, "*{acme}*")).filter((name) => name.includes(ruleId));
  t.same(names.sort(), [kept, keys.ruleCounts("acme", ruleId), keys.ruleSends("acme", ruleId)].sort());
  for (const name of names) t.ok((await redis.ttl(name)) > 399 * 86_400, `${name} has an end`);
});

t.test("a delay applies to the delayed trigger only, also after a change of the rule", async (t) => {
  const { sending } = await startCampaign(t, { workers: false });
  const { owner } = sending;
  const { ruleId } = (
    await owner
      .post(rules)
      .send({ ...rule, delayMinutes: 5 })
      .expect(201)
  ).body.rule;
  const change = (body: object) => owner.put(`${rules}/${ruleId}`).send(body);
  const kept = async (body: object) => (await change(body).expect(200)).body.rule.delayMinutes;
  const refused = async (body: object) => (await change(body).expect(400)).body.code;
  for (const delayMinutes of [5, 60, 15.5, "soon", null]) t.equal(await kept({ delayMinutes }), null);
  const trigger = "LEAD_CAPTURED_DELAYED";
  t.equal(await refused({ trigger }), "delay_minutes_required_for_delayed_trigger");
  t.equal(await refused({ trigger, delayMinutes: 5 }), "delay_minutes_below_minimum");
  t.equal(await kept({ trigger, delayMinutes: 60 }), 60);
  t.equal(await refused({ delayMinutes: 5 }), "delay_minutes_below_minimum");
  t.equal(await refused({ delayMinutes: null }), "delay_minutes_required_for_delayed_trigger");
  t.equal(await kept({ enabled: false }), 60);
  t.equal(await kept({ trigger: "CONVERSION", delayMinutes: 5 }), null);
});

t.test("a captured lead gets the rule's mail once for ever, with its own words", async (t) => {
  const campaign = await startCampaign(t);
  const { owner } = campaign.sending;
  await campaign.capture({ email: "early@example.com" });
  await owner
    .post("/v2/handles/acme/email/templates")
    .send({
      templateId: "tmpl_lead",
      name: "L",
      subject: "{{firstName}}, {{size}}",
      text: "{{company}}|{{leadId}}|{{missing}}",
    })
    .expect(201);
  const denied = (
    await owner
      .post(rules)
      .send({ ...rule, templateId: "tmpl_lead", variableMappings: { size: "fields.size" } })
      .expect(201)
  ).body.rule;
  await campaign.capture({ email: "ada@example.com", name: "Ada Lovelace", size: "XL", company: "Engines" });
  await eventually(async () => (await campaign.counts()).denied === 1);
  t.match((await campaign.events())[0], {
    type: "DENIED",
    reason: "template_variables_missing",
    recipient: "ada@example.com",
  });
  await owner.put("/v2/handles/acme/email/templates/tmpl_lead").send({ text: "{{company}}|{{leadId}}" }).expect(200);
  await owner.put(`${rules}/${denied.ruleId}`).send({ enabled: false }).expect(200);
  await owner
    .post(rules)
    .send({ ...rule, templateId: "tmpl_lead", variableMappings: { size: "fields.size" } })
    .expect(201);
  const leadId = await campaign.capture({ email: "bob@example.com", name: "Bob Stone", size: "M", company: "Rocks" });
  await eventually(() => campaign.mails.length === 1);
  t.same(campaign.mails[0]?.to, ["bob@example.com"]);
  t.equal(campaign.mails[0]?.headers.subject, "Bob, M");
  t.match(campaign.mails[0]?.raw, `Rocks|${leadId}`);
  t.ok(campaign.mails[0]?.headers["list-unsubscribe"]);
  await campaign.capture({ email: "bob@example.com" });
  await campaign.capture({ email: "ada@example.com" });
  await eventually(() => campaign.mails.length === 2);
  t.same(
    campaign.mails[1]?.to,
    ["ada@example.com"],
    "a rule made since then does fire, one that had the lead does not",
  );
  t.match(await campaign.counts(), { waiting: 0, sent: 2, denied: 0 });
});

t.test("a name with a pasted tab or line break costs a lead no mail", async (t) => {
  const campaign = await startCampaign(t);
  await campaign.rule({ variableMappings: { name: "name" } });
  await campaign.capture({
    email: "ada@x.example",
    name: "Ada\tLovelace\r\nBcc: eve@x.example\u2028",
    message: "One\ntwo",
  });
  await eventually(() => campaign.mails.length === 1);
  t.match(campaign.mails[0]?.headers, { subject: "Hello Ada Lovelace Bcc: eve@x.example", bcc: undefined });
  const { leads } = (await campaign.sending.owner.get("/v2/handles/acme/leads").expect(200)).body;
  t.match(leads, [{ name: "Ada Lovelace Bcc: eve@x.example", message: "One\ntwo" }]);
});

t.test("what a lead wrote in several lines is one in a subject, and costs it no mail", async (t) => {
  const campaign = await startCampaign(t);
  const { owner } = campaign.sending;
  const template = { templateId: "tmpl_note", name: "N", subject: "{{note}}: {{message}}", text: "{{note}}" };
  await owner.post("/v2/handles/acme/email/templates").send(template).expect(201);
  const { ruleId } = await campaign.rule({ templateId: "tmpl_note", variableMappings: { note: "fields.note" } });
  const leadId = await campaign.capture({
    ...{ email: "ada@x.example", note: "One\r\nBcc: eve@x.example\u2028two", message: "long ".repeat(400) },
  });
  await eventually(() => campaign.mails.length === 1);
  const { subject = "", bcc } = campaign.mails[0]?.headers ?? {};
  t.match(subject, /^One Bcc: eve@x.example two: long (long )*long$/);
  t.equal(bcc, undefined);
  const { body } = await owner.get(`${rules}/${ruleId}/preview?leadId=${leadId}`).expect(200);
  t.equal(body.subject, subject);
  t.match(body.text, /^One\r\nBcc: eve@x.example\u2028two\n/);
});

t.test("a delayed rule waits, and looks at everything again when its time has come", async (t) => {
  const campaign = await startCampaign(t);
  const { owner } = campaign.sending;
  const { runtime } = campaign.service;
  // Thirty days are 24 minutes.
  const { ruleId } = (
    await owner
      .post(rules)
      .send({ ...rule, trigger: "LEAD_CAPTURED_DELAYED", delayMinutes: 43_200, variableMappings: { name: "email" } })
      .expect(201)
  ).body.rule;
  const itsTimeComes = async (count: number) => {
    const delays = await passDelays(runtime, "campaigns");
    t.equal(delays.length, count);
    for (const delay of delays) t.ok(delay <= 1_440_000 && delay > 1_380_000, `${delay} ms`);
  };
  const gone = await campaign.capture({ email: "gone@example.com" });
  await campaign.capture({ email: "kept@example.com" });
  await eventually(async () => (await campaign.counts()).waiting === 2);
  await owner.delete(`/v2/handles/acme/leads/${gone}`).expect(204);
  t.same(campaign.mails, []);
  await itsTimeComes(2);
  await eventually(() => campaign.mails.length === 1);
  t.same(campaign.mails[0]?.to, ["kept@example.com"]);
  await eventually(async () => (await campaign.counts()).waiting === 0);
  t.match(await campaign.counts(), { sent: 1, denied: 1 });
  await campaign.capture({ email: "off@example.com" });
  await eventually(async () => (await campaign.counts()).waiting === 1);
  await owner.put(`${rules}/${ruleId}`).send({ enabled: false }).expect(200);
  await itsTimeComes(1);
  await eventually(async () =>
    (await campaign.events()).some((event: { reason?: string }) => event.reason === "email_rule_disabled"),
  );
  await owner.put(`${rules}/${ruleId}`).send({ enabled: true }).expect(200);
  await campaign.capture({ email: "deleted@example.com" });
  await eventually(async () => (await campaign.counts()).waiting === 1);
  await owner.delete(`${rules}/${ruleId}`).expect(204);
  await itsTimeComes(1);
  await eventually(async () =>
    (await campaign.events()).some((event: { reason?: string }) => event.reason === "email_rule_not_found"),
  );
  t.equal(campaign.mails.length, 1);
});

t.test("a campaign that is not live gets no other leads, and its rules send nothing", async (t) => {
  const { capture, events, mails, sending } = await startCampaign(t);
  const campaignId = "cmp_quiet";
  await sending.owner.post("/v2/handles/acme/campaigns").send({ campaignId, name: "Quiet", live: false }).expect(201);
  await sending.owner
    .post(`/v2/handles/acme/campaigns/${campaignId}/email-rules`)
    .send({ ...rule, variableMappings: { name: "email" } })
    .expect(201);
  await capture({ email: "ada@example.com" });
  await capture({ email: "bob@example.com", campaignId });
  await eventually(async () => (await events()).length > 0);
  t.match(await events(), [{ recipient: "bob@example.com", type: "DENIED", reason: "campaign_not_live" }]);
  t.same(mails, []);
});

t.test("a conversion triggers its own rules alone", async (t) => {
  const campaign = await startCampaign(t);
  const { owner } = campaign.sending;
  await owner
    .post(rules)
    .send({ ...rule, trigger: "CONVERSION", variableMappings: { name: "email" } })
    .expect(201);
  const leadId = await campaign.capture({ email: "ada@example.com" });
  const conversions = "/v2/handles/acme/conversions";
  t.match((await owner.post(conversions).send({ leadId, campaignId: "cmp_none" }).expect(404)).body, {
    code: "campaign_not_found",
  });
  t.match((await owner.post(conversions).send({ leadId: "lead_none", campaignId: "cmp_spring" }).expect(404)).body, {
    code: "lead_not_found",
  });
  t.match((await owner.post(conversions).send({ leadId, campaignId: "cmp_spring", value: "x" }).expect(400)).body, {
    code: "invalid_request",
  });
  await owner.post(conversions).send({ leadId, campaignId: "cmp_spring", value: 12.5, currency: "EUR" }).expect(202);
  const late = { leadId, campaignId: "cmp_spring", occurredAt: "2026-10-05T09:30:00+02:00" };
  t.match((await owner.post(conversions).send(late).expect(202)).body.conversion, {
    occurredAt: "2026-10-05T07:30:00.000Z",
  });
  await owner.post(conversions).send({ leadId, campaignId: "cmp_spring", occurredAt: null }).expect(202);
  await eventually(() => campaign.mails.length === 1);
  await eventually(
    async () =>
      (await campaign.service.runtime.queues.queue("campaigns").getJobCountByTypes("waiting", "active", "delayed")) ===
      0,
  );
  t.equal(campaign.mails.length, 1, "one send per rule and lead");
});

t.test("a trigger that is delivered twice sends once, and a preview sends nothing", async (t) => {
  const campaign = await startCampaign(t);
  const { owner } = campaign.sending;
  const { ruleId } = (
    await owner
      .post(rules)
      .send({ ...rule, variableMappings: { name: "email" } })
      .expect(201)
  ).body.rule;
  const leadId = await campaign.capture({ email: "ada@example.com" });
  await eventually(() => campaign.mails.length === 1);
  const queue = campaign.service.runtime.queues.queue("campaigns");
  const at = campaign.service.runtime.now();
  const trigger = {
    handle: "acme",
    leadId,
    campaignId: "cmp_spring",
    trigger: "LEAD_CAPTURED",
    triggerId: "again",
    at,
  };
  await Promise.all(["a", "b"].map((id) => queue.add("campaigns.trigger", trigger, { jobId: id })));
  await queue.add("campaigns.send", { handle: "acme", campaignId: "cmp_spring", ruleId, leadId }, { jobId: "c" });
  await eventually(async () => (await queue.getJobCountByTypes("waiting", "active", "delayed")) === 0);
  t.match((await owner.get(`${rules}/${ruleId}/preview?leadId=${leadId}`).expect(200)).body, {
    subject: "Hello ada@example.com",
  });
  t.match((await owner.get(`${rules}/${ruleId}/preview?leadId=lead_none`).expect(404)).body, {
    code: "lead_not_found",
  });
  t.equal(campaign.mails.length, 1);
  t.match(await campaign.counts(), { waiting: 0, sent: 1, denied: 0 });
  t.same(await campaign.service.runtime.redis.hgetall(keys.ruleSends("acme", ruleId)), { [leadId]: "sent" });
});

t.test("changes of a rule at the same time are checked one after the other", async (t) => {
  const { sending, rule } = await startCampaign(t, { workers: false });
  const { owner, root } = sending;
  const paused = { templateId: "tmpl_paused", name: "Paused", subject: "Paused", text: "Paused" };
  await owner.post(`${root}/templates`).send(paused).expect(201);
  await owner.put(`${root}/templates/tmpl_paused`).send({ status: "PAUSED" }).expect(200);
  for (let round = 0; round < 15; round++) {
    const off = `${rules}/${(await rule({ enabled: false })).ruleId}`;
    const changes = [{ enabled: true }, { templateId: "tmpl_paused" }];
    const answers = await Promise.all(changes.map((change) => owner.put(off).send(change)));
    t.same(
      answers.map(({ status, body }) => body.code ?? status).sort(),
      [200, "email_template_not_active"],
      "an enabled rule has an active template",
    );
    const gone = `${rules}/${(await rule()).ruleId}`;
    const [, late] = await Promise.all([
      owner.delete(gone),
      owner.put(gone).send({ enabled: true, expectedVersion: 1 }),
    ]);
    t.ok(late.status === 200 || late.body.code === "email_rule_not_found", `${late.status} ${late.body.code}`);
  }
});

t.test("a rule without a delay sends at once, even if the clock of the trigger was ahead", async (t) => {
  const campaign = await startCampaign(t);
  const leadId = await campaign.capture({ email: "ada@example.com" });
  await campaign.sending.owner.post(rules).send(rule).expect(201);
  const { queues, now } = campaign.service.runtime;
  const trigger = { handle: "acme", leadId, campaignId: "cmp_spring", trigger: "LEAD_CAPTURED", triggerId: "ahead" };
  await queues.queue("campaigns").add("campaigns.trigger", { ...trigger, at: now() + 3_600_000 });
  await eventually(() => campaign.mails.length === 1);
  t.match(campaign.mails[0]?.to, ["ada@example.com"]);
});

t.test("a rule's mail to a person who was erased after it was begun is denied", async (t) => {
  const campaign = await startCampaign(t, { workers: false });
  const { runtime } = campaign.service;
  const { ruleId } = (await campaign.sending.owner.post(rules).send(rule).expect(201)).body.rule;
  const leadId = await campaign.capture({ email: "ada@example.com" });
  await fireRules(runtime, {
    ...{ handle: "acme", campaignId: "cmp_spring", leadId, trigger: "LEAD_CAPTURED", triggerId: "one" },
    at: runtime.now(),
  });
  eraseAfter(runtime, "hmget", leadId);
  await sendRule(runtime, { handle: "acme", campaignId: "cmp_spring", ruleId, leadId });
  t.match(await campaign.counts(), { waiting: 0, sent: 0, denied: 1 });
});

t.test("recipients of one message who are erased at once are all gone from it", async (t) => {
  const { service, sending, capture } = await startCampaign(t);
  const to = Array.from({ length: 10 }, (_, n) => `p${n}@example.com`);
  const ask = () => sending.ask({ to, idempotencyKey: "all" }).expect(202);
  const { messageId } = (await ask()).body.message;
  const leads = await Promise.all(to.map((email) => capture({ email })));
  await Promise.all(leads.map((leadId) => sending.owner.delete(`/v2/handles/acme/leads/${leadId}`).expect(204)));
  const { redis } = service.runtime;
  // The last thing that an erasure removes.
  const lists = to.map((address) => keys.emailEvents("acme", `to:${addressDigest(address)}`));
  await eventually(async () => (await Promise.all(lists.map((list) => redis.exists(list)))).every((one) => one === 0));
  const addresses = /p\d@example\.com/;
  t.notMatch(JSON.stringify(await sending.read(messageId)), addresses);
  t.notMatch(JSON.stringify((await ask()).body), addresses);
});

t.test("an erased person is gone from the mails too", async (t) => {
  const campaign = await startCampaign(t);
  const { owner } = campaign.sending;
  await owner
    .post(rules)
    .send({ ...rule, variableMappings: { name: "email" } })
    .expect(201);
  const leadId = await campaign.capture({ email: "ada@example.com" });
  await eventually(() => campaign.mails.length === 1);
  const send = () =>
    owner.post("/v2/handles/acme/email/messages").send({
      senderId: "sender_main",
      purpose: "TRANSACTIONAL_API",
      templateId: "tmpl_hello",
      variables: { name: "both" },
      consentAttestation: true,
      to: ["ada@example.com", "bob@example.com"],
      idempotencyKey: "both",
    });
  const { messageId } = (await send().expect(202)).body.message;
  await eventually(() => campaign.mails.length === 3);
  await owner.delete(`/v2/handles/acme/leads/${leadId}`).expect(204);
  const { redis } = campaign.service.runtime;
  // The last thing that an erasure removes.
  const person = keys.emailEvents("acme", `to:${addressDigest("ada@example.com")}`);
  await eventually(async () => (await redis.exists(person)) === 0);
  const { messages } = (await owner.get("/v2/handles/acme/email/messages").expect(200)).body;
  t.equal(messages.length, 1);
  t.same(
    messages[0].deliveries.map(({ recipient }: { recipient: string }) => recipient),
    ["erased@erased.invalid", "bob@example.com"],
  );
  for (const key of await keyNames(redis, "*{acme}*")) t.notMatch(await storedText(redis, key), /ada@example/, key);
  const repeated = (await send().expect(202).expect("Idempotency-Replayed", "true")).body.message;
  t.match(repeated, { messageId, deliveries: [{ recipient: "erased@erased.invalid" }, {}] });
});

t.test("what reaches a person after their erasure stays, however late its job runs", async (t) => {
  const { service, sending, capture } = await startCampaign(t, { workers: false });
  const { owner, root, send } = sending;
  const { redis, queues } = service.runtime;
  const to = "ada@example.com";
  await owner.post("/v2/handles/acme/webhooks").send({ url: "http://127.0.0.1:9/hook" }).expect(201);
  const erased = { leadId: await capture({ email: to }), messageId: await send([to]) };
  await owner.delete(`/v2/handles/acme/leads/${erased.leadId}`).expect(204);
  const erasing = await eventually(() => queues.queue("campaigns").getJob(`leads.erase-${erased.leadId}`));
  const kept = { leadId: await capture({ email: to }), messageId: await send([to]) };
  await owner.post(`${root}/suppressions`).send({ email: to }).expect(201);
  await service.startWorkers(["campaigns"]);
  await eventually(() => erasing.isCompleted());
  const read = async (path: string) => (await owner.get(`${root}/${path}`)).body;
  t.match(await read(`messages/${erased.messageId}`), { code: "message_not_found" });
  t.match(await read(`messages/${kept.messageId}`), { message: { status: "QUEUED" } });
  t.match((await read(`events?recipient=${to}`)).events, [{ messageId: kept.messageId }]);
  t.match((await read("suppressions")).suppressions, [{ email: to }]);
  const events = (await redis.mget(await keyNames(redis, "webhook-event:*"))).join("\n");
  t.match(events, kept.leadId);
  t.notMatch(events, erased.leadId);
});

t.test(
  "nothing is sent to an erased person while the job of the erasure waits, whatever clock accepted it",
  async (t) => {
    const { service, sending, capture, mails } = await startCampaign(t, { workers: false });
    const { runtime } = service;
    const to = "ada@example.com";
    const leadId = await capture({ email: to });
    const before = await sending.send([to]);
    const { now } = runtime;
    Object.assign(runtime, { now: () => now() + 60_000 });
    const ahead = await sending.send([to]);
    Object.assign(runtime, { now });
    await sending.owner.delete(`/v2/handles/acme/leads/${leadId}`).expect(204);
    for (const messageId of [before, ahead])
      t.match((await sending.owner.get(`${sending.root}/messages/${messageId}`).expect(404)).body, {
        code: "message_not_found",
      });
    await service.startWorkers(["email"]);
    const last = await sending.send(["bob@example.com"]);
    await sending.until(last, "SENT");
    t.same(
      mails.map((mail) => mail.to),
      [["bob@example.com"]],
    );
  },
);

t.test("if a campaign requires it, no rule fires before the address is verified", async (t) => {
  const campaign = await startCampaign(t);
  const { owner } = campaign.sending;
  await checkLeads(owner);
  const checked = "/v2/handles/acme/campaigns/cmp_checked/email-rules";
  await owner
    .post(checked)
    .send({ ...rule, variableMappings: { name: "email" } })
    .expect(201);
  const accepted = await campaign.service.visitor
    .post("/v2/public/handles/acme/leads")
    .send({ email: "ada@example.com", campaignId: "cmp_checked" })
    .expect(202);
  const { leadId } = accepted.body.lead;
  t.equal(accepted.body.lead.status, "UNVERIFIED");
  await eventually(() => campaign.mails.length === 1);
  const [code = ""] = /\d{6}/.exec(campaign.mails[0]?.headers.subject ?? "") ?? [];
  t.match(code, /^\d{6}$/);
  const read = async () => (await owner.get(`/v2/handles/acme/leads/${leadId}`)).body.lead;
  t.equal((await read()).status, "UNVERIFIED");
  const verify = (body: object, id = leadId) =>
    campaign.service.visitor.post(`/v2/public/handles/acme/leads/${id}/verify`).send(body);
  t.match((await verify({ code: code === "123456" ? "654321" : "123456" }).expect(400)).body, {
    code: "invalid_verification_code",
  });
  t.match((await verify({}).expect(400)).body, { code: "invalid_request" });
  t.match((await verify({ code }, "lead_none").expect(404)).body, { code: "lead_not_found" });
  t.match((await verify({ code: `${code.slice(0, 3)} ${code.slice(3)}` }).expect(200)).body, {
    lead: { leadId, status: "VERIFIED" },
  });
  t.match((await verify({ code }).expect(200)).body, { lead: { leadId, status: "VERIFIED" } });
  await eventually(() => campaign.mails.length === 2);
  t.equal(campaign.mails[1]?.headers.subject, "Hello ada@example.com");
  t.equal((await read()).status, "VERIFIED");
});

t.test("a lead that is sent several times at once gets one code", async (t) => {
  const { service, sending, capture, mails } = await startCampaign(t);
  await checkLeads(sending.owner);
  const lead = { email: "ada@example.com", campaignId: "cmp_checked" };
  const [leadId] = await Promise.all([capture(lead), capture(lead), capture(lead)]);
  await eventually(() => mails.length === 3);
  const codes = mails.map(({ headers }) => /\d{6}/.exec(headers.subject ?? "")?.[0]);
  t.same(codes, Array(3).fill(codes[0]));
  const path = `/v2/public/handles/acme/leads/${leadId}/verify`;
  await service.visitor.post(path).send({ code: codes[0] }).expect(200);
});

t.test("attempts that fail count as one code of an address", async (t) => {
  const { service, sending, capture } = await startCampaign(t, { workers: false });
  const { runtime } = service;
  await checkLeads(sending.owner);
  const leadId = await capture({ email: "ada@example.com", campaignId: "cmp_checked" });
  const attempt = (failures: number) =>
    sendLeadCode(runtime, { handle: "acme", leadId, round: "code_1" }, { failures });
  const { SMTP_URL } = runtime.env;
  Object.assign(runtime.env, { SMTP_URL: undefined });
  for (let failures = 0; failures < 4; failures++)
    await t.rejects(attempt(failures), { code: "transactional_email_queue_unavailable" });
  Object.assign(runtime.env, { SMTP_URL });
  await attempt(4);
  const { messages } = (await sending.owner.get(`${sending.root}/messages`).expect(200)).body;
  t.equal(messages.length, 1);
});

t.test("mails of codes that follow a used one at once have one code, and the used one verifies no more", async (t) => {
  const { service, sending, capture } = await startCampaign(t, { workers: false });
  const { runtime } = service;
  await checkLeads(sending.owner);
  const lead = { email: "ada@example.com", campaignId: "cmp_checked" };
  const leadId = await capture(lead);
  const codes = async (): Promise<string[]> => {
    const { messages } = (await sending.owner.get(`${sending.root}/messages`).expect(200)).body;
    const contents = messages.map(({ messageId }: { messageId: string }) =>
      runtime.redis.hget(keys.message("acme", messageId), "content"),
    );
    return (await Promise.all(contents)).map((json) => /\d{6}/.exec(JSON.parse(json ?? "").subject)?.[0] ?? "");
  };
  const send = (round: string) => sendLeadCode(runtime, { handle: "acme", leadId, round });
  await send("code_first");
  const [used] = await codes();
  const verify = () => service.visitor.post(`/v2/public/handles/acme/leads/${leadId}/verify`).send({ code: used });
  await verify().expect(200);
  await capture({ ...lead, name: "Eve" });
  afterReply(runtime.redis, { name: "hget", key: keys.leadCode("acme", leadId) }, () => send("code_second"));
  await verify().expect(400);
  await send("code_third");
  const [third, second] = await codes();
  t.equal(third, second);
  t.not(second, used);
});

t.test("a lead that is verified while its code is mailed again gets no other code", async (t) => {
  const { service, sending, capture } = await startCampaign(t, { workers: false });
  const { runtime } = service;
  await checkLeads(sending.owner);
  const leadId = await capture({ email: "ada@example.com", campaignId: "cmp_checked" });
  await sendLeadCode(runtime, { handle: "acme", leadId, round: "code_first" });
  const code = sixDigits(runtime.env.SECRET_KEY, "lead code", "code_first");
  const key = keys.lead("acme", leadId);
  afterReply(runtime.redis, { name: "hmget", key }, () => verifyLead(runtime, { handle: "acme", leadId, code }));
  await sendLeadCode(runtime, { handle: "acme", leadId, round: "code_second" });
  t.equal((await sending.owner.get(`${sending.root}/messages`).expect(200)).body.messages.length, 1);
});

t.test("verified data changes only with a code, and nobody learns that it was verified", async (t) => {
  const campaign = await startCampaign(t);
  const { owner } = campaign.sending;
  await checkLeads(owner);
  const send = async (body: object) =>
    (
      await campaign.service.visitor
        .post("/v2/public/handles/acme/leads")
        .send({ email: "ada@example.com", campaignId: "cmp_checked", ...body })
        .expect(202)
    ).body.lead;
  const newestCode = async (count: number) => {
    await eventually(() => campaign.mails.length === count);
    return /\d{6}/.exec(campaign.mails[count - 1]?.headers.subject ?? "")?.[0] ?? "";
  };
  const first = await send({ name: "Ada", message: "Call me", size: "M", consent: { news: true } });
  const code = await newestCode(1);
  const verify = (typed: string | number) =>
    campaign.service.visitor.post(`/v2/public/handles/acme/leads/${first.leadId}/verify`).send({ code: typed });
  await verify(code).expect(200);
  const read = async () => (await owner.get(`/v2/handles/acme/leads/${first.leadId}`)).body.lead;
  const confirmed = { name: "Ada", message: "Call me", fields: { size: "M" }, consent: { news: true } };
  t.match(await read(), { status: "VERIFIED", email: "ada@example.com", ...confirmed });

  const stranger = { email: "ADA@Example.com", name: "Eve", message: "Buy this", size: "L", consent: null };
  const fields = Object.fromEntries(Array.from({ length: 19 }, (_, at) => [`f${at}`, "x"]));
  const answer = await send({ ...stranger, phone: "12345", fields });
  t.same(answer, first, "the answer is that of an address that was never seen");
  t.match(await read(), { status: "VERIFIED", email: "ada@example.com", ...confirmed, phone: "12345" });
  t.equal(Object.keys((await read()).fields).length, 20);
  await newestCode(2);
  await send({ ...stranger, phone: "67890" });
  t.match(await read(), { ...confirmed, phone: "67890" }, "of the rest the newest is kept");
  t.notOk(["confirmed", "unconfirmed"].some((name) => name in answer));
  const second = await newestCode(3);
  const wrong = second === "123456" ? "654321" : "123456";
  for (const typed of [wrong, Number(wrong), ` ${wrong} `])
    t.match(
      (await verify(typed).expect(400)).body,
      { code: "invalid_verification_code" },
      "numbers are texts in leads",
    );
  await verify(second).expect(200);
  t.match(await read(), { name: "Eve", message: "Buy this", email: "ADA@Example.com", fields: { size: "L" } });
});

t.test("once no code is required any more, a lead with unverified content triggers rules again", async (t) => {
  const campaign = await startCampaign(t);
  const { owner } = campaign.sending;
  const page = { pageSlug: "shop", title: "Shop", status: "PUBLISHED", content: "<main>Shop</main>" };
  await owner
    .post("/v2/handles/acme/pages")
    .send({ ...page, verifyLeads: true })
    .expect(201);
  const { visitor } = campaign.service;
  const send = async (message: string) =>
    (
      await visitor
        .post("/v2/public/handles/acme/leads")
        .send({ email: "ada@example.com", pageSlug: "shop", message })
        .expect(202)
    ).body.lead;
  const { leadId } = await send("first");
  await eventually(() => campaign.mails.length === 1);
  const code = /\d{6}/.exec(campaign.mails[0]?.headers.subject ?? "")?.[0];
  await visitor.post(`/v2/public/handles/acme/leads/${leadId}/verify`).send({ code }).expect(200);
  await send("second");
  await eventually(() => campaign.mails.length === 2);
  await owner.put("/v2/handles/acme/pages/shop").send({ verifyLeads: false }).expect(200);
  await campaign.rule();
  t.same(await send("third"), { leadId, status: "ACCEPTED" });
  await eventually(() => campaign.mails.length === 3);
  t.equal(campaign.mails[2]?.headers.subject, "Hello ada@example.com", "the rule's mail, and no code");
  t.match((await owner.get(`/v2/handles/acme/leads/${leadId}`)).body.lead, { status: "VERIFIED", message: "first" });
});

t.test("a rule mails a person once, whatever page the leads name, and all rules together 5 times a day", async (t) => {
  const campaign = await startCampaign(t);
  // All of it happens on one day.
  stopClock(campaign.service.runtime);
  const rule = await campaign.rule();
  for (let at = 0; at < 12; at++)
    await campaign.capture({ email: "victim@example.com", campaignId: "cmp_spring", pageSlug: `no-such-page-${at}` });
  await eventually(async () => (await campaign.counts()).sent === 1);
  for (let at = 0; at < 8; at++)
    await campaign.capture({ email: `Victim+${at}@example.com`, campaignId: "cmp_spring" });
  await eventually(async () => (await campaign.counts()).sent + (await campaign.counts()).denied === 9);
  t.match(await campaign.counts(), { sent: 5, denied: 4 });
  await eventually(() => campaign.mails.length === 5);
  const denied = (await campaign.events()).filter(({ type }) => type === "DENIED");
  t.same([...new Set(denied.map(({ reason }) => reason))], ["visitor_mail_limit"]);
  await campaign.capture({ email: "other@example.com", campaignId: "cmp_spring" });
  await eventually(() => campaign.mails.length === 6);
  t.ok(rule.ruleId);
});

t.test("the fifth wrong code ends a verification", async (t) => {
  const campaign = await startCampaign(t);
  await campaign.sending.owner
    .post("/v2/handles/acme/campaigns")
    .send({ campaignId: "cmp_checked", name: "Checked", verifyLeads: true })
    .expect(201);
  const leadId = await campaign.capture({ email: "ada@example.com", campaignId: "cmp_checked" });
  await eventually(() => campaign.mails.length === 1);
  const [code = ""] = /\d{6}/.exec(campaign.mails[0]?.headers.subject ?? "") ?? [];
  const wrong = code === "123456" ? "654321" : "123456";
  const verify = (typed: string) =>
    campaign.service.visitor.post(`/v2/public/handles/acme/leads/${leadId}/verify`).send({ code: typed });
  await Promise.all(Array.from({ length: 5 }, () => verify(wrong).expect(400)));
  t.match((await verify(code).expect(400)).body, { code: "invalid_verification_code" });
  t.equal((await campaign.sending.owner.get(`/v2/handles/acme/leads/${leadId}`)).body.lead.status, "UNVERIFIED");
});

t.test("a code goes before a burst of rules", async (t) => {
  const campaign = await startCampaign(t, { workers: false });
  const { owner } = campaign.sending;
  await campaign.rule();
  const { runtime } = campaign.service;
  const ruleId = (await owner.get(rules).expect(200)).body.rules[0].ruleId;
  const burst = Array.from({ length: 300 }, (_, at) => ({
    data: { handle: "acme", campaignId: "cmp_spring", ruleId, leadId: `lead_${at}` },
    due: runtime.now(),
  }));
  await runtime.queues.later(...burst.map((send) => sendJob(runtime, send)));
  await checkLeads(owner);
  await campaign.capture({ email: "ada@example.com", campaignId: "cmp_checked" });
  const queue = runtime.queues.queue("campaigns");
  await eventually(async () => (await queue.getWaitingCount()) === 1);
  await campaign.service.startWorkers(["campaigns"]);
  const ended = await eventually(async () => {
    const jobs = await queue.getCompleted(0, -1);
    return jobs.length === burst.length + 1 && jobs;
  });
  const code = ended.find(({ name }) => name === "leads.send-code");
  t.equal(ended.filter(({ processedOn = 0 }) => processedOn < (code?.processedOn ?? 0)).length, 0);
});
