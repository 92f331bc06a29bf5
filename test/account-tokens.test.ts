import { setTimeout as sleep } from "node:timers/promises";
import t from "tap";
import { revokeRole, setHandleActive } from "../core/account/handles.ts";
import { createToken } from "../core/account/tokens.ts";
import { keys } from "../core/store/keys.ts";
import { keyNames } from "../fixtures/redis.ts";
import { type Service, startService } from "../fixtures/service.ts";

const tokens = "/v2/account/tokens";
const retrieve = "/v2/handles/acme/agent/strategy/retrieve";

async function makeToken(
  service: Service,
  userId: string,
  more: object = {},
): Promise<{ tokenId: string; secret: string }> {
  const asked = (await service.as(userId))
    .post(tokens)
    .send({ name: "Agent", scopes: ["agent.strategy.read"], ...more });
  return (await asked.expect(201)).body.token;
}

function withToken(service: Service, secret: string) {
  return service.visitor.post(retrieve).set("Authorization", `Bearer ${secret}`).send({ query: "pricing" });
}

t.test("a token is shown once, listed without its secret, and stored as a hash only", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const made = await owner
    .post(tokens)
    .send({ name: "Laptop", scopes: ["agent.strategy.read", "agent.pages.read"], expiresInDays: 30 })
    .expect(201);
  const { token } = made.body;
  t.same(Object.keys(made.body), ["token"]);
  t.same(Object.keys(token).sort(), ["expiresAt", "name", "scopes", "secret", "tokenId"]);
  t.match(token.secret, /^pat_[0-9A-Za-z]{36}$/);
  const days = (Date.parse(token.expiresAt) - Date.now()) / 86_400_000;
  t.ok(days > 29.99 && days <= 30);
  const { body } = await owner.get(tokens).expect(200);
  t.match(body, {
    tokens: [
      { tokenId: token.tokenId, name: "Laptop", scopes: ["agent.strategy.read", "agent.pages.read"], lastUsedAt: null },
    ],
    nextCursor: null,
  });
  t.notOk(JSON.stringify(body).includes(token.secret));
  for (const key of await keyNames(service.runtime.redis, "*token*")) {
    const type = await service.runtime.redis.type(key);
    const content = type === "hash" ? JSON.stringify(await service.runtime.redis.hgetall(key)) : "";
    t.notOk((key + content).includes(token.secret.slice(4, 30)), `${key} doesn't hold the secret`);
  }
  t.ok((await service.runtime.redis.pttl(keys.token(token.tokenId))) > 29 * 86_400_000);
});

t.test("only known scopes, a name and a sensible life make a token", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const good = { name: "Agent", scopes: ["agent.strategy.read"] };
  const bad = [
    { ...good, scopes: [] },
    { ...good, scopes: ["email:sender:write"] },
    { ...good, scopes: ["agent.strategy.read", "everything"] },
    { ...good, scopes: "agent.strategy.read" },
    { ...good, name: " " },
    { scopes: good.scopes },
    { ...good, expiresInDays: 0 },
    { ...good, expiresInDays: 1.5 },
    { ...good, admin: true },
  ];
  for (const body of bad)
    t.match((await owner.post(tokens).send(body)).body, { status: 400, code: "invalid_request" }, JSON.stringify(body));
  t.match((await owner.post(tokens).send(good).expect(201)).body.token, { expiresAt: null });
});

t.test("a token opens the routes of its scope on its user's handles, with the role of the moment", async (t) => {
  const service = await startService(t);
  await service.handle("acme");
  await service.handle("other");
  const { secret } = await makeToken(service, "user_acme");
  await withToken(service, secret).expect(200);
  const sent = (path: string) => service.visitor.get(path).set("Authorization", `Bearer ${secret}`);
  t.match((await sent("/v2/handles/acme/pages").expect(401)).body, { code: "invalid_token" });
  t.match((await sent("/v2/account/assistant/me").expect(401)).body, { code: "invalid_token" });
  t.match((await sent(tokens).expect(401)).body, { code: "invalid_token" }, "a token can't see or make tokens");
  const elsewhere = await service.visitor
    .post("/v2/handles/other/agent/strategy/retrieve")
    .set("Authorization", `Bearer ${secret}`)
    .send({ query: "x" });
  t.match(elsewhere.body, { status: 403, code: "forbidden" });
  const pages = await makeToken(service, "user_acme", { scopes: ["agent.pages.read"] });
  const refused = await withToken(service, pages.secret).expect(403);
  t.match(refused.body, { code: "insufficient_scope" });
  t.equal(refused.headers["www-authenticate"], 'Bearer error="insufficient_scope", scope="agent.strategy.read"');
  await setHandleActive(service.runtime.redis, "acme", false);
  t.match((await withToken(service, secret).expect(403)).body, { code: "forbidden" });
  await setHandleActive(service.runtime.redis, "acme", true);
  await revokeRole(service.runtime.redis, { handle: "acme", userId: "user_acme" });
  t.match((await withToken(service, secret).expect(403)).body, { code: "forbidden" });
});

t.test("a revoked or expired token is refused by the next request, and can't come back", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  await service.handle("other");
  const first = await makeToken(service, "user_acme");
  const second = await makeToken(service, "user_acme", { expiresInDays: 1 });
  await withToken(service, first.secret).expect(200);
  const stranger = await service.as("user_other");
  t.match((await stranger.delete(`${tokens}/${first.tokenId}`).expect(404)).body, { code: "token_not_found" });
  await owner.delete(`${tokens}/${first.tokenId}`).expect(204);
  t.match((await withToken(service, first.secret).expect(401)).body, { code: "invalid_token" });
  t.match((await owner.delete(`${tokens}/${first.tokenId}`).expect(404)).body, { code: "token_not_found" });
  t.equal(await service.runtime.redis.exists(keys.token(first.tokenId)), 0);
  await service.runtime.redis.pexpireat(keys.token(second.tokenId), Date.now() - 1);
  const refused = await withToken(service, second.secret).expect(401);
  t.equal(refused.headers["www-authenticate"], 'Bearer error="invalid_token"');
  t.same((await owner.get(tokens).expect(200)).body.tokens, []);
});

t.test("a user has at most 200 tokens, expired ones not counted", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const good = { name: "Agent", scopes: ["agent.strategy.read"] };
  const { tokenId } = await makeToken(service, "user_acme", { expiresInDays: 1 });
  const made = await Promise.all(Array.from({ length: 210 }, () => owner.post(tokens).send(good)));
  t.equal(made.filter(({ status }) => status === 201).length, 199, "also if more are made at once");
  t.match((await owner.post(tokens).send(good).expect(400)).body, { code: "invalid_request", detail: /at most 200/ });
  await service.runtime.redis.pexpireat(keys.token(tokenId), Date.now() - 1);
  await owner.post(tokens).send(good).expect(201);
  await owner.post(tokens).send(good).expect(400);
});

t.test("one more token is none too many, even if another request is slow to write the last one", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const { runtime } = service;
  const good = { name: "Agent", scopes: ["agent.strategy.read" as const] };
  await Promise.all(Array.from({ length: 199 }, () => owner.post(tokens).send(good).expect(201)));
  const { redis } = runtime;
  const multi = redis.multi.bind(redis) as () => ReturnType<typeof redis.multi>;
  const slowly = () => {
    Object.assign(redis, { multi });
    const transaction = multi();
    const exec = transaction.exec.bind(transaction);
    return Object.assign(transaction, { exec: async () => sleep(300).then(() => exec()) });
  };
  Object.assign(redis, { multi: slowly });
  const made = createToken(runtime, good, { requestId: "", userId: "user_acme" });
  await sleep(100);
  const other = await owner.post(tokens).send(good);
  const [{ status }] = await Promise.allSettled([made]);
  t.not(status === "fulfilled", other.status === 201, "one of both is refused");
  t.equal(await runtime.redis.zcard(keys.userTokens("user_acme")), 200);
});

t.test("the last use is recorded, and using a token during its revocation does no harm", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const { secret, tokenId } = await makeToken(service, "user_acme");
  await withToken(service, secret).expect(200);
  const [shown] = (await owner.get(tokens).expect(200)).body.tokens;
  t.ok(Math.abs(Date.parse(shown.lastUsedAt) - Date.now()) < 10_000);
  const uses = Array.from({ length: 20 }, () => withToken(service, secret));
  await Promise.all([...uses, owner.delete(`${tokens}/${tokenId}`).expect(204)]);
  t.equal(await service.runtime.redis.exists(keys.token(tokenId)), 0);
  await withToken(service, secret).expect(401);
});

t.test("made-up tokens are refused by their form, and by their hash", async (t) => {
  const service = await startService(t);
  await service.handle("acme");
  const { secret, tokenId } = await makeToken(service, "user_acme");
  const flipped = secret.slice(0, 10) + (secret[10] === "a" ? "b" : "a") + secret.slice(11);
  for (const wrong of ["pat_", "pat_short", flipped, secret.toUpperCase(), `${secret}0`, `pat_${"0".repeat(36)}`]) {
    t.match((await withToken(service, wrong)).body, { status: 401, code: "invalid_token" }, wrong);
  }
  await withToken(service, secret).expect(200);
  await service.runtime.redis.hset(keys.token(tokenId), "digest", "of another secret");
  await withToken(service, secret).expect(401);
});

t.test("the list pages through many tokens, each user's own", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  await service.handle("other");
  await makeToken(service, "user_other");
  for (let one = 0; one < 5; one++) await makeToken(service, "user_acme", { name: `Token ${one}` });
  const first = (await owner.get(`${tokens}?limit=2`).expect(200)).body;
  const second = (await owner.get(`${tokens}?limit=3&cursor=${first.nextCursor}`).expect(200)).body;
  const names = [...first.tokens, ...second.tokens].map(({ name }: { name: string }) => name).sort();
  t.same(names, ["Token 0", "Token 1", "Token 2", "Token 3", "Token 4"]);
  t.equal(second.nextCursor, null);
});
