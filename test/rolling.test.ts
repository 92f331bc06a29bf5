import t from "tap";
import { startBalancer } from "../fixtures/balancer.ts";
import { freePort } from "../fixtures/ports.ts";
import { type Running, spawnProgram } from "../fixtures/processes.ts";
import { startRedis } from "../fixtures/redis.ts";
import { eventually } from "../fixtures/service.ts";

const graceful = { code: 0, signal: null };

t.test("a deploy fails no request: web and worker processes are replaced one after another under load", async (t) => {
  const redis = await startRedis();
  t.teardown(() => redis.stop());
  const ports = [await freePort(), await freePort()];
  const { url, broken } = await startBalancer(t, ports);
  const env = { ...redis.env, BASE_URL: url, PUBLIC_PAGE_AGENT_ENABLED: "1", PUBLIC_PAGE_AGENT_BURST: "100000" };
  const running: Running[] = [];
  /** The warnings and errors of the processes. */
  const complaints = (): string =>
    running
      .flatMap(({ stdout }) => stdout.split("\n"))
      .filter((line) => /"level":"(warn|error|fatal)"/.test(line))
      .join("\n");
  const startWeb = async (port: number): Promise<Running> => {
    const web = spawnProgram(t, "api/server.ts", { ...env, PORT: String(port) });
    running.push(web);
    await web.says("web.ready");
    return web;
  };
  const startWorker = async (): Promise<Running> => {
    const worker = spawnProgram(t, "workers/main.ts", env);
    running.push(worker);
    await worker.says("worker.ready");
    return worker;
  };
  const admin = async (...words: string[]): Promise<{ token?: string }> => {
    const ran = spawnProgram(t, "scripts/admin.ts", env, words);
    t.same(await ran.ended, graceful, ran.stderr);
    return JSON.parse(ran.stdout);
  };
  const [webs, worker] = [await Promise.all(ports.map(startWeb)), await startWorker()];
  await admin("create-handle", "--handle", "acme", "--account", "acct_acme", "--owner", "user_1");
  const { token } = await admin("token", "--user", "user_1");
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const post = (path: string, body: object): Promise<Response> =>
    fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
  const content = "<p>The small plan costs 12 EUR.</p>";
  await post("/v2/handles/acme/pages", { pageSlug: "prices", title: "Prices", status: "PUBLISHED", content });

  const failed: string[] = [];
  const made: string[] = [];
  let isOver = false;
  /** One visitor or owner after another; every answer counts. */
  const ask = async (): Promise<void> => {
    for (let turn = 0; !isOver; turn++) {
      const page = await fetch(`${url}/p/acme/prices`);
      const asked = { question: "What does the small plan cost?" };
      const answer = await post("/v2/public/pages/acme/prices/agentic-question", asked);
      const note = await post("/v2/handles/acme/knowledge/documents", { title: `Note ${turn}`, content: "Words." });
      const said = await Promise.all([page, answer, note].map((one) => one.text()));
      for (const [at, { status }] of [page, answer, note].entries())
        if (status > 299) failed.push(`${at} ${status} ${said[at]}`);
      if (note.status === 202) made.push(JSON.parse(said[2] as string).document.documentId);
    }
  };
  const asking = [1, 2, 3, 4].map(ask);
  const next = await startWorker();
  t.same(await worker.end(), graceful, "the new worker continues the old one's jobs");
  for (const [at, port] of ports.entries()) {
    t.same(await webs[at]?.end(), graceful);
    await startWeb(port);
  }
  isOver = true;
  await Promise.all(asking);
  t.same(broken, [], complaints());
  t.same(failed, [], complaints());
  t.ok(made.length > 10);
  const statusOf = async (id: string): Promise<string> => {
    const read = await fetch(`${url}/v2/handles/acme/knowledge/documents/${id}`, { headers });
    return ((await read.json()) as { document: { status: string } }).document.status;
  };
  for (const id of made) await eventually(async () => (await statusOf(id)) === "READY");
  t.same(await next.end(), graceful);
});
