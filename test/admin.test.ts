import { readFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test as TapTest } from "tap";
import { spawnProgram } from "../fixtures/processes.ts";
import { keyNames } from "../fixtures/redis.ts";
import { eventually, type Service, startService } from "../fixtures/service.ts";

// Each command is a process of its own.
t.setTimeout(170_000);

interface Ran {
  code: number | null;
  result: Record<string, unknown>;
  error: { code: string; detail: string } | undefined;
}

type Admin = (...words: string[]) => Promise<Ran>;

/** The admin command beside a running service. */
function adminOf(t: TapTest, service: Service, more: Record<string, string> = {}): Admin {
  return async (...words) => {
    const env = { ...service.redis.env, BASE_URL: service.runtime.env.BASE_URL, ...more };
    const ran = spawnProgram(t, "scripts/admin.ts", env, words);
    const { code } = await ran.ended;
    return {
      code,
      result: code === 0 ? JSON.parse(ran.stdout) : { stdout: ran.stdout },
      error: ran.stderr === "" ? undefined : JSON.parse(ran.stderr).error,
    };
  };
}

const production = { NODE_ENV: "production", SECRET_KEY: "a".repeat(43) };

/** Every key of a Redis with its content. */
async function everything({ runtime: { redis } }: Service): Promise<Map<string, string>> {
  const names = (await keyNames(redis, "*")).sort();
  return new Map(await Promise.all(names.map(async (name) => [name, String(await redis.dumpBuffer(name))] as const)));
}

t.test("a handle is made, its users get and lose their roles, and it is switched off and on", async (t) => {
  const service = await startService(t);
  const admin = adminOf(t, service);
  const made = await admin(
    "create-handle",
    "--handle",
    "acme",
    "--account",
    "acct_acme",
    "--owner",
    "user_1",
    "--email",
    "o@example.com",
  );
  t.same(made, {
    code: 0,
    result: { handle: { handle: "acme", account: "acct_acme", active: true } },
    error: undefined,
  });
  const { result } = await admin("token", "--user", "user_2", "--ttl", "60");
  const status = async () => {
    const answer = await fetch(`${service.url}/v2/handles/acme/pages`, {
      headers: { authorization: `Bearer ${result.token}` },
    });
    return (await answer.json().then((body: { code?: string }) => body.code)) ?? answer.status;
  };
  t.equal(await status(), "forbidden");
  t.match((await admin("grant", "--handle", "acme", "--user", "user_2", "--role", "OPERATOR")).result, {
    role: "OPERATOR",
  });
  t.equal(await status(), 200);
  t.equal((await admin("deactivate-handle", "--handle", "acme")).code, 0);
  t.equal(await status(), "forbidden");
  t.equal((await admin("activate-handle", "--handle", "acme")).code, 0);
  t.equal(await status(), 200);
  t.equal((await admin("revoke", "--handle", "acme", "--user", "user_2")).code, 0);
  t.equal(await status(), "forbidden");
});

t.test("a new account has the assistant by default, and marketing tools only if granted", async (t) => {
  const service = await startService(t);
  const admin = adminOf(t, service);
  const has = async (account: string) =>
    Object.keys(await service.runtime.redis.hgetall(`account:{${account}}`)).sort();
  await admin("create-handle", "--handle", "acme", "--account", "acct_acme", "--owner", "user_1");
  await admin("create-handle", "--handle", "bare", "--account", "acct_bare", "--owner", "user_1", "--no-assistant");
  t.same(await has("acct_acme"), ["createdAt", "entitlement:assistant"]);
  t.same(await has("acct_bare"), ["createdAt"]);
  await admin("entitle", "--account", "acct_bare", "--add", "marketing_tools");
  t.same(await has("acct_bare"), ["createdAt", "entitlement:marketing_tools"]);
  await admin("entitle", "--account", "acct_bare", "--remove", "marketing_tools");
  t.same(await has("acct_bare"), ["createdAt"]);
  t.equal((await admin("entitle", "--account", "acct_nobody", "--add", "assistant")).error?.code, "not_found");
});

t.test("a proven domain shows its handle's pages and belongs to no other account", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  await service.handle("other");
  await owner
    .post("/v2/handles/acme/pages")
    .send({ pageSlug: "index", title: "Home", status: "PUBLISHED" })
    .expect(201);
  const admin = adminOf(t, service);
  const attach = (account: string, ...more: string[]) =>
    admin("attach-domain", "--account", account, "--domain", "WWW.Acme.test", ...more);
  t.match((await attach("acct_acme", "--handle", "acme")).result, {
    domain: { domain: "www.acme.test", handle: "acme", owned: false },
  });
  await service.visitor.get("/").set("Host", "www.acme.test").expect(404);
  t.match(
    (await attach("acct_other")).result,
    { domain: { owned: false } },
    "what nobody has proven may be claimed by others",
  );
  t.match((await attach("acct_acme", "--handle", "acme", "--ready")).result, { domain: { owned: true } });
  await service.visitor.get("/").set("Host", "www.acme.test").expect(200);
  t.equal((await attach("acct_other", "--handle", "other")).error?.code, "domain_taken");
  t.equal((await attach("acct_acme", "--handle", "other")).error?.code, "not_found", "a handle of another account");
  t.equal(
    (await admin("attach-domain", "--account", "acct_acme", "--domain", "no domain")).error?.code,
    "invalid_request",
  );
});

t.test("development commands are refused in production", async (t) => {
  const service = await startService(t);
  await service.handle("acme");
  const admin = adminOf(t, service, production);
  t.match(await admin("token", "--user", "user_acme"), {
    code: 1,
    result: { stdout: "" },
    error: { code: "forbidden" },
  });
  const ready = await admin("attach-domain", "--account", "acct_acme", "--domain", "acme.test", "--ready");
  t.match(ready, { code: 1, error: { code: "forbidden" } });
});

t.test("a campaign is made once", async (t) => {
  const service = await startService(t);
  await service.handle("acme");
  const admin = adminOf(t, service);
  const make = (campaign: string, handle = "acme") =>
    admin("create-campaign", "--handle", handle, "--campaign", campaign, "--name", "Spring");
  t.match((await make("cmp_spring")).result, {
    campaign: { campaignId: "cmp_spring", name: "Spring", live: true, version: 1 },
  });
  t.equal((await make("cmp_spring")).error?.code, "campaign_already_exists");
  t.equal((await make("spring")).error?.code, "invalid_request");
  t.equal((await make("cmp_spring", "nobody")).error?.code, "not_found");
});

t.test("failed jobs are listed without their data, and are retried on command", async (t) => {
  const service = await startService(t, { workers: true });
  const admin = adminOf(t, service);
  const queue = service.runtime.queues.queue("knowledge");
  await queue.add("knowledge.index", { secret: "content" }, { jobId: "knowledge.index-broken" });
  const [shown] = await eventually(async () => {
    const { result } = await admin("failed-jobs");
    return (result.jobs as Record<string, unknown>[]).length > 0 && (result.jobs as Record<string, unknown>[]);
  });
  t.match(shown, {
    id: "knowledge.index-broken",
    queue: "knowledge",
    name: "knowledge.index",
    attempts: 1,
    failedReason: /invalid_request/,
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
  const { result } = await admin("export-handle", "--handle", "all", "--file", file);
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
