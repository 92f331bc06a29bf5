import { once } from "node:events";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import t from "tap";
import { accountOf, createHandle } from "../core/account/handles.ts";
import { eraseHandle } from "../core/operations/erasure.ts";
import { exportHandle } from "../core/operations/handle-export.ts";
import { adminOf } from "../fixtures/admin.ts";
import { keyNames } from "../fixtures/redis.ts";
import { eventually, type Service, startService } from "../fixtures/service.ts";

// Each command is a process of its own.
/** Every key of a Redis with its content. */
async function everything({ runtime: { redis } }: Service): Promise<Map<string, string>> {
  const names = (await keyNames(redis, "*")).sort();
  return new Map(await Promise.all(names.map(async (name) => [name, String(await redis.dumpBuffer(name))] as const)));
}

/** A job that fails at once: only a newer deploy could read it, and none has come within a week. */
const unreadable = { delay: 1, timestamp: Date.now() - 8 * 86_400_000 };

t.test("failed jobs are listed with their handle, without other data, and are retried on command", async (t) => {
  const service = await startService(t, { workers: true });
  const admin = adminOf(t, service);
  const queue = service.runtime.queues.queue("knowledge");
  const broken = { jobId: "knowledge.index-broken", ...unreadable };
  await queue.add("knowledge.index", { handle: "acme", secret: "content" }, broken);
  const [shown] = await eventually(async () => {
    const { result } = await admin("failed-jobs");
    return (result.jobs as Record<string, unknown>[]).length > 0 && (result.jobs as Record<string, unknown>[]);
  });
  t.match(shown, {
    id: "knowledge.index-broken",
    queue: "knowledge",
    name: "knowledge.index",
    handle: "acme",
    attempts: 1,
    failedReason: /newer deploy/,
  });
  t.notMatch(JSON.stringify(shown), /content/);
  const failedAt = (await queue.getJob("knowledge.index-broken"))?.finishedOn ?? 0;
  t.match((await admin("retry-job", "--id", "knowledge.index-broken")).result, {
    job: { id: "knowledge.index-broken" },
  });
  await eventually(async () => ((await queue.getJob("knowledge.index-broken"))?.finishedOn ?? 0) > failedAt);
  t.equal((await admin("retry-job", "--id", "nothing")).error?.code, "job_not_found");
  await queue.add("knowledge.index", {}, { jobId: "knowledge.index-waiting", delay: 3_600_000 });
  t.equal((await admin("retry-job", "--id", "knowledge.index-waiting")).error?.code, "job_not_failed");
});

t.test("a failed attempt of a job is logged with its handle", async (t) => {
  const { runtime } = await startService(t, { workers: ["knowledge"] });
  const logged: object[] = [];
  t.intercept(runtime.log, "warn", {
    value: (fields: object, event: string) => void logged.push({ event, ...fields }),
  });
  await runtime.queues
    .queue("knowledge")
    .add("knowledge.index", { handle: "acme" }, { jobId: "broken", ...unreadable });
  await eventually(() => logged.length > 0);
  t.match(logged, [{ event: "queue.job.failed", job: "knowledge.index", handle: "acme", attempt: 1 }]);
});

t.test("a command that can't open the secrets of the installation says so and ends", async (t) => {
  const service = await startService(t);
  await service.handle("acme");
  const admin = adminOf(t, service, { SECRET_KEY: Buffer.alloc(32, "another").toString("base64") });
  const ended = await Promise.race([admin("erase-handle", "--handle", "acme"), sleep(20_000)]);
  t.match(ended, { code: 1, error: { detail: /^Sealed with a key that is not known here/ } });
});

t.test("documents of an unknown handle are not indexed again", async (t) => {
  const admin = adminOf(t, await startService(t));
  t.equal((await admin("reindex-knowledge", "--handle", "nope")).error?.code, "not_found");
  t.same((await admin("reindex-knowledge")).result, { enqueued: 0 });
});

t.test("an export contains every key of a handle, and erasing it leaves all others unchanged", async (t) => {
  const service = await startService(t);
  const admin = adminOf(t, service);
  // Names that are tags of other keys too.
  await service.handle("acme", { account: "all", owner: "acme" });
  await service.handle("all", { account: "all", owner: "acme" });
  await admin("attach-domain", "--account", "all", "--domain", "acme.test", "--handle", "all", "--ready");
  const owner = await service.as("acme");
  const before = await everything(service);
  await owner.post("/v2/handles/all/pages").send({ pageSlug: "index", title: "Home", content: "<p>ä</p>" }).expect(201);
  await owner.post("/v2/handles/all/knowledge/documents").send({ title: "A", content: "Some words." }).expect(202);
  await admin("create-campaign", "--handle", "all", "--campaign", "cmp_a", "--name", "A");
  await service.runtime.redis.hset("chunk:{all}:binary:0", "vector", Buffer.from([0xff, 0xfe, 0x01]));
  const file = join(t.testdir(), "all.jsonl");
  writeFileSync(file, "", { mode: 0o644 });
  const { result } = await admin("export-handle", "--handle", "all", "--file", file);
  t.equal(statSync(file).mode & 0o777, 0o600, "its owner alone may read it, also if it was there before");
  const lines = readFileSync(file, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as { key: string; value: unknown });
  const [header, end] = [lines.shift(), lines.pop()];
  t.match(header, { format: "handle-export", version: 2, handle: "all", members: [{ userId: "acme", role: "OWNER" }] });
  t.same(end, { end: true, keys: result.keys });
  t.equal(lines.length, result.keys);
  const exported = new Map(lines.map(({ key, value }) => [key, value]));
  t.match(exported.get("page:{all}:index"), { json: /<p>ä<\/p>/ });
  t.same(exported.get("chunk:{all}:binary:0"), { vector: { base64: "//4B" } });
  t.match(await admin("erase-handle", "--handle", "all"), { code: 0, result: { handle: "all", grantsLeft: [] } });
  const after = await everything(service);
  // A session notes its last use while the test asks.
  const left = [...after.keys()]
    .filter((key) => before.get(key) !== after.get(key) && !/^(queue|dirty|sessions):/.test(key))
    .sort();
  t.same(
    left,
    ["account-handles:{all}", "domain:{acme.test}", "handles:{all}", "user-handles:{acme}"],
    "lists that named the handle",
  );
  t.same([...before.keys()].filter((key) => !after.has(key)).sort(), ["handle:{all}", "knowledge:{all}"]);
  t.same(await service.runtime.redis.smembers("account-handles:{all}"), ["acme"]);
  await owner.get("/v2/handles/all/pages").expect(403);
  await owner.get("/v2/handles/acme/pages").expect(200);
  t.equal((await admin("erase-handle", "--handle", "all")).error?.code, "not_found");
  t.equal((await admin("export-handle", "--handle", "all", "--file", file)).error?.code, "not_found");
  t.match(readFileSync(file, "utf8"), '"end":true', "a wrong name leaves the file as it was");
});

t.test("a handle can be erased while visitors ask for it without end", async (t) => {
  const service = await startService(t);
  await service.handle("acme");
  let isErased = false;
  const visits = async () => {
    while (!isErased) await service.visitor.post("/v2/public/handles/acme/leads").send({ email: "ada@example.com" });
  };
  const visited = visits();
  const erased = eraseHandle(service.runtime, "acme");
  const late = new Promise((resolve) => setTimeout(resolve, 15_000, "late"));
  t.match(await Promise.race([erased, late]), { handle: "acme" });
  isErased = true;
  await Promise.all([visited, erased]);
  const isBucket = (key: string) => key.startsWith("bucket:");
  t.same(
    (await keyNames(service.runtime.redis, "*{acme}*")).filter((key) => !isBucket(key)),
    [],
  );
});

t.test("a request whose body comes after its handle was erased writes nothing", async (t) => {
  const service = await startService(t, { env: { PUBLIC_PAGE_AGENT_ENABLED: "1" } });
  await service.handle("acme");
  const { redis } = service.runtime;
  const authorization = `Bearer ${await service.token("user_acme")}`;
  const begin = (path: string, body: object) => {
    const text = JSON.stringify(body);
    const headers = { authorization, "content-type": "application/json", "content-length": text.length };
    const sending = request(`${service.url}${path}`, { method: "POST", headers });
    sending.write(text.slice(0, 9));
    const answer = once(sending, "response").then(([response]) => response.resume().statusCode as number);
    return { answer, finish: () => sending.end(text.slice(9)) };
  };
  const requests = [
    begin("/v2/public/handles/acme/leads", { email: "ada@example.com" }),
    begin("/v2/handles/acme/pages", { pageSlug: "prices", title: "Prices" }),
  ];
  // Meanwhile their access is checked.
  await sleep(300);
  await eraseHandle(service.runtime, "acme");
  for (const { finish } of requests) finish();
  t.same(await Promise.all(requests.map(({ answer }) => answer)), [404, 403]);
  const isBucket = (key: string) => key.startsWith("bucket:");
  t.same(
    (await keyNames(redis, "*{acme}*")).filter((key) => !isBucket(key)),
    [],
  );
});

t.test("the account of a handle is cached for a minute, however often it is asked for", async (t) => {
  const { runtime } = await startService(t);
  const now = performance.now.bind(performance);
  t.teardown(() => Object.assign(performance, { now }));
  const made = { handle: "acme", owner: "user_acme", assistant: true };
  await createHandle(runtime, { ...made, account: "acct_old" });
  for (const seconds of [0, 40]) {
    Object.assign(performance, { now: () => now() + seconds * 1000 });
    t.equal(await accountOf(runtime.redis, "acme"), "acct_old");
  }
  await eraseHandle(runtime, "acme");
  await createHandle(runtime, { ...made, account: "acct_new" });
  Object.assign(performance, { now: () => now() + 80_000 });
  t.equal(await accountOf(runtime.redis, "acme"), "acct_new");
});

t.test("a key that expires while it is exported is left out", async (t) => {
  const service = await startService(t);
  await service.handle("acme");
  const { redis } = service.runtime;
  const key = "email-once:{acme}:short";
  await redis.set(key, "msg_1", "PX", 60_000);
  // Read just before the end, and asked for its lifetime just after.
  const pttl = redis.pttl.bind(redis);
  redis.pttl = (async (one: string) => {
    await redis.del(key);
    return pttl(one);
  }) as typeof redis.pttl;
  const found: string[] = [];
  let counted = 0;
  for await (const line of exportHandle(service.runtime, "acme"))
    if ("key" in line) found.push(line.key);
    else if ("end" in line) counted = line.keys;
  t.notOk(found.includes(key));
  t.equal(counted, found.length);
});

t.test("every failure is one JSON object on stderr, with exit status 1", async (t) => {
  const service = await startService(t);
  const admin = adminOf(t, service);
  const wrong = [
    [],
    ["no-such-command"],
    ["grant", "--handle", "acme"],
    ["grant", "--handle", "Not A Handle", "--user", "user_1"],
    ["grant", "--handle", "acme", "--user", "user{1}"],
    ["token", "--user", "user_1", "--ttl", "soon"],
    ["token", "--user", "user_1", "--ttl", "1e18"],
    ["token", "--user", "user_1", "--other"],
    ["entitle", "--account", "acct_acme"],
  ];
  for (const words of wrong) {
    const { code, result, error } = await admin(...words);
    t.equal(code, 1, words.join(" "));
    t.same(result, { stdout: "" });
    t.equal(error?.code, "invalid_request");
  }
  const away = adminOf(t, service, { REDIS_URL: "redis://127.0.0.1:1" });
  t.equal((await away("failed-jobs")).error?.code, "service_unavailable");
});
