import PostalMime from "postal-mime";
import t, { type Test } from "tap";
import { grantRole, revokeRole } from "../core/account/handles.ts";
import { acceptMessage } from "../core/email/acceptance.ts";
import { erasePerson } from "../core/email/erasure.ts";
import { eraseLead } from "../core/leads/leads.ts";
import { sendLeadDigest, sendLeadNotice, withdrawNotices } from "../core/leads/notices.ts";
import { sendLeadCode } from "../core/leads/verification.ts";
import { addressDigest } from "../core/platform/address.ts";
import { keys } from "../core/store/keys.ts";
import { job } from "../core/store/outbox.ts";
import { makeSending } from "../fixtures/email.ts";
import { Inbox } from "../fixtures/inbox.ts";
import { eraseAfter } from "../fixtures/leads.ts";
import { keyNames } from "../fixtures/redis.ts";
import { eventually, published, type Service, type ServiceOptions, startService } from "../fixtures/service.ts";
import { startMailServer, startRudeServer } from "../fixtures/smtp.ts";
import { passDelays } from "../fixtures/time.ts";
import type { Message } from "../schemas/email.ts";

const route = "/v2/public/handles/acme/leads";
const trigger = {
  handle: "acme",
  leadId: "lead_1",
  campaignId: "cmp_1",
  trigger: "LEAD_CAPTURED",
  triggerId: "t",
  at: 0,
} as const;
const owner = "user_acme@example.com";

async function open(t: Test, options: ServiceOptions = {}): Promise<{ service: Service; inbox: Inbox }> {
  const inbox = new Inbox();
  const env = {
    SMTP_URL: await inbox.start(t),
    PUBLIC_PAGE_AGENT_ENABLED: "1",
    PUBLIC_LEADS_BURST: "1000",
    ...options.env,
  };
  return { service: await startService(t, { workers: ["campaigns", "email"], ...options, env }), inbox };
}

async function mailsTo(inbox: Inbox, address: string) {
  const found = inbox.mails.filter(({ to }) => to === address);
  return Promise.all(found.map(({ source }) => PostalMime.parse(source)));
}

async function capture({ visitor }: Service, lead: Record<string, unknown>): Promise<string> {
  return (await visitor.post(route).send(lead).expect(202)).body.lead.leadId;
}

t.test(
  "a new lead is mailed to the owner with question, page and fields, and a reply goes to its person",
  async (t) => {
    const { service, inbox } = await open(t);
    const { owner: requests } = await makeSending(service);
    const page = { pageSlug: "prices", title: "Prices & plans", content: "<p>49 EUR</p>", status: "PUBLISHED" };
    await requests.post("/v2/handles/acme/pages").send(page).expect(201);
    const lead = {
      email: "ada@far.example",
      name: "Ada Lovelace",
      company: "Engines",
      message: "Please call <b>me</b>\nsoon",
      seats: 12,
      pageSlug: "prices",
      leadContext: { visitorQuestion: "What does it cost for 12 people?" },
    };
    await capture(service, lead);
    const [mail] = await eventually(async () => {
      const mails = await mailsTo(inbox, owner);
      return mails.length > 0 && mails;
    });
    t.equal(mail?.subject, "New lead: Ada Lovelace");
    t.match(mail?.from, { address: "noreply@acme.example", name: "Acme" });
    t.match(mail?.replyTo, [{ address: "ada@far.example" }]);
    for (const told of ["Engines", "Please call <b>me</b>", "seats: 12", "What does it cost for 12 people?"])
      t.match(mail?.text, told);
    t.match(mail?.text, "Page: Prices & plans\nhttp://service.test/p/acme/prices");
    t.match(mail?.html, "Please call &lt;b&gt;me&lt;/b&gt;<br>soon");
    t.match(mail?.html, 'href="http://service.test/p/acme/prices"');
    await capture(service, { ...lead, message: "Again" });
    await capture(service, { email: "bob@far.example", name: "\u200b\u3164" });
    await eventually(async () => (await mailsTo(inbox, owner)).length >= 2);
    const subjects = (await mailsTo(inbox, owner)).map(({ subject }) => subject);
    t.same(subjects, ["New lead: Ada Lovelace", "New lead: bob@far.example"], "a repeated lead is not a new one");
  },
);

t.test(
  "owners are told in the handle's language and under its name, or not at all if they don't want it",
  async (t) => {
    const { service, inbox } = await open(t);
    const { owner: requests } = await makeSending(service);
    const put = (settings: object) => requests.put("/v2/handles/acme/settings").send(settings).expect(200);
    await put({ language: "de-AT", displayName: "Fahrradhaus Müller", leadNotifications: false });
    await capture(service, { email: "one@far.example" });
    await eventually(
      async () => (await service.runtime.queues.queue("email").getJobCounts("completed")).completed === 1,
    );
    await put({ leadNotifications: true });
    await capture(service, { email: "two@far.example", message: "Hallo" });
    await eventually(async () => (await mailsTo(inbox, owner)).length > 0);
    const [mail, ...more] = await mailsTo(inbox, owner);
    t.same(more, []);
    t.equal(mail?.subject, "Neue Anfrage: two@far.example");
    t.match(mail?.text, "Nachricht: Hallo");
    t.match(mail?.text, "Fahrradhaus Müller");
    t.match(mail?.html, '<html lang="de-AT" dir="ltr">');
    await put({ language: "sv" });
    await capture(service, { email: "three@far.example" });
    await eventually(async () =>
      (await mailsTo(inbox, owner)).some(({ subject }) => subject === "New lead: three@far.example"),
    );
  },
);

t.test("an owner who was mailed and then erased keeps no other owner from the mail of a repeated job", async (t) => {
  const { service, inbox } = await open(t);
  await makeSending(service);
  const { runtime } = service;
  const leadId = await capture(service, { email: "ada@far.example" });
  await eventually(async () => (await mailsTo(inbox, owner)).length === 1);
  await erasePerson(runtime, { handle: "acme", address: addressDigest(owner) });
  await grantRole(runtime.redis, { handle: "acme", userId: "user_zoe", role: "OWNER", email: "zoe@example.com" });
  await sendLeadNotice(runtime, { handle: "acme", leadId });
  await eventually(async () => (await mailsTo(inbox, "zoe@example.com")).length === 1);
  t.equal((await mailsTo(inbox, owner)).length, 1);
});

t.test("the service itself mails the owners of a handle without a sender", async (t) => {
  const { service, inbox } = await open(t, { env: { LOGIN_MAIL_FROM: "Platform <hello@platform.example>" } });
  const requests = await service.handle("acme");
  const leadId = await capture(service, { email: "ada@far.example" });
  await eventually(() => inbox.mails.length === 1);
  await sendLeadNotice(service.runtime, { handle: "acme", leadId });
  t.match(await mailsTo(inbox, owner), [
    {
      subject: "New lead: ada@far.example",
      from: { address: "hello@platform.example", name: "Platform" },
      replyTo: [{ address: "ada@far.example" }],
    },
  ]);
  await requests.post("/v2/handles/acme/email/suppressions").send({ email: owner }).expect(201);
  await capture(service, { email: "bob@far.example" });
  await eventually(async () => (await service.runtime.queues.queue("email").getJobCounts("completed")).completed === 2);
  t.equal(inbox.mails.length, 1, "a suppressed owner gets none");
});

t.test(
  "after twenty mails in an hour the further leads come in one digest, each owner once, whatever is repeated",
  async (t) => {
    const { service, inbox } = await open(t);
    const { owner: requests } = await makeSending(service);
    const { runtime } = service;
    const ids: string[] = [];
    for (let n = 0; n < 25; n++)
      ids.push(await capture(service, { email: `v${n}@far.example`, message: `Question ${n}` }));
    await eventually(async () => (await mailsTo(inbox, owner)).length === 20);
    for (const leadId of ids) await sendLeadNotice(runtime, { handle: "acme", leadId });
    const notices = await Promise.all(ids.map((leadId) => runtime.redis.hget(keys.lead("acme", leadId), "notice")));
    const round = notices.find((notice) => notice !== "mail") ?? "";
    t.equal(notices.filter((notice) => notice === round).length, 5);
    const erased = ids[notices.indexOf(round)] as string;
    await requests.delete(`/v2/handles/acme/leads/${erased}`).expect(204);
    const queue = runtime.queues.queue("email");
    const names = async () => (await queue.getJobs(["waiting", "active", "delayed"])).map(({ name }) => name);
    await eventually(async () => (await names()).every((name) => name === "leads.digest"));
    const [delay = 0, ...others] = await passDelays(runtime, "email");
    t.same(others, []);
    t.ok(delay <= 3_605_000 && delay > 3_400_000, `the digest is sent after the hour, in ${delay} ms`);
    // As if the hour had passed.
    await runtime.redis.del(keys.leadNotices("acme"));
    await eventually(async () => (await mailsTo(inbox, owner)).length === 21);
    await sendLeadDigest(runtime, { handle: "acme", round });
    const mails = await mailsTo(inbox, owner);
    t.equal(mails.length, 21);
    t.equal(mails.at(-1)?.subject, "More new leads: 4");
    const told = (mails.at(-1)?.text ?? "").match(/Question \d+/g) ?? [];
    t.equal(told.length, 4, "one person was erased before");
    await capture(service, { email: "next@far.example" });
    await eventually(async () => (await mailsTo(inbox, owner)).at(-1)?.subject === "New lead: next@far.example");
    const storedMs = await runtime.redis.pttl(keys.leadDigest("acme", round));
    t.ok(storedMs > 0 && storedMs <= 25 * 3_600_000, "its leads are listed for a while");
  },
);

t.test(
  "the digest of an hour comes at its end, although the process that began it was paused or has a late clock",
  async (t) => {
    const { service } = await open(t, { workers: [] });
    await makeSending(service);
    const { runtime } = service;
    const ids: string[] = [];
    for (let n = 0; n < 21; n++) ids.push(await capture(service, { email: `v${n}@far.example` }));
    const clock = Date.now;
    Date.now = () => clock() - 3_600_000;
    await sendLeadNotice(runtime, { handle: "acme", leadId: ids[0] as string }).finally(() => {
      Date.now = clock;
    });
    for (const leadId of ids.slice(1)) await sendLeadNotice(runtime, { handle: "acme", leadId });
    const [digest] = await runtime.queues.queue("email").getDelayed();
    t.equal(digest?.name, "leads.digest");
    const due = (digest?.timestamp ?? 0) + (digest?.delay ?? 0);
    t.ok(due >= clock() + (await runtime.redis.pttl(keys.leadNotices("acme"))), "when its last lead has come");
  },
);

t.test("a digest links each address once, and shows where a long message is cut", async (t) => {
  const { service, inbox } = await open(t, { workers: [] });
  await makeSending(service);
  const { runtime } = service;
  const ids: string[] = [];
  for (let n = 0; n < 20; n++) ids.push(await capture(service, { email: `v${n}@far.example` }));
  ids.push(await capture(service, { email: "nameless@far.example" }));
  ids.push(await capture(service, { email: "ada@far.example", name: "Ada", message: "word ".repeat(100) }));
  for (const leadId of ids) await sendLeadNotice(runtime, { handle: "acme", leadId });
  const round = (await runtime.redis.hget(keys.lead("acme", ids.at(-1) as string), "notice")) as string;
  await sendLeadDigest(runtime, { handle: "acme", round });
  await service.startWorkers(["email"]);
  const isDigest = ({ subject }: { subject?: string | undefined }) => subject === "More new leads: 2";
  const digest = await eventually(async () => (await mailsTo(inbox, owner)).find(isDigest));
  t.match(digest.text, /^Email: nameless@far\.example$/m);
  t.match(digest.text, /^Ada: ada@far\.example\nMessage: word .* word …$/m);
  for (const address of ["nameless@far.example", "ada@far.example"])
    t.match(digest.html, `href="mailto:${encodeURIComponent(address)}"`);
});

t.test("a lead that must be verified is mailed once it is", async (t) => {
  const { service, inbox } = await open(t);
  const { owner: requests } = await makeSending(service);
  const campaign = { campaignId: "cmp_a", name: "A", verifyLeads: true };
  await requests.post("/v2/handles/acme/campaigns").send(campaign).expect(201);
  const leadId = await capture(service, { email: "ada@far.example", campaignId: "cmp_a" });
  const code = await eventually(() => inbox.codeFor("ada@far.example"));
  t.same(await mailsTo(inbox, owner), []);
  await service.visitor.post(`${route}/${leadId}/verify`).send({ code }).expect(200);
  await service.visitor.post(`${route}/${leadId}/verify`).send({ code }).expect(200);
  await eventually(async () => (await mailsTo(inbox, owner)).length === 1);
  t.match((await mailsTo(inbox, owner))[0]?.text, "Campaign: A");
});

t.test("a lead that nobody can verify, for want of a sender, is mailed at once, and once only", async (t) => {
  const { service, inbox } = await open(t);
  const requests = await service.handle("acme");
  const campaign = { campaignId: "cmp_a", name: "A", verifyLeads: true };
  await requests.post("/v2/handles/acme/campaigns").send(campaign).expect(201);
  const lead = { email: "ada@far.example", campaignId: "cmp_a" };
  const leadId = await capture(service, lead);
  await eventually(async () => (await mailsTo(inbox, owner)).length === 1);
  t.equal(await capture(service, lead), leadId);
  const queue = service.runtime.queues.queue("email");
  await eventually(async () => (await queue.getJobCountByTypes("waiting", "active", "delayed")) === 0);
  t.same(
    inbox.mails.map(({ to }) => to),
    [owner],
  );
});

t.test("a code speaks the language of the page, else that of the browser, else that of the handle", async (t) => {
  const { service, inbox } = await open(t);
  const { owner: requests } = await makeSending(service);
  await requests.put("/v2/handles/acme/settings").send({ language: "nl" }).expect(200);
  const page = { title: "Tarifs", content: "<p>49 EUR</p>", status: "PUBLISHED", verifyLeads: true };
  await requests
    .post("/v2/handles/acme/pages")
    .send({ ...page, pageSlug: "tarifs", language: "fr" })
    .expect(201);
  await requests
    .post("/v2/handles/acme/pages")
    .send({ ...page, pageSlug: "other" })
    .expect(201);
  await requests
    .post("/v2/handles/acme/pages")
    .send({ ...page, pageSlug: "ryokin", language: "ja" })
    .expect(201);
  const asked: [string, string, string][] = [
    ["tarifs", "de", "Votre code de confirmation"],
    ["other", "sv, de-CH;q=0.9, en;q=0.5", "Ihr Bestätigungscode"],
    ["other", "xx-broken-/, *", "Uw bevestigingscode"],
    ["ryokin", "it", "Il suo codice di conferma"],
  ];
  for (const [place, [pageSlug, accepted, words]] of asked.entries()) {
    const email = `v${place}@far.example`;
    await service.visitor.post(route).set("Accept-Language", accepted).send({ email, pageSlug }).expect(202);
    await eventually(() => inbox.codeFor(email));
    const [mail] = await mailsTo(inbox, email);
    t.match(mail?.text, words);
    t.match(mail?.html, words);
    t.notMatch(mail?.subject, /your/);
  }
});

t.test("a lead is mailed even if its process ended right after the request", async (t) => {
  const { service, inbox } = await open(t, { workers: [] });
  await makeSending(service);
  await published(service.runtime, "acme");
  const { queues } = service.runtime;
  const publish = queues.publish.bind(queues);
  queues.publish = async () => 0;
  await capture(service, { email: "ada@far.example" });
  queues.publish = publish;
  t.equal(await queues.sweep(-1000), 1);
  await service.startWorkers(["campaigns", "email"]);
  await eventually(async () => (await mailsTo(inbox, owner)).length === 1);
});

/** A lead, the newest mail of its handle, which is about it, and its erasure. */
async function toldOfAda(t: Test, options: Parameters<typeof open>[1]) {
  const { service } = await open(t, options);
  const { owner: requests, root } = await makeSending(service);
  const leadId = await capture(service, { email: "ada@far.example" });
  const mails = async () => (await requests.get(`${root}/messages`).expect(200)).body.messages;
  const only = async () => (await mails())[0];
  const erase = () => requests.delete(`/v2/handles/acme/leads/${leadId}`).expect(204);
  return { service, leadId, mails, only, erase };
}

t.test("a waiting mail about an erased person is withdrawn", async (t) => {
  const { service, leadId, only, erase } = await toldOfAda(t, { workers: [] });
  await sendLeadNotice(service.runtime, { handle: "acme", leadId });
  t.match(await only(), { status: "QUEUED", deliveries: [{ recipient: owner }] });
  await erase();
  t.equal((await only()).status, "CANCELLED");
  t.equal(await service.runtime.redis.hexists(keys.message("acme", (await only()).messageId), "content"), 0);
});

t.test("waiting mails about an erased person are withdrawn from former owners too", async (t) => {
  const { service } = await open(t, { workers: [] });
  const { owner: requests, root } = await makeSending(service);
  const { redis } = service.runtime;
  const second = { handle: "acme", userId: "user_second" };
  await grantRole(redis, { ...second, role: "OWNER", email: "second@example.com" });
  const ids: string[] = [];
  for (let n = 0; n < 22; n++) ids.push(await capture(service, { email: `v${n}@far.example` }));
  for (const leadId of ids) await sendLeadNotice(service.runtime, { handle: "acme", leadId });
  const round = (await redis.hget(keys.lead("acme", ids[21] as string), "notice")) as string;
  await sendLeadDigest(service.runtime, { handle: "acme", round });
  await revokeRole(redis, second);
  const erased = [ids[0], ids[21]] as string[];
  for (const leadId of erased) await requests.delete(`/v2/handles/acme/leads/${leadId}`).expect(204);
  await sendLeadDigest(service.runtime, { handle: "acme", round });
  const { messages } = (await requests.get(`${root}/messages?limit=100`).expect(200)).body;
  const waiting = (address: string) =>
    messages.filter(({ status, deliveries: [one] }: Message) => status === "QUEUED" && one?.recipient === address);
  t.equal(waiting("second@example.com").length, 19, "of the others alone");
  t.equal(waiting(owner).length, 20, "and the digest of the others, to the owner that is left");
});

t.test("a mail about an erased person that was under way is not tried again", async (t) => {
  const server = await startMailServer(t);
  let answer = (): void => {};
  const erased = new Promise<void>((resolve) => {
    answer = resolve;
  });
  server.refuseContent = () => erased.then(() => ({ code: 451, words: "4.3.0 later" }));
  const { service, mails, only, erase } = await toldOfAda(t, { env: { SMTP_URL: server.url } });
  await eventually(async () => (await only())?.status === "SENDING");
  await erase();
  t.equal((await only()).status, "CANCELLED");
  t.equal(await service.runtime.redis.hexists(keys.message("acme", (await only()).messageId), "content"), 0);
  answer();
  await capture(service, { email: "bob@far.example" });
  await eventually(async () => (await only()).status === "DEFERRED");
  t.same(
    (await mails()).map(({ status }: { status: string }) => status),
    ["DEFERRED", "CANCELLED"],
  );
});

t.test("what a mail server said of an erased person to the owner's mail is erased too", async (t) => {
  const server = await startMailServer(t);
  const unknown = "5.1.8 <ada@far.example>, the reply address, is unknown; so is Ada@FAR.example";
  const words = `${unknown}. host said: 550-ada@far.example- no such user. Not nada@far.example`;
  server.refuseContent = () => ({ code: 550, words });
  const { service, only, erase } = await toldOfAda(t, { env: { SMTP_URL: server.url } });
  await eventually(async () => (await only())?.status === "FAILED");
  const timeline = keys.messageEvents("acme", (await only()).messageId);
  const said = async () => (await service.runtime.redis.lrange(timeline, 0, -1)).join("\n");
  t.match(await said(), "ada@far.example");
  await erase();
  t.notMatch(await said(), /\bada@far/i);
  t.match(await said(), "nada@far.example");
  t.match(await said(), /5\.1\.8 <erased@erased\.invalid>/);
  t.match((await only()).deliveries, [{ recipient: owner, status: "FAILED" }]);
});

t.test("a mail that was accepted although it was cancelled meanwhile is told as sent", async (t) => {
  const server = await startMailServer(t);
  server.delay = 1000;
  const { only, erase } = await toldOfAda(t, { env: { SMTP_URL: server.url } });
  await eventually(async () => (await only())?.status === "SENDING");
  await erase();
  await eventually(() => server.mails.length === 1);
  await eventually(async () => (await only()).status === "SENT");
});

t.test("no mail about a person is accepted once they are erased, however early it was begun", async (t) => {
  const { service } = await open(t, { workers: [] });
  const { owner: requests, root } = await makeSending(service);
  const { runtime } = service;
  const campaign = { campaignId: "cmp_a", name: "A", verifyLeads: true };
  await requests.post("/v2/handles/acme/campaigns").send(campaign).expect(201);
  const noticed = await capture(service, { email: "ada@far.example" });
  eraseAfter(runtime, "hmget", noticed);
  await sendLeadNotice(runtime, { handle: "acme", leadId: noticed });
  const coded = await capture(service, { email: "bob@far.example", campaignId: "cmp_a" });
  eraseAfter(runtime, "hmget", coded);
  await sendLeadCode(runtime, { handle: "acme", leadId: coded, round: "code_1" });
  const begun = await capture(service, { email: "cy@far.example" });
  await withdrawNotices(runtime, "acme", [begun]);
  await sendLeadNotice(runtime, { handle: "acme", leadId: begun });
  t.same((await requests.get(`${root}/messages`).expect(200)).body.messages, []);
  t.same(await keyNames(runtime.redis, keys.lead("acme", `{${noticed},${coded}}`)), []);
});

t.test("a digest that is written while one of its persons is erased tells of the others", async (t) => {
  const { service } = await open(t, { workers: [] });
  const { owner: requests, root } = await makeSending(service);
  const { runtime } = service;
  const ids = [
    await capture(service, { email: "ada@far.example" }),
    await capture(service, { email: "bob@far.example" }),
  ];
  for (const leadId of ids) await runtime.redis.hset(keys.lead("acme", leadId), "notice", "1");
  await runtime.redis.rpush(keys.leadDigest("acme", "1"), ...ids);
  eraseAfter(runtime, "hexists", ids[0] as string);
  await sendLeadDigest(runtime, { handle: "acme", round: "1" });
  const { messages } = (await requests.get(`${root}/messages`).expect(200)).body;
  t.equal(messages.length, 1);
  const content = await runtime.redis.hget(keys.message("acme", messages[0].messageId), "content");
  t.match(content, /bob@far\.example/);
  t.notMatch(content, /ada@far\.example/);
});

t.test("a digest counts the leads that it tells of, though one is erased while it is written", async (t) => {
  const { service } = await open(t, { workers: [] });
  await makeSending(service);
  const { runtime } = service;
  const { redis } = runtime;
  const ids: string[] = [];
  for (const name of ["ada", "bob", "cy"]) ids.push(await capture(service, { email: `${name}@far.example` }));
  for (const leadId of ids) await redis.hset(keys.lead("acme", leadId), "notice", "1");
  await redis.rpush(keys.leadDigest("acme", "1"), ...ids);
  const llen = redis.llen.bind(redis);
  redis.llen = (async (key: string) => {
    await eraseLead(runtime, { handle: "acme", leadId: ids[0] as string });
    return llen(key);
  }) as typeof llen;
  await sendLeadDigest(runtime, { handle: "acme", round: "1" });
  const [message = ""] = await keyNames(redis, keys.message("acme", "*"));
  const { subject, text } = JSON.parse((await redis.hget(message, "content")) ?? "{}");
  const told = new Set(text.match(/\w+@far\.example/g));
  t.equal(subject, `More new leads: ${told.size}`);
});

t.test("a mail to an erased person, withdrawn too, has no digest sent before the hour ends", async (t) => {
  const { service } = await open(t, { workers: [] });
  await makeSending(service);
  const { runtime } = service;
  const ids: string[] = [];
  for (let n = 0; n < 21; n++) ids.push(await capture(service, { email: `v${n}@far.example` }));
  for (const leadId of ids) await sendLeadNotice(runtime, { handle: "acme", leadId });
  const mail = { handle: "acme", senderId: "sender_main", purpose: "PRODUCT_NOTIFICATION", key: "rule" } as const;
  const content = { subject: "Welcome", text: "Welcome" };
  await acceptMessage(runtime, { ...mail, to: ["v20@far.example"], content, leads: ids.slice(20) });
  t.equal((await withdrawNotices(runtime, "acme", ids.slice(20))).size, 0);
});

t.test("a notice that an earlier version accepted is withdrawn", async (t) => {
  const { service, leadId, only, erase } = await toldOfAda(t, { workers: [] });
  await sendLeadNotice(service.runtime, { handle: "acme", leadId });
  // Its lead did not name it.
  await service.runtime.redis.hdel(keys.lead("acme", leadId), `mail:${(await only()).messageId}`);
  await erase();
  t.equal((await only()).status, "CANCELLED");
});

t.test("an erasure that failed half way can be repeated, and withdraws the waiting mail", async (t) => {
  const { service } = await open(t, { workers: [] });
  const { owner: requests, root } = await makeSending(service);
  const leadId = await capture(service, { email: "ada@far.example" });
  const only = async () => (await requests.get(`${root}/messages`).expect(200)).body.messages[0];
  await sendLeadNotice(service.runtime, { handle: "acme", leadId });
  const { redis } = service.runtime;
  const get = redis.get.bind(redis);
  redis.get = (async (key: string) => {
    if (key.startsWith(keys.emailOnce("acme", ""))) throw new Error("away");
    return get(key);
  }) as typeof get;
  await requests.delete(`/v2/handles/acme/leads/${leadId}`).expect(500);
  redis.get = get;
  await requests.delete(`/v2/handles/acme/leads/${leadId}`).expect(204);
  t.equal((await only()).status, "CANCELLED");
});

t.test("a waiting digest is sent without the persons that were erased meanwhile", async (t) => {
  const { service, inbox } = await open(t, { workers: [] });
  const { owner: requests, root } = await makeSending(service);
  const { redis } = service.runtime;
  const ids: string[] = [];
  for (let n = 0; n < 24; n++)
    ids.push(await capture(service, { email: `v${n}@far.example`, message: `Question ${n}` }));
  const messages = async () => (await requests.get(`${root}/messages?limit=100`).expect(200)).body.messages;
  for (const leadId of ids) await sendLeadNotice(service.runtime, { handle: "acme", leadId });
  const notices = await Promise.all(ids.map((leadId) => redis.hget(keys.lead("acme", leadId), "notice")));
  const round = notices.find((notice) => notice !== "mail") as string;
  await sendLeadDigest(service.runtime, { handle: "acme", round });
  const [first, second, third, fourth] = [...ids.keys()].filter((n) => notices[n] !== "mail");
  // As an attempt at the erasure that ended half way.
  await withdrawNotices(service.runtime, "acme", [ids[first as number] as string]);
  for (const n of [first, second] as number[]) {
    const before = (await messages()).length;
    await requests.delete(`/v2/handles/acme/leads/${ids[n]}`).expect(204);
    await sendLeadDigest(service.runtime, { handle: "acme", round });
    t.equal((await messages()).length, before + 1);
  }
  const digests = (await messages()).slice(0, 3).map(({ status }: { status: string }) => status);
  t.same(digests, ["QUEUED", "CANCELLED", "CANCELLED"]);
  await service.startWorkers(["email"]);
  await eventually(async () => (await mailsTo(inbox, owner)).length === 21);
  const [digest] = (await mailsTo(inbox, owner)).filter(({ subject }) => subject === "More new leads: 2");
  const told = (digest?.text ?? "").match(/Question \d+/g) ?? [];
  t.same(told.sort(), [`Question ${third}`, `Question ${fourth}`].sort());
});

t.test("a mail server that says nothing holds up no rules, calendars and holds", async (t) => {
  const server = await startRudeServer(t, { at: "greeting", does: "hang" });
  const { service } = await open(t, { env: { SMTP_URL: server.url }, workers: ["campaigns", "scheduling", "email"] });
  const { queues } = service.runtime;
  for (const handle of ["acme", "beta"]) {
    await service.handle(handle);
    for (let n = 0; n < 20; n++)
      await service.visitor
        .post(`/v2/public/handles/${handle}/leads`)
        .send({ email: `v${n}@far.example` })
        .expect(202);
  }
  await eventually(() => server.connections > 0);
  for (const name of ["campaigns", "scheduling"] as const) t.equal(await queues.queue(name).getActiveCount(), 0, name);
  await queues.later(job("campaigns.trigger", "trigger", trigger));
  await eventually(async () => (await queues.queue("campaigns").getJob("trigger"))?.isCompleted(), 5000);
});

t.test("a code that waited for the mail server until it was over is not sent", async (t) => {
  const { service, inbox } = await open(t, { workers: ["campaigns"] });
  const { owner: requests, root } = await makeSending(service);
  const campaign = { campaignId: "cmp_a", name: "A", verifyLeads: true };
  await requests.post("/v2/handles/acme/campaigns").send(campaign).expect(201);
  await capture(service, { email: "ada@far.example", campaignId: "cmp_a" });
  const only = async () => (await requests.get(`${root}/messages`).expect(200)).body.messages[0];
  const { messageId } = await eventually(only);
  const { redis } = service.runtime;
  const message = keys.message("acme", messageId);
  const content = JSON.parse((await redis.hget(message, "content")) as string);
  t.ok(Math.abs(content.expiresAt - Date.now() - 600_000) < 60_000, "it is over after ten minutes");
  await redis.hset(message, "content", JSON.stringify({ ...content, expiresAt: Date.now() - 1 }));
  await service.startWorkers(["email"]);
  await eventually(async () => (await only()).status === "DENIED");
  const { timeline } = (await requests.get(`${root}/messages/${messageId}`).expect(200)).body;
  t.match(timeline.at(-1), { type: "DENIED", reason: "expired" });
  t.same(inbox.mails, []);
});
