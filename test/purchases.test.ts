import { writeFileSync } from "node:fs";
import { join } from "node:path";
import PostalMime, { type Email } from "postal-mime";
import t, { type Test } from "tap";
import { eraseHandle } from "../core/operations/erasure.ts";
import { exportHandle } from "../core/operations/handle-export.ts";
import { importHandle } from "../core/operations/handle-import.ts";
import { sendAccessMail } from "../core/payments/access-mails.ts";
import { addressDigest } from "../core/platform/address.ts";
import { keys } from "../core/store/keys.ts";
import { makeSending } from "../fixtures/email.ts";
import { Inbox } from "../fixtures/inbox.ts";
import { connectAccount } from "../fixtures/providers/consent.ts";
import { type StripeNotice, type StripeServer, type StripeSession, startStripe } from "../fixtures/providers/stripe.ts";
import { eventually, type Service, startService } from "../fixtures/service.ts";

const course = {
  pageSlug: "course",
  title: "The <course> & more",
  language: "en",
  accessMode: "PAID",
  status: "PUBLISHED",
  content: "<p>secret</p>",
  teaser: "<p>teaser</p>",
  price: { amountMinor: 1900, currency: "EUR" },
};
const PAGE_PATH = "/v2/public/pages/acme/course";
const purchases = "/v2/handles/acme/pages/course/purchases";
const html = { Accept: "text/html", "Content-Type": "application/x-www-form-urlencoded" };

interface Shop {
  service: Service;
  owner: Awaited<ReturnType<Service["handle"]>>;
  stripe: StripeServer;
  inbox: Inbox;
}

async function open(
  t: Test,
  env: Record<string, string> = {},
  workers = ["scheduling", "email", "campaigns"],
): Promise<Shop> {
  const [stripe, inbox] = [await startStripe(), new Inbox()];
  t.teardown(() => stripe.close());
  const all = { ...stripe.env, SMTP_URL: await inbox.start(t), ...env };
  const service = await startService(t, { env: all, workers });
  const owner = await service.handle("acme");
  await connectAccount(owner, "stripe");
  await owner.post("/v2/handles/acme/pages").send(course).expect(201);
  return { service, owner, stripe, inbox };
}

/** A visitor pays with an address, and the provider tells of it. */
async function buy({ service, stripe }: Shop, email: string): Promise<StripeSession> {
  await service.visitor.post(`${PAGE_PATH}/checkout`).expect(200);
  const session = stripe.pay([...stripe.sessions.keys()].at(-1) ?? "", email);
  await tell(service, await stripe.notice(session, "checkout.session.completed"));
  return session;
}

async function tell({ visitor }: Service, { body, signature }: StripeNotice): Promise<void> {
  const notice = visitor.post("/v2/public/providers/stripe/webhook").set("stripe-signature", signature);
  await notice.set("Content-Type", "application/json").send(body).expect(200);
}

function mailsTo({ inbox }: Shop, address: string): Promise<Email[]> {
  return Promise.all(inbox.mails.filter(({ to }) => to === address).map(({ source }) => PostalMime.parse(source)));
}

/** The mails of an address once there are so many. */
function mailed(shop: Shop, address: string, count: number): Promise<Email[]> {
  return eventually(async () => {
    const mails = await mailsTo(shop, address);
    return mails.length >= count && mails;
  });
}

function linkIn(mail: Email | undefined): string {
  const [link = ""] = /http\S+access-link\S+/.exec(mail?.text ?? "") ?? [];
  return link.replace(/^http:\/\/[^/]+/, "");
}

/** The text of the page at the end of a link's redirects, and the cookie that they set. */
async function follow({ service }: Shop, link: string): Promise<{ text: string; cookie: string }> {
  const { location = "" } = (await service.visitor.get(link).expect(303)).headers;
  const { text, headers } = await service.visitor.get(location.replace(/^http:\/\/[^/]+/, "")).expect(200);
  return { text, cookie: headers["set-cookie"]?.[0]?.split(";")[0] ?? "" };
}

async function read(shop: Shop, link: string): Promise<string> {
  return (await follow(shop, link)).text;
}

function ask({ service }: Shop, email: string) {
  return service.visitor.post(`${PAGE_PATH}/access-mail`).set(html).send(new URLSearchParams({ email }).toString());
}

t.test("a buyer is mailed a link that opens the page in any browser, any number of times", async (t) => {
  const shop = await open(t);
  await buy(shop, "ada@far.example");
  const [mail] = await mailed(shop, "ada@far.example", 1);
  t.equal(mail?.subject, "Your link to “The <course> & more”");
  t.match(mail?.text, "Paid: €19.00");
  t.match(mail?.html, "The &lt;course&gt; &amp; more");
  const link = linkIn(mail);
  for (let browser = 0; browser < 3; browser++) t.match(await read(shop, link), "secret");
  t.match(await read(shop, link.slice(0, -1)), "teaser", "a cut link opens nothing");
  await shop.owner
    .post("/v2/handles/acme/pages")
    .send({ ...course, pageSlug: "other" })
    .expect(201);
  const other = (await shop.service.visitor.get(link.replace("/course/", "/other/")).expect(303)).headers.location;
  t.notMatch(other, "access=", "nor does it open another page");
  let last = 303;
  for (let uses = 0; uses < 20; uses++) last = (await shop.service.visitor.get(link)).status;
  t.equal(last, 429, "a link that everybody uses rests");
  await shop.service.visitor.get(link).expect(429).expect("content-type", /html/);
  const problem = await shop.service.visitor.get(link).set("Accept", "application/json").expect(429);
  t.match(problem.headers["content-type"], /^application\/problem\+json/, "a program reads why");
  t.match(problem.headers["retry-after"], /^\d+$/);
  await buy(shop, "not an address");
  await buy(shop, "bob@far.example");
  await mailed(shop, "bob@far.example", 1);
  t.same([...new Set(shop.inbox.mails.map(({ to }) => to))].sort(), ["ada@far.example", "bob@far.example"]);
});

t.test(
  "a buyer who has lost the browser requests the link; strangers learn nothing, and mails are limited",
  async (t) => {
    const shop = await open(t);
    t.match((await shop.service.visitor.get("/p/acme/course")).text, 'name="email" type="email"');
    await buy(shop, "Ada@far.example");
    await mailed(shop, "Ada@far.example", 1);
    const known = await ask(shop, " ada@far.EXAMPLE ").expect(200);
    const unknown = await ask(shop, "eve@far.EXAMPLE").expect(200);
    t.equal(known.text.replaceAll("ada@", "eve@"), unknown.text, "the answer is the same");
    t.match(known.text, /is on its way.*href="\/p\/acme\/course"/s);
    const program = await shop.service.visitor.post(`${PAGE_PATH}/access-mail`).send({ email: "eve@far.example" });
    t.match(program, { status: 202, type: "application/json", body: { email: "eve@far.example" } });
    const wrong = await shop.service.visitor.post(`${PAGE_PATH}/access-mail`).send({ email: "eve" });
    t.match(wrong, { status: 400, type: "application/problem+json", body: { errors: [{ path: "/email" }] } });
    const [, mail] = await mailed(shop, "Ada@far.example", 2);
    t.match(mail?.text, "someone requested the link with your address");
    t.match(await read(shop, linkIn(mail)), "secret");
    for (let again = 0; again < 6; again++) await ask(shop, "ada@far.example").expect(200);
    await mailed(shop, "Ada@far.example", 4);
    const before = shop.inbox.mails.length;
    await ask(shop, "ada@far.example").expect(200);
    await buy(shop, "last@far.example");
    await mailed(shop, "last@far.example", 1);
    t.equal(shop.inbox.mails.length, before + 1, "three that were asked for in a row, then some a day");
    t.notOk(shop.inbox.mails.some(({ to }) => to.startsWith("eve@")));
    t.match((await ask(shop, "ada").expect(400)).text, "That is not an email address.");
    const missing = shop.service.visitor.post(`${PAGE_PATH.replace("course", "none")}/access-mail`).set(html);
    await missing.send("email=ada%40far.example").expect(404).expect("content-type", /html/);
    let last = 200;
    for (let times = 0; times < 20; times++) last = (await ask(shop, `x${times}@far.example`)).status;
    t.equal(last, 429, "one network can't ask for ever");
  },
);

t.test(
  "a person whom a return, a link or a used code leads to the closed page reads why, before paying twice",
  async (t) => {
    const shop = await open(t);
    const { visitor } = shop.service;
    await visitor.post(`${PAGE_PATH}/checkout`).expect(200);
    const [session] = shop.stripe.sessions.values();
    const { id = "", form } = session ?? {};
    const back = (form?.success_url ?? "").replace("{CHECKOUT_SESSION_ID}", id).replace(/^http:\/\/[^/]+/, "");
    const closed =
      /<main class="svc-preview"><p class="svc-closed" role="status">.*don’t pay again.*<details class="svc-bought" open>/s;
    for (const path of [back, `${PAGE_PATH}/access-link/${id}.cut`]) {
      const led = await visitor.get(path).expect(303);
      t.equal(led.headers.location, "http://service.test/p/acme/course");
      const cookie = led.headers["set-cookie"]?.[0] ?? "";
      t.match(cookie, /; Max-Age=60; Path=\/; HttpOnly/);
      t.match((await visitor.get("/p/acme/course").set("Cookie", cookie.split(";")[0] ?? "")).text, closed);
    }
    t.match((await visitor.get("/p/acme/course?access=pac_used")).text, closed);
    t.notMatch((await visitor.get("/p/acme/course")).text, /svc-closed|<details[^>]* open/, "nobody else reads it");
    shop.stripe.pay(id, "ada@far.example");
    const paid = await visitor.get(back).expect(303);
    t.equal(paid.headers["set-cookie"], undefined);
    const opened = await visitor.get(paid.headers.location?.replace(/^http:\/\/[^/]+/, "") ?? "");
    t.match(opened.text, /Payment received/);
    t.notMatch(opened.text, /svc-closed/);
  },
);

t.test("a page full of dead links leaves a browser one cookie, and room for those of other handles", async (t) => {
  const { service } = await open(t);
  const handle = "e".repeat(63);
  const owner = await service.handle(handle);
  const jar = new Map<string, string>();
  for (let page = 0; page < 100; page++) {
    const pageSlug = `${page}`.padStart(96, "p");
    await owner.post(`/v2/handles/${handle}/pages`).send({ pageSlug, title: "Page", status: "PUBLISHED" }).expect(201);
    const led = await service.visitor.get(`/v2/public/pages/${handle}/${pageSlug}/access-link/x`).expect(303);
    const [pair = ""] = led.headers["set-cookie"]?.[0]?.split(";") ?? [];
    jar.set(pair.split("=")[0] ?? "", pair);
  }
  // A server refuses a request whose header is larger than 16 KB.
  await service.visitor
    .get("/p/acme/course")
    .set("Cookie", [...jar.values()].join("; "))
    .expect(200);
  t.equal(jar.size, 1);
});

t.test("a refund ends the link and the access of browsers, whichever notice comes first", async (t) => {
  const shop = await open(t);
  const session = await buy(shop, "ada@far.example");
  const link = linkIn((await mailed(shop, "ada@far.example", 1))[0]);
  const { text, cookie } = await follow(shop, link);
  t.match(text, "secret");
  t.notMatch(text, "Payment received", "which the way back from the checkout says");
  const visit = (path: string) => shop.service.visitor.get(path).set("Cookie", cookie).expect(200);
  t.match((await visit("/p/acme/course")).text, "secret");
  const { headers } = await shop.service.visitor.get(link).expect(303);
  await tell(shop.service, await shop.stripe.refundNotice(session));
  const late = headers.location?.replace(/^http:\/\/[^/]+/, "") ?? "";
  const opened = await shop.service.visitor.get(late).expect(200);
  t.match(opened.text, "teaser", "a code from before the refund opens nothing");
  t.equal(opened.headers["set-cookie"], undefined);
  t.match(await read(shop, link), "teaser");
  t.notMatch((await visit("/p/acme/course")).text, "secret");
  t.match((await visit(`${PAGE_PATH}/access-check`)).body, { hasAccess: false });
  await shop.service.visitor.post(`${PAGE_PATH}/checkout`).expect(200);
  const early = shop.stripe.pay([...shop.stripe.sessions.keys()].at(-1) ?? "", "bob@far.example");
  await tell(shop.service, await shop.stripe.refundNotice(early));
  await tell(shop.service, await shop.stripe.notice(early, "checkout.session.completed"));
  const back = new URL((early.form.success_url ?? "").replace("{CHECKOUT_SESSION_ID}", early.id));
  const returned = await shop.service.visitor.get(back.pathname + back.search).expect(303);
  t.notMatch(returned.headers.location, "access=", "nor does the way back open the page");
  for (const email of ["ada@far.example", "bob@far.example"]) await ask(shop, email).expect(200);
  await buy(shop, "last@far.example");
  await mailed(shop, "last@far.example", 1);
  t.same(
    shop.inbox.mails.map(({ to }) => to),
    ["ada@far.example", "last@far.example"],
    "nobody else is mailed",
  );
  const { body } = await shop.owner.get(purchases).expect(200);
  t.same(
    body.purchases.map(({ email, refundedAt }: Record<string, string | null>) => [email, refundedAt !== null]),
    [
      ["last@far.example", false],
      ["bob@far.example", true],
      ["ada@far.example", true],
    ],
  );
});

t.test("a cookie of an erased handle opens no page of another owner who takes its name", async (t) => {
  const shop = await open(t);
  await buy(shop, "ada@far.example");
  const [mail] = await mailed(shop, "ada@far.example", 1);
  const { cookie } = await follow(shop, linkIn(mail));
  const visit = async () => (await shop.service.visitor.get("/p/acme/course").set("Cookie", cookie).expect(200)).text;
  t.match(await visit(), "secret");
  await eraseHandle(shop.service.runtime, "acme");
  const next = await shop.service.handle("acme", { account: "acct_next", owner: "user_next" });
  await next.post("/v2/handles/acme/pages").send(course).expect(201);
  t.match(await visit(), "teaser");
});

t.test("an access code of an erased handle opens no page of another owner who takes its name", async (t) => {
  const shop = await open(t);
  const { service } = shop;
  await buy(shop, "ada@far.example");
  const [mail] = await mailed(shop, "ada@far.example", 1);
  const { location = "" } = (await service.visitor.get(linkIn(mail)).expect(303)).headers;
  t.match(location, "access=");
  await eraseHandle(service.runtime, "acme");
  const next = await service.handle("acme", { account: "acct_next", owner: "user_next" });
  await next.post("/v2/handles/acme/pages").send(course).expect(201);
  const { text, headers } = await service.visitor.get(location.replace(/^http:\/\/[^/]+/, "")).expect(200);
  t.match(text, "teaser");
  t.equal(headers["set-cookie"], undefined);
});

t.test("a payment that is reported after its handle was erased is none of a later one of its name", async (t) => {
  const shop = await open(t);
  const { service, stripe } = shop;
  await service.visitor.post(`${PAGE_PATH}/checkout`).expect(200);
  const session = stripe.pay([...stripe.sessions.keys()].at(-1) ?? "", "ada@far.example");
  await eraseHandle(service.runtime, "acme");
  const next = await service.handle("acme", { account: "acct_next", owner: "user_next" });
  await next.post("/v2/handles/acme/pages").send(course).expect(201);
  await tell(service, await stripe.notice(session, "checkout.session.completed"));
  t.same((await next.get(purchases).expect(200)).body.purchases, []);
});

t.test("a handle that moves keeps what its visitors have bought and are paying for", async (t) => {
  const shop = await open(t);
  const { service, stripe } = shop;
  await buy(shop, "ada@far.example");
  const [mail] = await mailed(shop, "ada@far.example", 1);
  const { cookie } = await follow(shop, linkIn(mail));
  await service.visitor.post(`${PAGE_PATH}/checkout`).expect(200);
  const paying = stripe.pay([...stripe.sessions.keys()].at(-1) ?? "", "bob@far.example");
  let from = service;
  for (const turn of ["moved", "moved again"]) {
    const lines: string[] = [];
    for await (const line of exportHandle(from.runtime, "acme")) lines.push(JSON.stringify(line));
    const file = join(t.testdir(), "acme.jsonl");
    writeFileSync(file, lines.map((line) => `${line}\n`).join(""));
    from = await startService(t, { env: stripe.env });
    await importHandle(from.runtime, { file });
    t.match((await from.visitor.get("/p/acme/course").set("Cookie", cookie).expect(200)).text, "secret", turn);
  }
  const owner = await from.as("user_acme");
  const account = (await owner.get("/v2/handles/acme/scheduling/integrations").expect(200)).body.credentials[0];
  await owner.delete(`/v2/handles/acme/scheduling/integrations/stripe/credentials/${account.credentialId}`).expect(204);
  await tell(from, await stripe.notice(paying, "checkout.session.completed"));
  const bought = (await owner.get(purchases).expect(200)).body.purchases;
  t.same(
    bought.map(({ email }: { email: string }) => email),
    ["bob@far.example", "ada@far.example"],
  );
});

t.test("owners list the purchases of a page, and erase a buyer without losing them", async (t) => {
  const shop = await open(t);
  const session = await buy(shop, "ada@far.example");
  await buy(shop, "bob@far.example");
  await mailed(shop, "bob@far.example", 1);
  const first = (await shop.owner.get(`${purchases}?limit=1`).expect(200)).body;
  t.match(first.purchases, [{ email: "bob@far.example", pageSlug: "course", amountMinor: 1900, currency: "EUR" }]);
  const rest = (await shop.owner.get(purchases).query({ cursor: first.nextCursor }).expect(200)).body;
  t.match(rest, {
    purchases: [{ email: "ada@far.example", sessionId: session.id, refundedAt: null }],
    nextCursor: null,
  });
  await (await shop.service.as("user_other")).get(purchases).expect(403);
  const unknown = await shop.owner.get("/v2/handles/acme/pages/none/purchases").expect(404);
  t.match(unknown.body, { code: "page_not_found" });
  await shop.owner.delete(`${purchases}/none/buyer`).expect(404);
  await shop.owner.delete(`${purchases}/${session.id}/buyer`).expect(204);
  const { redis } = shop.service.runtime;
  await eventually(async () => (await shop.owner.get(purchases)).body.purchases[1].email === null);
  await shop.owner.delete(`${purchases}/${session.id}/buyer`).expect(204);
  const left = await redis.keys("*");
  const texts = await Promise.all(
    left.map(async (key) => ((await redis.type(key)) === "string" ? await redis.get(key) : "")),
  );
  t.notOk(texts.some((text) => text?.includes("ada@far.example")));
  t.ok((await redis.ttl(keys.pagePurchase("acme", session.id))) > 399 * 86_400, "a purchase keeps its lifetime");
  const before = shop.inbox.mails.length;
  await ask(shop, "ada@far.example").expect(200);
  await ask(shop, "bob@far.example").expect(200);
  await mailed(shop, "bob@far.example", 2);
  t.equal(shop.inbox.mails.length, before + 1);
  await shop.owner.delete("/v2/handles/acme/pages/course").expect(204);
  t.equal((await shop.owner.get(purchases).expect(200)).body.purchases.length, 2, "they outlive the page");
});

t.test("an erased buyer is mailed no link while the job of the erasure waits", async (t) => {
  const shop = await open(t, {}, []);
  const { id } = await buy(shop, "ada@far.example");
  await ask(shop, "ada@far.example").expect(200);
  await shop.owner.delete(`${purchases}/${id}/buyer`).expect(204);
  t.match((await shop.owner.get(purchases).expect(200)).body.purchases, [{ email: null }]);
  await shop.service.startWorkers(["email"]);
  const queue = shop.service.runtime.queues.queue("email");
  await eventually(async () => (await queue.getJobCounts("completed")).completed === 2);
  t.same(shop.inbox.mails, []);
});

t.test("a link that a mail server refuses for a night comes afterwards, and costs its buyer one request", async (t) => {
  const shop = await open(t, {}, []);
  await buy(shop, "ada@far.example");
  const { runtime } = shop.service;
  const names = { handle: "acme", pageSlug: "course", buyer: addressDigest("ada@far.example") };
  const attempt = (round: string, failures: number) => sendAccessMail(runtime, { ...names, round }, { failures });
  const { SMTP_URL } = runtime.env;
  Object.assign(runtime.env, { SMTP_URL: "smtp://127.0.0.1:9" });
  for (let failures = 0; failures < 5; failures++) await t.rejects(attempt("acm_1", failures));
  Object.assign(runtime.env, { SMTP_URL });
  await attempt("acm_1", 5);
  for (const round of ["acm_2", "acm_3", "acm_4"]) await attempt(round, 0);
  t.equal((await mailed(shop, "ada@far.example", 3)).length, 3);
});

t.test("a person who is erased as a lead is erased as a buyer too", async (t) => {
  const shop = await open(t, { PUBLIC_PAGE_AGENT_ENABLED: "1" });
  await buy(shop, "ada@far.example");
  const lead = { email: "ada@far.example", message: "Hi" };
  const { leadId } = (await shop.service.visitor.post("/v2/public/handles/acme/leads").send(lead).expect(202)).body
    .lead;
  await shop.owner.delete(`/v2/handles/acme/leads/${leadId}`).expect(204);
  await eventually(async () => (await shop.owner.get(purchases)).body.purchases[0].email === null);
});

t.test("a handle with a sender writes to its buyers itself, in the page's language and under its name", async (t) => {
  const shop = await open(t);
  await makeSending(shop.service);
  await shop.owner.put("/v2/handles/acme/settings").send({ displayName: "Räder & Rost" }).expect(200);
  await shop.owner.put("/v2/handles/acme/pages/course").send({ language: "de-AT", title: "Der Kurs" }).expect(200);
  await buy(shop, "ada@far.example");
  const [mail] = await mailed(shop, "ada@far.example", 1);
  t.match(mail, { subject: "Ihr Link zu „Der Kurs“", from: { address: "noreply@acme.example" } });
  t.match(mail?.text, /Bezahlt: €\s19,00.*eine Seite von Räder & Rost gekauft/s);
  for (let again = 0; again < 6; again++) await ask(shop, "ada@far.example").expect(200);
  const denied = await eventually(async () => {
    const { events } = (await shop.owner.get("/v2/handles/acme/email/events?purpose=TRANSACTIONAL_API").expect(200))
      .body;
    const found = events.filter(({ type }: { type: string }) => type === "DENIED");
    return found.length > 0 && found;
  });
  t.match(denied, [{ recipient: "ada@far.example", reason: "visitor_mail_limit" }]);
  await mailed(shop, "ada@far.example", 4);
  t.equal(denied.length, 1, "one a day");
});

t.test("a buyer can request the link of a page that is no longer for sale", async (t) => {
  const shop = await open(t);
  const change = (more: object) => shop.owner.put("/v2/handles/acme/pages/course").send(more).expect(200);
  const page = async () => (await shop.service.visitor.get("/p/acme/course").expect(200)).text;
  await change({ price: null });
  t.notMatch(await page(), /svc-sale|svc-bought/, "nobody has bought it");
  await change({ price: course.price });
  await buy(shop, "ada@far.example");
  await mailed(shop, "ada@far.example", 1);
  await change({ price: null });
  t.match(await page(), "svc-bought");
  t.notMatch(await page(), "svc-sale");
  await ask(shop, "ada@far.example").expect(200);
  const [, mail] = await mailed(shop, "ada@far.example", 2);
  t.match(await read(shop, linkIn(mail)), "secret");
});

t.test("without a mail server the page offers no mail", async (t) => {
  const stripe = await startStripe();
  t.teardown(() => stripe.close());
  const service = await startService(t, { env: stripe.env });
  const owner = await service.handle("acme");
  await connectAccount(owner, "stripe");
  await owner.post("/v2/handles/acme/pages").send(course).expect(201);
  const page = (await service.visitor.get("/p/acme/course").expect(200)).text;
  t.match(page, "svc-sale");
  t.notMatch(page, /Already bought|access-mail/);
});
