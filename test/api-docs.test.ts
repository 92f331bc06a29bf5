import t, { type Test } from "tap";
import { bundleAssets, startBrowser, violations, withoutBrowser } from "../fixtures/browser.ts";
import { startService } from "../fixtures/service.ts";

t.test("the API reference in a browser", { skip: withoutBrowser }, run);

async function run(t: Test): Promise<void> {
  await bundleAssets();
  const browser = await startBrowser(t);
  const service = await startService(t);
  const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
  page.setDefaultTimeout(30_000);
  const refused: string[] = [];
  page.on("console", (message) => {
    if (/\bconnect/i.test(message.text())) refused.push(message.text());
  });

  await t.test("it groups the operations, with fields and a request to copy", async (t) => {
    await page.goto(`${service.url}/docs`);
    // The renderer has taken the place of the link.
    await page
      .getByText(/^Search/)
      .first()
      .waitFor();
    await page.getByText("Leads", { exact: true }).first().click();
    await page.getByText("Submit a lead").first().click();
    await page.getByText("curl -X POST").first().waitFor();
    await page.getByText("The visitor's name.").first().waitFor();
    t.ok((await page.getByRole("button", { name: /copy/i }).count()) > 0);
  });

  for (const colorScheme of ["light", "dark"] as const)
    await t.test(`axe-core finds nothing when it is ${colorScheme}`, async (t) => {
      await page.emulateMedia({ colorScheme });
      await page.reload();
      await page.locator(".menu-content[role=navigation]").waitFor();
      // For a single operation the renderer skips levels of headings, and names a menu by another word than it shows.
      const known = /^(heading-order|page-has-heading-one|label-content-name-mismatch):/;
      t.same(
        (await violations(page)).filter((found) => !known.test(found)),
        [],
      );
    });

  await t.test("it finds an operation by its words", async () => {
    await page
      .getByText(/^Search/)
      .first()
      .click();
    await page.keyboard.type("suppression");
    await page
      .getByText(/Remove a suppression/)
      .first()
      .waitFor();
  });

  await t.test("it calls no other host", async (t) => t.same(refused, []));
}
