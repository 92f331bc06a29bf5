import { Buffer } from "node:buffer";
import { gzipSync } from "node:zlib";
import { type Browser, chromium, type Page } from "playwright-core";
import { bundled, launchOptions, withoutBrowser } from "../../fixtures/browser.ts";
import { type Chunk, closing, delta, opening } from "../../fixtures/chat/chunks.ts";
import { content, evidence, exampleFollowUps } from "../../fixtures/chat/examples.ts";
import { startChat } from "../../fixtures/chat/server.ts";
import { ChatVisitor } from "../../fixtures/chat/visitor.ts";
import { type BenchRow, quantile } from "./figures.ts";

const chunks = 2000;
/** Pages to open for a time; the median counts. */
const visits = 9;
/** Answers to stream for a figure; the best one counts, since other work on the machine only slows it down. */
const rounds = 3;
const mount = '<div id="svc-public-page-agent-inline"></div><h2>Below</h2><p>What must not move.</p></main>';

/** Measures the widget: its size, the time until it appears, and its effect on the page while an answer streams. */
export async function bench(): Promise<BenchRow[]> {
  if (withoutBrowser) return [await weight()];
  const browser = await chromium.launch(launchOptions());
  try {
    return [await weight(), ...(await readiness(browser)), ...(await streaming(browser))];
  } finally {
    await browser.close();
  }
}

async function weight(): Promise<BenchRow> {
  const script = Buffer.from(await bundled("public-page-agent"));
  return {
    name: "widget, gzip -9",
    value: gzipSync(script, { level: 9 }).length,
    unit: "bytes",
    bar: "<= 16000",
    baseline: `${script.length} bytes plain`,
  };
}

/** The page's own measurements; installed before anything else runs. */
interface Noted {
  shift: number;
  longest: number;
}

async function readiness(browser: Browser): Promise<BenchRow[]> {
  const ready: number[] = [];
  const opened: number[] = [];
  await withServer({}, async (url) => {
    for (let visit = 0; visit < visits; visit++) {
      const page = await open(browser, url);
      ready.push(await page.evaluate(readyAfterLoad));
      opened.push(await page.evaluate(openPanel));
      await page.context().close();
    }
  });
  return [
    { name: "launcher there after the page has loaded", value: quantile(ready, 0.5), unit: "ms", bar: "<= 100" },
    { name: "panel open after a click", value: quantile(opened, 0.5), unit: "ms" },
  ];
}

function readyAfterLoad(): number {
  const [mark] = performance.getEntriesByName("svc-public-page-agent");
  const [navigation] = performance.getEntriesByType("navigation") as PerformanceNavigationTiming[];
  return Math.max(0, mark!.startTime - navigation!.loadEventEnd);
}

async function openPanel(): Promise<number> {
  const root = document.getElementById("svc-public-page-agent")!.shadowRoot!;
  const started = performance.now();
  root.querySelector("button")!.click();
  await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  return performance.now() - started;
}

async function streaming(browser: Browser): Promise<BenchRow[]> {
  const rows: BenchRow[] = [];
  for (const [name, body, pause] of [
    ["floating, as one burst", content, 0],
    ["floating, 500 chunks a second", content, 2],
    ["in place, 500 chunks a second", content.replace("</main>", mount), 2],
  ] as const) {
    await withServer({ body, script: () => answerOf(pause) }, async (url) => {
      const noted: Noted[] = [];
      for (let round = 0; round < rounds; round++) noted.push(await stream(browser, url));
      const longest = Math.min(...noted.map((one) => one.longest));
      const shift = Math.max(...noted.map((one) => one.shift));
      rows.push({
        name: `longest task while ${chunks} chunks stream in, ${name}`,
        value: longest,
        unit: "ms",
        bar: "<= 50",
      });
      rows.push({ name: `layout shift from load to answer, ${name}`, value: shift, unit: "", bar: "<= 0" });
    });
  }
  return rows;
}

async function* answerOf(pause: number): AsyncGenerator<Chunk> {
  yield* opening({ evidence });
  const words = [
    "A **plan** ",
    "takes two ",
    "weeks and ",
    "costs `480` EUR. ",
    "See [the page](https://example.com/). ",
  ];
  for (let at = 0; at < chunks; at++) {
    const piece = words[at % words.length] as string;
    yield delta(at % 100 === 99 ? `\n\n- ${piece}\n- ${piece}\n\n` : piece);
    if (pause > 0) await new Promise((resolve) => setTimeout(resolve, pause));
  }
  yield* closing({ followUps: exampleFollowUps });
}

async function stream(browser: Browser, url: string): Promise<Noted> {
  const page = await open(browser, url);
  const visitor = new ChatVisitor(page);
  if ((await visitor.launcher.count()) > 0) await visitor.open();
  await page.waitForTimeout(700);
  await page.evaluate(() => {
    (window as unknown as { noted: Noted }).noted.longest = 0;
  });
  await visitor.ask("How long does a plan take?");
  await visitor.page.getByRole("button", { name: exampleFollowUps[0] as string }).waitFor({ timeout: 60_000 });
  await page.waitForTimeout(300);
  const noted = await page.evaluate(() => (window as unknown as { noted: Noted }).noted);
  await page.context().close();
  return noted;
}

async function open(browser: Browser, url: string): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1100, height: 800 } });
  const page = await context.newPage();
  await page.addInitScript(() => {
    const noted = { shift: 0, longest: 0 };
    Object.assign(window, { noted });
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) {
        const { value, hadRecentInput } = entry as PerformanceEntry & { value: number; hadRecentInput: boolean };
        if (!hadRecentInput) noted.shift += value;
      }
    }).observe({ type: "layout-shift", buffered: true });
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) noted.longest = Math.max(noted.longest, duration);
    }).observe({ type: "longtask", buffered: true });
  });
  await page.goto(url, { waitUntil: "load" });
  await page.locator("#svc-public-page-agent").waitFor({ state: "attached" });
  return page;
}

async function withServer(
  options: Parameters<typeof startChat>[1],
  use: (url: string) => Promise<void>,
): Promise<void> {
  const ends: (() => unknown)[] = [];
  const teardown = (end: () => unknown): unknown => ends.push(end);
  const { url } = await startChat({ teardown } as never, options);
  await use(url);
  for (const end of ends) await end();
}
