import { Redis } from "ioredis";
import t from "tap";
import { createHandle } from "../core/account/handles.ts";
import { eraseHandle } from "../core/operations/erasure.ts";
import { keys } from "../core/store/keys.ts";
import { isRedisAway, mastersOf } from "../core/store/redis.ts";
import { live, openTown } from "../fixtures/mixed-life.ts";
import { keyNames } from "../fixtures/redis.ts";
import { startCluster } from "../fixtures/redis-cluster.ts";
import { eventually, startService } from "../fixtures/service.ts";

/** A handle of each node: the first of `spread-1`, `spread-2` … whose slot lies in the node's third. */
async function spread(slotOf: (handle: string) => Promise<number>): Promise<string[]> {
  const found: string[] = [];
  for (let number = 1; found.filter((one) => one !== undefined).length < 3; number++) {
    const handle = `spread-${number}`;
    found[Math.floor((3 * (await slotOf(handle))) / 16384)] ??= handle;
  }
  return found;
}

t.test("handles on three nodes of a cluster live their whole life: every noun, over every queue", async (t) => {
  const redis = await startCluster();
  t.teardown(() => redis.stop());
  const town = await openTown(t, redis);
  const { runtime } = town.service;
  const handles = await spread(async (handle) => Number(await runtime.redis.cluster("KEYSLOT", keys.handle(handle))));
  const lives = await Promise.all(handles.map((handle) => live(town, handle)));
  for (const { handle, page, answer, stream, mailed, told } of lives) {
    t.match(page, `<h1>${handle}</h1>`, "a page");
    t.match(answer, "within 30 days", "knowledge");
    t.match(stream, /"type":"text-delta"[\s\S]*data: \[DONE\]/, "a chat's stream");
    t.equal(mailed.length, 2, "a direct mail and the one of a lead's rule");
    t.same(told, ["scheduling.booking.confirmed", "scheduling.booking.created"], "a booking's webhooks");
  }
  const held = await Promise.all(mastersOf(runtime.redis).map((server) => server.keys("handle:*")));
  t.same(
    held.map((names) => names.length),
    [1, 1, 1],
    "each node keeps one of them",
  );
  const [first = "", second = ""] = handles;
  await eraseHandle(runtime, first);
  t.same(await keyNames(runtime.redis, `*{${first}}*`), [], "an erased handle leaves no key on any node");
  t.equal((await town.service.visitor.get(`/p/${second}/index`)).status, 200);
});

t.test("outboxes that a crash left on any node are swept", async (t) => {
  const redis = await startCluster();
  t.teardown(() => redis.stop());
  const service = await startService(t, { redis });
  const { runtime } = service;
  const tags = ["one", "two", "three", "four"];
  for (const tag of tags) {
    await createHandle(runtime, { handle: tag, account: "acct", owner: "user", assistant: true });
    const left = { name: "knowledge.index", id: `left-${tag}`, data: { handle: tag, documentId: "doc_none" } };
    await runtime.queues.register(tag);
    await runtime.redis.hset(keys.outbox(tag), left.id, JSON.stringify(left));
  }
  t.equal(await runtime.queues.sweep(-1000), tags.length);
  await service.startWorkers(["knowledge"]);
  const queue = runtime.queues.queue("knowledge");
  await eventually(async () => (await queue.getJobCounts("waiting", "active")).waiting === 0);
  for (const tag of tags) t.equal(await runtime.redis.hlen(keys.outbox(tag)), 0);
});

t.test("a handle that would cut the tag of a key in two is as unknown as any other", async (t) => {
  const redis = await startCluster();
  t.teardown(() => redis.stop());
  const service = await startService(t, { redis, env: { PUBLIC_PAGE_AGENT_ENABLED: "1" } });
  const owner = await service.handle("acme");
  const question = { question: "How much?" };
  for (const handle of ["%7D%7B", "a%7D", "%7B"]) {
    await service.visitor.get(`/p/${handle}/pricing`).expect(404);
    await service.visitor.post(`/v2/public/pages/${handle}/pricing/agentic-question`).send(question).expect(404);
    await owner.get(`/v2/handles/${handle}/email/suppressions`).expect(403);
  }
});

t.test("an id that begins with a brace is unknown, and disturbs no other request", async (t) => {
  const redis = await startCluster();
  t.teardown(() => redis.stop());
  const service = await startService(t, { redis });
  const owner = await service.handle("acme");
  const proof = { attemptId: "}{", deviceProofVerifier: "x" };
  const calls = Array.from({ length: 40 }, () => [
    owner.get("/v2/account/domains/%7D%7B/email-identity").expect(404),
    service.visitor.post("/oauth/assistant/desktop/redeem").send(proof).expect(410),
    owner.get("/v2/handles/acme/pages").expect(200),
  ]);
  t.equal((await Promise.all(calls.flat())).length, 120);
});

t.test("while a cluster is away the answer is 503, in time", async (t) => {
  const redis = await startCluster();
  const service = await startService(t, { redis });
  const owner = await service.handle("acme");
  await owner.get("/v2/handles/acme/pages").expect(200);
  await redis.kill();
  for (const path of ["/v2/handles/acme/pages", "/p/acme/index", "/readyz"]) {
    const { status, headers } = await owner.get(path).timeout(5000);
    t.equal(status, 503, path);
    t.ok(Number(headers["retry-after"]) > 0, path);
  }
});

t.test("nodes that refused writes for a while are found again, for commands that are sent together too", async (t) => {
  const redis = await startCluster();
  t.teardown(() => redis.stop());
  const { runtime } = await startService(t, { redis });
  const nodes = mastersOf(runtime.redis).map(({ options: { port = 0 } }) => new Redis(port, "127.0.0.1"));
  t.teardown(() => {
    for (const node of nodes) node.disconnect();
  });
  const waitForReplicas = (count: string) =>
    Promise.all(nodes.map((node) => node.config("SET", "min-replicas-to-write", count)));
  const written = async () => {
    const names = Array.from({ length: 64 }, (_, at) => `spread-${at}`);
    const ended = await Promise.allSettled(names.map((name) => runtime.redis.set(name, "1")));
    const failures = ended.flatMap((one) => (one.status === "rejected" ? [one.reason as Error] : []));
    t.same(
      failures.filter((error) => !isRedisAway(error)),
      [],
      "they fail as they do without Redis",
    );
    return failures.length === 0;
  };
  t.ok(await written());
  for (let round = 0; round < 3; round++) {
    await waitForReplicas("1");
    t.notOk(await written());
    await waitForReplicas("0");
    t.ok(await eventually(written, 3000));
    // A connection is given up at most once a second.
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
});
