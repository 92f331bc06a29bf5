import t from "tap";
import { live, openTown } from "../fixtures/mixed-life.ts";
import { startWatched } from "../fixtures/redis-sentinel.ts";
import { eventually } from "../fixtures/service.ts";
import { drill } from "../scripts/drill.ts";

const withinMs = 5000;

t.test("with Sentinels the service works within 5 s of a promotion, planned or after a crash", async (t) => {
  const redis = await startWatched();
  t.teardown(() => redis.stop());
  const town = await openTown(t, redis);
  await live(town, "before");
  const { text } = await town.service.visitor.get("/metrics").expect(200);
  t.match(text, /^redis_kind\{kind="sentinel"\} 1$/m);
  t.match(text, /^redis_memory_bytes\{server="main",kind="used"\} [1-9]/m);
  const [{ keys = 0, missing } = {}] = await drill(town.service.runtime.redis, { url: redis.env.REDIS_URL ?? "" });
  t.ok(keys > 10, "a backup is taken of the master");
  t.same(missing, []);
  const owner = await town.service.as("user_before");
  const moves = { planned: () => redis.failOver(), crash: () => redis.killMaster() };
  for (const [name, move] of Object.entries(moves)) {
    await move();
    const promoted = Date.now();
    const page = { pageSlug: name, title: name, content: "<p>Here</p>" };
    await eventually(async () => {
      const { status, headers } = await owner.post("/v2/handles/before/pages").send(page);
      t.ok(status === 201 || (status === 503 && Number(headers["retry-after"]) > 0), `${name}: ${status}`);
      return status === 201;
    });
    t.ok(Date.now() - promoted < withinMs, `${name}: ${Date.now() - promoted} ms`);
    t.match(await live(town, name), { answer: /within 30 days/ }, "every noun and queue goes on");
  }
});
