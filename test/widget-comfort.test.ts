import type { BrowserContextOptions, Frame } from "playwright-core";
import t, { type Test } from "tap";
import { openPage, picture, startBrowser, violations, withoutBrowser } from "../fixtures/browser.ts";
import { answer, type Chunk, closing, delta, opening } from "../fixtures/chat/chunks.ts";
import {
  actions,
  content,
  evidence,
  exampleFollowUps,
  exampleText,
  lesson,
  section,
} from "../fixtures/chat/examples.ts";
import { hostileHtml, hostileMarkdown } from "../fixtures/chat/hostile.ts";
import { type ChatOptions, type ChatServer, startChat } from "../fixtures/chat/server.ts";
import { ChatVisitor } from "../fixtures/chat/visitor.ts";
import { eventually } from "../fixtures/service.ts";

t.test("the widget's comfort", { skip: withoutBrowser }, run);

const everything = { evidence, actions, followUps: exampleFollowUps, lessons: [lesson], section };

async function run(t: Test): Promise<void> {
  const browser = await startBrowser(t);

  async function visit(
    t: Test,
    options: ChatOptions = {},
    more: BrowserContextOptions = {},
  ): Promise<{ visitor: ChatVisitor; server: ChatServer }> {
    const server = await startChat(t, { script: () => answer(exampleText, everything), ...options });
    return {
      visitor: new ChatVisitor(await openPage(t, browser, server.url, { reducedMotion: "reduce", ...more })),
      server,
    };
  }

  async function visitForm(t: Test, more: BrowserContextOptions = {}): Promise<{ visitor: ChatVisitor; frame: Frame }> {
    const { visitor } = await visit(t, {}, more);
    await visitor.open();
    await visitor.ask("What would a plan cost?");
    await visitor.answered();
    await visitor.page.getByRole("button", { name: section.collapsedTitle }).click();
    const frame = await eventually(() => visitor.page.frames().find((one) => one.url().includes("/lead-sections/")));
    await frame.getByLabel("Email").waitFor();
    return { visitor, frame };
  }

  await t.test("the keyboard alone is enough, and Escape returns the focus", async (t) => {
    const { visitor, server } = await visit(t);
    const press = (key: string): Promise<void> => visitor.page.keyboard.press(key);
    const tabTo = async (wanted: RegExp): Promise<void> => {
      for (let steps = 0; steps < 40; steps++) {
        if (wanted.test(await visitor.focused())) return;
        await press("Tab");
      }
      t.fail(`${wanted} is not reached by Tab`);
    };
    await tabTo(/^button Ask$/);
    await press("Enter");
    t.equal(await visitor.focused(), "textarea Ask a question");
    await visitor.page.keyboard.type("How long does a plan take?");
    await press("Enter");
    await visitor.answered();
    await visitor.input.focus();
    await press("Shift+Tab");
    await tabTo(/Ask a question/);
    await press("Tab");
    t.equal(await visitor.focused(), "button Send question");
    await visitor.log.focus();
    await tabTo(/^a 1Northwind Studio/);
    await tabTo(/^button Get a plan/);
    await press("Enter");
    t.ok(await visitor.page.getByText(section.contextDisclosure).isVisible());
    const frame = await eventually(() => visitor.page.frames().find((one) => one.url().includes("/lead-sections/")));
    await frame.getByLabel("Email").waitFor();
    await tabTo(/^iframe/);
    await visitor.page.keyboard.type("visitor@example.com");
    // Not awaited: the frame goes once it has sent, and a browser never acknowledges a key to a frame that is gone.
    void press("Enter").catch(() => undefined);
    await visitor.page.getByText("Thank you.").first().waitFor();
    t.equal(server.of("POST", "/leads").length, 1);
    await visitor.page.getByRole("button", { name: exampleFollowUps[0]! }).focus();
    await press("Enter");
    t.match(await visitor.focused(), /^div Conversation/, "the focus does not go with the button");
    await visitor.answered();
    await press("Escape");
    await eventually(async () => (await visitor.focused()) === "button Ask");
    t.notOk(await visitor.panel.isVisible());
    await press("Space");
    t.ok(await visitor.panel.isVisible());
    t.equal(await visitor.log.locator(".question").count(), 2, "the conversation is still there");
    await visitor.page.getByRole("button", { name: "Close" }).click();
    await eventually(async () => (await visitor.focused()) === "button Ask");
  });

  await t.test("the focused element is visible", async (t) => {
    const { visitor } = await visit(t);
    await visitor.launcher.focus();
    await visitor.page.keyboard.press("Enter");
    await visitor.ask("How long?");
    await visitor.answered();
    for (let steps = 0; steps < 14; steps++) {
      await visitor.page.keyboard.press("Tab");
      const seen = await visitor.page.evaluate(() => {
        const inner = document.activeElement?.shadowRoot?.activeElement;
        const box = inner?.tagName === "TEXTAREA" ? inner.parentElement : inner;
        const { outlineStyle, outlineWidth, boxShadow } = box ? getComputedStyle(box) : ({} as CSSStyleDeclaration);
        return {
          name: inner?.className ?? "outside",
          shown:
            inner === undefined ||
            inner === null ||
            (outlineStyle === "solid" && outlineWidth === "2px") ||
            boxShadow !== "none",
        };
      });
      t.ok(seen.shown, seen.name);
    }
  });

  await t.test("answers are announced by sentence, and their log stays quiet", async (t) => {
    const spoken: string[] = [];
    let goOn = (): void => undefined;
    const half = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    async function* script(): AsyncGenerator<Chunk> {
      yield* opening();
      for (const piece of ["A **first", " plan** takes ", "two weeks. It ", "costs 480", " EUR"]) yield delta(piece);
      await half;
      for (const piece of ["; see [the", " page](https://example.com/a). The last words"]) yield delta(piece);
      yield* closing();
    }
    const { visitor } = await visit(t, { script });
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
    await visitor.ask("How long?");
    await eventually(() => spoken.length === 2);
    t.same(spoken, ["Looking for an answer", "A first plan takes two weeks."]);
    goOn();
    await visitor.answered();
    t.same(spoken.slice(2).join(" "), "It costs 480 EUR; see the page. The last words");
    t.equal(await visitor.log.getAttribute("aria-live"), "off");
    t.equal(await visitor.log.getAttribute("role"), "log");
  });

  await t.test(
    "axe-core finds nothing: closed, open, answered, in the dark, in place, failed, on a phone, right to left",
    async (t) => {
      const closed = await visit(t);
      await closed.visitor.launcher.waitFor();
      t.same(await violations(closed.visitor.page), [], "closed");
      await closed.visitor.open();
      t.same(await violations(closed.visitor.page), [], "open");
      for (const colorScheme of ["light", "dark"] as const) {
        const { visitor, frame } = await visitForm(t, { colorScheme });
        t.same(await violations(visitor.page), [], `answered, with the form, ${colorScheme}`);
        t.same(await violations(frame), [], `the form itself, ${colorScheme}`);
        await visitor.log.evaluate((log) => {
          log.scrollTop += 380;
        });
        await picture(visitor.page, `lead-${colorScheme}`);
      }
      const inline = await visit(t, {
        body: content.replace("</main>", '<div id="svc-public-page-agent-inline"></div></main>'),
      });
      await inline.visitor.ask("How long?");
      await inline.visitor.answered();
      t.same(await violations(inline.visitor.page), [], "in place");
      const failed = await visit(t, { script: () => ({ status: 500 }) }, { colorScheme: "dark" });
      await failed.visitor.open();
      await failed.visitor.ask("How long?");
      await failed.visitor.retry.waitFor();
      t.same(await violations(failed.visitor.page), [], "failed");
      const phone = await visit(
        t,
        { direction: "rtl", language: "ar" },
        { viewport: { width: 320, height: 640 }, isMobile: true, hasTouch: true, colorScheme: "dark" },
      );
      await phone.visitor.open();
      await phone.visitor.ask("كم تكلف؟");
      await phone.visitor.answered();
      t.same(await violations(phone.visitor.page), [], "on a phone, right to left");
    },
  );

  await t.test("nothing is cut off or too small to tap: phones, 200 % zoom, right to left", async (t) => {
    const screens: Record<string, [BrowserContextOptions, ChatOptions]> = {
      phone: [{ viewport: { width: 320, height: 568 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true }, {}],
      zoom: [{ viewport: { width: 640, height: 400 }, deviceScaleFactor: 2 }, {}],
      "right-to-left": [
        {},
        {
          direction: "rtl",
          language: "ar",
          script: () =>
            answer(
              "تستغرق **الخطة الأولى** أسبوعين وتكلف 480 يورو.\n\n1. أرسل رسمًا للغرفة.\n2. نقيسها معًا.",
              everything,
            ),
        },
      ],
      "long-words": [
        { viewport: { width: 320, height: 640 } },
        {
          assistant: { intro: "v".repeat(200), suggestedQuestions: ["w".repeat(150)] },
          script: () =>
            answer("Donaudampfschifffahrtsgesellschaftskapitänskajüte".repeat(4), {
              ...everything,
              followUps: ["x".repeat(200)],
              evidence: [{ ...evidence[0]!, title: "y".repeat(120), snippet: "z".repeat(200) }],
            }),
        },
      ],
    };
    for (const [name, [more, options]] of Object.entries(screens)) {
      const { visitor } = await visit(t, options, more);
      await visitor.open();
      await visitor.ask("How long does a plan take?");
      await visitor.answered();
      await picture(visitor.page, name);
      await visitor.page.getByRole("button", { name: section.collapsedTitle }).click();
      const seen = await visitor.panel.evaluate((panel) => {
        const { left, right, top, bottom } = panel.getBoundingClientRect();
        const log = panel.querySelector(".log") as HTMLElement;
        const small = [...panel.querySelectorAll("button, .action, .source > a, textarea")]
          .filter((target) => target.checkVisibility())
          .map((target) => ({ name: target.className, box: target.getBoundingClientRect() }))
          .filter(({ box }) => box.width < 44 || box.height < 44);
        return {
          inside: left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight,
          wide: log.scrollWidth > log.clientWidth,
          small: small.map(({ name: one, box }) => `${one} ${box.width}x${box.height}`),
          page: document.documentElement.scrollWidth > innerWidth,
        };
      });
      t.same(seen, { inside: true, wide: false, small: [], page: false }, name);
      t.ok((await visitor.launcher.isHidden()) && (await visitor.input.isVisible()));
    }
  });

  await t.test(
    "in a low window, as above a phone's keyboard, answers have nearly half of it, and cover nothing",
    async (t) => {
      for (const viewport of [
        { width: 640, height: 180 },
        { width: 320, height: 256 },
      ]) {
        const { visitor } = await visit(t, {}, { viewport });
        await visitor.open();
        const measure = () =>
          visitor.panel.evaluate((panel) => {
            const [log, composer] = [".log", ".composer"].map((one) =>
              panel.querySelector(one)!.getBoundingClientRect(),
            );
            return { free: log!.height / innerHeight, isApart: log!.bottom <= composer!.top };
          });
        t.ok((await measure()).isApart);
        await visitor.ask("How long does a plan take?");
        await visitor.answered();
        const { free, isApart } = await measure();
        t.ok(isApart && free >= 0.45, `${viewport.height}: ${free}`);
        await picture(visitor.page, `low-${viewport.height}`);
      }
    },
  );

  await t.test(
    "on a small screen the page behind is inert, and right to left the launcher changes sides",
    async (t) => {
      const phone = await visit(t, {}, { viewport: { width: 320, height: 568 } });
      await phone.visitor.open();
      t.ok(await phone.visitor.panel.evaluate((panel) => panel.matches(":modal")));
      await phone.visitor.page.keyboard.press("Escape");
      await eventually(async () => (await phone.visitor.focused()) === "button Ask");
      const mirrored = await visit(t, { direction: "rtl", language: "he" });
      t.ok((await mirrored.visitor.launcher.boundingBox())!.x < 100);
    },
  );

  await t.test("with reduced motion there are no animations", async (t) => {
    const { visitor } = await visit(t, { script: () => [...opening()] as Chunk[] });
    await visitor.open();
    await visitor.input.fill("How long?");
    const moving = await visitor.page.evaluate(() => document.getAnimations().length);
    t.equal(moving, 0);
  });

  await t.test("forced colours keep every control visible", async (t) => {
    const { visitor } = await visit(t, {}, { forcedColors: "active" });
    t.not(await visitor.launcher.evaluate((launcher) => getComputedStyle(launcher).borderTopStyle), "none");
    await visitor.open();
    await visitor.ask("How long?");
    await visitor.answered();
    await picture(visitor.page, "forced-colours");
    for (const button of await visitor.panel.getByRole("button").all())
      t.equal(await button.evaluate((one) => getComputedStyle(one).borderTopWidth), "1px");
  });

  await t.test(
    "more than a hundred hostile texts stay text: no script, image, handler or address of another kind",
    async (t) => {
      const all = [...hostileHtml, ...hostileMarkdown];
      t.ok(all.length > 100);
      const hostileSection = {
        ...section,
        collapsedTitle: all[0]!,
        contextDisclosure: all[5]!,
        dynamicView: {
          ...section.dynamicView,
          headline: all[1]!,
          subhead: all[2]!,
          questionChips: [all[3]!],
          fitSignals: all.slice(6, 9),
        },
      };
      const { visitor } = await visit(t, {
        script: () =>
          answer(all.join("\n\n"), {
            evidence: all.slice(0, 30).map((one) => ({
              title: one,
              snippet: one,
              sourceType: "page" as const,
              sourceUrl: "javascript:alert(1)",
            })),
            actions: [
              { label: "<b>x</b>", actionType: "link" as const, href: "javascript:alert(1)" },
              { label: "y", actionType: "link" as const, href: "data:text/html,x" },
            ],
            followUps: all.slice(0, 5),
            lessons: [{ ...lesson, title: all[0]!, summary: all[5]!, steps: all.slice(0, 5) }],
            section: hostileSection,
          }),
      });
      let dialogs = 0;
      visitor.page.on("dialog", (dialog) => {
        dialogs++;
        void dialog.dismiss();
      });
      const requests: string[] = [];
      visitor.page.on("request", (request) => requests.push(request.url()));
      await visitor.open();
      await visitor.ask("Show me all of it");
      await visitor.answered();
      const found = await visitor.panel.evaluate((panel) => {
        const made = [...panel.querySelectorAll("*")];
        const known =
          "A ARTICLE BLOCKQUOTE BR BUTTON CODE DIV EM FORM H2 H3 H4 HEADER LI OL P PATH PRE SECTION SPAN STRONG SVG TEXTAREA UL".split(
            " ",
          );
        return {
          tags: [...new Set(made.map(({ tagName }) => tagName.toUpperCase()).filter((tag) => !known.includes(tag)))],
          handlers: made.flatMap((one) =>
            one.getAttributeNames().filter((name) => /^on|^style$|^src$|^action$|^formaction$|^srcdoc$/i.test(name)),
          ),
          links: made
            .flatMap((one) => (one instanceof HTMLAnchorElement ? [one.href] : []))
            .filter((href) => !/^https?:/.test(href)),
        };
      });
      t.same(found, { tags: [], handlers: [], links: [] });
      const shown = await visitor.text();
      t.match(shown, "<script>alert(1)</script>", "markup is shown as source text");
      t.equal(dialogs, 0);
      t.same(
        requests.filter((url) => !url.startsWith("http://127.0.0.1:")),
        [],
      );
    },
  );
}
