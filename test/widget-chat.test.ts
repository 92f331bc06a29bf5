import type { BrowserContextOptions } from "playwright-core";
import t, { type Test } from "tap";
import { bundled, openPage, picture, startBrowser, withoutBrowser } from "../fixtures/browser.ts";
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
import { type ChatOptions, type ChatServer, cut, forget, handOver, startChat } from "../fixtures/chat/server.ts";
import { ChatVisitor } from "../fixtures/chat/visitor.ts";
import { eventually } from "../fixtures/service.ts";

t.test("the widget's chat", { skip: withoutBrowser }, run);

async function run(t: Test): Promise<void> {
  const browser = await startBrowser(t);

  async function visit(
    t: Test,
    options: ChatOptions,
    more: BrowserContextOptions = {},
  ): Promise<{ visitor: ChatVisitor; server: ChatServer }> {
    const server = await startChat(t, options);
    return { visitor: new ChatVisitor(await openPage(t, browser, server.url, more)), server };
  }

  /** A promise that a script waits for and a test keeps. */
  function gate(): { opened: Promise<void>; open: () => void } {
    let open = (): void => undefined;
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    return { opened, open };
  }

  await t.test(
    "an answer is shown while it comes, with its sources, links and next questions at its end",
    async (t) => {
      const half = gate();
      async function* script(): AsyncGenerator<Chunk> {
        const chunks = answer(exampleText, { evidence, actions, followUps: exampleFollowUps });
        yield* chunks.slice(0, 20);
        await half.opened;
        yield* chunks.slice(20);
      }
      const { visitor } = await visit(t, { script });
      await visitor.open();
      t.equal(await visitor.focused(), "textarea Ask a question");
      await visitor.ask("How long does a plan take?");
      await visitor.answer.getByText("first plan takes two weeks").waitFor();
      t.equal(await visitor.log.getAttribute("aria-busy"), "true");
      t.equal(
        await visitor.page.getByText("Sources", { exact: true }).count(),
        0,
        "the parts below the text wait for it",
      );
      half.open();
      await visitor.answered();
      t.match(await visitor.log.locator(".question").textContent(), "How long does a plan take?");
      t.equal(await visitor.answer.locator("strong").first().textContent(), "first plan takes two weeks");
      t.equal(await visitor.answer.locator(".text ol > li").count(), 3);
      const source = visitor.answer.getByRole("link", { name: /Northwind Studio/ });
      t.equal(await source.getAttribute("href"), "https://example.com/kitchens");
      t.match(await source.textContent(), "A first plan takes two weeks and costs 480 EUR");
      t.match(await visitor.answer.locator(".source").nth(1).textContent(), "Questions about measuring");
      t.equal(
        await visitor.answer.locator(".source").nth(1).locator("a").count(),
        0,
        "a document without an address is no link",
      );
      t.equal(
        await visitor.answer.getByRole("link", { name: "Book a visit" }).getAttribute("href"),
        "https://example.com/book",
      );
      for (const link of await visitor.answer.getByRole("link").all())
        t.match(await link.getAttribute("rel"), "noopener nofollow");
      t.ok(await visitor.page.getByText("Answers come from public content and can be wrong.").isVisible());
      await picture(visitor.page, "answer");
      await visitor.answer.getByRole("button", { name: exampleFollowUps[0]! }).click();
      await visitor.log.locator(".question").nth(1).waitFor();
      t.match(await visitor.log.locator(".question").nth(1).textContent(), exampleFollowUps[0]!);
      t.equal((await visitor.log.getByRole("button", { name: exampleFollowUps[1]! }).count()) <= 1, true);
    },
  );

  await t.test("the service gets the conversation, and no hint of the visitor's identity", async (t) => {
    const { visitor, server } = await visit(t, { script: () => answer("Two weeks.", { section }) });
    await visitor.open();
    await visitor.ask("How long?");
    await visitor.answered();
    await visitor.ask("Since when?");
    await visitor.answered();
    const [first, second] = server.of("POST", "/agentic-chat").map(({ body }) => body as { id: string });
    t.match(first, {
      id: /^[0-9a-f]{32}$/,
      trigger: "submit-message",
      resumable: true,
      messages: [{ id: String, role: "user", parts: [{ type: "text", text: "How long?" }] }],
    });
    t.match(second, {
      id: first!.id,
      messages: [
        { role: "user" },
        {
          role: "assistant",
          parts: [
            { type: "text", text: "Two weeks." },
            { type: "tool-renderLeadQualificationSection", output: { sectionId: "sec_example" } },
          ],
        },
        { role: "user", parts: [{ type: "text", text: "Since when?" }] },
      ],
    });
    t.ok(
      server.received.every(({ headers }) => headers.cookie === undefined && headers.authorization === undefined),
      "the page has a cookie, the widget sends none",
    );
    const kept = await visitor.page.evaluate(async () => [
      document.cookie,
      localStorage.length,
      sessionStorage.length,
      (await indexedDB.databases()).length,
      (await caches.keys()).length,
    ]);
    t.same(kept, ["visitor=secret", 0, 0, 0, 0], "nothing is stored");
    const origins = await visitor.page.evaluate(() =>
      performance.getEntriesByType("resource").map(({ name }) => new URL(name).origin),
    );
    t.same([...new Set(origins)], [new URL(server.url).origin], "nothing is asked of anybody else");
    await visitor.page.getByRole("button", { name: "New conversation" }).click();
    t.equal(await visitor.log.locator(".question").count(), 0);
    t.equal(await visitor.page.getByRole("button", { name: "New conversation" }).count(), 0, "there is none to leave");
    await visitor.ask("From when?");
    await visitor.answered();
    const [, , third] = server.of("POST", "/agentic-chat").map(({ body }) => body as { id: string });
    t.match(third, { messages: [{ parts: [{ text: "From when?" }] }] }, "what was said before is not sent");
    t.not(third!.id, first!.id);
  });

  await t.test("a visitor stops an answer, and asks again", async (t) => {
    const never = new Promise<void>(() => undefined);
    let asked = 0;
    async function* script(): AsyncGenerator<Chunk> {
      asked++;
      yield* opening();
      yield delta(`Attempt ${asked} has begun. `);
      if (asked === 1) await never;
      await eventually(() => server.of("DELETE", "/stream").length === 1);
      yield* closing();
    }
    const { visitor, server } = await visit(t, { script });
    await visitor.open();
    await visitor.ask("How long?");
    await visitor.answer.getByText("Attempt 1 has begun.").waitFor();
    // On its way for so long that it could stop the next answer.
    await visitor.page.route("**/stream", async (route) => {
      await new Promise((resolve) => setTimeout(resolve, 500));
      await route.continue();
    });
    await visitor.stop.click();
    await visitor.answered();
    t.match(await visitor.answer.textContent(), /Attempt 1 has begun\..*Stopped\./);
    await visitor.retry.click();
    await visitor.answer.getByText("Attempt 2 has begun.").waitFor();
    await visitor.answered();
    t.equal(await visitor.text(), "Attempt 2 has begun.");
    t.equal(await visitor.retry.count(), 0);
    t.match(server.of("POST", "/agentic-chat")[1]?.body, {
      trigger: "regenerate-message",
      messages: [{ role: "user" }],
    });
  });

  await t.test("a failure is shown and can be retried", async (t) => {
    const scripts = [
      () => ({ status: 503 }),
      () => ({ status: 404 }),
      () => [...opening(), delta("A first "), { type: "error", errorText: "Interrupted." }],
      () => answer("Two weeks."),
    ];
    const { visitor } = await visit(t, { script: () => scripts.shift()!() });
    await visitor.open();
    await visitor.ask("How long?");
    await visitor.page.getByText("The assistant could not be reached.").first().waitFor();
    await visitor.retry.click();
    await visitor.answer.getByText("The assistant is not available on this page right now.").waitFor();
    await visitor.retry.click();
    await visitor.answer.getByText("The answer was interrupted.").waitFor();
    t.match(await visitor.text(), "A first", "what came stays");
    await visitor.answered();
    await picture(visitor.page, "error");
    await visitor.retry.click();
    await visitor.answer.getByText("Two weeks.").waitFor();
    await visitor.answered();
    t.equal(await visitor.text(), "Two weeks.");
    t.equal(await visitor.retry.count(), 0);
  });

  await t.test("an answer resumes after every broken connection", async (t) => {
    async function* script(): AsyncGenerator<Chunk | typeof cut> {
      let [said, saidBefore, cuts] = ["", "", 0];
      for (const [at, chunk] of answer(exampleText, { evidence }).entries()) {
        yield chunk;
        said += chunk.delta ?? "";
        await new Promise((resolve) => setTimeout(resolve, 5));
        if (at !== 8 && at !== 16) continue;
        // A break meets somebody who is connected again and has read on, however slow the browser is.
        await eventually(() => server.of("GET", "/stream").length === cuts);
        await eventually(async () => (await visitor.text()).length > saidBefore.length);
        [saidBefore, cuts] = [said, cuts + 1];
        yield cut;
      }
    }
    const { visitor, server } = await visit(t, { script });
    await visitor.open();
    await visitor.ask("How long?");
    await visitor.answer.getByRole("link", { name: /Northwind Studio/ }).waitFor();
    await visitor.answered();
    const expected =
      "A first plan takes two weeks and costs 480 EUR. The sum is taken off the price of the kitchen.What you do:Send a sketch of the room.Measure it with us, in person or by video.Get a plan with a fixed price.More is on the page about planning.";
    t.equal(await visitor.text(), expected, "every word appears once");
    const resumed = server.of("GET", "/stream");
    t.equal(resumed.length, 2);
    t.ok(resumed.every(({ headers }) => Number(headers["last-event-id"]) > 0));
    t.equal(server.of("POST", "/agentic-chat").length, 1, "nothing was asked twice");
    t.equal(await visitor.retry.count(), 0);
  });

  await t.test("an answer whose web process ends goes on at another one", async (t) => {
    async function* script(): AsyncGenerator<Chunk | typeof handOver> {
      yield handOver;
      await eventually(() => server.of("GET", "/stream").length === 1);
      yield* opening();
      yield delta("A first plan ");
      await visitor.answer.getByText("A first plan").waitFor();
      yield handOver;
      yield delta("takes two weeks.");
      yield* closing();
    }
    const { visitor, server } = await visit(t, { script });
    await visitor.open();
    await visitor.ask("How long?");
    await visitor.answered();
    t.equal(await visitor.text(), "A first plan takes two weeks.");
    t.equal(server.of("GET", "/stream").length, 2);
    t.equal(server.of("POST", "/agentic-chat").length, 1, "nothing was asked twice");
  });

  await t.test("a stream that ends without its end is shown as interrupted", async (t) => {
    const scripts = [() => [...opening(), delta("A first plan"), forget], () => answer("Two weeks.")];
    const { visitor } = await visit(t, { script: () => scripts.shift()!() as Chunk[] });
    await visitor.open();
    await visitor.ask("How long?");
    await visitor.answer.getByText("The answer was interrupted.").waitFor();
    t.match(await visitor.text(), "A first plan");
    await visitor.retry.click();
    await visitor.answer.getByText("Two weeks.").waitFor();
  });

  await t.test("an answer stopped elsewhere is shown as interrupted, not as complete", async (t) => {
    const { visitor } = await visit(t, { script: () => [...opening(), delta("A first plan"), { type: "abort" }] });
    await visitor.open();
    await visitor.ask("How long?");
    await visitor.answer.getByText("The answer was interrupted.").waitFor();
    t.ok(await visitor.retry.isVisible());
  });

  await t.test("offline is shown, and the answer continues when the connection is back", async (t) => {
    const back = gate();
    async function* script(): AsyncGenerator<Chunk | typeof cut> {
      yield* opening();
      yield delta("A first plan ");
      await back.opened;
      yield cut;
      yield delta("takes two weeks.");
      yield* closing();
    }
    const { visitor } = await visit(t, { script });
    await visitor.open();
    await visitor.ask("How long?");
    await visitor.answer.getByText("A first plan").waitFor();
    await visitor.page.context().setOffline(true);
    await visitor.page.getByText("You are offline.").waitFor();
    back.open();
    await visitor.answer.getByText("Reconnecting").waitFor();
    await picture(visitor.page, "offline");
    await visitor.page.context().setOffline(false);
    await visitor.answered();
    t.equal(await visitor.text(), "A first plan takes two weeks.");
    t.equal(await visitor.page.getByText("You are offline.").count(), 0);
  });

  await t.test("a question has at most 500 characters, and Enter of a composition sends nothing", async (t) => {
    const { visitor, server } = await visit(t, { script: () => answer("Yes.") });
    await visitor.open();
    await visitor.input.fill("😀".repeat(501));
    await visitor.page.getByText("501 / 500").waitFor();
    await visitor.input.press("Enter");
    await visitor.input.fill("😀".repeat(500));
    await visitor.page.getByText("500 / 500").waitFor();
    await visitor.input.evaluate((input) =>
      input.dispatchEvent(
        new KeyboardEvent("keydown", { key: "Enter", isComposing: true, bubbles: true, cancelable: true }),
      ),
    );
    t.equal(server.received.length, 0);
    await visitor.input.press("Shift+Enter");
    t.equal(server.received.length, 0);
    await visitor.input.press("Enter");
    await visitor.answered();
    t.equal(server.of("POST", "/agentic-chat").length, 1);
  });

  await t.test("the copy of an answer is the text that is shown", async (t) => {
    const { visitor } = await visit(
      t,
      { script: () => answer(exampleText) },
      { permissions: ["clipboard-read", "clipboard-write"] },
    );
    await visitor.open();
    await visitor.ask("How long?");
    await visitor.page.getByRole("button", { name: "Copy answer" }).click();
    await visitor.answer.getByText("Copied").waitFor();
    const copied = await visitor.page.evaluate(() => navigator.clipboard.readText());
    t.match(copied, /^A first plan takes two weeks and costs 480 EUR\./);
    t.match(copied, "Measure it with us, in person or by video.");
    t.notMatch(copied, /\*|\]\(/);
  });

  await t.test("an answer is copied where the browser refuses its clipboard to scripts", async (t) => {
    const { visitor } = await visit(t, { script: () => answer("Two weeks.") });
    await visitor.page.evaluate(() => {
      navigator.clipboard.writeText = () => Promise.reject(new DOMException("Denied", "NotAllowedError"));
    });
    await visitor.open();
    await visitor.ask("How long?");
    await visitor.page.getByRole("button", { name: "Copy answer" }).click();
    await visitor.answer.getByText("Copied").waitFor();
    await visitor.input.focus();
    await visitor.page.keyboard.press("Control+V");
    t.equal(await visitor.input.inputValue(), "Two weeks.");
  });

  await t.test("a mount, by id or by attribute, gets the widget instead of a launcher", async (t) => {
    for (const mount of [
      '<div id="svc-public-page-agent-inline">Loading</div>',
      "<aside data-svc-public-page-agent-inline></aside>",
    ]) {
      const { visitor } = await visit(t, {
        body: content.replace("</main>", `${mount}<h2>After</h2></main>`),
        script: () => answer(exampleText, { evidence, actions, followUps: exampleFollowUps }),
      });
      await visitor.input.waitFor();
      t.equal(await visitor.launcher.count(), 0);
      t.ok(
        await visitor.page.evaluate(
          () =>
            document.querySelector("#svc-public-page-agent-inline, [data-svc-public-page-agent-inline]")
              ?.firstElementChild?.shadowRoot !== null,
        ),
      );
      await visitor.ask("How long?");
      await visitor.answered();
      t.match(await visitor.text(), "A first plan takes two weeks");
      await picture(visitor.page, "inline");
    }
  });

  await t.test("lessons are shown from the knowledge documents", async (t) => {
    const { visitor } = await visit(t, {
      script: () =>
        answer("Measure twice.", {
          lessons: [
            lesson,
            { ...lesson, title: "<img src=x onerror=alert(1)>", steps: [], relatedTactics: [], tryNow: "" },
          ],
        }),
    });
    await visitor.open();
    await visitor.ask("How do I measure?");
    const cards = visitor.answer.getByRole("article");
    await cards.nth(1).waitFor();
    for (const shown of [
      lesson.title,
      lesson.category,
      lesson.summary,
      ...lesson.whenToUse,
      ...lesson.steps,
      lesson.tryNow,
      ...lesson.relatedTactics,
      lesson.sourceDisclosure,
    ])
      t.match(await cards.first().textContent(), shown);
    t.match(await cards.nth(1).textContent(), "<img src=x onerror=alert(1)>", "markup is text");
    await visitor.answered();
    await cards.first().scrollIntoViewIfNeeded();
    await picture(visitor.page, "lesson");
  });

  await t.test("the page's own title, introduction and suggested questions are shown", async (t) => {
    const assistant = {
      title: "Ask Northwind",
      intro: "Ask anything about kitchens.",
      suggestedQuestions: ["What does a plan cost?"],
    };
    const { visitor, server } = await visit(t, { assistant, script: () => answer("480 EUR.", { degraded: true }) });
    await visitor.open();
    t.ok(await visitor.page.getByRole("heading", { name: "Ask Northwind" }).isVisible());
    t.ok(await visitor.page.getByText("Ask anything about kitchens.").isVisible());
    await picture(visitor.page, "open");
    await visitor.page.getByRole("button", { name: "What does a plan cost?" }).click();
    await visitor.answered();
    t.match(server.of("POST", "/agentic-chat")[0]?.body, {
      messages: [{ parts: [{ text: "What does a plan cost?" }] }],
    });
    t.ok(await visitor.answer.getByText("this answer may be incomplete").isVisible(), "a degraded answer says so");
  });

  await t.test("a page may set the widget's colours and parts", async (t) => {
    const { visitor } = await visit(t, {}, { bypassCSP: true });
    await visitor.page.addStyleTag({
      content:
        ":root { --svc-agent-accent: rgb(180, 0, 90) } #svc-public-page-agent::part(launcher) { border-radius: 3px }",
    });
    const seen = await visitor.launcher.evaluate((launcher) => [
      getComputedStyle(launcher).backgroundColor,
      getComputedStyle(launcher).borderTopLeftRadius,
    ]);
    t.same(seen, ["rgb(180, 0, 90)", "3px"]);
  });

  await t.test("the form is as light as the page's colours, whatever their notation", async (t) => {
    for (const [surface, scheme] of [
      ["oklch(98% 0.01 90)", "light"],
      ["oklch(20% 0.02 270)", "dark"],
      ["#fffdf5", "light"],
    ] as const) {
      const { visitor } = await visit(
        t,
        { script: () => answer("Two weeks.", { section }) },
        { bypassCSP: true, colorScheme: scheme === "light" ? "dark" : "light" },
      );
      await visitor.page.addStyleTag({ content: `:root { --svc-agent-surface: ${surface} }` });
      await visitor.open();
      await visitor.ask("How long?");
      await visitor.page.getByRole("button", { name: section.collapsedTitle }).click();
      const frame = visitor.page.frameLocator("iframe");
      await frame.getByLabel("Email").waitFor();
      t.equal(await frame.locator("html").evaluate((root) => getComputedStyle(root).colorScheme), scheme, surface);
    }
  });

  await t.test("the script is small, and never makes elements out of text", async (t) => {
    const script = await bundled("public-page-agent");
    for (const never of [
      /innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|srcdoc/,
      /localStorage|sessionStorage|indexedDB|document\.cookie/,
      /\beval\b|new Function/,
    ])
      t.notMatch(script, never);
  });
}
