import t, { type Test } from "tap";
import { keys } from "../core/store/keys.ts";
import { type StripeServer, startStripe } from "../fixtures/providers/stripe.ts";
import { type Service, startService } from "../fixtures/service.ts";

const html = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
const form = "application/x-www-form-urlencoded";
const assistant = { env: { PUBLIC_PAGE_AGENT_ENABLED: "1" } };
const leads = "/v2/public/handles/acme/leads";
const checkout = "/v2/public/pages/acme/course/checkout";
const course = {
  pageSlug: "course",
  title: "Course",
  accessMode: "PAID",
  status: "PUBLISHED",
  language: "de",
  content: "<p>secret</p>",
  teaser: "<p>teaser</p>",
  price: { amountMinor: 1900, currency: "eur" },
};

type Owner = Awaited<ReturnType<Service["handle"]>>;

/** A service with a paid page and, after `connect`, a provider that takes the money. */
async function startSale(
  t: Test,
  env: Record<string, string> = {},
): Promise<{ service: Service; owner: Owner; stripe: StripeServer; connect: () => Promise<void> }> {
  const stripe = await startStripe();
  t.teardown(() => stripe.close());
  const service = await startService(t, { env: { ...stripe.env, ...env } });
  const owner = await service.handle("acme");
  await owner.post("/v2/handles/acme/pages").send(course).expect(201);
  const connect = async (): Promise<void> => {
    const start = "/v2/handles/acme/scheduling/integrations/stripe/oauth";
    const { authorizeUrl } = (await owner.post(`${start}/start`).expect(200)).body;
    const agreed = await fetch(authorizeUrl, { redirect: "manual" });
    await agreed.text();
    const { searchParams } = new URL(agreed.headers.get("location") ?? "");
    const body = { code: searchParams.get("code"), state: searchParams.get("state") };
    await owner.post(`${start}/callback`).send(body).expect(201);
  };
  return { service, owner, stripe, connect };
}

t.test("a failure is a page for a person and a problem document for a program, at every address", async (t) => {
  const service = await startService(t);
  const { visitor } = service;
  for (const path of ["/nowhere", "/p/acme", "/v2/handles/acme/pages", "/v2/public/pages/acme/none/access-check"]) {
    const page = await visitor.get(path).set("Accept", html);
    t.match(page.headers, { "content-type": /^text\/html/, vary: /Accept/ }, path);
    t.match(page.text, /<html lang="en" dir="ltr">.*<h1>.*<a class="button" href="/s, path);
    for (const accept of [undefined, "*/*", "application/json", "application/problem+json, text/html;q=0.5"]) {
      const asked = visitor.get(path);
      const answer = await (accept === undefined ? asked : asked.set("Accept", accept));
      t.match(answer.headers["content-type"], "application/problem+json", `${path} ${accept}`);
      t.equal(answer.status, page.status);
      t.equal(answer.headers["www-authenticate"], page.headers["www-authenticate"]);
    }
  }
  const method = await visitor.get(leads).set("Accept", html).expect(405);
  t.match(method.headers, { "content-type": /html/, allow: /POST/ });
  const program = await visitor.post(leads).set("Accept", html).send({ email: "x" });
  t.match(program.headers["content-type"], "problem+json", "JSON was sent by a program");
});

t.test("a failure speaks the visitor's language, else the handle's, else English", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const titleOf = async (path: string, wishes: string) =>
    /<h1>(.*)<\/h1>/.exec(
      (await service.visitor.get(path).set("Accept", html).set("Accept-Language", wishes)).text,
    )?.[1];
  t.equal(await titleOf("/p/acme/none", "de-AT, en;q=0.5"), "Seite nicht gefunden");
  t.equal(await titleOf("/nowhere", "sv, pt-BR;q=0.4"), "Página não encontrada");
  t.equal(await titleOf("/nowhere", "pt-BR, de"), "Página não encontrada");
  t.equal(await titleOf("/p/acme/none", "sv"), "Page not found");
  await owner.put("/v2/handles/acme/settings").send({ language: "fr-CH" }).expect(200);
  t.equal(await titleOf("/p/acme/none", "sv"), "Page introuvable");
  t.equal(await titleOf("/p/acme/none", ""), "Page introuvable");
  t.equal(await titleOf("/apps/public/scheduling/acme/none", "sv"), "Indisponible");
  t.equal(await titleOf("/apps/public/scheduling/acme/none", "nl"), "Niet beschikbaar");
  const list = await service.visitor.get("/apps/public/scheduling/acme").set("Accept-Language", "es").expect(200);
  t.match(list.text, /<html lang="es".*Reservar una cita con acme/s);
  await owner.put("/v2/handles/acme/settings").send({ displayName: "Räder & Rost" }).expect(200);
  const named = await service.visitor.get("/apps/public/scheduling/acme").set("Accept-Language", "de").expect(200);
  t.match(named.text, "Termin mit Räder &amp; Rost buchen");
});

t.test("while Redis is away people get a page with a retry, on every host", async (t) => {
  const service = await startService(t, { env: { PUBLIC_DOMAIN: "pages.test" }, endsRedis: true });
  await service.redis.stop();
  const get = (path: string, host: string) => service.visitor.get(path).set("Host", host);
  const addresses = [
    ["acme.pages.test", "/welcome?a=1"],
    ["service.test", "/apps/public/scheduling/acme"],
    ["service.test", "/v2/public/pages/acme/welcome/access-check"],
  ] as const;
  for (const [host, path] of addresses) {
    const away = await get(path, host).set("Accept", html).set("Accept-Language", "de");
    t.match(away, { status: 503, headers: { "content-type": /html/, "retry-after": /\d/ } }, path);
    t.match(away.text, "Gleich wieder da", path);
  }
  t.match((await get("/welcome?a=1", "acme.pages.test").set("Accept", html)).text, 'href="/welcome?a=1"');
  const program = await get("/welcome", "acme.pages.test");
  t.match(program, { status: 503, body: { code: "service_unavailable" } });
  await get("/favicon.ico", "acme.pages.test").expect(200);
  await get("/healthz", "service.test").expect(200);
});

t.test("a page's form ends in thanks and a link back; mistakes are named plainly", async (t) => {
  const service = await startService(t, assistant);
  const owner = await service.handle("acme");
  const send = (fields: object, accept = html) =>
    service.visitor
      .post(leads)
      .type(form)
      .set("Accept", accept)
      .set("Accept-Language", "de")
      .set("Host", "service.test")
      .set("Referer", "http://service.test/p/acme/contact?x=1")
      .send(fields);
  const thanks = await send({ email: "ada@example.com", message: "Hi" }).expect(200).expect("content-type", /html/);
  t.match(thanks.text, /<html lang="de".*Vielen Dank.*href="\/p\/acme\/contact\?x=1"/s);
  t.equal((await owner.get("/v2/handles/acme/leads").expect(200)).body.leads.length, 1);
  const wrong = await send({ email: "ada" }).expect(400).expect("content-type", /html/);
  t.match(wrong.text, /Das ist keine E-Mail-Adresse\..*href="\/p\/acme\/contact\?x=1"/s);
  const odd = await send({ email: "ada@example.com", "Ja/Nein": "Ja" }).expect(400);
  t.match(odd.text, "Bitte prüfen Sie: <strong>Ja/Nein</strong>");
  const page = { pageSlug: "contacto", title: "Contacto", language: "es", status: "PUBLISHED" };
  await owner.post("/v2/handles/acme/pages").send(page).expect(201);
  const spanish = "http://service.test/p/acme/contacto";
  const there = await send({ email: "cy@example.com" }).set("Referer", spanish).expect(200);
  t.match(there.text, /<html lang="es".*Gracias.*href="\/p\/acme\/contacto"/s, "in the language of the form's page");
  const slashed = await send({ email: "cy@example.com" }).set("Referer", `${spanish}/`).expect(200);
  t.match(slashed.text, /<html lang="es".*href="\/p\/acme\/contacto\/"/s);
  await send({ email: "dan@example.com" }).set("Referer", "http://service.test/p/acme/%zz").expect(200);
  const far = await send({ email: "bob@example.com" }).set("Referer", "https://evil.example/x").expect(200);
  t.notMatch(far.text, /evil/);
  const elsewhere = send({ email: "bob@example.com", pageSlug: "contacto" }).set("Referer", "https://shop.example/");
  t.match((await elsewhere.expect(200)).text, /<html lang="es".*Gracias/s, "a form elsewhere names its page");
  t.match((await send({ email: "eve@example.com" }, "*/*").expect(202)).body, { lead: { status: "ACCEPTED" } });
  const unknown = await service.visitor.post(leads.replace("acme", "none")).type(form).set("Accept", html).send({});
  t.match(unknown, { status: 404, headers: { "content-type": /html/ } });
});

t.test(
  "a visitor whose address must be confirmed gets the form for the code, once more for a wrong one, in the page's language",
  async (t) => {
    const service = await startService(t, assistant);
    const owner = await service.handle("acme");
    const page = { pageSlug: "contact", title: "Contact", status: "PUBLISHED", verifyLeads: true, language: "de" };
    await owner.post("/v2/handles/acme/pages").send(page).expect(201);
    const post = (path: string, fields: object) =>
      service.visitor.post(path).type(form).set("Accept", html).set("Accept-Language", "fr").send(fields);
    const fields = { email: "ada@example.com", pageSlug: "contact" };
    const asked = await post(leads, fields).set("Referer", `${service.url}/p/acme/contact`).expect(200);
    const [, action = ""] = /action="([^"]+)"/.exec(asked.text.replaceAll("&amp;", "&")) ?? [];
    const [path = ""] = action.split("?");
    t.match(path, /^\/v2\/public\/handles\/acme\/leads\/lead_\w+\/verify$/);
    const wrong = await post(action, { code: "000000" }).expect(400).expect("content-type", /html/);
    t.match(
      wrong.text,
      /<html lang="de".*role="alert".*Dieser Code stimmt nicht\. Er enthält einen Tippfehler oder ist älter.*name="code".*href="\/p\/acme\/contact"/s,
    );
    t.equal(/action="([^"]+)"/.exec(wrong.text.replaceAll("&amp;", "&"))?.[1], action);
    for (const start of ["//", "/%09/", "/%0d%5c"]) {
      const lured = await post(`${path}?language=de&page=${start}far.example/x`, { code: "000000" }).expect(400);
      t.match(lured.text, 'href="/far.example/x"', `the way back stays on this host: ${start}`);
    }
    t.match((await service.visitor.post(path).send({ code: "000000" }).expect(400)).body, {
      code: "invalid_verification_code",
    });
  },
);

t.test("a paid page shows its localised price and a button, only if it can be bought", async (t) => {
  const { service, owner, connect } = await startSale(t);
  const shown = async () => (await service.visitor.get("/p/acme/course").expect(200)).text;
  t.notMatch(await shown(), /<form|<button/, "nobody takes the money");
  await connect();
  t.match(await shown(), /<form class="svc-sale" method="post" action="\/v2\/public\/pages\/acme\/course\/checkout">/);
  t.match(await shown(), /Für <bdi lang="de">19,00\s€<\/bdi> lesen/);
  t.notMatch(await shown(), /secret|<p><\/p>/, "and no gap for a description that is missing");
  await owner
    .put("/v2/handles/acme/pages/course")
    .send({ price: { amountMinor: 1900, currency: "JPY" } })
    .expect(200);
  t.match(await shown(), /1\.900\s¥/, "a currency without decimals");
  await owner.put("/v2/handles/acme/pages/course").send({ language: "ar" }).expect(200);
  t.match(await shown(), /<html lang="ar" dir="rtl">.*checkout">.*<span lang="en" dir="ltr">Read for/s);
  await owner.put("/v2/handles/acme/pages/course").send({ price: null }).expect(200);
  t.notMatch(await shown(), /<form|<button/, "without a price");
});

t.test("the button's form leads to the provider by 303; programs get JSON as before", async (t) => {
  const { service, stripe, connect } = await startSale(t);
  const press = (accept = html) => service.visitor.post(checkout).type(form).set("Accept", accept).send("");
  const early = await press().expect(409).expect("content-type", /html/);
  t.match(early.text, /Not for sale at the moment.*href="\/p\/acme\/course"/s);
  await connect();
  const gone = await press().expect(303);
  t.match(gone.headers.location, `${stripe.url}/pay/cs_`);
  t.match((await press("*/*").expect(200)).body.nextAction, { type: "redirect_to_checkout" });
  t.match((await service.visitor.post(checkout).expect(200)).body.nextAction.url, stripe.url);
  stripe.isDown = true;
  const down = await press().set("Accept-Language", "de").expect(503).expect("content-type", /html/);
  t.match(down.text, /Die Zahlung ist gerade nicht möglich.*href="\/p\/acme\/course"/s);
  t.ok(down.headers["retry-after"]);
  stripe.isDown = false;
  for (let at = 0; at < 30; at++) await service.visitor.post(checkout);
  const many = await press().expect(429).expect("content-type", /html/);
  t.match(many.text, /Too many attempts.*Wait \d+ seconds?, then try again/s);
});

t.test("the code of a checkout opens its own page alone, once", async (t) => {
  const { service, owner, stripe, connect } = await startSale(t);
  await connect();
  await service.visitor.post(checkout).expect(200);
  const [session] = [...stripe.sessions.values()];
  stripe.pay(session?.id ?? "");
  const back = new URL((session?.form.success_url ?? "").replace("{CHECKOUT_SESSION_ID}", session?.id ?? ""));
  const paid = new URL((await service.visitor.get(back.pathname + back.search).expect(303)).headers.location ?? "");
  const other = {
    pageSlug: "other",
    title: "Other",
    accessMode: "PAID",
    content: "<p>hidden</p>",
    status: "PUBLISHED",
  };
  await owner.post("/v2/handles/acme/pages").send(other).expect(201);
  t.notMatch((await service.visitor.get(`/p/acme/other${paid.search}`).expect(200)).text, /hidden|secret/);
  const opened = await service.visitor.get(paid.pathname + paid.search).expect(200);
  t.match(opened.text, "secret", "also after it was entered at another page");
  t.notMatch((await service.visitor.get(paid.pathname + paid.search).expect(200)).text, "secret");
});

t.test("a shared link to a booking page has a preview; a booking and a frame have none", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const logoUrl = "https://acme.example/logo.svg";
  await owner.put("/v2/handles/acme/settings").send({ displayName: "Acme Studio", logoUrl }).expect(200);
  const event = { slug: "intro", title: "Introduction", durationMinutes: 30, description: "A first <talk>." };
  await owner.post("/v2/handles/acme/scheduling/event-types").send(event).expect(201);
  const list = "/apps/public/scheduling/acme";
  const read = async (path: string): Promise<string[]> => {
    const { text } = await service.visitor.get(path).expect(200);
    return text
      .split("\n")
      .filter((line) => /^<meta (?:property="og|name="description)|^<link rel="canonical/.test(line));
  };
  const url = `${service.runtime.env.BASE_URL}${list}/intro`;
  t.same(await read(`${list}/intro?language=de&name=Ada`), [
    '<meta name="description" content="A first &lt;talk&gt;.">',
    '<meta property="og:title" content="Introduction · Acme Studio">',
    '<meta property="og:description" content="A first &lt;talk&gt;.">',
    `<meta property="og:image" content="${logoUrl}">`,
    `<meta property="og:url" content="${url}">`,
    `<link rel="canonical" href="${url}">`,
  ]);
  t.match(await read(list), ['<meta property="og:title" content="Book a time with Acme Studio">']);
  const { slots } = (await service.visitor.get(slotsOfWeek()).expect(200)).body;
  const booking = { slot: slots[0], attendee: { name: "Ada", email: "ada@example.com" } };
  const { body } = await service.visitor.post("/v2/public/scheduling/acme/intro/bookings").send(booking).expect(201);
  for (const query of [`booking=${body.bookingUid}`, "embed=1"])
    t.same(await read(`${list}/intro?${query}`), [], query);
});

t.test("the language chosen on a booking page lasts from page to page", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const event = { slug: "intro", title: "Introduction", durationMinutes: 30 };
  await owner.post("/v2/handles/acme/scheduling/event-types").send(event).expect(201);
  const list = "/apps/public/scheduling/acme";
  const visit = async (path: string): Promise<string> => (await service.visitor.get(path).set("Accept", html)).text;
  t.match(await visit(`${list}?language=de`), `href="${list}/intro?language=de"`);
  t.match(await visit(`${list}/none?language=de`), `href="${list}?language=de"`);
  t.match(await visit(`${list}?language=xx`), `href="${list}/intro"`);
});

/** The free slots of the next seven days. */
function slotsOfWeek(): string {
  const [start, end] = [0, 7].map((days) => new Date(Date.now() + days * 86_400_000).toISOString());
  return `/v2/public/scheduling/acme/intro/slots?start=${start}&end=${end}`;
}

t.test("the front door leads to a sign-in elsewhere, and to none where none is served", async (t) => {
  const elsewhere = await startService(t, { env: { LOGIN_URL: "https://login.example/in" } });
  t.match((await elsewhere.visitor.get("/").expect(200)).text, 'href="https://login.example/in"');
  const without = await startService(t);
  t.notMatch((await without.visitor.get("/").expect(200)).text, "/login");
});

t.test("the service's own host has a front door, and every host an icon and robots.txt", async (t) => {
  const service = await startService(t, { env: { PUBLIC_DOMAIN: "pages.test", LOGIN_BUILTIN: "1" } });
  const owner = await service.handle("acme");
  const get = (path: string, host = "service.test") => service.visitor.get(path).set("Host", host);
  const door = await get("/").set("Accept-Language", "de").expect(200).expect("content-type", /html/);
  t.match(door.text, /<html lang="de".*service\.test.*href="http:\/\/service\.test\/login".*href="\/docs"/s);
  await get("/", "Service.TEST:8080").expect(200);
  await get("/", "unknown.example").expect(404);
  t.match((await get("/robots.txt").expect(200)).text, /Disallow: \/v2\//);
  await get("/sitemap.xml").expect(404);
  for (const [pageSlug, status] of [
    ["hello", "PUBLISHED"],
    ["secret", "DRAFT"],
    ["index", "PUBLISHED"],
  ] as const)
    await owner.post("/v2/handles/acme/pages").send({ pageSlug, title: pageSlug, status }).expect(201);
  await service.runtime.redis.hset(keys.domain("shop.example"), { handle: "acme", account: "acct_acme", owned: "1" });
  for (const host of ["acme.pages.test", "shop.example"]) {
    const robots = await get("/robots.txt", host)
      .expect(200)
      .expect("content-type", /text\/plain/);
    t.match(robots.text, `Sitemap: http://${host}/sitemap.xml`);
    const map = await get("/sitemap.xml", host)
      .expect(200)
      .expect("content-type", /application\/xml/);
    t.same([...map.text.matchAll(/<loc>(.*)<\/loc>/g)].map(([, url]) => url).sort(), [
      `http://${host}/hello`,
      `http://${host}/index`,
    ]);
  }
  t.match((await get("/sitemap.xml", "acme.pages.test:99999").expect(200)).text, "https://acme.pages.test/hello");
  await get("/sitemap.xml", "none.pages.test").expect(404);
  for (const host of ["service.test", "acme.pages.test", "unknown.example"]) {
    const icon = await get("/favicon.ico", host).expect(200);
    t.equal(icon.headers["content-type"], "image/x-icon", host);
  }
  for (const path of ["/", "/login", "/docs", "/none", "/apps/public/scheduling/acme"]) {
    const { headers } = await get(path).set("Accept", "text/html");
    t.match(headers["content-security-policy"], /img-src 'self'/, `${path} may show the icon`);
  }
});

t.test("no cache gets the pages of another host that a request has named", async (t) => {
  const mapOf = async (env: Record<string, string>) => {
    const service = await startService(t, { env: { PUBLIC_DOMAIN: "pages.test", ...env } });
    for (const handle of ["acme", "other"])
      await (await service.handle(handle))
        .post(`/v2/handles/${handle}/pages`)
        .send({ pageSlug: handle, title: handle, status: "PUBLISHED" })
        .expect(201);
    const map = () => service.visitor.get("/sitemap.xml").set("Host", "acme.pages.test").expect(200);
    return [await map(), await map().set("X-Forwarded-Host", "other.pages.test")] as const;
  };
  const [own, named] = await mapOf({ TRUST_PROXY: "1" });
  t.match(own.text, "acme.pages.test/acme");
  t.match(named.text, "other.pages.test/other");
  for (const { headers } of [own, named]) t.match(headers.vary, /\bX-Forwarded-Host\b/);
  for (const { text } of await mapOf({})) t.match(text, "acme.pages.test/acme", "without a proxy the field is ignored");
});

t.test("a page host answers a wrong address with a page that links to its start", async (t) => {
  const service = await startService(t, { env: { PUBLIC_DOMAIN: "pages.test" } });
  await service.handle("acme");
  for (const path of ["/none", "/a/b", "/v2/handles/acme/pages"]) {
    const missing = await service.visitor.get(path).set("Host", "acme.pages.test").expect(404);
    t.match(missing.headers["content-type"], "text/html", path);
    t.match(missing.text, /Page not found.*href="\/"/s, path);
  }
  const press = () =>
    service.visitor
      .post("/v2/public/pages/acme/%2Fevil.example/checkout")
      .set("Host", "acme.pages.test")
      .set("Accept", html)
      .type(form)
      .send("");
  for (let at = 0; at < 25; at++) await press();
  t.match((await press().expect(429)).text, 'href="/%2Fevil.example"', "a link never leaves the host");
});
