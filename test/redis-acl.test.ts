import t from "tap";
import { live, openTown } from "../fixtures/mixed-life.ts";
import { startRedis } from "../fixtures/redis.ts";
import { tell } from "../fixtures/redis-pair.ts";

const rights = {
  CONFIG: ["+@all", "-@admin", "-@dangerous", "+info"],
  "CONFIG and INFO": ["+@all", "-@admin", "-@dangerous"],
};

for (const [forbidden, rules] of Object.entries(rights))
  t.test(`a Redis user without ${forbidden} serves every noun and queue`, async (t) => {
    const server = await startRedis({ single: true });
    t.teardown(() => server.stop());
    await tell(server, (redis) => redis.call("ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", ...rules));
    const url = `redis://app:secret@127.0.0.1:${server.port}`;
    const town = await openTown(t, { ...server, url, env: { REDIS_URL: url } });
    t.match(await live(town, "acme"), { answer: /within 30 days/ });
    await town.service.visitor.get("/metrics").expect(200);
    await town.service.visitor.get("/readyz").expect(200);
  });
