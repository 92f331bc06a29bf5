import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import PostalMime from "postal-mime";
import t, { type Test } from "tap";
import {
  bundleAssets,
  fitsEverywhere,
  openPage,
  picture,
  startBrowser,
  violations,
  withoutBrowser,
} from "../fixtures/browser.ts";
import { Inbox } from "../fixtures/inbox.ts";
import { freePort } from "../fixtures/ports.ts";
import { startStripe } from "../fixtures/providers/stripe.ts";
import { eventually, type Service, startService } from "../fixtures/service.ts";

const title = "Rechtsschutzversicherungsberatung für Kraftfahrzeughalterinnen";
const looks: Record<string, BrowserContextOptions> = {
  desktop: { viewport: { width: 1280, height: 800 } },
  phone: { viewport: { width: 390, height: 844 } },
  "phone-dark": { viewport: { width: 390, height: 844 }, colorScheme: "dark" },
};

t.test("the service's pages in a browser", { skip: withoutBrowser }, run);

async function run(t: Test): Promise<void> {
  await bundleAssets();
  const browser = await startBrowser(t);
  const { service, owner, inbox, url } = await startShop(t);
  const open = (path: string, look: BrowserContextOptions = {}): Promise<Page> =>
    openPage(t, browser, `${url}${path}`, { locale: "de-DE", ...looks.desktop, ...look });

  await t.test("a visitor buys a page, is led back to it and reads it; programs alone see JSON", async (t) => {
    const page = await open("/p/acme/course");
    await page.getByRole("button", { name: /^Für 19,00\s€ lesen$/ }).click();
    await page.getByLabel("Email").fill("ada@far.example");
    await page.getByRole("button", { name: /pay/i }).click();
    await page.getByText("the whole course").waitFor();
    t.equal(new URL(page.url()).pathname, "/p/acme/course");
    t.match(await page.getByRole("status").first().textContent(), "Zahlung eingegangen.");
    await assess(t, page, "paid-received");
    await page.goto(`${url}/p/acme/course`);
    t.equal(await page.getByText("Zahlung eingegangen.").count(), 0, "once");
    t.ok(await page.getByText("the whole course").isVisible(), "the browser keeps its access");
  });

  await t.test("a buyer who has lost the browser asks for the link in another one, and reads", async (t) => {
    const elsewhere = await open("/p/acme/course", looks.phone);
    await elsewhere.getByText("Schon gekauft?").click();
    await assess(t, elsewhere, "paid-lost-phone");
    await elsewhere.getByLabel("E-Mail-Adresse, mit der Sie bezahlt haben").fill("Ada@far.example");
    await elsewhere.getByRole("button", { name: "Link zusenden" }).click();
    await elsewhere.getByRole("heading", { name: "Sehen Sie in Ihr Postfach" }).waitFor();
    await assess(t, elsewhere, "paid-mailed-phone");
    const [, mail] = await eventually(() => inbox.mails.length >= 2 && inbox.mails);
    const { html = "" } = await PostalMime.parse(mail!.source);
    const read = await elsewhere.context().newPage();
    await read.setContent(html);
    await picture(read, "paid-mail");
    await read.getByRole("link", { name: "Seite lesen" }).click();
    await read.getByText("the whole course").waitFor();
    t.equal(new URL(read.url()).pathname, "/p/acme/course");
  });

  await t.test("a visitor's form ends in thanks and leads back; a wrong entry is named", async (t) => {
    const page = await open("/p/acme/contact");
    await page.getByLabel("Mail").fill("ada");
    await page.getByRole("button", { name: "Senden" }).click();
    await page.getByText("Das ist keine E-Mail-Adresse.").waitFor();
    await assess(t, page, "lead-wrong");
    await page.getByRole("link", { name: "Zurück" }).click();
    await page.getByRole("heading", { name: "Kontakt" }).waitFor();
    t.equal(await page.getByLabel("Mail").inputValue(), "ada", "what was entered is still there");
    await page.getByLabel("Mail").fill("ada@example.com");
    await page.getByRole("button", { name: "Senden" }).click();
    await page.getByRole("heading", { name: "Vielen Dank" }).waitFor();
    await assess(t, page, "lead-thanks");
    await page.getByRole("link", { name: "Zurück zur Seite" }).click();
    await page.getByLabel("Mail").waitFor();
    t.equal((await owner.get("/v2/handles/acme/leads").expect(200)).body.leads.length, 1);
  });

  await t.test("every page is accessible and fits, on a desktop, on a phone and in dark mode", async (t) => {
    await lookAround(t, browser, service, url);
  });
}

/** A handle with a paid page, a form, an Arabic page and an event, at an address that a browser can open. */
async function startShop(
  t: Test,
): Promise<{ service: Service; owner: Awaited<ReturnType<Service["handle"]>>; inbox: Inbox; url: string }> {
  const inbox = new Inbox();
  const stripe = await startStripe();
  t.teardown(() => stripe.close());
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const local = { BASE_URL: url, LOGIN_BUILTIN: "1", PUBLIC_PAGE_AGENT_ENABLED: "1" };
  const env = { ...stripe.env, ...local, SMTP_URL: await inbox.start(t) };
  const service = await startService(t, { port, env, workers: ["email"] });
  const owner = await service.handle("acme");
  const page = { status: "PUBLISHED", language: "de", description: "Beratung an drei Abenden." };
  const sale = { accessMode: "PAID", price: { amountMinor: 1900, currency: "EUR" }, teaser: "<p>Ein Anfang.</p>" };
  const form = `<main><h1>Kontakt</h1><form method="post" action="/v2/public/handles/acme/leads"><label>Mail <input name="email"></label><button>Senden</button></form></main>`;
  for (const one of [
    { pageSlug: "course", title, content: "<main><h1>Kurs</h1><p>the whole course</p></main>", ...sale },
    { pageSlug: "arabic", title: "دورة في القانون", content: "<p>x</p>", ...sale, language: "ar" },
    { pageSlug: "contact", title: "Kontakt", content: form },
  ])
    await owner
      .post("/v2/handles/acme/pages")
      .send({ ...page, ...one })
      .expect(201);
  const stripeStart = "/v2/handles/acme/scheduling/integrations/stripe/oauth";
  const { authorizeUrl } = (await owner.post(`${stripeStart}/start`).expect(200)).body;
  const agreed = await fetch(authorizeUrl, { redirect: "manual" });
  await agreed.text();
  const { searchParams } = new URL(agreed.headers.get("location") ?? "");
  const body = { code: searchParams.get("code"), state: searchParams.get("state") };
  await owner.post(`${stripeStart}/callback`).send(body).expect(201);
  const event = { slug: "talk", title, durationMinutes: 90, timeZone: "Europe/Berlin" };
  await owner.post("/v2/handles/acme/scheduling/event-types").send(event).expect(201);
  await owner.put("/v2/handles/acme/settings").send({ displayName: "Räder & Rost" }).expect(200);
  return { service, owner, inbox, url };
}

/** Each page in each look. */
async function lookAround(t: Test, browser: Browser, { visitor }: Service, url: string): Promise<void> {
  const start = { deviceProofChallenge: "x".repeat(43), deviceName: "Studio laptop" };
  const { authorizeUrl } = (await visitor.post("/oauth/assistant/desktop/start").send(start).expect(200)).body;
  const pages: [name: string, path: string, locale?: string][] = [
    ["front-door", "/"],
    ["front-door-english", "/", "en-GB"],
    ["paid", "/p/acme/course"],
    ["paid-arabic", "/p/acme/arabic", "ar"],
    ["missing", "/p/acme/none"],
    ["missing-french", "/nowhere", "fr"],
    ["checkout-missing", "/v2/public/pages/acme/none/checkout/return?session=x"],
    ["event-list", "/apps/public/scheduling/acme"],
    ["event-missing", "/apps/public/scheduling/acme/none"],
    ["sign-in-german", "/login"],
    ["pairing-german", new URL(authorizeUrl).pathname + new URL(authorizeUrl).search],
  ];
  for (const [look, options] of Object.entries(looks))
    for (const [name, path, locale = "de-DE"] of pages) {
      const page = await openPage(t, browser, url + path, { ...options, locale });
      await assess(t, page, `${name}-${look}`);
      await page.context().close();
    }
}

/** Keeps a picture; nothing is inaccessible, and nothing is wider than the window. */
async function assess(t: Test, page: Page, name: string): Promise<void> {
  await picture(page, name);
  t.same(await violations(page), [], name);
  t.ok(await fitsEverywhere(page), `${name} fits`);
}
