import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import t, { type Test } from "tap";
import { layOut, type MailLayout } from "../core/engines/mail/mail.ts";
import { bundleAssets, openPage, picture, startBrowser, violations, withoutBrowser } from "../fixtures/browser.ts";
import { openStage, type Stage } from "../fixtures/scheduling/owner.ts";
import { eventually } from "../fixtures/service.ts";

const place = "/apps/public/scheduling/acme";
const berlin: BrowserContextOptions = { locale: "en-GB", timezoneId: "Europe/Berlin" };
const german: BrowserContextOptions = {
  locale: "de-DE",
  timezoneId: "Europe/Berlin",
  viewport: { width: 320, height: 640 },
};
const longTitle = "Rechtsschutzversicherungsberatung für Donaudampfschifffahrtsgesellschaftskapitäne";
const arabicTitle = "محادثة تعارف";
const logo = "https://acme.example/logo.svg";

t.test("how a booking looks", { skip: withoutBrowser }, run);

async function run(t: Test): Promise<void> {
  await bundleAssets();
  const browser = await startBrowser(t);

  await t.test("any title fits: on a phone, on a desktop, at 200 % and in the list", async (t) => {
    const event = { title: longTitle, description: "x".repeat(300) };
    const { stage, page } = await visit(t, browser, { event, context: german });
    const { url } = stage.service;
    for (const [width, scale] of [
      [320, 1],
      [390, 1],
      [550, 2],
      [1280, 1],
    ] as const) {
      const context = { ...german, viewport: { width, height: 700 }, deviceScaleFactor: scale };
      for (const address of [`${place}/intro`, place]) {
        const other = await openPage(t, browser, url + address, context);
        await other.getByText("Rechtsschutzversicherungsberatung").first().waitFor();
        if (address !== place) await other.getByRole("button", { name: "11:00", exact: true }).waitFor();
        t.ok(await fits(other), `${address} at ${width}`);
        const over = await other.evaluate(() => {
          const [info, stage] = [...document.querySelectorAll(".info > *, .stage")].map((one) =>
            one.getBoundingClientRect(),
          );
          const card = document.querySelector(".card")!.getBoundingClientRect();
          return [info, stage].some((box) => box && box.right > card.right + 1);
        });
        t.notOk(over, "and in its card");
        await picture(other, `scheduling-long-${address === place ? "list" : "event"}-${width}`);
        await other.context().close();
      }
    }
    t.same(await violations(page), []);
  });

  await t.test("on a phone no address in a mail is broken by the name beside it", async (t) => {
    const page = await browser.newPage({ viewport: { width: 320, height: 640 } });
    t.teardown(() => page.close());
    const address = "ada.lovelace@example.com";
    const facts: MailLayout["facts"] = [
      ["When", "Monday"],
      ["Who", address],
    ];
    await page.setContent(layOut({ language: "en", subject: "New", sender: "Acme", title: "New", facts }).html);
    const lines = await page.getByText(address).evaluate((cell) => {
      const range = document.createRange();
      range.selectNodeContents(cell);
      return range.getClientRects().length;
    });
    t.equal(lines, 1);
    t.ok(await fits(page));
    await picture(page, "mail-phone");
  });

  await t.test("the page and the list show the host's name and logo", async (t) => {
    const { stage, page } = await visit(t, browser);
    await stage.owner.put("/v2/handles/acme/settings").send({ displayName: "Acme Studio", logoUrl: logo }).expect(200);
    await page.route(logo, (route) =>
      route.fulfill({
        contentType: "image/svg+xml",
        body: '<svg xmlns="http://www.w3.org/2000/svg" width="90" height="30"><rect width="90" height="30" fill="#0a6"/></svg>',
      }),
    );
    for (const [address, name] of [
      [`${place}/intro`, "Acme Studio"],
      [place, "Book a time with Acme Studio"],
    ]) {
      await page.goto(stage.service.url + address);
      await page.getByText(name!, { exact: true }).waitFor();
      await eventually(() =>
        page.locator("img.logo").evaluate((image) => (image as HTMLImageElement).naturalWidth === 90),
      );
      t.same(await violations(page), []);
      await picture(page, `scheduling-host-${address === place ? "list" : "page"}`);
    }
  });

  await t.test("the choice of language comes after the times, for the eye and for the keyboard", async (t) => {
    const { page } = await visit(t, browser, { event: { title: arabicTitle } });
    for (const [width, height] of [
      [320, 640],
      [480, 800],
      [1280, 800],
    ] as const) {
      await page.setViewportSize({ width, height });
      const times = await page.locator(".times").boundingBox();
      const choice = await page.getByLabel("Language").boundingBox();
      t.ok(times && choice && choice.y >= times.y + times.height, `below the times at ${width}`);
    }
    const last = await page.evaluate(() => [...document.querySelectorAll("a, button, input, select")].at(-1)?.tagName);
    t.equal(last, "SELECT");
    const edges = await page.evaluate(() =>
      [".handle span", "h1"].map((selector) => {
        const range = document.createRange();
        range.selectNodeContents(document.querySelector(`.info ${selector}`)!);
        return Math.round(range.getBoundingClientRect().left);
      }),
    );
    t.ok(
      Math.abs(edges[0]! - edges[1]!) <= 2,
      `a title in another script begins where the host's name begins: ${edges}`,
    );
    t.same(await violations(page), []);
    await picture(page, "scheduling-arabic-title");
    await page.getByRole("button", { name: "11:00", exact: true }).click();
    await page.getByRole("heading", { name: "Your details" }).waitFor();
    t.equal(await page.getByLabel("Language").count(), 0, "none where entries would be lost");
  });

  await t.test("the list of a handle says length, price and approval, as the page of each event does", async (t) => {
    const { stage, page } = await visit(t, browser);
    Object.assign(stage.service.runtime, { payments: { accountStatus: async () => "OK" } });
    const payment = { enabled: true, amountMinor: 4900, currency: "EUR" };
    await stage.event({ slug: "paid", title: "Paid", durationMinutes: 90, payment, confirmationRequired: true });
    await page.goto(stage.service.url + place);
    const item = page.getByRole("link", { name: /Paid/ });
    t.match(await item.textContent(), /90 minutes · €49\.00 · needs confirmation/);
    t.match(await page.getByRole("link", { name: /Introduction/ }).textContent(), /30 minutes$/);
    t.same(await violations(page), []);
    await picture(page, "scheduling-terms");
    await item.click();
    await page.getByText("90 minutes").waitFor();
    t.ok(await page.getByText("€49.00, paid in the next step").isVisible());
    t.ok(await page.getByText("Needs the host’s confirmation").isVisible());
  });

  await t.test("addresses in a description are links, and nothing else in it is", async (t) => {
    const description =
      "Read https://acme.example/a_(b) first (or https://acme.example/c). Not javascript:alert(1) nor <b>bold</b>.";
    const { page } = await visit(t, browser, { event: { description } });
    const links = page.locator(".description a");
    t.same(await links.evaluateAll((all) => all.map((one) => (one as HTMLAnchorElement).href)), [
      "https://acme.example/a_(b)",
      "https://acme.example/c",
    ]);
    t.match(await links.first().getAttribute("rel"), "noopener");
    t.equal(await page.locator(".description").textContent(), description);
  });

  await t.test("the address fills the form, and the document is named by its step", async (t) => {
    const { stage, page } = await visit(t, browser);
    await page.goto(`${stage.service.url}${place}/intro?name=Ada%20Lovelace&email=ada%40example.com`);
    await page.getByRole("button", { name: "11:00", exact: true }).click();
    t.equal(await page.getByLabel("Name").inputValue(), "Ada Lovelace");
    t.equal(await page.getByLabel("Email", { exact: true }).inputValue(), "ada@example.com");
    t.equal(await page.title(), "Your details · Introduction · acme");
    await page.getByRole("button", { name: "Confirm booking" }).click();
    await page.getByRole("heading", { name: "You are booked" }).waitFor();
    t.equal(await page.title(), "You are booked · Introduction · acme");
    t.ok(await page.getByText("30 min").isVisible());
  });

  await t.test("the old time is shown next to the new one while a booking is moved", async (t) => {
    const { stage, page } = await visit(t, browser);
    const { body } = await stage.book("intro", "2026-10-05T09:00:00Z", 30).expect(201);
    await page.goto(`${stage.service.url}${place}/intro?booking=${body.bookingUid}`);
    await page.getByRole("button", { name: "Reschedule" }).click();
    await page.getByRole("heading", { name: "Choose a new time" }).waitFor();
    t.match(await page.locator(".info .former").textContent(), /Before.*5 October 2026.*11:00/);
    t.same(await violations(page), []);
    await picture(page, "scheduling-former");
  });

  await t.test("a booking is put into the usual calendars", async (t) => {
    const { stage, page } = await visit(t, browser);
    const { body } = await stage.book("intro", "2026-10-05T09:00:00Z", 30).expect(201);
    await page.goto(`${stage.service.url}${place}/intro?booking=${body.bookingUid}`);
    const address = async (name: string): Promise<URL> =>
      new URL((await page.getByRole("link", { name }).getAttribute("href")) ?? "");
    const google = await address("Google");
    t.equal(google.searchParams.get("dates"), "20261005T090000Z/20261005T093000Z");
    t.equal(google.searchParams.get("text"), "Introduction · acme");
    t.match(google.searchParams.get("details"), `booking=${body.bookingUid}`);
    for (const name of ["Outlook", "Microsoft 365"]) {
      const outlook = await address(name);
      t.match(outlook.hostname, /^outlook\.(live|office)\.com$/);
      t.equal(outlook.searchParams.get("startdt"), "2026-10-05T09:00:00.000Z");
      t.equal(outlook.searchParams.get("enddt"), "2026-10-05T09:30:00.000Z");
    }
    t.same(await violations(page), []);
    await picture(page, "scheduling-calendars");
    await page.setViewportSize({ width: 320, height: 640 });
    t.ok(await fits(page));
    await picture(page, "scheduling-calendars-phone");
    await page.getByLabel("Language").selectOption("Deutsch");
    await page.getByRole("button", { name: "Termin absagen", exact: true }).waitFor();
    t.equal(new URL(page.url()).searchParams.get("booking"), body.bookingUid, "the same booking in another language");
  });

  await t.test("a month with more free times than fit in one answer is shown in full", async (t) => {
    const always = [0, 1, 2, 3, 4, 5, 6].map((day) => ({ day, startTime: "00:00", endTime: "23:59" }));
    const stage = await openStage(t);
    await stage.owner
      .post("/v2/handles/acme/scheduling/schedules")
      .send({ scheduleId: "main", timeZone: "UTC", weeklyAvailability: always })
      .expect(200);
    await stage.event({ slug: "intro", title: "Introduction", durationMinutes: 5, slotIntervalMinutes: 5 });
    const page = await openPage(t, browser, `${stage.service.url}${place}/intro`, { ...berlin, timezoneId: "UTC" });
    await page.getByRole("button", { name: /\b31 October 2026.*288 free times/ }).waitFor();
    await page.getByRole("button", { name: /\b6 October 2026.*288 free times/ }).waitFor();
  });

  await t.test(
    "an embedded page appears in elements that are added later, applies its attributes, and is named after its event",
    async (t) => {
      const { stage, page } = await visit(t, browser);
      const { url } = stage.service;
      await around(t, page, url, '<main id="app" style="background:#fde"></main>');
      const frames = page.locator("iframe");
      t.equal(await frames.count(), 0);
      await page.evaluate(() => {
        const late = document.createElement("div");
        late.append("Loading …");
        Object.assign(late.dataset, {
          svcScheduling: "acme/intro",
          theme: "dark",
          accent: "#0a7d4f",
          name: "Ada",
          email: "ada@example.com",
        });
        document.getElementById("app")!.append(late);
      });
      const frame = page.frameLocator("iframe");
      await frame.getByRole("button", { name: "11:00", exact: true }).waitFor();
      await eventually(async () => (await frames.getAttribute("title")) === "Introduction");
      t.equal(await frames.evaluate((one) => getComputedStyle(one).colorScheme), "dark");
      const seen = await frame.locator("html").evaluate((root) => {
        const chosen = document.querySelector('[aria-selected="true"] button')!;
        return [
          getComputedStyle(root).colorScheme,
          getComputedStyle(root).backgroundColor,
          getComputedStyle(document.body).backgroundColor,
          getComputedStyle(chosen).backgroundColor,
          getComputedStyle(chosen).color,
        ];
      });
      t.same(seen, ["dark", "rgba(0, 0, 0, 0)", "rgba(0, 0, 0, 0)", "rgb(10, 125, 79)", "rgb(255, 255, 255)"]);
      await picture(page, "scheduling-embed-dark");
      const inner = page.frames().find((one) => one.url().includes("embed=1"))!;
      t.same(await violations(inner), []);
      await frame.getByRole("button", { name: "11:00", exact: true }).click();
      t.equal(await frame.getByLabel("Email", { exact: true }).inputValue(), "ada@example.com");
      await page.evaluate(() => {
        document.querySelector<HTMLElement>("[data-svc-scheduling]")!.dataset.svcScheduling = "acme/nothing";
      });
      await frame.getByRole("heading").waitFor();
    },
  );

  await t.test("a light page gets a light frame on a dark system", async (t) => {
    const { stage, page } = await visit(t, browser, { context: { ...berlin, colorScheme: "dark" } });
    await around(t, page, stage.service.url, '<div data-svc-scheduling="acme/intro"></div>');
    const frame = page.frameLocator("iframe");
    await frame.getByRole("button", { name: "11:00", exact: true }).waitFor();
    t.equal(
      await frame.locator(".card").evaluate((card) => getComputedStyle(card).backgroundColor),
      "rgb(255, 255, 255)",
    );
    await picture(page, "scheduling-embed-light");
  });

  await t.test(
    "an element that names a handle alone shows its event types, and each of them in the same frame",
    async (t) => {
      const { stage, page } = await visit(t, browser);
      const attributes = 'data-svc-scheduling="acme" data-theme="dark" data-email="ada@example.com"';
      await around(t, page, stage.service.url, `<div ${attributes}></div>`);
      const frame = page.frameLocator("iframe");
      const height = () => page.locator("iframe").evaluate((one) => one.clientHeight);
      await eventually(async () => (await height()) < 500);
      t.equal(await frame.locator("html").evaluate((root) => getComputedStyle(root).colorScheme), "dark");
      await frame.getByRole("link", { name: "Introduction" }).click();
      await frame.getByRole("button", { name: "11:00", exact: true }).click();
      t.equal(await frame.getByLabel("Email", { exact: true }).inputValue(), "ada@example.com");
      t.equal(await frame.locator("html").evaluate((root) => getComputedStyle(root).colorScheme), "dark");
      await eventually(async () => (await page.locator("iframe").getAttribute("title")) === "Introduction");
    },
  );

  await t.test("a frame says when its event does not exist, and is no taller than that", async (t) => {
    const { stage, page } = await visit(t, browser);
    await around(t, page, stage.service.url, '<div data-svc-scheduling="acme/nothing"></div>');
    await page.frameLocator("iframe").getByRole("heading").waitFor();
    const height = await eventually(() =>
      page.locator("iframe").evaluate((one) => one.clientHeight < 500 && one.clientHeight),
    );
    t.ok(height >= 120);
    t.ok(await page.locator("iframe").getAttribute("title"));
    await picture(page, "scheduling-embed-missing");
  });
}

/** The page of the event type `intro`, with more fields where asked. */
async function visit(
  t: Test,
  browser: Browser,
  more: { event?: Record<string, unknown>; context?: BrowserContextOptions } = {},
): Promise<{ stage: Stage; page: Page }> {
  const stage = await openStage(t);
  await stage.event({ slug: "intro", title: "Introduction", ...more.event });
  const page = await openPage(t, browser, `${stage.service.url}${place}/intro`, more.context ?? berlin);
  page.setDefaultTimeout(15_000);
  await page.getByRole("button", { name: "11:00", exact: true }).waitFor();
  return { stage, page };
}

/** Another site's page with the embed's script. */
async function around(t: Test, page: Page, service: string, body: string): Promise<void> {
  const script = `<script async src="${service}/assets/scheduling-embed.js"></script>`;
  const host = createServer((_, answer) =>
    answer
      .setHeader("content-type", "text/html; charset=utf-8")
      .end(`<!doctype html><title>Host</title>${script}${body}`),
  ).listen(0, "127.0.0.1");
  t.teardown(() => host.close());
  await once(host, "listening");
  await page.goto(`http://127.0.0.1:${(host.address() as AddressInfo).port}/`);
}

function fits(page: Page): Promise<boolean> {
  return page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);
}
