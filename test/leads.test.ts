import { readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import t from "tap";
import { keys } from "../core/store/keys.ts";
import { keyNames, repeatScripts } from "../fixtures/redis.ts";
import { eventually, type Service, startService } from "../fixtures/service.ts";

const open = { env: { PUBLIC_PAGE_AGENT_ALLOWED_HANDLES: "acme", PUBLIC_LEADS_BURST: "1000" } };
const route = "/v2/public/handles/acme/leads";
const lead = (service: Service, body: object) => service.visitor.post(route).send(body);
/** JSON in a text, nested deeper than a function can recurse. */
const deepJson = `{"a":${"[".repeat(7000)}${"]".repeat(7000)}}`;

t.test("a lead is accepted, stored as sent and read by its owner", async (t) => {
  const service = await startService(t, open);
  const owner = await service.handle("acme");
  const sent = {
    email: "ada@example.com",
    name: "Ada Lovelace",
    company: "Engines",
    budget: 5000,
    newsletter: true,
    fields: { "team.size": "12" },
    pageSlug: "pricing",
    leadContext: { pageSlug: "pricing", visitorQuestion: "What does it cost?", evidenceTitles: ["Prices"], more: "x" },
    tracking: { utm_source: "mail" },
    consent: true,
  };
  const { body } = await lead(service, sent).expect(202);
  t.same(Object.keys(body.lead).sort(), ["leadId", "status"]);
  t.match(body.lead, { leadId: /^lead_/, status: "ACCEPTED" });
  const read = (await owner.get(`/v2/handles/acme/leads/${body.lead.leadId}`).expect(200)).body.lead;
  t.match(read, {
    email: "ada@example.com",
    name: "Ada Lovelace",
    fields: { budget: "5000", newsletter: "true", "team.size": "12" },
    pageSlug: "pricing",
    campaignId: null,
    leadContext: { visitorQuestion: "What does it cost?", evidenceTitles: ["Prices"] },
    tracking: { utm_source: "mail" },
    consent: true,
  });
  t.notOk("more" in read.leadContext);
});

t.test("a lead whose reply is lost with the connection is one capture", async (t) => {
  const service = await startService(t, open);
  const owner = await service.handle("acme");
  await owner.post("/v2/handles/acme/webhooks").send({ url: "http://127.0.0.1:9/hook" }).expect(201);
  repeatScripts(service.runtime.redis);
  const { leadId } = (await lead(service, { email: "ada@example.com" }).expect(202)).body.lead;
  const { redis } = service.runtime;
  t.equal(await redis.hget(keys.lead("acme", leadId), "version"), "1");
  t.equal((await keyNames(redis, keys.webhookEvent("acme", "*"))).length, 1);
});

t.test("a form post is a lead too", async (t) => {
  const service = await startService(t, open);
  const owner = await service.handle("acme");
  await service.visitor
    .post(route)
    .type("form")
    .send({ email: "a@example.com", size: "XL", leadContext: '{"visitorQuestion":"q"}' })
    .expect(202);
  await service.visitor.post(route).field("email", "b@example.com").field("size", "M").expect(202);
  const { leads } = (await owner.get("/v2/handles/acme/leads").expect(200)).body;
  t.match(leads, [
    { email: "b@example.com", fields: { size: "M" } },
    { email: "a@example.com", fields: { size: "XL" }, leadContext: { visitorQuestion: "q" } },
  ]);
});

/** A form in parts, each with the headers that its client adds. */
const parts = (service: Service, ...given: [headers: string, value: string][]) =>
  service.visitor
    .post(route)
    .type("multipart/form-data; boundary=part")
    .send(`${given.map(([headers, value]) => `--part\r\n${headers}\r\n\r\n${value}\r\n`).join("")}--part--\r\n`);
const named = (name: string, ...more: string[]) =>
  [`Content-Disposition: form-data; name="${name}"`, ...more].join("\r\n");

t.test("a form's fields may have names of any language, with dots, and of lists", async (t) => {
  const service = await startService(t, open);
  const owner = await service.handle("acme");
  const sent = new URLSearchParams({ email: "ada@example.com", größe: "XL", "予算.円": "5000", नाम: "अदा" });
  for (const day of ["Mon", "Tue"]) sent.append("days[]", day);
  await service.visitor.post(route).type("form").send(String(sent)).expect(202);
  const parts = service.visitor
    .post(route)
    .field("email", "bob@example.com")
    .field("größe", "M")
    .field("team.size", "12");
  await parts.field("days[]", "Mon").field("days[]", "Tue").expect(202);
  const { leads } = (await owner.get("/v2/handles/acme/leads").expect(200)).body;
  t.same(leads[0].fields, { größe: "M", "team.size": "12", days: "Mon, Tue" });
  t.same(leads[1].fields, { größe: "XL", "予算.円": "5000", नाम: "अदा", days: "Mon, Tue" });
  await owner.post("/v2/handles/acme/campaigns").send({ campaignId: "cmp_a", name: "A" }).expect(201);
  const rule = { trigger: "LEAD_CAPTURED", templateId: "tmpl_a", senderId: "sender_a" };
  const mapped = { ...rule, variableMappings: { size: "fields.größe" } };
  const answer = await owner.post("/v2/handles/acme/campaigns/cmp_a/email-rules").send(mapped);
  t.match(answer.body, { code: "sender_profile_not_found" }, "the mapping is read");
});

t.test("both types of forms have lists of any length and nested fields", async (t) => {
  const service = await startService(t, open);
  const owner = await service.handle("acme");
  const days = Array.from({ length: 25 }, (_, at) => ["day", `${at}`]);
  const numbered = ["Mon", "Tue"].map((day, at) => [`week[${at}]`, day]);
  const nested = [
    ["fields[size]", "M"],
    ["fields[colour][]", "red"],
    ["tracking[utm]", "mail"],
    ["other[a][b]", "x"],
    ["", "x"],
  ];
  const pairs = [["email", "ada@example.com"], ["constructor", "Eiffel"], ...days, ...numbered, ...nested];
  const form = pairs.map(([name = "", value = ""]): [string, string] => [named(name), value]);
  await service.visitor
    .post(route)
    .type("form")
    .send(String(new URLSearchParams(pairs)))
    .expect(202);
  await parts(service, [named("email"), "bob@example.com"], ...form.slice(1)).expect(202);
  const { leads } = (await owner.get("/v2/handles/acme/leads").expect(200)).body;
  const [day, week] = [days.map(([, value]) => value).join(", "), "Mon, Tue"];
  const fields = { size: "M", colour: "red", day, week, constructor: "Eiffel" };
  t.equal(leads.length, 2);
  for (const one of leads) {
    t.same(one.fields, fields);
    t.same(one.tracking, { utm: "mail" });
  }
});

t.test("a part of a form may name its type and its transfer encoding, and a file input may be empty", async (t) => {
  const service = await startService(t, open);
  const owner = await service.handle("acme");
  const type = "Content-Type: text/plain; charset=utf-8";
  const coded = (coding: string) => `Content-Transfer-Encoding: ${coding}`;
  const none = named('cv"; filename="', "Content-Type: application/octet-stream");
  await parts(
    service,
    [named("email", type), "ada@example.com"],
    [named("name", coded("8bit")), "Jörg"],
    [named("company", type, coded("binary")), "Café"],
    [named("service", coded("7bit")), "repair"],
    [named("phone", coded("base64")), "KzQ5IDMw"],
    [none, ""],
  ).expect(202);
  await parts(service, [named("email", coded("unknown")), "ada@example.com"]).expect(400);
  const { leads } = (await owner.get("/v2/handles/acme/leads").expect(200)).body;
  t.equal(leads.length, 1);
  t.match(leads[0], { name: "Jörg", company: "Café", service: "repair", phone: "+49 30", fields: { cv: "" } });
});

t.test("a file in a form is refused, and leaves nothing on the disk", async (t) => {
  const service = await startService(t, open);
  await service.handle("acme");
  const uploads = () => readdirSync(tmpdir()).filter((name) => /^[a-z0-9]{25}$/.test(name));
  const before = uploads();
  const file = named('cv"; filename="cv.txt', "Content-Type: text/plain");
  const sent = Array.from({ length: 5 }, (_, at) =>
    parts(service, [named("email"), `a${at}@example.com`], [file, "x".repeat(20_000)], [file, "y"]).expect(413),
  );
  await Promise.all(sent);
  t.same(uploads(), before);
});

t.test("a checkbox group is one field, and an unknown field loses no lead", async (t) => {
  const service = await startService(t, open);
  const owner = await service.handle("acme");
  const sent = { email: "json@example.com", topic: ["a", 2, true], none: [], nested: { a: 1 }, list: [{ a: 1 }, "b"] };
  await lead(service, { ...sent, fields: { days: ["mon", "tue"], nights: [] } }).expect(202);
  await service.visitor
    .post(route)
    .type("form")
    .send("email=form%40example.com&topic=a&topic=b&deep%5Bkey%5D=x")
    .expect(202);
  await service.visitor
    .post(route)
    .field("email", "parts@example.com")
    .field("topic", "a")
    .field("topic", "b")
    .expect(202);
  const { leads } = (await owner.get("/v2/handles/acme/leads").expect(200)).body;
  t.same(
    leads.map(({ email, fields }: { email: string; fields: object }) => [email, fields]),
    [
      ["parts@example.com", { topic: "a, b" }],
      ["form@example.com", { topic: "a, b" }],
      ["json@example.com", { days: "mon, tue", topic: "a, 2, true" }],
    ],
  );
});

t.test("a form's empty inputs are as good as none", async (t) => {
  const service = await startService(t, open);
  const owner = await service.handle("acme");
  const context = { pageSlug: "pricing", visitorQuestion: "q" };
  const names = ["name", "firstName", "company", "phone", "service", "message", "source", "pageSlug", "campaignId"];
  const empty = Object.fromEntries([...names, "consent", "tracking", "fields"].map((name) => [name, ""]));
  await lead(service, { email: "ada@example.com", name: "Ada", consent: true, leadContext: context }).expect(202);
  await lead(service, { email: "ada@example.com", name: "\u200b", company: "\u3164", leadContext: context }).expect(
    202,
  );
  await lead(service, { ...empty, email: "ada@example.com", leadContext: JSON.stringify(context), size: "" }).expect(
    202,
  );
  await lead(service, { email: "bob@example.com", leadContext: { pageSlug: "" } }).expect(202);
  const { leads } = (await owner.get("/v2/handles/acme/leads").expect(200)).body;
  t.match(leads, [
    { email: "bob@example.com", pageSlug: null },
    { name: "Ada", company: undefined, consent: true, pageSlug: "pricing", campaignId: null, fields: { size: "" } },
  ]);
  t.equal(leads.length, 2);
  t.match((await lead(service, { ...empty, email: "" }).expect(400)).body, { errors: [{ path: "/email" }] });
});

t.test("invisible characters that were pasted along and wide letters don't make an address invalid", async (t) => {
  const service = await startService(t, open);
  const owner = await service.handle("acme");
  const marked = [
    "\u202aada@example.com\u202c",
    "ada@example.com\u200b",
    "ada\ufe0f@example.com",
    "\u3164ada@example.com\0",
  ];
  for (const email of [...marked, "ａｄａ＠ｅｘａｍｐｌｅ．ｃｏｍ"]) await lead(service, { email }).expect(202);
  const { leads } = (await owner.get("/v2/handles/acme/leads").expect(200)).body;
  t.same(
    leads.map(({ email }: { email: string }) => email),
    ["ada@example.com"],
  );
});

t.test("invalid leads are refused by field, and nothing is stored", async (t) => {
  const service = await startService(t, open);
  const owner = await service.handle("acme");
  const bad: [object, string][] = [
    [{}, "/email"],
    [{ email: "nobody" }, "/email"],
    [{ email: "a@b.c\r\nBcc: x@y.z" }, "/email"],
    [{ email: "a@example.com", name: ["Ada"] }, "/name"],
    [{ email: "a@example.com", company: "x".repeat(201) }, "/company"],
    [{ email: "a@example.com", "bad key": "x" }, "/bad key"],
    [{ email: "a@example.com", "yes/no~": "x" }, "/yes~1no~0"],
    [{ email: "a@example.com", fields: { "yes/no": "x" } }, "/fields/yes~1no"],
    [{ email: "a@example.com", fields: { nested: { a: 1 } } }, "/fields/nested"],
    [{ email: "a@example.com", fields: "no json" }, "/fields"],
    [{ email: "a@example.com", fields: deepJson }, "/fields"],
    [
      { email: "a@example.com", fields: Object.fromEntries(Array.from({ length: 21 }, (_, at) => [`f${at}`, "x"])) },
      "/fields",
    ],
    [{ email: "a@example.com", long: "x".repeat(5001) }, "/long"],
    [{ email: "a@example.com", long: "\u{1f600}".repeat(5001) }, "/long"],
  ];
  for (const [body, path] of bad) {
    const answer = await lead(service, body).expect(400);
    t.match(answer.body, { code: "invalid_request", errors: [{ path }] }, path);
  }
  t.match((await lead(service, { email: "a@example.com", campaignId: "cmp_none" }).expect(404)).body, {
    code: "campaign_not_found",
  });
  t.match((await lead(service, { email: "a@example.com", message: "x".repeat(70_000) }).expect(413)).body, {
    code: "payload_too_large",
  });
  t.same((await owner.get("/v2/handles/acme/leads").expect(200)).body.leads, []);
  await lead(service, { email: "a@example.com", long: "\u{1f600}".repeat(5000) }).expect(202);
});

t.test("a visitor's lead is never refused over decoration", async (t) => {
  const service = await startService(t, open);
  const owner = await service.handle("acme");
  const sent = {
    email: " ada@example.com\n",
    name: "  Ada Lovelace ",
    phone: 4930123456,
    service: true,
    message: "\n Please call me. \n",
    company: null,
    source: "https://news.example/".padEnd(300, "é"),
    pageSlug: "p".repeat(200),
    leadContext: ["no", "object"],
    tracking: { utm_source: "x".repeat(300), visits: 3, deep: { term: " y ".repeat(200) } },
    consent: null,
    fields: null,
    colour: "  red ",
    website: null,
  };
  const { leadId } = (await lead(service, sent).expect(202)).body.lead;
  const read = (await owner.get(`/v2/handles/acme/leads/${leadId}`).expect(200)).body.lead;
  t.match(read, {
    email: "ada@example.com",
    name: "Ada Lovelace",
    phone: "4930123456",
    service: "true",
    message: "Please call me.",
    pageSlug: "p".repeat(96),
    leadContext: null,
    tracking: { utm_source: "x".repeat(200), visits: 3 },
    consent: null,
    fields: { colour: "red" },
  });
  t.notOk("company" in read);
  t.equal(read.source.length, 200);
  t.ok(read.tracking.deep.term.length <= 200);
  const shapes = ["no json", "[1]", deepJson, 5, true, { visitorQuestion: { a: 1 } }];
  for (const [at, shape] of shapes.entries())
    await lead(service, {
      email: `p${at}@example.com`,
      leadContext: shape,
      tracking: shape,
      source: shape,
      pageSlug: shape,
    }).expect(202);
  const context = { visitorQuestion: "🚲".repeat(500), evidenceTitles: [`a${"🚲".repeat(300)}`] };
  const long = (await lead(service, { email: "long@example.com", leadContext: context }).expect(202)).body.lead;
  t.match((await owner.get(`/v2/handles/acme/leads/${long.leadId}`).expect(200)).body.lead.leadContext, {
    visitorQuestion: context.visitorQuestion,
    evidenceTitles: [`a${"🚲".repeat(299)}`],
  });
  await lead(service, { email: "large@example.com", leadContext: { more: "x".repeat(30_000) } }).expect(202);
  const { leads } = (await owner.get("/v2/handles/acme/leads?limit=100").expect(200)).body;
  t.equal(leads.length, 3 + shapes.length);
});

t.test("pages that are not published don't make one person many leads", async (t) => {
  const service = await startService(t, open);
  const owner = await service.handle("acme");
  for (const [pageSlug, status] of [
    ["draft", "DRAFT"],
    ["live", "PUBLISHED"],
  ])
    await owner.post("/v2/handles/acme/pages").send({ pageSlug, title: "P", status }).expect(201);
  const at = async (pageSlug: string) =>
    (await lead(service, { email: "Ada@example.com", pageSlug }).expect(202)).body.lead.leadId;
  const first = await at("no-such-page-0");
  for (const slug of ["no-such-page-1", "draft", "NO PAGE", "no-such-page-2"]) t.equal(await at(slug), first, slug);
  const live = await at("live");
  t.not(live, first);
  t.equal(await at("live"), live);
  t.equal((await lead(service, { email: "ada@example.com" }).expect(202)).body.lead.leadId, first);
  t.match((await owner.get(`/v2/handles/acme/leads/${first}`)).body.lead, { pageSlug: "no-such-page-2" });
  await owner.delete(`/v2/handles/acme/leads/${first}`).expect(204);
  t.same(await keyNames(service.runtime.redis, "lead*:{acme}:*"), []);
});

t.test("a filled honeypot looks accepted and is not stored", async (t) => {
  const service = await startService(t, open);
  const owner = await service.handle("acme");
  t.match((await lead(service, { email: "bot@example.com", website: "http://spam.example" }).expect(202)).body.lead, {
    leadId: /^lead_/,
    status: "ACCEPTED",
  });
  await lead(service, { email: "no address", website: "x" }).expect(202);
  const page = { pageSlug: "strict", title: "P", status: "PUBLISHED", verifyLeads: true };
  await owner.post("/v2/handles/acme/pages").send(page).expect(201);
  const strict = { email: "bot@example.com", website: "x", pageSlug: "strict" };
  t.equal((await lead(service, strict).expect(202)).body.lead.status, "UNVERIFIED");
  const asked = { email: "bot@example.com", website: "x", campaignId: "", leadContext: { pageSlug: "strict" } };
  t.equal((await lead(service, asked).expect(202)).body.lead.status, "UNVERIFIED", "the page of the conversation");
  await lead(service, { ...asked, website: "" }).expect(202);
  t.match((await owner.get("/v2/handles/acme/leads").expect(200)).body.leads, [{ status: "UNVERIFIED" }]);
  await lead(service, { email: "ada@example.com", website: "" }).expect(202);
  t.match((await owner.get("/v2/handles/acme/leads").expect(200)).body.leads, [{ email: "ada@example.com" }, {}]);
});

t.test("the lead route is closed like the assistant, and throttled by itself", async (t) => {
  const service = await startService(t, {
    env: { PUBLIC_PAGE_AGENT_ALLOWED_HANDLES: "acme", PUBLIC_LEADS_RATE: "0.1", PUBLIC_LEADS_BURST: "2" },
  });
  await service.handle("acme");
  await service.handle("closed");
  t.match((await service.visitor.post("/v2/public/handles/closed/leads").send({ email: 5 }).expect(404)).body, {
    code: "not_found",
  });
  await service.visitor.post("/v2/public/handles/nobody/leads").send({}).expect(404);
  await lead(service, { email: "a@example.com" }).expect(202);
  await lead(service, { email: "b@example.com" }).expect(202);
  const refused = await lead(service, { email: "c@example.com" }).expect(429);
  t.match(refused.body, { code: "rate_limited" });
  t.ok(refused.headers["retry-after"]);
});

t.test("concurrent leads are accepted up to the throttle, and all others get 429", async (t) => {
  const service = await startService(t, {
    env: { PUBLIC_PAGE_AGENT_ENABLED: "1", PUBLIC_LEADS_RATE: "0.01", PUBLIC_LEADS_BURST: "5" },
  });
  const owner = await service.handle("acme");
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, at) => lead(service, { email: `${at}@example.com` })),
  );
  const counted = (status: number) => answers.filter((answer) => answer.status === status).length;
  t.same([counted(202), counted(429)], [5, 15]);
  t.equal((await owner.get("/v2/handles/acme/leads").expect(200)).body.leads.length, 5);
});

t.test("the same person on the same page within a day is one lead and a trigger each time", async (t) => {
  const service = await startService(t, open);
  const owner = await service.handle("acme");
  for (const name of [" ", "a\nb"]) await owner.post("/v2/handles/acme/campaigns").send({ name }).expect(400);
  await owner.post("/v2/handles/acme/campaigns").send({ campaignId: "cmp_spring", name: "Spring" }).expect(201);
  await owner
    .post("/v2/handles/acme/pages")
    .send({ pageSlug: "other", title: "Other", status: "PUBLISHED" })
    .expect(201);
  const first = (await lead(service, { email: "Ada@example.com", name: "Ada", size: "M" }).expect(202)).body.lead
    .leadId;
  const again = (await lead(service, { email: "ada@example.com", company: "Engines", colour: "red" }).expect(202)).body
    .lead.leadId;
  t.equal(again, first);
  t.not((await lead(service, { email: "ada@example.com", pageSlug: "other" }).expect(202)).body.lead.leadId, first);
  t.match((await owner.get(`/v2/handles/acme/leads/${first}`)).body.lead, {
    name: "Ada",
    company: "Engines",
    fields: { size: "M", colour: "red" },
  });
  await eventually(async () => (await service.runtime.queues.queue("campaigns").getWaitingCount()) === 3);
});

t.test(
  "an address in another spelling is the same person, and a campaign in another case is another one",
  async (t) => {
    const service = await startService(t, open);
    const owner = await service.handle("acme");
    for (const campaignId of ["cmp_spring", "cmp_Spring"])
      await owner.post("/v2/handles/acme/campaigns").send({ campaignId, name: "Spring", live: false }).expect(201);
    const capture = async (email: string, campaignId: string): Promise<string> =>
      (await lead(service, { email, campaignId }).expect(202)).body.lead.leadId;
    const first = await capture("ada@müller.example", "cmp_spring");
    const other = await capture("ada@müller.example", "cmp_Spring");
    t.not(other, first);
    t.equal(await capture("Ada@xn--mller-kva.example", "cmp_spring"), first);
    t.equal((await owner.get(`/v2/handles/acme/leads/${first}`).expect(200)).body.lead.campaignId, "cmp_spring");
    const { leads } = (await owner.get("/v2/handles/acme/leads?campaignId=cmp_Spring").expect(200)).body;
    t.match(leads, [{ leadId: other }], "the filter tells them apart too");
    t.equal(leads.length, 1);
    await owner.delete(`/v2/handles/acme/leads/${first}`).expect(204);
    t.same((await owner.get("/v2/handles/acme/leads").expect(200)).body.leads, [], "erased in both spellings");
  },
);

t.test("however often a person comes, a lead has the 20 newest of its fields and doesn't grow", async (t) => {
  const service = await startService(t, open);
  const owner = await service.handle("acme");
  const some = (round: number) =>
    Object.fromEntries(Array.from({ length: 12 }, (_, at) => [`f${round}-${at}`, `${round} `.repeat(500)]));
  for (let round = 0; round < 5; round++)
    await lead(service, {
      email: "ada@example.com",
      ...some(round),
      tracking: some(round),
      consent: some(round),
    }).expect(202);
  const { leads } = (await owner.get("/v2/handles/acme/leads").expect(200)).body;
  const newest = [...Object.keys(some(3)).slice(4), ...Object.keys(some(4))];
  t.same(Object.keys(leads[0].fields), newest);
  const cut = Object.entries(some(4)).map(([name, value]) => [name, value.slice(0, 199)]);
  t.same(leads[0].tracking, Object.fromEntries(cut));
  t.same(leads[0].consent, some(4));
  await lead(service, { email: "ada@example.com", "f3-4": "changed" }).expect(202);
  const changed = (await owner.get(`/v2/handles/acme/leads/${leads[0].leadId}`).expect(200)).body.lead.fields;
  t.equal(changed["f3-4"], "changed");
  t.same(Object.keys(changed).sort(), newest.sort());
});

t.test("a crowd of submissions of one person makes one lead that has all of it", async (t) => {
  const service = await startService(t, open);
  const owner = await service.handle("acme");
  const answers = await Promise.all(
    Array.from({ length: 60 }, (_, at) => lead(service, { email: "ada@example.com", [`f${at % 20}`]: "x" })),
  );
  t.same([...new Set(answers.map(({ status }) => status))], [202]);
  const leadId = answers[0]?.body.lead.leadId as string;
  t.equal(new Set(answers.map(({ body }) => body.lead.leadId)).size, 1);
  const { leads } = (await owner.get("/v2/handles/acme/leads").expect(200)).body;
  t.equal(Object.keys(leads[0].fields).length, 20);
  t.equal(await service.runtime.redis.hget(keys.lead("acme", leadId), "version"), "60");
});

t.test("a lead belongs to its campaign, else its page's, else the only live one", async (t) => {
  const service = await startService(t, open);
  const owner = await service.handle("acme");
  const campaign = async (body: { email: string; campaignId?: string; pageSlug?: string; leadContext?: object }) => {
    const { leadId } = (await lead(service, body).expect(202)).body.lead;
    return (await owner.get(`/v2/handles/acme/leads/${leadId}`)).body.lead.campaignId;
  };
  t.equal(await campaign({ email: "a@example.com" }), null);
  await owner.post("/v2/handles/acme/campaigns").send({ campaignId: "cmp_a", name: "A" }).expect(201);
  await owner.post("/v2/handles/acme/campaigns").send({ campaignId: "cmp_old", name: "Old", live: false }).expect(201);
  t.equal(await campaign({ email: "b@example.com" }), "cmp_a");
  await owner.post("/v2/handles/acme/campaigns").send({ campaignId: "cmp_b", name: "B" }).expect(201);
  t.equal(await campaign({ email: "c@example.com" }), null);
  t.equal(await campaign({ email: "d@example.com", campaignId: "cmp_b" }), "cmp_b");
  await owner.post("/v2/handles/acme/pages").send({ pageSlug: "spring", title: "S", campaignId: "cmp_a" }).expect(201);
  t.equal(await campaign({ email: "e@example.com", pageSlug: "spring" }), "cmp_a");
  t.equal(await campaign({ email: "f@example.com", leadContext: { pageSlug: "spring" } }), "cmp_a");
});

t.test("owners search, page through and export their leads; formulas are defused", async (t) => {
  const service = await startService(t, open);
  const owner = await service.handle("acme");
  await service.grant("acme", "user_creator", "CREATOR");
  for (let at = 0; at < 12; at++)
    await lead(service, {
      email: `person${at}@example.com`,
      message: at === 3 ? "About Penguins" : "Hello",
      pageSlug: at % 2 ? "odd" : "even",
    }).expect(202);
  await lead(service, {
    email: "evil@example.com",
    name: "=cmd|' /C calc'!A0",
    message: 'line\n"quoted", text',
  }).expect(202);
  const emails = async (query: string) =>
    (await owner.get(`/v2/handles/acme/leads?${query}`).expect(200)).body.leads.map(
      ({ email }: { email: string }) => email,
    );
  t.same(await emails("q=penguins"), ["person3@example.com"]);
  await lead(service, { email: "zoe@example.com", name: "Zoe\u0308", message: "Grüße aus der Straße" }).expect(202);
  for (const text of ["zoë", "ZOE", "Zoe\u0308", " zoe ", "grusse", "STRASSE"])
    t.same(await emails(`q=${encodeURIComponent(text)}`), ["zoe@example.com"], text);
  t.equal((await emails("pageSlug=odd&limit=100")).length, 6);
  t.same(await emails(`since=${encodeURIComponent(new Date(Date.now() + 60_000).toISOString())}`), []);
  const seen: string[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const { body }: { body: { leads: { email: string }[]; nextCursor: string | null } } = await owner
      .get(`/v2/handles/acme/leads?limit=5&pageSlug=even${cursor && `&cursor=${cursor}`}`)
      .expect(200);
    seen.push(...body.leads.map(({ email }) => email));
    cursor = body.nextCursor;
  }
  t.same(seen.sort(), [0, 2, 4, 6, 8, 10].map((at) => `person${at}@example.com`).sort());
  const csv = await owner
    .get("/v2/handles/acme/leads/export")
    .expect(200)
    .expect("content-type", /text\/csv/);
  t.equal(csv.text.split("\r\n").length, 16);
  t.match(csv.text, /'=cmd/);
  t.match(csv.text, /"line\n""quoted"", text"/);
  const creator = await service.as("user_creator");
  t.match((await creator.get("/v2/handles/acme/leads/export").expect(403)).body, { code: "insufficient_role" });
  await creator.get("/v2/handles/acme/leads").expect(200);
});

t.test("a returning lead appears in lists since then, and paging never misses it", async (t) => {
  const service = await startService(t, open);
  const owner = await service.handle("acme");
  await lead(service, { email: "first@example.com" }).expect(202);
  await Promise.all(Array.from({ length: 240 }, (_, at) => lead(service, { email: `${at}@example.com` }).expect(202)));
  const page = async (query: string) => (await owner.get(`/v2/handles/acme/leads?${query}`).expect(200)).body;
  const begun = await page("limit=100");
  const since = encodeURIComponent(new Date(Date.now() + 1).toISOString());
  await new Promise((resolve) => setTimeout(resolve, 5));
  await lead(service, { email: "first@example.com", message: "Again" }).expect(202);
  t.match((await page(`since=${since}`)).leads, [{ email: "first@example.com", message: "Again" }]);
  const csv = (await owner.get(`/v2/handles/acme/leads/export?since=${since}`).expect(200)).text;
  t.equal(csv.trim().split("\r\n").length, 2);
  t.match(csv, /first@example.com/);
  const middle = await page(`limit=100&cursor=${begun.nextCursor}`);
  const end = await page(`limit=100&cursor=${middle.nextCursor}`);
  const seen = [...begun.leads, ...middle.leads, ...end.leads].map(({ email }: { email: string }) => email);
  t.equal(new Set(seen).size, 241);
  t.equal(seen.length, 241);
  t.equal(end.nextCursor, null);
});

t.test("a person is erased with all stored data", async (t) => {
  const service = await startService(t, open);
  const owner = await service.handle("acme");
  const { leadId } = (await lead(service, { email: "ada@example.com", name: "Countess" }).expect(202)).body.lead;
  await lead(service, { email: "ADA@example.com", pageSlug: "other" }).expect(202);
  await lead(service, { email: "bob@example.com" }).expect(202);
  await owner.delete(`/v2/handles/acme/leads/${leadId}`).expect(204);
  t.match((await owner.get(`/v2/handles/acme/leads/${leadId}`).expect(404)).body, { code: "lead_not_found" });
  t.match((await owner.delete(`/v2/handles/acme/leads/${leadId}`).expect(404)).body, { code: "lead_not_found" });
  t.match((await owner.get("/v2/handles/acme/leads")).body.leads, [{ email: "bob@example.com" }]);
  const { redis } = service.runtime;
  for (const key of await keyNames(redis, "lead*:{acme}*")) {
    const value = (await redis.type(key)) === "hash" ? JSON.stringify(await redis.hgetall(key)) : key;
    t.notMatch(value, /ada@|Countess/i);
  }
  t.equal((await keyNames(redis, keys.person("acme", "*"))).length, 1);
});

t.test("an event about a person that is written during the erasure can be erased too", async (t) => {
  const service = await startService(t, { ...open, workers: ["campaigns"] });
  const owner = await service.handle("acme");
  await owner.post("/v2/handles/acme/webhooks").send({ url: "http://127.0.0.1:1/hook" }).expect(201);
  const capture = async () => (await lead(service, { email: "ada@example.com" }).expect(202)).body.lead.leadId;
  const erase = (leadId: string) => owner.delete(`/v2/handles/acme/leads/${leadId}`).expect(204);
  const { redis } = service.runtime;
  const smembers = redis.smembers.bind(redis);
  let late: Promise<string> | undefined;
  let readings = 0;
  redis.smembers = (async (key: string) => {
    const members = await smembers(key);
    // The first reading is that of the request, the second one that of its job.
    if (key.startsWith(keys.personEvents("acme", "")) && ++readings === 2) late = capture();
    await late;
    return members;
  }) as typeof smembers;
  await erase(await capture());
  await eventually(() => late);
  await erase((await late) as string);
  await eventually(async () => (await keyNames(redis, keys.webhookEvent("acme", "*"))).length === 0, 10_000);
});

t.test("what is written about a person during the erasure can be erased too", async (t) => {
  const service = await startService(t, open);
  const owner = await service.handle("acme");
  await owner
    .post("/v2/handles/acme/campaigns")
    .send({ campaignId: "cmp_late", name: "Late", live: false })
    .expect(201);
  const { leadId } = (await lead(service, { email: "ada@example.com" }).expect(202)).body.lead;
  const { redis } = service.runtime;
  const smembers = redis.smembers.bind(redis);
  redis.smembers = (async (key: string) => {
    const members = await smembers(key);
    if (key.startsWith(keys.person("acme", "")))
      await lead(service, { email: "ada@example.com", campaignId: "cmp_late" }).expect(202);
    return members;
  }) as typeof smembers;
  await owner.delete(`/v2/handles/acme/leads/${leadId}`).expect(204);
  redis.smembers = smembers;
  const [late] = (await owner.get("/v2/handles/acme/leads").expect(200)).body.leads;
  t.match(late, { email: "ada@example.com", campaignId: "cmp_late" });
  await owner.delete(`/v2/handles/acme/leads/${late.leadId}`).expect(204);
  t.same((await owner.get("/v2/handles/acme/leads").expect(200)).body.leads, []);
  for (let tries = 0; tries < 10; tries++) {
    const { lead: made } = (await lead(service, { email: "bob@example.com" }).expect(202)).body;
    const convert = () =>
      owner.post("/v2/handles/acme/conversions").send({ leadId: made.leadId, campaignId: "cmp_late" });
    const [, ...conversions] = await Promise.all([
      owner.delete(`/v2/handles/acme/leads/${made.leadId}`).expect(204),
      ...Array.from({ length: 8 }, convert),
    ]);
    for (const { status } of conversions) t.ok([202, 404].includes(status), String(status));
  }
  t.same(await keyNames(redis, keys.conversions("acme", "*")), [], "no conversion outlives its lead");
});
