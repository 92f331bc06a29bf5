import { gzipSync } from "node:zlib";
import type { BrowserContextOptions, Page } from "playwright-core";
import t, { type Test } from "tap";
import { bundled, openPage, picture, startBrowser, violations, withoutBrowser } from "../fixtures/browser.ts";
import { answer, type Chunk, closing, delta, opening } from "../fixtures/chat/chunks.ts";
import { content, evidence, exampleFollowUps, exampleText, section } from "../fixtures/chat/examples.ts";
import { type ChatOptions, type ChatServer, startChat } from "../fixtures/chat/server.ts";
import { ChatVisitor } from "../fixtures/chat/visitor.ts";
import { eventually } from "../fixtures/service.ts";
import { languages } from "../schemas/languages.ts";

/** Most bytes of the widget with its words, as the service compresses it. */
const MAX_BYTES = 16_000;

t.test("what the widget says", { skip: withoutBrowser }, run);

t.test("the widget with one language weighs at most 16 kB", async (t) => {
  const script = gzipSync(await bundled("public-page-agent"), { level: 6 }).length;
  t.ok(script <= MAX_BYTES, `${script} bytes`);
  for (const [code, { widget }] of Object.entries(languages))
    t.ok(gzipSync(JSON.stringify(widget)).length <= 1800, `the words of ${code}, which a page brings`);
});

async function run(t: Test): Promise<void> {
  const browser = await startBrowser(t);

  async function visit(
    t: Test,
    options: ChatOptions,
    more: BrowserContextOptions = {},
  ): Promise<{ visitor: ChatVisitor; server: ChatServer }> {
    const server = await startChat(t, options);
    return {
      visitor: new ChatVisitor(await openPage(t, browser, server.url, { reducedMotion: "reduce", ...more })),
      server,
    };
  }

  await t.test("it speaks the page's language", async (t) => {
    for (const [code, { widget }] of Object.entries(languages)) {
      const { visitor } = await visit(t, { language: `${code}-XX`, script: () => answer("Ja.", { evidence }) });
      const { page } = visitor;
      await page.getByRole("button", { name: widget.launcher, exact: true }).click();
      await page.getByRole("heading", { name: widget.title }).waitFor();
      t.ok(await page.getByText(widget.intro).isVisible(), code);
      await page.getByRole("textbox", { name: widget.placeholder }).fill("Wie lange?");
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: widget.sources }).waitFor();
      t.equal(await page.locator("#svc-public-page-agent").getAttribute("lang"), code);
      await page.context().close();
    }
  });

  await t.test(
    "where the service has no words of a language it says its own in English, and says that they are",
    async (t) => {
      const arabic = await visit(t, { language: "ar", direction: "rtl", script: () => answer("نعم.", { evidence }) });
      await arabic.visitor.open();
      await arabic.visitor.ask("كم؟");
      await arabic.visitor.answered();
      const host = arabic.visitor.page.locator("#svc-public-page-agent");
      t.equal(await host.getAttribute("lang"), "en");
      t.equal(await arabic.visitor.panel.evaluate((panel) => getComputedStyle(panel).direction), "rtl");
      t.same(await violations(arabic.visitor.page, ["iframe"]), []);
      await picture(arabic.visitor.page, "widget-arabic");
      const old = await visit(t, { language: "de", withoutWords: true });
      await old.visitor.open();
      t.equal(
        await old.visitor.page.locator("#svc-public-page-agent").getAttribute("lang"),
        "en",
        "a page of an older process",
      );
    },
  );

  await t.test("it looks for an answer until there is text", async (t) => {
    let goOn = (): void => undefined;
    const thought = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    async function* script(): AsyncGenerator<Chunk> {
      yield* opening();
      await thought;
      yield delta("Two weeks.");
      yield* closing();
    }
    const { visitor } = await visit(t, { script });
    await visitor.open();
    await visitor.ask("How long?");
    const state = visitor.answer.getByText("Looking for an answer");
    await eventually(async () => (await visitor.answer.locator(".state").getAttribute("class")) === "state waiting");
    // The stream has begun by now, but can't be read.
    await visitor.page.waitForTimeout(300);
    t.ok(await state.isVisible());
    goOn();
    await visitor.answer.getByText("Two weeks.").waitFor();
    await visitor.answered();
    t.notOk(await state.isVisible());
  });

  await t.test("a question asked offline is sent when the connection is back", async (t) => {
    const { visitor, server } = await visit(t, { script: () => answer("Two weeks.") });
    await visitor.open();
    await visitor.page.context().setOffline(true);
    await visitor.page.getByText("Your question will be sent when the connection is back.").waitFor();
    await visitor.ask("How long?");
    await visitor.answer.getByText("Waiting for the connection").waitFor();
    t.same(await violations(visitor.page, ["iframe"]), []);
    await picture(visitor.page, "widget-queued");
    t.equal(server.received.length, 0);
    await visitor.page.context().setOffline(false);
    await visitor.answer.getByText("Two weeks.").waitFor();
    await visitor.answered();
    t.equal(server.of("POST", "/agentic-chat").length, 1);
    await visitor.page.context().setOffline(true);
    await visitor.ask("Since when?");
    await visitor.stop.click();
    await visitor.answer.getByText("Stopped.").waitFor();
    await visitor.page.context().setOffline(false);
    await visitor.page.waitForTimeout(200);
    t.equal(server.of("POST", "/agentic-chat").length, 1, "what was stopped is not sent");
  });

  await t.test("a failure names its cause", async (t) => {
    const said: [{ status: number; code?: string }, string][] = [
      [{ status: 400, code: "question_too_long" }, "Questions have at most 500 characters."],
      [{ status: 400, code: "invalid_request" }, "This question could not be read."],
      [{ status: 413, code: "payload_too_large" }, "This question could not be read."],
      [{ status: 404, code: "page_not_found" }, "The assistant is not available on this page right now."],
      [{ status: 429, code: "rate_limited" }, "Many people are asking right now."],
      [{ status: 503, code: "service_unavailable" }, "The assistant could not be reached."],
      [{ status: 500, code: "internal_error" }, "Something went wrong."],
    ];
    const scripts = said.map(([refusal]) => refusal);
    const { visitor } = await visit(t, { script: () => scripts.shift()! });
    await visitor.open();
    await visitor.ask("How long?");
    for (const [{ code }, sentence] of said) {
      await visitor.answer.getByText(sentence).waitFor();
      t.pass(code ?? "");
      await visitor.retry.click();
    }
  });

  await t.test(
    "a second answer that is over before it was drawn takes the place of the first, with its offers",
    async (t) => {
      const scripts = [() => ({ status: 503 }), () => answer("Two weeks.", { followUps: exampleFollowUps })];
      const { visitor } = await visit(t, { script: () => scripts.shift()!() });
      await visitor.open();
      await visitor.ask("How long?");
      await visitor.retry.waitFor();
      // A browser under load draws no frame while the whole answer comes.
      await visitor.page.evaluate(() => {
        const frame = window.requestAnimationFrame.bind(window);
        window.requestAnimationFrame = (draw) => frame(() => setTimeout(() => draw(performance.now()), 500));
      });
      await visitor.retry.click();
      await visitor.answer.getByText("Two weeks.").waitFor();
      t.equal(await visitor.retry.count(), 0, "what has succeeded is not tried again");
      t.ok(await visitor.page.getByRole("button", { name: exampleFollowUps[0]! }).isVisible());
    },
  );

  await t.test("a list of numbers stays one after a list of points, and is announced item by item", async (t) => {
    const lists =
      "We need:\n\n- a sketch\n- a photo\n\n1. Send the sketch. It may be rough.\n2. Measure.\n   - walls\n   - windows\n\nDone.";
    const { visitor } = await visit(t, { script: () => answer(lists) });
    const spoken: string[] = [];
    await visitor.page.exposeFunction("spoken", (words: string) => spoken.push(words));
    await visitor.open();
    await visitor.page.evaluate(() => {
      const region = document.getElementById("svc-public-page-agent")!.shadowRoot!.querySelector("[aria-live=polite]")!;
      new MutationObserver((changes) => {
        for (const { addedNodes } of changes)
          for (const node of addedNodes)
            (window as unknown as { spoken(words: string): void }).spoken(node.textContent ?? "");
      }).observe(region, { childList: true });
    });
    await visitor.ask("What do you need?");
    await visitor.answered();
    t.same(await visitor.answer.locator(".text > *").evaluateAll((blocks) => blocks.map(({ tagName }) => tagName)), [
      "P",
      "UL",
      "OL",
      "P",
    ]);
    t.equal(await visitor.answer.locator(".text > ol > li").count(), 2);
    t.equal(await visitor.answer.locator(".text > ol > li > ul > li").count(), 2);
    t.notOk(
      spoken.some((words) => /(^|\s)\d\.$/.test(words)),
      spoken.join(" | "),
    );
    t.ok(spoken.some((words) => words.includes("1. Send the sketch.")));
  });

  await t.test("emphasis is read by whole runs of marks, next to other marks too", async (t) => {
    const text = "___Both___, ***both***, *one*_two_ **three**__four__ 2*3*4 five_six_seven and *_eight_.";
    const { visitor } = await visit(t, { script: () => answer(text) });
    await visitor.open();
    await visitor.ask("What is it?");
    await visitor.answered();
    const texts = (tag: string) => visitor.answer.locator(`.text ${tag}`).allTextContents();
    t.same(await texts("strong"), ["Both", "both", "three", "four"]);
    t.same(await texts("em"), ["Both", "both", "one", "two", "3", "eight"]);
    t.equal(await visitor.text(), "Both, both, onetwo threefour 234 five_six_seven and *eight.");
  });

  await t.test("sources are named once, and a card of this page leads to the passage", async (t) => {
    const own = { ...evidence[0]!, sourceUrl: "https://example.com/kitchens" };
    const long = content.replace("<h2>What", `${"<p>Between the lines.</p>".repeat(80)}<h2>What`);
    const fitting = {
      ...own,
      snippet: "Planning, delivery, fitting and five years of guarantee. Old kitchens are taken away …",
    };
    const { visitor } = await visit(
      t,
      {
        body: long,
        head: '<link rel="canonical" href="https://example.com/kitchens">',
        script: () =>
          answer(
            "Five years of guarantee.\n\nSources: [Northwind Studio](https://example.com/kitchens), Questions about measuring",
            {
              evidence: [fitting, evidence[1]!],
            },
          ),
      },
      { viewport: { width: 390, height: 740 } },
    );
    await visitor.open();
    await visitor.ask("What about guarantee?");
    await visitor.answered();
    t.equal(await visitor.text(), "Five years of guarantee.");
    const card = visitor.answer.getByRole("link", { name: /Northwind Studio/ });
    t.equal(await card.getAttribute("target"), null);
    t.match(await card.textContent(), "On this page");
    await card.click();
    const passage = visitor.page.locator("main").getByText("Planning, delivery, fitting");
    await eventually(() => passage.evaluate((one) => one === document.activeElement));
    const { top, height } = await passage.evaluate((one) => one.getBoundingClientRect());
    t.ok(top > 0 && top + height < 740, "the passage is in sight");
    t.ok(await visitor.launcher.isVisible(), "the panel that covered the page is gone");
    t.equal(visitor.page.context().pages().length, 1);
  });

  await t.test("the kind of a source never breaks its title inside a word", async (t) => {
    const own = { ...evidence[0]!, title: "Fahrradwerkstatt am alten Hafen" };
    const { visitor } = await visit(
      t,
      {
        language: "de",
        head: `<link rel="canonical" href="${own.sourceUrl}">`,
        script: () => answer("Zwei Tage.", { evidence: [own] }),
      },
      { viewport: { width: 360, height: 740 } },
    );
    await visitor.page.getByRole("button", { name: "Fragen", exact: true }).click();
    await visitor.page.getByRole("textbox").fill("Wie lange?");
    await visitor.page.keyboard.press("Enter");
    const name = visitor.panel.locator(".source-title");
    await name.waitFor();
    const rows = await name.evaluate((node) => {
      const word = document.createRange();
      word.setStart(node.firstChild!, 0);
      word.setEnd(node.firstChild!, "Fahrradwerkstatt".length);
      return word.getClientRects().length;
    });
    t.equal(rows, 1);
    await picture(visitor.page, "widget-source-phone");
  });

  await t.test("a text that only looks like a list of sources stays", async (t) => {
    const { visitor } = await visit(t, { script: () => answer("Hello.\n\nSources: call us", { evidence }) });
    await visitor.open();
    await visitor.ask("Who are you?");
    await visitor.answered();
    t.match(await visitor.text(), "Sources: call us");
  });

  await t.test("the open lead card begins with its form, says nothing twice, and keeps only the thanks", async (t) => {
    const { dynamicView } = section;
    const repeating = {
      ...section,
      leadContext: { ...section.leadContext, visitorQuestion: "What would a plan cost?" },
      dynamicView: {
        ...dynamicView,
        fitSignals: ["You asked: What would a plan cost?", "Four short questions", "You live in a city flat"],
        questionChips: [exampleFollowUps[0]!, "What does the guarantee cover?"],
      },
    };
    const { visitor } = await visit(t, {
      script: () => answer(exampleText, { section: repeating, followUps: exampleFollowUps }),
    });
    await visitor.open();
    await visitor.ask("What would a plan cost?");
    await visitor.answered();
    await visitor.page.getByRole("button", { name: section.collapsedTitle }).click();
    const card = visitor.page.locator(".lead");
    const frame = await eventually(() => visitor.page.frames().find((one) => one.url().includes("/lead-sections/")));
    await frame.getByLabel("Email").fill("visitor@example.com");
    await picture(visitor.page, "widget-lead");
    const order = await card.evaluate((one) =>
      [...one.querySelectorAll("iframe, h3, .momentum")].map(({ tagName }) => tagName),
    );
    t.same(order, ["IFRAME", "H3", "OL"]);
    t.same(await card.locator(".fit li").allTextContents(), ["You live in a city flat"]);
    t.equal(await visitor.page.getByRole("button", { name: exampleFollowUps[0]! }).count(), 1);
    t.equal(
      await card.evaluate((one) => getComputedStyle(one).borderInlineStartColor),
      await visitor.page.locator("button.send").evaluate((one) => getComputedStyle(one).backgroundColor),
      "there is one accent",
    );
    await frame.getByRole("button", { name: "Ask for a plan" }).click();
    await card.getByText("Thank you.").waitFor();
    t.equal(await card.locator(".lead-way").count(), 0);
    t.equal(await card.getByText(section.contextDisclosure).count(), 0, "nothing more is sent");
    t.same(await violations(visitor.page, ["iframe"]), []);
    await picture(visitor.page, "widget-lead-sent");
  });

  await t.test("a second mount leaves no gap, in any position", async (t) => {
    const mount = "<div data-svc-public-page-agent-inline>Loading</div>";
    const bodies = [
      `${mount}<p>Between</p>${mount}<p>End</p>`,
      `<section>${mount}</section><div><div>${mount}</div></div><p>End</p>`,
    ];
    for (const body of bodies) {
      const { visitor } = await visit(t, { body });
      await visitor.input.waitFor();
      const heights = await visitor.page
        .locator("[data-svc-public-page-agent-inline]")
        .evaluateAll((mounts) => mounts.map(({ clientHeight }) => clientHeight));
      t.ok(heights[0]! > 400, "the first takes the widget");
      t.equal(heights[1], 0);
      const kept = await visitor.page.addStyleTag({ content: "" }).catch(() => undefined);
      t.equal(kept, undefined, "under the strict policy");
      await visitor.page.evaluate(() => {
        for (const one of document.querySelectorAll<HTMLElement>("[data-svc-public-page-agent-inline]"))
          one.hidden = false;
      });
      const before = await visitor.page
        .locator("[data-svc-public-page-agent-inline]")
        .evaluateAll((mounts) => mounts.map(({ clientHeight }) => clientHeight));
      t.ok(before[1]! < 100, "and no room was kept for it before");
    }
  });

  await t.test("no room is kept for the widget on paper and where scripts are off", async (t) => {
    const body = "<div data-svc-public-page-agent-inline></div>";
    const height = (page: Page) =>
      page.locator("[data-svc-public-page-agent-inline]").evaluate((one) => one.clientHeight);
    const { visitor } = await visit(t, { body });
    await visitor.input.waitFor();
    await visitor.page.emulateMedia({ media: "print" });
    t.equal(await height(visitor.page), 0);
    t.equal(await height((await visit(t, { body }, { javaScriptEnabled: false })).visitor.page), 0);
  });

  await t.test("the way to the latest message covers no text, and a long title keeps its distance", async (t) => {
    const title =
      "Fragen zur Rechtsschutzversicherungsberatung und zu allem, was Sie dafür mitbringen und vorher wissen müssen";
    const { visitor } = await visit(
      t,
      { language: "de", assistant: { title }, script: () => answer("Ein Satz.\n\n".repeat(60)) },
      { viewport: { width: 320, height: 600 } },
    );
    const { page } = visitor;
    await page.getByRole("button", { name: "Fragen", exact: true }).click();
    await page.getByRole("textbox").fill("Wie?");
    await page.keyboard.press("Enter");
    const latest = page.getByRole("button", { name: "Neueste Nachricht" });
    await latest.waitFor();
    t.same(await violations(page, ["iframe"]), []);
    await picture(page, "widget-long-title");
    const gap = await latest.evaluate((button) => {
      const log = button.parentElement!.querySelector(".log")!;
      return button.getBoundingClientRect().top - log.getBoundingClientRect().bottom;
    });
    t.ok(gap >= 0, "it is below the log");
    const room = await page.locator(".header").evaluate((header) => {
      const [outer, inner] = [header, header.querySelector("h2")!].map((one) => one.getBoundingClientRect());
      return Math.min(inner!.top - outer!.top, outer!.bottom - inner!.bottom);
    });
    t.ok(room >= 8, `${room} px`);
  });

  await t.test("the next question comes into view, however much goes with the offers of the last answer", async (t) => {
    const scripts = [
      () => answer("Ein Satz.\n\n".repeat(12), { followUps: Array.from({ length: 8 }, (_, at) => `Question ${at}?`) }),
      () => answer("Ein Satz.\n\n".repeat(30)),
    ];
    const { visitor } = await visit(t, { script: () => scripts.shift()!() }, { viewport: { width: 320, height: 600 } });
    await visitor.open();
    await visitor.ask("First?");
    await visitor.answered();
    await visitor.log.evaluate((log) => {
      log.scrollTop = log.scrollHeight;
    });
    await visitor.page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve))));
    await visitor.ask("Second?");
    await visitor.answered();
    const distance = await visitor.log.evaluate((log) => {
      const question = [...log.querySelectorAll(".question")].at(-1)!;
      return question.getBoundingClientRect().top - log.getBoundingClientRect().top;
    });
    t.ok(distance >= 0 && distance < 48, `${distance} px below the top`);
  });
}
