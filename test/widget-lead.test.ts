import type { Frame, Page } from "playwright-core";
import t, { type Test } from "tap";
import { openPage, picture, startBrowser, withoutBrowser } from "../fixtures/browser.ts";
import { answer } from "../fixtures/chat/chunks.ts";
import { exampleText, section } from "../fixtures/chat/examples.ts";
import { type ChatOptions, type ChatServer, startChat } from "../fixtures/chat/server.ts";
import { ChatVisitor } from "../fixtures/chat/visitor.ts";
import { eventually } from "../fixtures/service.ts";

t.test("the widget's lead card", { skip: withoutBrowser }, run);

/** A visitor's entries, by the labels of the example's form. */
async function fill(frame: Frame): Promise<void> {
  await frame.getByLabel("Email").fill("visitor@example.com");
  await frame.getByLabel("Your name").fill("Vera Visitor");
  await frame.getByLabel("Size of the room").selectOption("6 to 12 m²");
  await frame.getByLabel("What do you have in mind?").fill("A small kitchen <b>with</b> a window.");
}

async function frameOf(page: Page): Promise<Frame> {
  return eventually(() => page.frames().find((frame) => frame.url().includes("/lead-sections/")));
}

async function run(t: Test): Promise<void> {
  const browser = await startBrowser(t);

  /** A page whose lead card is open, with its frame. */
  async function visit(
    t: Test,
    options: ChatOptions = {},
  ): Promise<{ visitor: ChatVisitor; server: ChatServer; frame: Frame }> {
    const server = await startChat(t, { script: () => answer(exampleText, { section }), ...options });
    const visitor = new ChatVisitor(await openPage(t, browser, server.url));
    await visitor.open();
    await visitor.ask("What would a plan cost?");
    await visitor.answered();
    await visitor.page.getByRole("button", { name: section.collapsedTitle }).click();
    const frame = await frameOf(visitor.page);
    await frame.getByLabel("Email").waitFor();
    return { visitor, server, frame };
  }

  await t.test(
    "the card is closed at first; opened, it shows the steps, the form and the disclosure next to it",
    async (t) => {
      const { visitor, frame } = await visit(t);
      const toggle = visitor.page.getByRole("button", { name: section.collapsedTitle });
      t.match(await toggle.textContent(), section.collapsedBody);
      t.equal(await toggle.getAttribute("aria-expanded"), "true");
      const card = visitor.page.locator(".lead");
      const { dynamicView: view } = section;
      const shown = [
        view.headline,
        view.subhead,
        view.recommendedPath.label,
        view.recommendedPath.body,
        ...view.momentumSteps.flatMap(({ title, body }) => [title, body]),
        ...view.fitSignals,
        ...view.questionChips,
      ];
      for (const words of shown) t.match(await card.textContent(), words);
      t.equal(await card.getAttribute("data-accent"), "launch");
      t.ok(await card.getByText(section.contextDisclosure).isVisible());
      t.equal(await visitor.frame.getAttribute("sandbox"), "allow-forms allow-scripts");
      t.match(new URL(frame.url()).hash, /^#[0-9a-f]{32}$/);
      t.equal(await frame.evaluate(() => origin), "null", "the frame has an origin of its own");
      await eventually(async () => Number(await visitor.frame.getAttribute("height")) > 400);
      await picture(visitor.page, "lead-open");
      await toggle.click();
      t.equal(await toggle.getAttribute("aria-expanded"), "false");
      t.notOk(await visitor.frame.isVisible());
      t.equal(await visitor.log.locator("[style]").count(), 0, "nothing has an inline style");
    },
  );

  await t.test("a lead is sent once, with the disclosed context and without credentials", async (t) => {
    const { visitor, server, frame } = await visit(t);
    await fill(frame);
    await frame.getByRole("button", { name: "Ask for a plan" }).click();
    await visitor.page.getByText("Thank you. Your message has arrived.").first().waitFor();
    const sent = server.of("POST", "/leads");
    t.equal(sent.length, 1);
    t.same(sent[0]?.body, {
      email: "visitor@example.com",
      name: "Vera Visitor",
      message: "A small kitchen <b>with</b> a window.",
      fields: { "room-size": "6 to 12 m²" },
      pageSlug: "kitchens",
      leadContext: section.leadContext,
    });
    t.equal(sent[0]?.headers.cookie, undefined);
    t.equal(await visitor.frame.count(), 0);
    t.match(await visitor.focused(), /^p Thank you/, "the focus does not stay in removed elements");
    await picture(visitor.page, "lead-sent");
  });

  await t.test("two submissions at once are one lead", async (t) => {
    const { visitor, server, frame } = await visit(t);
    await fill(frame);
    await frame.evaluate(() => {
      const form = document.querySelector("form")!;
      for (let times = 0; times < 3; times++) HTMLFormElement.prototype.requestSubmit.call(form);
    });
    await visitor.page.getByText("Thank you.").first().waitFor();
    t.equal(server.of("POST", "/leads").length, 1);
  });

  await t.test("a failed submission is reported, and the form is open again", async (t) => {
    const replies = [
      { status: 503 },
      { status: 400 },
      { status: 202, body: { lead: { leadId: "lead_1", status: "ACCEPTED" } } },
    ];
    const { visitor, server, frame } = await visit(t, { lead: () => replies.shift()! });
    await fill(frame);
    const submit = frame.getByRole("button", { name: "Ask for a plan" });
    await submit.click();
    await visitor.page.getByRole("alert").getByText("could not be sent").waitFor();
    t.equal(await frame.getByLabel("Your name").inputValue(), "Vera Visitor", "what was entered stays");
    await submit.click();
    await visitor.page.getByRole("alert").getByText("Please check what you entered.").waitFor();
    await submit.click();
    await visitor.page.getByText("Thank you.").first().waitFor();
    t.equal(server.of("POST", "/leads").length, 3);
  });

  await t.test("a lead that has to be confirmed asks for the code", async (t) => {
    const replies = [
      { status: 202, body: { lead: { leadId: "lead_1", status: "UNVERIFIED" } } },
      { status: 400 },
      { status: 429 },
      { status: 200, body: { lead: { leadId: "lead_1", status: "VERIFIED" } } },
    ];
    const { visitor, server, frame } = await visit(t, { lead: () => replies.shift()! });
    await fill(frame);
    await frame.getByRole("button", { name: "Ask for a plan" }).click();
    const code = visitor.page.getByRole("textbox", { name: "Code" });
    await code.fill("000000");
    await visitor.page.getByRole("button", { name: "Confirm" }).dblclick();
    await visitor.page.getByText("This code is wrong or has expired.").waitFor();
    await code.fill("");
    await visitor.page.keyboard.insertText("    ١٢٣ 456 ");
    await visitor.page.getByRole("button", { name: "Confirm" }).click();
    await visitor.page.getByRole("alert").getByText("Please try again in a moment.").waitFor();
    await visitor.page.getByRole("button", { name: "Confirm" }).click();
    await visitor.page.getByText("Thank you.").first().waitFor();
    t.same(
      server.of("POST", "/leads/lead_1/verify").map(({ body }) => body),
      [{ code: "000000" }, { code: "    ١٢٣ 456 " }, { code: "    ١٢٣ 456 " }],
      "a double click is one attempt",
    );
  });

  await t.test("a form that doesn't load can be loaded again", async (t) => {
    const server = await startChat(t, { script: () => answer(exampleText, { section }) });
    const page = await openPage(t, browser, server.url);
    const visitor = new ChatVisitor(page);
    await page.route("**/form?*", (route) => route.abort());
    await visitor.open();
    await visitor.ask("What would a plan cost?");
    await visitor.answered();
    await page.clock.install();
    await page.getByRole("button", { name: section.collapsedTitle }).click();
    await page.clock.fastForward(11_000);
    await page.getByRole("alert").getByText("The form could not be loaded.").waitFor();
    await page.unroute("**/form?*");
    await visitor.panel.locator(".lead-form").getByRole("button", { name: "Try again" }).click();
    const frame = await frameOf(page);
    await frame.getByLabel("Email").waitFor();
    t.equal(await page.getByText("The form could not be loaded.").count(), 0);
  });

  await t.test("the form asks for an address before it sends anything", async (t) => {
    const { server, frame } = await visit(t);
    await frame.getByRole("button", { name: "Ask for a plan" }).click();
    await frame.getByLabel("Email").fill("not an address");
    await frame.getByRole("button", { name: "Ask for a plan" }).click();
    t.ok(await frame.getByLabel("Email").evaluate((input) => (input as HTMLInputElement).matches(":invalid")));
    t.equal(server.of("POST", "/leads").length, 0);
  });

  await t.test("hostile messages are refused: other windows, other nonces, other shapes", async (t) => {
    const { visitor, server, frame } = await visit(t);
    const nonce = new URL(frame.url()).hash.slice(1);
    const good = { email: "visitor@example.com" };
    const wanted = { type: "svc-lead-form", nonce, payload: good };
    await visitor.page.evaluate((message) => postMessage(message, "*"), wanted);
    await visitor.page.evaluate(
      (url) => {
        document.body.appendChild(document.createElement("iframe")).src = url;
      },
      frame.url().replace("accent=", "stranger="),
    );
    const stranger = await eventually(() => visitor.page.frames().find((one) => one.url().includes("stranger=")));
    await stranger.getByLabel("Email").waitFor();
    await stranger.evaluate((message) => parent.postMessage(message, "*"), wanted);
    const messages: unknown[] = [
      { ...wanted, nonce: "" },
      { ...wanted, nonce: `${nonce}0` },
      { ...wanted, nonce: undefined },
      { ...wanted, type: "svc-lead" },
      { ...wanted, payload: undefined },
      { ...wanted, payload: null },
      { ...wanted, payload: "email" },
      { ...wanted, payload: ["visitor@example.com"] },
      { ...wanted, payload: {} },
      { ...wanted, payload: { email: "" } },
      { ...wanted, payload: { email: "no address" } },
      { ...wanted, payload: { email: ["visitor@example.com"] } },
      { ...wanted, payload: { email: { toString: "x" } } },
      { ...wanted, payload: { ...good, role: "OWNER" } },
      { ...wanted, payload: { ...good, leadContext: "x" } },
      { ...wanted, payload: { ...good, pageSlug: "another" } },
      { ...wanted, payload: { ...good, constructor: "x" } },
      { ...wanted, payload: { ...good, name: 5 } },
      { ...wanted, payload: { ...good, name: "x".repeat(201) } },
      { ...wanted, payload: { ...good, message: "x".repeat(2001) } },
      { ...wanted, payload: { ...good, phone: "1".repeat(41) } },
      { ...wanted, payload: { email: `${"x".repeat(251)}@a.b` } },
      { ...wanted, payload: { ...good, "room-size": "A palace" } },
      { ...wanted, payload: { ...good, website: "x".repeat(201) } },
      null,
      "svc-lead-form",
      5,
      [wanted],
    ];
    await frame.evaluate((all) => {
      for (const message of all) parent.postMessage(message, "*");
    }, messages);
    await frame.evaluate(
      (message) =>
        parent.postMessage({ ...message, payload: JSON.parse('{"email":"visitor@example.com","__proto__":"x"}') }, "*"),
      wanted,
    );
    const heights = [1e9, -5, Number.NaN, Number.POSITIVE_INFINITY, "900", null, {}];
    for (const height of heights)
      await frame.evaluate(
        ([one, key]) => parent.postMessage({ type: "svc-lead-form-size", nonce: key, height: one }, "*"),
        [height, nonce] as const,
      );
    await eventually(async () => (await visitor.frame.getAttribute("height")) === "80", 5000);
    t.equal(server.of("POST", "/leads").length, 0);
    await frame.evaluate((message) => parent.postMessage(message, "*"), wanted);
    await visitor.page.getByText("Thank you.").first().waitFor();
    t.equal(server.of("POST", "/leads").length, 1, "the same message from the frame itself is taken");
    t.same(server.of("POST", "/leads")[0]?.body, {
      ...good,
      fields: {},
      pageSlug: "kitchens",
      leadContext: section.leadContext,
    });
  });

  await t.test("the frame can't load, store, send or open anything", async (t) => {
    const { visitor, server, frame } = await visit(t);
    // This test wants the browser's own messages about its refusals.
    visitor.page.removeAllListeners("console");
    const tried = await frame.evaluate(async () => {
      const outcome = async (attempt: () => unknown): Promise<string> => {
        try {
          return String(await attempt());
        } catch {
          return "refused";
        }
      };
      const image = new Image();
      const loaded = new Promise((resolve) => {
        image.onload = () => resolve("loaded");
        image.onerror = () => resolve("refused");
      });
      image.src = "/assets/page.css?image";
      return Promise.all([
        outcome(() => fetch("/v2/public/handles/acme/leads", { method: "POST", body: "{}" })),
        outcome(() => loaded),
        outcome(() => localStorage.length),
        outcome(() => document.cookie),
        outcome(() => parent.document.title),
        outcome(() => open("/") === null && "refused"),
        outcome(() => {
          const script = document.body.appendChild(document.createElement("script"));
          script.textContent = "window.ran = true";
          return (window as unknown as { ran?: boolean }).ran ?? "refused";
        }),
        outcome(() => {
          HTMLFormElement.prototype.submit.call(document.querySelector("form"));
          return "refused";
        }),
      ]);
    });
    t.same([...new Set(tried)], ["refused"]);
    await frame
      .evaluate(() => {
        top!.location.href = "https://evil.example/";
      })
      .catch(() => undefined);
    t.equal(visitor.page.url(), server.url);
    t.ok(frame.url().includes("/lead-sections/"));
    t.equal(server.of("POST", "/leads").length, 0);
  });

  await t.test("a chip of the card asks its question", async (t) => {
    const { visitor, server } = await visit(t);
    // By keyboard: the frame above the chip gets its height when it is drawn, and a click could miss what moves.
    await visitor.page.getByRole("button", { name: section.dynamicView.questionChips[0]! }).press("Enter");
    await eventually(() => server.of("POST", "/agentic-chat").length === 2);
    await visitor.answered();
    t.match(server.of("POST", "/agentic-chat")[1]?.body, {
      messages: [{}, {}, { parts: [{ text: section.dynamicView.questionChips[0] }] }],
    });
  });
}
