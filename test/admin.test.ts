import t from "tap";
import { createHandle, grantRole, handlesOf, membersOf, revokeRole, roleOf } from "../core/account/handles.ts";
import { adminOf } from "../fixtures/admin.ts";
import { keyNames } from "../fixtures/redis.ts";
import { startService } from "../fixtures/service.ts";

// Each command is a process of its own.
const production = { NODE_ENV: "production", SECRET_KEY: "a".repeat(43) };

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
  const misspelt = await admin("grant", "--handle", "acme", "--user", "user_2", "--email", "user_2.example.com");
  t.match(misspelt, { code: 1, error: { code: "invalid_request", detail: "email is not an email address" } });
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

t.test("a user is signed out everywhere, and nobody else", async (t) => {
  const service = await startService(t);
  const admin = adminOf(t, service);
  const [owner, other] = [await service.handle("acme"), await service.handle("other")];
  const desktop = await service.as("user_acme");
  const scopes = ["agent.strategy.read"];
  const { secret } = (await owner.post("/v2/account/tokens").send({ name: "ci", scopes }).expect(201)).body.token;
  const byToken = () =>
    service.visitor
      .post("/v2/handles/acme/agent/strategy/retrieve")
      .set("Authorization", `Bearer ${secret}`)
      .send({ query: "prices" });
  await byToken().expect(200);
  const { result } = await admin("sign-out", "--user", "user_acme");
  t.same(result, { userId: "user_acme", sessions: 2, tokens: 1 });
  for (const client of [owner, desktop]) await client.get("/v2/account/sessions").expect(401);
  await byToken().expect(401);
  await other.get("/v2/account/sessions").expect(200);
  const { sessions } = (await (await service.as("user_acme")).get("/v2/account/sessions").expect(200)).body;
  t.equal(sessions.length, 1, "the user can sign in again");
  t.same((await admin("sign-out", "--user", "user_none")).result, { userId: "user_none", sessions: 0, tokens: 0 });
});

t.test("a handle belongs to one account, also when two create it at once", async (t) => {
  const { runtime } = await startService(t);
  const input = (account: string) => ({ handle: "acme", account, owner: `user_${account}`, assistant: true });
  const made = await Promise.allSettled(["acct_a", "acct_b"].map((account) => createHandle(runtime, input(account))));
  t.same(made.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
  const held = made.find((one) => one.status === "fulfilled")?.value.account ?? "";
  const other = held === "acct_a" ? "acct_b" : "acct_a";
  t.match(made.find((one) => one.status === "rejected")?.reason, { code: "forbidden" });
  t.same(await membersOf(runtime.redis, "acme"), [{ userId: `user_${held}`, role: "OWNER", email: null }]);
  t.same(await keyNames(runtime.redis, `*${other}*`), [], "nothing of the other one is written");
});

t.test("a role that is granted while an earlier one is revoked is listed, or is not there", async (t) => {
  const service = await startService(t);
  await service.handle("acme");
  const { redis } = service.runtime;
  const user = { handle: "acme", userId: "user_2" };
  const grant = () => grantRole(redis, { ...user, role: "CREATOR" });
  const revoke = () => revokeRole(redis, user);
  for (const both of [
    [grant, revoke],
    [revoke, grant],
  ]) {
    await grant();
    await Promise.all(both.map((one) => one()));
    const role = await roleOf(redis, user.handle, user.userId);
    t.same(
      (await handlesOf(redis, user.userId)).map((one) => one.role),
      role === undefined ? [] : [role],
    );
  }
});

t.test("a command that misses or doesn't know an option names all that it takes", async (t) => {
  const service = await startService(t);
  const admin = adminOf(t, service);
  const detail = async (...words: string[]) => (await admin(...words)).error?.detail;
  const usage = "create-handle needs --handle, --account, --owner and takes --email, --no-assistant.";
  t.equal(await detail("create-handle", "--handle", "acme"), usage);
  t.match(
    await detail("create-handle", "--mail", "a@example.com"),
    new RegExp(`^Unknown option '--mail'.*\\. ${usage}$`),
  );
  t.match(await detail("failed-jobs", "--all"), /failed-jobs needs no option\.$/);
  t.match(await detail(""), /^Name a command: create-handle, grant, /);
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
  const detach = () => admin("detach-domain", "--account", "acct_acme", "--domain", "www.acme.test");
  t.match((await detach()).result, { detached: { domain: "www.acme.test", account: "acct_acme" } });
  t.equal((await detach()).error?.code, "not_found");
  await service.visitor.get("/").set("Host", "www.acme.test").expect(404);
  const { domains } = (await owner.get("/v2/account/domains").expect(200)).body;
  t.same(domains, []);
  t.match((await attach("acct_other", "--handle", "other", "--ready")).result, { domain: { owned: true } });
  const released = ["detach-domain", "--account", "acct_other", "--domain", "www.acme.test"];
  t.match((await admin(...released)).result, { detached: { account: "acct_other" } });
  t.same(await keyNames(service.runtime.redis, "*www.acme.test*"), [], "nothing of it is left");
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
