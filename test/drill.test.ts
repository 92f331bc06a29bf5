import { cp, mkdir } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { documentKey } from "../core/knowledge/documents.ts";
import { keys } from "../core/store/keys.ts";
import { live, openTown } from "../fixtures/mixed-life.ts";
import { startRedis } from "../fixtures/redis.ts";
import { startService } from "../fixtures/service.ts";
import { drill } from "../scripts/drill.ts";

t.test("a backup that was taken while the service runs restores every record", async (t) => {
  const redis = await startRedis();
  t.teardown(() => redis.stop());
  const town = await openTown(t, redis);
  const { runtime } = town.service;
  await live(town, "acme");
  const found = await drill(runtime.redis, { url: redis.url });
  t.ok(found.every(({ bytes }) => bytes > 500));
  t.ok(found.reduce((sum, one) => sum + one.keys, 0) > 100);
  t.same(
    found.flatMap(({ missing }) => missing),
    [],
  );
  for (const { differences } of found)
    for (const kind of ["handle", "page", "lead", "booking", "message"]) t.notOk(differences[kind], kind);
  // The drill sees what a broken copy lacks.
  const first = async (list: string) => (await runtime.redis.zrange(list, 0, "0"))[0] ?? "";
  const campaignId = await first(keys.campaigns("acme"));
  const records = [
    keys.lead("acme", await first(keys.leads("acme"))),
    documentKey("acme", await first(keys.documents("acme"))),
    keys.rule("acme", campaignId, await first(keys.rules("acme", campaignId))),
  ];
  for (const record of records) t.equal(await runtime.redis.del(record), 1, record);
  const broken = await drill(runtime.redis, { url: redis.url });
  t.same(broken.flatMap(({ missing }) => missing).sort(), records.sort());
});

t.test("a service restored from the files of its Redis continues", async (t) => {
  const lost = await startRedis({ appendonly: true, single: true });
  t.teardown(() => lost.stop());
  const before = await startService(t, { redis: lost });
  const owner = await before.handle("acme");
  const content = "<p>The small plan costs 12 EUR.</p>";
  await owner.post("/v2/handles/acme/pages").send({ pageSlug: "index", title: "Prices", content, status: "PUBLISHED" });
  const document = { title: "Refunds", content: "Within 30 days." };
  await owner.post("/v2/handles/acme/knowledge/documents").send(document).expect(202);
  // A crash of the machine: only the files on its disk are left.
  await lost.kill();
  const dir = join(t.testdir(), "restored");
  await mkdir(dir);
  await cp(lost.dir, dir, { recursive: true });
  const redis = await startRedis({ appendonly: true, dir, single: true });
  t.teardown(() => redis.stop());
  const after = await startService(t, { redis, workers: true });
  t.match((await after.visitor.get("/p/acme/index").expect(200)).text, content);
  const again = await after.as("user_acme");
  const status = async () => (await again.get("/v2/handles/acme/knowledge/documents")).body.documents[0].status;
  for (const until = Date.now() + 20_000; (await status()) !== "READY" && Date.now() < until; );
  t.equal(await status(), "READY", "and its waiting jobs are done");
});
