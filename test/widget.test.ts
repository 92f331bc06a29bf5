import { once } from "node:events";
import { type AddressInfo, connect as connectTo, createServer, type Socket } from "node:net";
import type { Browser } from "playwright-core";
import t, { type Test } from "tap";
import { bundleAssets, openPage, picture, startBrowser, violations, withoutBrowser } from "../fixtures/browser.ts";
import { ChatVisitor } from "../fixtures/chat/visitor.ts";
import { type ModelServer, startModelServer } from "../fixtures/model-server.ts";
import { eventually, type Service, startService } from "../fixtures/service.ts";

t.test("the widget against the running service", { skip: withoutBrowser }, run);

const content = `<main><h1>Harbour Bikes</h1>
<p>We rent city bikes and cargo bikes by the day.</p>
<h2>Prices</h2><p>A city bike costs 14 EUR a day. A cargo bike costs 39 EUR a day.</p>
<h2>Opening hours</h2><p>We are open Monday to Saturday from 9:00 to 18:00.</p>
<p><a href="https://bikes.example/book">Book a bike</a></p></main>`;
const assistant = { title: "Ask Harbour Bikes", suggestedQuestions: ["What does a cargo bike cost?"] };
const long =
  "A cargo bike costs 39 EUR a day. A city bike costs 14 EUR a day. We are open Monday to Saturday from 9:00 to 18:00. We rent city bikes and cargo bikes by the day.";

/** A service with one published page and the assistant on. */
async function furnished(
  t: Test,
  env: Record<string, string> = {},
): Promise<{ service: Service; owner: Awaited<ReturnType<Service["handle"]>> }> {
  await bundleAssets();
  const service = await startService(t, { workers: true, env: { PUBLIC_PAGE_AGENT_ALLOWED_HANDLES: "acme", ...env } });
  const owner = await service.handle("acme");
  await owner
    .post("/v2/handles/acme/pages")
    .send({ pageSlug: "bikes", title: "Harbour Bikes", content, assistant, status: "PUBLISHED" })
    .expect(201);
  return { service, owner };
}

/** The same with a model that writes slowly. */
async function slow(t: Test): Promise<{ service: Service; model: ModelServer }> {
  const model = await startModelServer({ reply: () => long, everyMs: 60 });
  t.teardown(() => model.close());
  const { service } = await furnished(t, { OLLAMA_HOST: model.url, PUBLIC_PAGE_AGENT_MODEL_ID: "scripted:chat" });
  return { service, model };
}

/** A way to a service that can be cut. */
async function line(t: Test, to: string): Promise<{ url: string; cut(): void }> {
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connectTo(Number(new URL(to).port), "127.0.0.1");
    for (const socket of [near, far]) {
      sockets.add(socket);
      // The test cuts the end on purpose.
      socket.on("error", () => near.destroy() && far.destroy());
      socket.on("close", () => sockets.delete(socket));
    }
    near.pipe(far).pipe(near);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  t.teardown(() => {
    server.close();
    cut();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, cut };
}

async function visit(t: Test, browser: Browser, url: string, slug = "bikes"): Promise<ChatVisitor> {
  return new ChatVisitor(await openPage(t, browser, `${url}/p/acme/${slug}`));
}

async function run(t: Test): Promise<void> {
  const browser = await startBrowser(t);

  await t.test("a visitor opens a page, asks, and gets an answer with its source", async (t) => {
    const { service } = await furnished(t);
    const visitor = await visit(t, browser, service.url);
    await visitor.open();
    await visitor.page.getByRole("button", { name: "What does a cargo bike cost?" }).click();
    await visitor.answered();
    t.match(await visitor.text(), "A cargo bike costs 39 EUR a day.");
    const source = visitor.answer.getByRole("link", { name: /Harbour Bikes/ }).first();
    t.match(await source.getAttribute("href"), "http://service.test/p/acme/bikes");
    await picture(visitor.page, "service");
    await visitor.ask("When are you open?");
    await visitor.answered();
    t.match(await visitor.text(), "9:00");
    t.equal(await visitor.log.locator(".question").count(), 2);
    t.same(await violations(visitor.page), []);
  });

  await t.test("a visitor's lead reaches the owner with the disclosed data", async (t) => {
    const { service, owner } = await furnished(t);
    const visitor = await visit(t, browser, service.url);
    await visitor.open();
    await visitor.ask("Can I get a quote for five cargo bikes?");
    await visitor.answered();
    await visitor.page.locator(".lead-toggle").click();
    const frame = await eventually(() => visitor.page.frames().find((one) => one.url().includes("/lead-sections/")));
    await frame.locator("input[name=email]").fill("visitor@example.com");
    await frame.locator("input[name=name]").fill("Vera Visitor");
    await picture(visitor.page, "service-lead");
    await frame.locator("button[type=submit]").click();
    await visitor.page.getByText("Thank you. Your message has arrived.").first().waitFor();
    const { leads } = (await owner.get("/v2/handles/acme/leads").expect(200)).body;
    t.equal(leads.length, 1);
    t.match(leads[0], { email: "visitor@example.com", name: "Vera Visitor", pageSlug: "bikes" });
    const { lead } = (await owner.get(`/v2/handles/acme/leads/${leads[0].leadId}`).expect(200)).body;
    t.match(lead.leadContext, { pageSlug: "bikes", visitorQuestion: "Can I get a quote for five cargo bikes?" });
    await visitor.ask("May I have another quote?");
    await visitor.answered();
    t.equal(await visitor.page.locator(".lead-toggle").count(), 1, "the section is shown once a chat");
  });

  await t.test("a page with a mount shows the widget in place, under the page's strict policy", async (t) => {
    const { service, owner } = await furnished(t);
    const mounted = content.replace("</main>", '<div id="svc-public-page-agent-inline"></div></main>');
    await owner
      .post("/v2/handles/acme/pages")
      .send({ pageSlug: "inline", title: "Inline", content: mounted, status: "PUBLISHED" })
      .expect(201);
    const visitor = await visit(t, browser, service.url, "inline");
    await visitor.ask("What does a cargo bike cost?");
    await visitor.answered();
    t.match(await visitor.text(), "39 EUR");
    t.equal(await visitor.launcher.count(), 0);
  });

  await t.test("an answer is shown word by word, and a stop ends it at the model", async (t) => {
    const { service, model } = await slow(t);
    const visitor = await visit(t, browser, service.url);
    await visitor.open();
    await visitor.ask("What does a cargo bike cost?");
    await visitor.answer.getByText("A cargo bike costs").waitFor();
    t.ok((await visitor.text()).length < long.length);
    await visitor.stop.click();
    await visitor.answer.getByText("Stopped.").waitFor();
    await eventually(() => model.aborted === 1, 3000);
    model.script.everyMs = 0;
    await visitor.retry.click();
    await visitor.answer.getByText("9:00 to 18:00").waitFor();
    await visitor.answered();
  });

  await t.test("a dropped connection resumes, and no word is lost or repeated", async (t) => {
    const { service, model } = await slow(t);
    const { url, cut } = await line(t, service.url);
    const visitor = await visit(t, browser, url);
    await visitor.open();
    await visitor.ask("What does a cargo bike cost?");
    await visitor.answer.getByText("A cargo bike costs").waitFor();
    cut();
    await visitor.answer.getByText("Reconnecting").waitFor();
    await visitor.answer.getByText("by the day.").waitFor();
    await visitor.answered();
    t.equal((await visitor.text()).split("A cargo bike costs 39 EUR a day.").length, 2);
    t.equal(model.requests.filter(({ path }) => path === "/api/chat").length, 1, "the model was asked once");
    t.equal(await visitor.retry.count(), 0);
  });

  await t.test("a page whose assistant is off has no widget", async (t) => {
    const { service } = await furnished(t, { PUBLIC_PAGE_AGENT_ALLOWED_HANDLES: "another" });
    const visitor = await visit(t, browser, service.url);
    await visitor.page.getByRole("heading", { name: "Harbour Bikes" }).waitFor();
    t.equal(await visitor.launcher.count(), 0);
    t.equal(await visitor.page.locator("script").count(), 0);
  });
}
