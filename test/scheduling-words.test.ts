import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import axe from "axe-core";
import t, { type Test } from "tap";
import { bundleAssets, bundled, openPage, picture, startBrowser, withoutBrowser } from "../fixtures/browser.ts";
import { openStage } from "../fixtures/scheduling/owner.ts";
import { languages } from "../schemas/languages.ts";

const place = "/apps/public/scheduling/acme";
const phone = { timezoneId: "Europe/Berlin", viewport: { width: 320, height: 740 } };

t.test("what the visitor's page says", { skip: withoutBrowser }, run);

t.test("its script, style sheets and the words of one language weigh at most 19 kB", async (t) => {
  const sheets = ["card.css", "scheduling.css"].map((file) =>
    readFileSync(new URL(`../api/browser/${file}`, import.meta.url)),
  );
  const parts = [await bundled("scheduling"), ...sheets].map((part) => gzipSync(part, { level: 9 }).length);
  const fixed = parts.reduce((sum, bytes) => sum + bytes, 0);
  for (const [code, { bookingPage }] of Object.entries(languages)) {
    const words = gzipSync(JSON.stringify(bookingPage), { level: 9 }).length;
    const sum = words + fixed;
    t.ok(sum <= 19_000, `${code}: ${sum} bytes`);
  }
});

async function run(t: Test): Promise<void> {
  await bundleAssets();
  const browser = await startBrowser(t);

  await t.test("it speaks each language of the service, with its dates, and brings one alone", async (t) => {
    const stage = await openStage(t);
    await stage.event({ slug: "intro", title: "Introduction" });
    for (const [code, { bookingPage: words }] of Object.entries(languages)) {
      const page = await openPage(t, browser, `${stage.service.url}${place}/intro`, {
        ...phone,
        // Where the clock has 24 hours.
        locale: code === "en" ? "en-GB" : code,
      });
      const month = new Intl.DateTimeFormat(code, { month: "long", year: "numeric" }).format(new Date("2026-10-15"));
      await page.getByRole("heading", { name: month, exact: true }).waitFor();
      await page.getByRole("button", { name: "11:00", exact: true }).click();
      await page.getByRole("heading", { name: words.details, exact: true }).waitFor();
      for (const label of [words.name, words.email]) t.ok(await page.getByLabel(label, { exact: true }).isVisible());
      await page.getByRole("button", { name: words.confirm, exact: true }).click();
      t.ok(await page.getByText(words.missing).first().isVisible());
      t.equal(await page.locator("html").getAttribute("lang"), code);
      const found = (await page.evaluate(`${axe.source}; axe.run()`)) as { violations: { id: string }[] };
      t.same(found.violations, [], code);
      await picture(page, `scheduling-details-${code}`);
      t.notOk(await page.evaluate("document.documentElement.scrollWidth > innerWidth"), `${code} fits`);
      await page.context().close();
    }
    const page = await openPage(t, browser, `${stage.service.url}${place}/intro?embed=1`, { ...phone, locale: "fr" });
    await page.getByLabel("Langue").selectOption("Deutsch");
    await page.getByRole("heading", { name: "Oktober 2026" }).waitFor();
    t.match(new URL(page.url()).search, "?embed=1&language=de");
    t.equal(await page.getByLabel("Sprache").inputValue(), "de");
    t.equal(await page.locator("html").getAttribute("lang"), "de");
    await page.getByRole("button", { name: "11:00", exact: true }).click();
    await page.getByLabel("Name", { exact: true }).fill("Ada Lovelace");
    await page.getByLabel("E-Mail", { exact: true }).fill("ada@example.com");
    await page.getByRole("button", { name: languages.de!.bookingPage.confirm, exact: true }).click();
    await page.getByRole("heading", { name: languages.de!.bookingPage.booked }).waitFor();
    const { bookings } = (await stage.owner.get("/v2/handles/acme/scheduling/bookings").expect(200)).body;
    t.match(bookings, [{ language: "de" }], "the mails speak the chosen language too");
    const german = await stage.service.visitor.get(`${place}/intro`).set("Accept-Language", "de-CH").expect(200);
    t.match(german.text, languages.de!.bookingPage.confirm);
    t.notMatch(german.text, languages.en!.bookingPage.confirm);
    await stage.owner.put("/v2/handles/acme/settings").send({ language: "pt" }).expect(200);
    const finnish = await stage.service.visitor.get(`${place}/intro`).set("Accept-Language", "fi").expect(200);
    t.match(
      finnish.text,
      languages.pt!.bookingPage.confirm,
      "without words of the visitor's language that of the handle",
    );
  });
}
