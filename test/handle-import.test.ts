import { Buffer } from "node:buffer";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Webhook as Verifier } from "standardwebhooks";
import t, { type Test as TapTest } from "tap";
import { attachDomain } from "../core/account/domains.ts";
import { setHandleActive, userOfEmail } from "../core/account/handles.ts";
import { eraseHandle } from "../core/operations/erasure.ts";
import { exportHandle } from "../core/operations/handle-export.ts";
import { importHandle } from "../core/operations/handle-import.ts";
import { carriage, kindOf } from "../core/operations/handle-keys.ts";
import { credentialRecords, secretOf, storeCredential } from "../core/scheduling/credentials.ts";
import { keys } from "../core/store/keys.ts";
import { makeSending } from "../fixtures/email.ts";
import { keyTable } from "../fixtures/key-table.ts";
import { type Life, live, openTown, type Town } from "../fixtures/mixed-life.ts";
import { spawnProgram } from "../fixtures/processes.ts";
import { startHostileDav } from "../fixtures/providers/hostile-dav.ts";
import { keyNames, startRedis } from "../fixtures/redis.ts";
import { openStage } from "../fixtures/scheduling/owner.ts";
import { eventually, type Service, startService } from "../fixtures/service.ts";
import { startMailServer } from "../fixtures/smtp.ts";

const question = "Do I get my money back?";

async function openOwnTown(t: TapTest, env: Record<string, string> = {}): Promise<Town> {
  const redis = await startRedis();
  t.teardown(() => redis.stop());
  return openTown(t, redis, env);
}

/** Writes the export of a handle to a file and returns its path. */
async function exported(t: TapTest, { runtime }: Service, handle: string): Promise<string> {
  const file = join(t.testdir(), `${handle}.jsonl`);
  const lines: string[] = [];
  for await (const line of exportHandle(runtime, handle)) lines.push(JSON.stringify(line));
  writeFileSync(file, `${lines.join("\n")}\n`);
  return file;
}

/** Data that mixed life doesn't make: a draft, links, settings, a secret of a webhook, an account, a reminder, mails that wait. */
async function furnish({ service, hook }: Town, handle: string) {
  const owner = await service.as(`user_${handle}`);
  const root = `/v2/handles/${handle}`;
  const made = async (path: string, body: object, status = 201) =>
    (await owner.post(`${root}/${path}`).send(body).expect(status)).body;
  await made("pages", { pageSlug: "draft", title: "Draft", content: "<p>not yet</p>" });
  const { BASE_URL } = service.runtime.env;
  const content = `<a href="/p/${handle}/index">in</a> <a href="${BASE_URL}/p/${handle}/index">out</a> <a href="https://x.test/p/${handle}/index">far</a>`;
  await made("pages", { pageSlug: "links", title: "Links", status: "PUBLISHED", content });
  await owner.put(`${root}/settings`).send({ displayName: "Owl & Co" }).expect(200);
  const { webhook } = await made("webhooks", { url: hook });
  await storeCredential(service.runtime, handle, { providerKey: "caldav", account: "ann", secret: "pass phrase" });
  const { feed } = (await owner.post(`${root}/scheduling/calendar-feed`).send({})).body;
  await made("scheduling/event-types", { slug: "call", title: "Call", durationMinutes: 30, reminderMinutes: 60 });
  const call = `/v2/public/scheduling/${handle}/call`;
  const [from, to] = [4, 5].map((days) => new Date(Date.now() + days * 86_400_000).toISOString());
  const [slot] = (await service.visitor.get(`${call}/slots?start=${from}&end=${to}`).expect(200)).body.slots;
  const attendee = { name: "Ann", email: "ann@far.example" };
  const booked = service.visitor.post(`${call}/bookings`).set("Idempotency-Key", "c1").send({ slot, attendee });
  return { webhook, feed, slot, callUid: (await booked.expect(201)).body.bookingUid as string };
}

t.test("a handle moves to another installation and name with all that it has", async (t) => {
  const old = await openOwnTown(t);
  const life: Life = await live(old, "lively-owl");
  const { webhook, slot, callUid } = await furnish(old, "lively-owl");
  await eventually(() => old.mails.some(({ to }) => to[0] === "ann@far.example"));
  const unsubscribe = old.mails
    .map(({ headers }) => /<https?:\/\/[^/]+(\/\S+unsubscribe\/\S+?)>/.exec(headers["list-unsubscribe"] ?? "")?.[1])
    .find(Boolean) as string;
  const file = await exported(t, old.service, "lively-owl");
  const { service, mails } = await openOwnTown(t);
  const [told, { visitor, runtime }] = [old.events.length, service];
  const imported = await importHandle(runtime, { file, handle: "new-owl", account: "acct_new" });
  t.match(imported, {
    ...{ handle: "new-owl", account: "acct_new", documents: 1, reminders: 1, membersLeft: [] },
    ...{ domains: ["lively-owl.example"], domainsTaken: [], webhooksToRotate: [], accountsToConnect: [] },
  });
  const owner = await service.as("user_lively-owl");
  const root = "/v2/handles/new-owl";
  const read = async (path: string) => (await owner.get(`${root}/${path}`).expect(200)).body;

  t.equal((await visitor.get("/p/new-owl/index").expect(200)).text.includes("<h1>lively-owl</h1>"), true);
  await visitor.get("/p/new-owl/draft").expect(404);
  t.match((await read("pages/draft")).page, { status: "DRAFT", title: "Draft" });
  const links = (await visitor.get("/p/new-owl/links").expect(200)).text;
  const { BASE_URL } = runtime.env;
  for (const link of ["/p/new-owl/index", `${BASE_URL}/p/new-owl/index`, "https://x.test/p/lively-owl/index"])
    t.match(links, `href="${link}"`);
  t.match(await read("settings"), { settings: { displayName: "Owl & Co" } });

  const [{ documentId }] = (await read("knowledge/documents")).documents;
  await eventually(async () => (await read(`knowledge/documents/${documentId}`)).document.status === "READY");
  const asked = await visitor.post("/v2/public/pages/new-owl/index/agentic-question").send({ question }).expect(200);
  t.equal(asked.body.answerMarkdown, life.answer);

  t.match((await read("leads")).leads, [{ leadId: life.leadId, email: "ann@lively-owl.test" }]);
  t.equal((await read("campaigns/cmp_spring/email-rules")).rules[0].counts.sent, 1);
  t.match((await read("email/suppressions")).suppressions, [{ email: "no@lively-owl.test" }]);
  t.match((await read("email/messages")).messages[0], { handle: "new-owl" });
  t.match(
    (await visitor.get(unsubscribe).expect(200)).text,
    "ann@lively-owl.test",
    "links in sent mails go on working",
  );

  const call = "/v2/public/scheduling/new-owl/call";
  t.match((await visitor.get(`${call}/bookings/${callUid}`).expect(200)).body.booking, { handle: "new-owl" });
  const [from, to] = [4, 5].map((days) => new Date(Date.now() + days * 86_400_000).toISOString());
  const { slots } = (await visitor.get(`${call}/slots?start=${from}&end=${to}`).expect(200)).body;
  t.ok(slots.length > 0);
  t.notOk(slots.some(({ start }: { start: string }) => start === slot.start));
  const again = { slot, attendee: { name: "Bob", email: "bob@far.example" } };
  await visitor.post(`${call}/bookings`).set("Idempotency-Key", "c2").send(again).expect(409);
  const [credential] = await credentialRecords.all(runtime, "new-owl");
  t.equal(credential && secretOf(runtime, "new-owl", credential), "pass phrase");

  t.same([mails.length, old.events.length], [0, told], "nothing was mailed and no webhook called");
  const delayed = await runtime.queues.queue("email").getDelayed();
  t.match(
    delayed.filter(({ name }) => name === "scheduling.mail").map(({ data }) => data),
    [{ handle: "new-owl", bookingUid: callUid, kind: "reminder" }],
  );

  await attachDomain(runtime, { account: "acct_new", domain: "lively-owl.example", ready: true });
  const mail = { senderId: "sender_main", purpose: "TRANSACTIONAL_API", templateId: "tmpl_hello" };
  const body = { ...mail, variables: { name: "No" }, consentAttestation: true, to: ["no@lively-owl.test"] };
  const refused = await owner.post(`${root}/email/messages`).send(body).expect(409);
  t.match(refused.body, { code: "email_recipient_suppressed" });
  const lead = (email: string) =>
    visitor.post("/v2/public/handles/new-owl/leads").send({ email, pageSlug: "index", campaignId: "cmp_spring" });
  await lead("ann@lively-owl.test").expect(202);
  await lead("eve@far.example").expect(202);
  await eventually(() => mails.some(({ to }) => to[0] === "eve@far.example"));
  t.notOk(
    mails.some(({ to }) => to[0] === "ann@lively-owl.test"),
    "once means once",
  );
  const event = await eventually(() => old.events.slice(told).find(({ event }) => event.type === "lead.captured"));
  t.match(event.event.data, { handle: "new-owl" });
  const signed = old.events.slice(told).filter(({ event: { type } }) => type === "lead.captured");
  const verified = await eventually(() => signed.find(({ body, headers }) => isBy(webhook.secret, body, headers)));
  t.ok(verified, "with the secret that its receiver knows");
  for (const key of await keyNames(runtime.redis, "*{lively-owl}*")) t.fail(`${key} has the old name`);

  await eraseHandle(old.service.runtime, "lively-owl", { keepGrants: true });
});

function isBy(secret: string, body: string, headers: Record<string, string>): boolean {
  try {
    new Verifier(secret).verify(body, headers);
    return true;
  } catch {
    return false; // another endpoint's
  }
}

t.test("links to the handle's own host are renamed with it", async (t) => {
  const old = await startService(t, { env: { PUBLIC_DOMAIN: "old.test" } });
  const owner = await old.handle("acme");
  const own = "https://acme.old.test";
  const link = (address: string) => `<a href="${address}">to</a>`;
  const content = [`${own}/prices`, own, `${own}/`, `${own}/v2/public/handles/acme/leads`].map(link).join("");
  const others = ["https://acme.old.test.example/", "https://not-acme.old.test/", "https://acme.example/"]
    .map(link)
    .join("");
  const page = { pageSlug: "links", title: "Links", content: content + others };
  await owner.post("/v2/handles/acme/pages").send(page).expect(201);
  const text = { title: "Prices", content: `Prices are at ${own}/prices. Ask at ${own}.` };
  const { documentId } = (await owner.post("/v2/handles/acme/knowledge/documents").send(text).expect(202)).body
    .document;
  const file = await exported(t, old, "acme");

  for (const PUBLIC_DOMAIN of ["new.test", undefined]) {
    const { runtime, as } = await startService(t, { env: PUBLIC_DOMAIN ? { PUBLIC_DOMAIN } : {} });
    await importHandle(runtime, { file, handle: "new-acme" });
    const reader = await as("user_acme");
    const read = async (path: string) => (await reader.get(`/v2/handles/new-acme/${path}`).expect(200)).body;
    const { BASE_URL: base } = runtime.env;
    const [pages, home, root] = PUBLIC_DOMAIN
      ? ["https://new-acme.new.test", "https://new-acme.new.test", "https://new-acme.new.test/"]
      : [`${base}/p/new-acme`, `${base}/p/new-acme/index`, `${base}/p/new-acme/index`];
    const here = [`${pages}/prices`, home, root, `${base}/v2/public/handles/new-acme/leads`].map(link).join("");
    t.equal((await read("pages/links")).page.content, here + others);
    const { document } = await read(`knowledge/documents/${documentId}`);
    t.equal(document.content, `Prices are at ${pages}/prices. Ask at ${home}.`);
  }
});

t.test("secrets that can't be opened are named, and all else arrives", async (t) => {
  const old = await openOwnTown(t);
  await live(old, "acme");
  await furnish(old, "acme");
  const file = await exported(t, old.service, "acme");
  const other = Buffer.alloc(32, "other").toString("base64");
  const { service } = await openOwnTown(t, { SECRET_KEY: other });
  const { runtime } = service;
  const imported = await importHandle(runtime, { file });
  t.equal(imported.webhooksToRotate.length, 2);
  t.match(imported.accountsToConnect, [{ providerKey: "caldav", account: "ann" }]);
  t.same(await credentialRecords.all(runtime, "acme"), []);
  const owner = await service.as("user_acme");
  const [webhookId] = imported.webhooksToRotate;
  const rotated = await owner.post(`/v2/handles/acme/webhooks/${webhookId}/rotate-secret`).expect(200);
  t.match(rotated.body.webhook.secret, /^whsec_/);
  await service.visitor.get("/p/acme/index").expect(200);
});

t.test("damaged secrets are named like those that can't be opened", async (t) => {
  const old = await openOwnTown(t);
  await live(old, "acme");
  await furnish(old, "acme");
  const file = await exported(t, old.service, "acme");
  // The account of a domain is part of what seals its key.
  const whole = readFileSync(file, "utf8").replace('"account":"acct_acme"', '"account":"acct_other"');
  writeFileSync(file, whole.replaceAll(/(v1\.[\w-]+\.)[\w-]{9}/g, "$1damaged00"));
  const { service } = await openOwnTown(t);
  const imported = await importHandle(service.runtime, { file });
  t.equal(imported.webhooksToRotate.length, 2);
  t.match(imported.accountsToConnect, [{ providerKey: "caldav", account: "ann" }]);
  t.same(imported.domains, ["acme.example"]);
  await service.visitor.get("/p/acme/index").expect(200);
});

t.test("what waited to be sent stays where it came from", async (t) => {
  const old = await startService(t);
  const mail = await startMailServer(t);
  const sending = await startService(t, { env: { SMTP_URL: mail.url } });
  const { send } = await makeSending(sending);
  const messageId = await send(["ann@far.example"]);
  const file = await exported(t, sending, "acme");
  const imported = await importHandle(old.runtime, { file });
  t.equal(imported.cancelledMails, 1);
  const { body } = await (await old.as("user_acme")).get(`/v2/handles/acme/email/messages/${messageId}`).expect(200);
  t.match(body, { message: { status: "CANCELLED" }, timeline: [{ type: "QUEUED" }, { type: "CANCELLED" }] });
});

t.test("calendars are pulled, refunds made and holds ended where a handle has arrived", async (t) => {
  const dav = await startHostileDav();
  t.teardown(() => dav.close());
  const { owner, service, event, book } = await openStage(t);
  const root = "/v2/handles/acme/scheduling";
  const login = { serverUrl: dav.url, username: "ann", password: "pass phrase" };
  const { credential } = (await owner.post(`${root}/integrations/caldav/credentials`).send(login).expect(201)).body;
  const selection = { credentialId: credential.credentialId, busyCalendarIds: [dav.calendar] };
  await owner.post(`${root}/selected-calendars`).send(selection).expect(200);
  await event({ slug: "talk" });
  const changed = async (hour: string, more: object): Promise<string> => {
    const { bookingUid } = (await book("talk", `2026-10-05T${hour}:00:00Z`, 30).expect(201)).body;
    const key = keys.booking("acme", bookingUid);
    const stored = JSON.parse((await service.runtime.redis.hget(key, "json")) as string);
    await service.runtime.redis.hset(key, "json", JSON.stringify({ ...stored, ...more }));
    return bookingUid;
  };
  const payment = { amountMinor: 4900, currency: "EUR", status: "REFUND_DUE" };
  const cancelled = await changed("09", { status: "CANCELLED", payment });
  const held = await changed("10", { status: "PENDING_PAYMENT", holdUntil: "2026-10-05T06:35:00.000Z" });
  const file = await exported(t, service, "acme");
  const { runtime } = await startService(t);
  await importHandle(runtime, { file });
  const waiting = await runtime.queues.queue("scheduling").getJobs(["waiting", "delayed"]);
  t.same(waiting.map(({ name, data }) => [name, data.bookingUid ?? data.handle]).sort(), [
    ["payments.refund", cancelled],
    ["scheduling.expire", held],
    ["scheduling.pull", "acme"],
  ]);
});

t.test("members keep their roles, and nobody else gets one", async (t) => {
  const old = await startService(t);
  await old.handle("acme");
  await old.grant("acme", "user_other", "OPERATOR");
  await old.grant("acme", "user_plain", "CREATOR");
  await old.runtime.redis.hset("user:{user_other}", "email", "other@example.com");
  const file = await exported(t, old, "acme");
  const service = await startService(t);
  // The owner has another id here, and the id of the operator is another person's.
  await service.handle("mine", { owner: "user_99" });
  await service.runtime.redis.hset("user:{user_99}", "email", "user_acme@example.com");
  await service.runtime.redis.set("user-of-email:{user_acme@example.com}", "user_99");
  await service.runtime.redis.hset("user:{user_other}", "email", "stranger@example.com");
  t.same((await importHandle(service.runtime, { file })).membersLeft, ["user_other"]);
  const status = async (userId: string) => (await (await service.as(userId)).get("/v2/handles/acme/pages")).status;
  t.same(await Promise.all(["user_99", "user_plain", "user_other", "user_acme"].map(status)), [200, 200, 403, 403]);
});

t.test("a file gives a user of other handles no address by which somebody else could sign in", async (t) => {
  const old = await startService(t);
  await old.handle("acme", { owner: "user_1" });
  const file = await exported(t, old, "acme");
  const service = await startService(t);
  await service.handle("mine", { owner: "user_2" });
  await service.grant("mine", "user_1", "OPERATOR");
  await importHandle(service.runtime, { file });
  t.equal(await userOfEmail(service.runtime.redis, "user_1@example.com"), undefined);
  await (await service.as("user_1")).get("/v2/handles/acme/pages").expect(200);
});

t.test("a member has its address after an import that was killed before it wrote it", async (t) => {
  const old = await startService(t);
  await old.handle("acme", { owner: "user_1" });
  const file = await exported(t, old, "acme");
  const { runtime } = await startService(t);
  await runtime.redis.sadd(keys.userHandles("user_1"), "acme");
  await importHandle(runtime, { file });
  t.equal(await userOfEmail(runtime.redis, "user_1@example.com"), "user_1");
});

t.test(
  "a broken record of a sender stops an export before its first line, and is named without its content",
  async (t) => {
    const { runtime, ...service } = await startService(t);
    await service.handle("acme");
    await runtime.redis.zadd(keys.senders("acme"), 1, "sender_a");
    await runtime.redis.hset(keys.sender("acme", "sender_a"), { version: 1, json: "secret {" });
    const lines = exportHandle(runtime, "acme");
    await t.rejects(lines.next(), { message: "The record sender:{acme}:sender_a is no JSON." });
  },
);

t.test("a wrong file is refused with its line, and nothing is written", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const page = { pageSlug: "index", title: "Home", status: "PUBLISHED" };
  await owner.post("/v2/handles/acme/pages").send(page).expect(201);
  const lines = readFileSync(await exported(t, service, "acme"), "utf8")
    .trimEnd()
    .split("\n");
  const [header = "", first = "", ...more] = lines;
  const end = more.at(-1) as string;
  const keyLine = (type: string, value: unknown) =>
    JSON.stringify({ key: "pages:{acme}", type, expiresInMs: null, value });
  const site = { domain: "acme.example", isHost: true };
  const headerWith = (domain: object) => JSON.stringify({ ...JSON.parse(header), domains: [domain] });
  // Redis gives the keys in any order.
  const otherType = first.includes('"type":"stream"') ? '"type":"hash"' : '"type":"stream"';
  const cases: [string, string[] | Buffer, RegExp][] = [
    ["empty", [], /line 1: the file is empty/],
    ["no JSON", ["{"], /line 1: this is no JSON/],
    ["something else", ['{"a":1}'], /line 1: this is no export/],
    ["a list", ["null"], /line 1: this is no export/],
    ["another version", [header.replace('"version":2', '"version":1')], /line 1: the version is 1, not 2/],
    ["half a header", [header.replace('"account"', '"acount"')], /line 1: this is no header/],
    ["a handle that is none", [header.replace('"handle":"acme"', '"handle":"a}c"')], /line 1: this is no header/],
    ["a broken line", [header, first, first.slice(0, -1)], /line 3: this is no JSON/],
    ["a key of another handle", [header, first.replace("{acme}", "{other}")], /line 2: .* is not a key of acme/],
    ["another's kind", [header, first.replace(/"key":"[^"]*"/, '"key":"sessions:{acme}"')], /line 2: .* not a key/],
    ["an unknown kind", [header, first.replace(/"key":"[^"]*"/, '"key":"news:{acme}"')], /line 2: news is a kind/],
    ["a value of another type", [header, first.replace(/"type":"\w+"/, otherType)], /line 2: this is no key/],
    ...["{", { base64: "/w==" }].map((json): [string, string[], RegExp] => [
      `a record that is no JSON, ${JSON.stringify(json)}`,
      [
        header,
        JSON.stringify({ key: "sender:{acme}:a", type: "hash", expiresInMs: null, value: { json, version: "1" } }),
      ],
      /line 2: sender:{acme}:a is no JSON/,
    ]),
    [
      "a score that is none",
      [header, '{"key":"pages:{acme}","type":"zset","expiresInMs":null,"value":["index","x"]}'],
      /line 2: this is no key/,
    ],
    ...["", " 5 ", "0x10"].map((score): [string, string[], RegExp] => [
      `a score that Redis refuses, "${score}"`,
      [header, keyLine("zset", ["index", score])],
      /line 2: this is no key/,
    ]),
    ...[
      [["1-0", ["a"]]],
      [["1-0", []]],
      [["0-0", ["a", "b"]]],
      [["1-x", ["a", "b"]]],
      [
        ["2-1", ["a", "b"]],
        ["2-1", ["a", "b"]],
      ],
    ].map((entries): [string, string[], RegExp] => [
      `a stream that Redis refuses, ${JSON.stringify(entries)}`,
      [header, keyLine("stream", entries)],
      /line 2: this is no key/,
    ]),
    ["a time that is none", [header.replace(/At":"\d{4}-\d\d/, 'At":"2026-13')], /line 1: this is no header/],
    ...["x}y.example", "example", 'a.1"'].map((domain): [string, string[], RegExp] => [
      `the domain ${domain}`,
      [headerWith({ domain, isHost: true, identity: null })],
      /line 1: this is no header/,
    ]),
    ["an identity cut short", [headerWith({ ...site, identity: '{"sealed":' })], /line 1: this is no JSON/],
    ["an identity that is none", [headerWith({ ...site, identity: "null" })], /line 1: this is no header/],
    [
      "a lifetime that is none",
      [header, '{"key":"pages:{acme}","type":"zset","expiresInMs":0.5,"value":["index","1"]}'],
      /line 2: this is no key/,
    ],
    ["cut short", lines.slice(0, -1), /line \d+: the end is missing/],
    ["a line less", [header, ...more], /the end counts/],
    ["more behind the end", [...lines, end], /more behind the end/],
    ["no UTF-8", Buffer.from([0x7b, 0xff, 0x0a]), /line 1: this is no UTF-8/],
  ];
  const target = await startService(t);
  for (const [name, content, reason] of cases) {
    const file = join(t.testdir(), "wrong.jsonl");
    writeFileSync(file, Buffer.isBuffer(content) ? content : content.map((line) => `${line}\n`).join(""));
    const told = await importHandle(target.runtime, { file }).then(
      () => "imported",
      (error) => JSON.stringify(error.details ?? error.message),
    );
    t.match(told, reason, name);
  }
  t.match(
    await importHandle(target.runtime, { file: join(t.testdir(), "none") }).catch((error) => error.details.errors),
    [{ path: "/file", message: /ENOENT/ }],
  );
  t.same(await keyNames(target.runtime.redis, "*{acme}*"), []);
});

t.test("a handle that exists is left as it is", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const page = { pageSlug: "index", title: "Home", status: "PUBLISHED", content: "<p>mine</p>" };
  await owner.post("/v2/handles/acme/pages").send(page).expect(201);
  const file = await exported(t, service, "acme");
  await t.rejects(importHandle(service.runtime, { file }), { code: "invalid_request" });
  t.match((await service.visitor.get("/p/acme/index").expect(200)).text, "<p>mine</p>");
  const copy = await importHandle(service.runtime, { file, handle: "copy" });
  t.match(copy, { handle: "copy", account: "acct_acme" });
  for (const handle of ["acme", "copy"])
    t.match((await service.visitor.get(`/p/${handle}/index`).expect(200)).text, "<p>mine</p>");
});

t.test("an import that was killed serves nothing, and is finished when it is repeated", async (t) => {
  const old = await startService(t);
  const owner = await old.handle("acme");
  const page = { pageSlug: "index", title: "Home", status: "PUBLISHED", content: "<p>whole</p>" };
  await owner.post("/v2/handles/acme/pages").send(page).expect(201);
  const file = await exported(t, old, "acme");
  // So many notes that the command can be killed while it writes them.
  const [header = "", ...rest] = readFileSync(file, "utf8").trimEnd().split("\n");
  const notes = Array.from({ length: 40_000 }, (_, n) =>
    JSON.stringify({ key: `email-once:{acme}:${n}`, type: "string", expiresInMs: 9e9, value: "msg_1" }),
  );
  const end = JSON.parse(rest.pop() as string) as { keys: number };
  const all = [header, ...rest, ...notes, JSON.stringify({ end: true, keys: end.keys + notes.length })];
  writeFileSync(file, all.join("\n"));
  const service = await startService(t);
  const { redis } = service.runtime;
  const command = ["import-handle", "--file", file, "--handle", "moved"];
  const running = spawnProgram(t, "scripts/admin.ts", service.redis.env, command);
  await eventually(async () => (await redis.exists("email-once:{moved}:0")) === 1);
  await running.end("SIGKILL");
  t.equal(await redis.hget("handle:{moved}", "status"), "IMPORTING");
  t.ok((await keyNames(redis, "email-once:*")).length < notes.length, "it was under way");
  await service.visitor.get("/p/moved/index").expect(404);
  await (await service.as("user_acme")).get("/v2/handles/moved/pages").expect(403);
  await setHandleActive(redis, "moved", false);
  const on = spawnProgram(t, "scripts/admin.ts", service.redis.env, ["activate-handle", "--handle", "moved"]);
  t.equal((await on.ended).code, 1, "nobody switches it on");
  // The lock of the killed command ends by itself.
  await eventually(async () => (await redis.exists("handle-import:{handle-import}")) === 0);
  t.match(await importHandle(service.runtime, { file, handle: "moved" }), { handle: "moved" });
  t.match((await service.visitor.get("/p/moved/index").expect(200)).text, "<p>whole</p>");
  t.equal((await keyNames(redis, "email-once:*")).length, notes.length);
});

t.test("an event type whose slug is the name of a record's field moves like any other", async (t) => {
  const old = await startService(t);
  const owner = await old.handle("acme");
  const eventType = { slug: "json", title: "JSON", durationMinutes: 30 };
  const made = (await owner.post("/v2/handles/acme/scheduling/event-types").send(eventType).expect(201)).body.eventType;
  const file = await exported(t, old, "acme");
  const { runtime } = await startService(t);
  await importHandle(runtime, { file });
  t.equal(await runtime.redis.hget(keys.eventTypeSlugs("acme"), "json"), made.eventTypeId);
});

t.test("keys of earlier versions that nothing reads are neither imported nor left by an erasure", async (t) => {
  const service = await startService(t);
  await service.handle("acme");
  const { redis } = service.runtime;
  const left = ["campaigns-version:{acme}", "pages-version:{acme}"];
  await redis.mset(...left.flatMap((key) => [key, "7"]));
  const file = await exported(t, service, "acme");
  for (const key of left) t.match(readFileSync(file, "utf8"), key);
  t.match(await importHandle(service.runtime, { file, handle: "copy" }), { handle: "copy" });
  t.same((await keyNames(redis, "*-version:*")).sort(), left);
  await eraseHandle(service.runtime, "acme");
  t.same(await keyNames(redis, "*-version:*"), []);
});

t.test("every kind of key of a handle says how it travels", async (t) => {
  const rows = keyTable().filter(({ owner, name }) => ["handle", "tag"].includes(owner) && name !== "pendingOutboxes");
  const kinds = rows.map(({ name, pattern }) => (name === "documentPrefix" ? "document" : kindOf(pattern)));
  const written = Object.keys(carriage).filter((kind) => carriage[kind] !== "of earlier versions");
  t.same(written.sort(), [...new Set(kinds)].sort(), "list it in core/operations/handle-keys.ts");
});
