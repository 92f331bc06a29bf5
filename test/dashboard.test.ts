import t from "tap";
import { job } from "../core/store/outbox.ts";
import { openPage, startBrowser, withoutBrowser } from "../fixtures/browser.ts";
import { startService } from "../fixtures/service.ts";

const token = "operators-only";
const password = `Basic ${btoa(`anyone:${token}`)}`;

t.test("METRICS_TOKEN opens the queue board, as bearer or as a browser's password", async (t) => {
  const { visitor } = await startService(t, { env: { METRICS_TOKEN: token } });
  const refused = await visitor.get("/queues").expect(401);
  t.match(refused.headers["www-authenticate"], /^Basic /);
  t.match(refused, { type: "application/problem+json", body: { code: "missing_bearer_token" } });
  const browser = await visitor.get("/queues").set("Accept", "text/html").expect(401);
  t.match(browser, { type: "text/html", headers: { "www-authenticate": /^Basic / }, text: /<h1>Not allowed</ });
  t.match(await visitor.get("/metrics").set("Accept", "text/html"), { status: 401, text: /<h1>Not allowed</ });
  for (const wrong of ["Bearer other", `Basic ${btoa("anyone:other")}`, `Basic ${btoa(token)}`, "Basic ?"])
    await visitor.get("/queues/api/queues").set("Authorization", wrong).expect(401);
  for (const right of [`Bearer ${token}`, password]) {
    const page = await visitor.get("/queues").set("Authorization", right).expect(200);
    t.match(page.headers["content-type"], "text/html");
    t.match(page.headers["content-security-policy"], "default-src 'self'");
    t.match(page.text, '<base href="/queues/"');
    t.notMatch(page.text, /<%|https?:\/\//, "nothing is left to fill in, and nothing comes from elsewhere");
  }
});

t.test("the board shows counts and ids of six queues, and changes nothing", async (t) => {
  const { runtime, visitor } = await startService(t);
  const data = { handle: "acme", documentId: "doc_1" };
  await runtime.queues.later(job("knowledge.index", "one", data, { delay: 60_000 }));
  const { body } = await visitor.get("/queues/api/queues?activeQueue=knowledge&page=1").expect(200);
  t.same(body.queues.map(({ name }: { name: string }) => name).sort(), [
    "campaigns",
    "email",
    "generation",
    "knowledge",
    "scheduling",
    "webhooks",
  ]);
  const knowledge = body.queues.find(({ name }: { name: string }) => name === "knowledge");
  t.match(knowledge, { counts: { delayed: 1 }, readOnlyMode: true });
  const shown = await visitor.get("/queues/api/queues/knowledge/one").expect(200);
  t.match(shown.body.job, { id: "one", name: "knowledge.index", data });
  const refused = await visitor.put("/queues/api/queues/knowledge/one/promote").send({}).expect(405);
  t.equal(refused.headers.allow, "HEAD, GET");
  await visitor.post("/queues/api/queues/knowledge/add").send({}).expect(405);
  t.equal(await (await runtime.queues.queue("knowledge").getJob("one"))?.getState(), "delayed");
});

t.test("a browser shows the board, with no word from elsewhere", { skip: withoutBrowser }, async (t) => {
  const { url, visitor } = await startService(t, { env: { METRICS_TOKEN: token } });
  await visitor.get("/queues").expect(401);
  const httpCredentials = { username: "anyone", password: token };
  const page = await openPage(t, await startBrowser(t), `${url}/queues`, { httpCredentials });
  await page.getByText("generation").first().waitFor();
  await page.goto(`${url}/queues/queue/webhooks?status=failed`);
  await page.getByText("webhooks").first().waitFor();
});

t.test("files of the board alone are served, and unknown paths are 404", async (t) => {
  const { visitor } = await startService(t);
  const { text } = await visitor.get("/queues/").expect(200);
  const files = [...text.matchAll(/(?:src|href)="(static\/[^"]+)"/g)].map(([, file]) => file);
  t.ok(files.length > 3);
  for (const file of files) await visitor.get(`/queues/${file}`).expect(200);
  const absent = ["static/../index.ejs", "static/%2e%2e/index.ejs", "static/none.js", "static/js", "api/none", "a/%E0"];
  for (const path of absent) t.equal((await visitor.get(`/queues/${path}`)).status, 404, path);
  await visitor.get("/queuesx").expect(404);
});

t.test("in production the board exists only with METRICS_TOKEN", async (t) => {
  const key = "a".repeat(43);
  const { visitor } = await startService(t, { env: { NODE_ENV: "production", SECRET_KEY: key } });
  await visitor.get("/queues").expect(404);
  await visitor.get("/queues/api/queues").set("Authorization", "Bearer ").expect(404);
});
