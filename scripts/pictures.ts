/**
 * Takes the picture of the README from the demo of a running `npm run dev`: the assistant on a page after a question, next to the booking
 * page. `npm run pictures`; `BASE_URL` names the service.
 */

import process from "node:process";
import { fileURLToPath } from "node:url";
import { type Browser, chromium, type Page } from "playwright-core";
import { launchOptions } from "../fixtures/browser.ts";

const service = process.env.BASE_URL ?? "http://localhost:8080";
const file = fileURLToPath(new URL("../docs/pictures/pages.png", import.meta.url));
const question = "What does a full service cost and how long does it take?";
/** Size in px of one page before it is scaled into the picture. */
const size = { width: 800, height: 1110 };

const browser = await chromium.launch(launchOptions());
try {
  await takeTogether(browser, [await answerShot(browser), await bookingShot(browser)]);
} finally {
  await browser.close();
}
process.stdout.write(`${file}\n`);

async function answerShot(browser: Browser): Promise<Buffer> {
  const page = await openAt(browser, "/p/demo/workshop");
  const box = page.getByRole("textbox").first();
  await box.fill(question);
  await box.press("Enter");
  await page.getByText("Sources", { exact: true }).waitFor();
  await page.locator("#svc-public-page-agent").evaluate((widget) => widget.scrollIntoView({ block: "center" }));
  return page.screenshot({ animations: "disabled", caret: "hide" });
}

async function bookingShot(browser: Browser): Promise<Buffer> {
  const page = await openAt(browser, "/apps/public/scheduling/demo/bike-check");
  await page.locator(".slot").first().waitFor();
  return page.screenshot({ animations: "disabled" });
}

async function openAt(browser: Browser, path: string): Promise<Page> {
  const page = await browser.newPage({ viewport: size, locale: "en-GB", timezoneId: "Europe/Berlin" });
  await page.goto(service + path);
  return page;
}

/** Puts the shots side by side, each half as wide as the picture. */
async function takeTogether(browser: Browser, shots: Buffer[]): Promise<void> {
  const page = await browser.newPage({ viewport: { width: 1240, height: 100 } });
  const images = shots.map((shot) => `<img src="data:image/png;base64,${shot.toString("base64")}">`);
  const style =
    "body{margin:0;padding:20px;display:flex;gap:20px;align-items:start;background:#eef0f4}img{width:590px;border-radius:10px}";
  await page.setContent(`<!doctype html><style>${style}</style>${images.join("")}`);
  await page.screenshot({ path: file, fullPage: true });
}
