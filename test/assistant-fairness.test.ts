import t from "tap";
import { startModelServer } from "../fixtures/model-server.ts";
import { eventually, startService } from "../fixtures/service.ts";

const content = "<h1>Harbour Bikes</h1><h2>Prices</h2><p>A cargo bike costs 39 EUR a day.</p>";

t.test("two hundred questions to one handle delay the one question to another by about one answer", async (t) => {
  const model = await startModelServer({ firstAfter: 400, reply: () => "A cargo bike costs 39 EUR a day." });
  t.teardown(() => model.close());
  const env = {
    ...{ PUBLIC_PAGE_AGENT_ENABLED: "1", PUBLIC_PAGE_AGENT_BURST: "1000", GENERATION_CONCURRENCY: "4" },
    ...{ OLLAMA_HOST: model.url, PUBLIC_PAGE_AGENT_MODEL_ID: "scripted:chat" },
  };
  const service = await startService(t, { workers: ["generation"], env });
  for (const handle of ["big", "small"]) {
    const owner = await service.handle(handle);
    const page = { pageSlug: "bikes", title: "Bikes", content, status: "PUBLISHED" };
    await owner.post(`/v2/handles/${handle}/pages`).send(page).expect(201);
  }
  const leaving = new AbortController();
  const ask = (handle: string) =>
    fetch(`${service.url}/v2/public/pages/${handle}/bikes/agentic-chat`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ messages: [{ role: "user", parts: [{ type: "text", text: "What is a cargo bike?" }] }] }),
      signal: leaving.signal,
    });
  await (await ask("small")).text();
  const crowd = await Promise.all(Array.from({ length: 200 }, () => ask("big")));
  await eventually(() => model.finished > 8);
  const before = model.finished;
  const text = await (await ask("small")).text();
  t.match(text, /39 EUR/);
  t.ok(model.finished - before < 20, `${model.finished - before} answers of the other one came between`);
  leaving.abort();
  await Promise.allSettled(crowd.map((one) => one.text()));
});
