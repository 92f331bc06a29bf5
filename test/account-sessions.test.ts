import { generateKeyPairSync } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { exportJWK, type JWK, SignJWT } from "jose";
import type { Test as SuperTest } from "supertest";
import t, { type Test } from "tap";
import { revokeRole, setEntitlement } from "../core/account/handles.ts";
import { challengeOf } from "../core/account/pairing.ts";
import { SessionTokens } from "../core/account/session-tokens.ts";
import { readEnv } from "../core/platform/env.ts";
import type { Fail } from "../core/platform/errors.ts";
import { keys } from "../core/store/keys.ts";
import { mastersOf } from "../core/store/redis.ts";
import { startRedis } from "../fixtures/redis.ts";
import { eventually, type Service, startService } from "../fixtures/service.ts";
import { KeySetServer, outsideKey, outsideToken } from "../fixtures/signer.ts";
import { stopDate } from "../fixtures/time.ts";

const me = "/v2/account/assistant/me";
const minute = 60_000;

async function startSigner(t: Test): Promise<{ signer: KeySetServer; env: Record<string, string> }> {
  const signer = new KeySetServer();
  const url = await signer.start();
  t.teardown(() => signer.stop());
  return { signer, env: { AUTH_JWKS_URL: url, AUTH_ISSUER: "https://signer.test", AUTH_AUDIENCE: "platform" } };
}

/** Sessions of their own, at a time that the test moves. */
function movable(t: Test, env: Record<string, string>) {
  const time = stopDate(t);
  const settings = readEnv({ BASE_URL: "http://service.test", REDIS_URL: "redis://127.0.0.1:1", ...env });
  const own = { kid: "own", publicJwk: { kty: "OKP", kid: "own" } };
  const sessions = new SessionTokens(settings, own as never, { isLive: async () => true });
  const code = (token: string) =>
    sessions.check(token).then(
      () => "accepted",
      (error: Fail) => error.code,
    );
  return { time, code };
}

t.test(
  "the session check names user, handles and roles, ignores the query, and answers 401 without the entitlement",
  async (t) => {
    const service = await startService(t);
    const owner = await service.handle("acme");
    await service.handle("beta", { account: "acct_two", owner: "user_acme", assistant: false });
    await service.grant("beta", "user_guest", "CREATOR");
    const { body } = await owner.get(me).expect(200).expect("cache-control", "no-store");
    t.same(body, {
      user: { userId: "user_acme", email: "user_acme@example.com" },
      handles: [
        { handle: "acme", role: "OWNER" },
        { handle: "beta", role: "OWNER" },
      ],
      entitlements: ["assistant"],
    });
    await setEntitlement(service.runtime.redis, "acct_two", "marketing_tools", true);
    t.same((await owner.get(`${me}?_=1&page=2`).expect(200)).body.entitlements, ["assistant", "marketing_tools"]);
    const guest = await service.as("user_guest");
    t.match((await guest.get(me).expect(401)).body, { code: "invalid_token" });
    t.match((await (await service.as("user_nobody")).get(me).expect(401)).body, { code: "invalid_token" });
    t.match((await service.visitor.get(me).expect(401)).body, { code: "missing_bearer_token" });
    await revokeRole(service.runtime.redis, { handle: "acme", userId: "user_acme" });
    t.match((await owner.get(me).expect(401)).body, { code: "invalid_token" });
  },
);

t.test("a removed user loses access at once, despite cached tokens", async (t) => {
  const service = await startService(t);
  await service.handle("acme");
  await service.grant("acme", "user_two", "OPERATOR");
  const two = await service.as("user_two");
  await two.get("/v2/handles/acme/pages").expect(200);
  await revokeRole(service.runtime.redis, { handle: "acme", userId: "user_two" });
  t.match((await two.get("/v2/handles/acme/pages").expect(403)).body, { code: "forbidden" });
});

t.test("an outside signer's tokens are taken in the three algorithms, for its audience alone", async (t) => {
  const { signer, env } = await startSigner(t);
  const service = await startService(t, { env });
  await service.handle("acme", { owner: "user_outside" });
  const sent = (token: string) => service.visitor.get("/v2/handles/acme/pages").set("Authorization", `Bearer ${token}`);
  const pairs = await Promise.all(["EdDSA", "ES256", "RS256"].map((alg) => outsideKey(`key-${alg}`, alg)));
  signer.published = pairs.map(({ jwk }) => jwk);
  for (const key of pairs) await sent(await outsideToken(key, {})).expect(200);
  const [key] = pairs as [(typeof pairs)[0]];
  const soon = Math.floor(Date.now() / 1000);
  const secret = new TextEncoder().encode(JSON.stringify(key.jwk));
  const claims = { sub: "user_outside", iss: "https://signer.test", aud: "platform", exp: soon + 600 };
  const bad = {
    "own audience": await outsideToken(key, { aud: "http://service.test" }),
    "no audience": await outsideToken(key, { aud: undefined }),
    "own issuer": await outsideToken(key, { iss: "http://service.test" }),
    "another issuer": await outsideToken(key, { iss: "https://signer.test/" }),
    "no issuer": await outsideToken(key, { iss: undefined }),
    expired: await outsideToken(key, { exp: soon - 6 }),
    "not yet valid": await outsideToken(key, { nbf: soon + 60 }),
    "no expiry": await outsideToken(key, { exp: undefined }),
    "empty subject": await outsideToken(key, { sub: "" }),
    "another key": await outsideToken(await outsideKey(key.kid), {}),
    "unknown kid": await outsideToken(await outsideKey("unknown"), {}),
    "the service's key id": await outsideToken(await outsideKey(service.runtime.signingKey.kid), {}),
    HS256: await new SignJWT(claims).setProtectedHeader({ alg: "HS256", kid: key.kid }).sign(secret),
    "bad header": `!!.${(await outsideToken(key, {})).split(".").slice(1).join(".")}`,
  };
  for (const [name, token] of Object.entries(bad))
    t.match((await sent(token)).body, { status: 401, code: "invalid_token" }, name);
  await sent(await outsideToken(key, { exp: soon - 2 })).expect(200);
  await sent(await outsideToken(key, { nbf: soon + 3 })).expect(200);
});

t.test("without AUTH_AUDIENCE an outside token must be meant for this service", async (t) => {
  const { signer, env } = await startSigner(t);
  const { code } = movable(t, { ...env, AUTH_AUDIENCE: "" });
  const key = await outsideKey("one");
  signer.published = [key.jwk];
  t.equal(await code(await outsideToken(key, { aud: "http://service.test" })), "accepted");
  t.equal(await code(await outsideToken(key, { aud: "platform" })), "invalid_token");
});

t.test("an outside token that was issued for the tools of a handle opens them alone, with its scopes", async (t) => {
  const { signer, env } = await startSigner(t);
  const service = await startService(t, { env });
  await service.handle("acme", { owner: "user_outside" });
  await service.handle("beta", { owner: "user_outside" });
  const key = await outsideKey("one");
  signer.published = [key.jwk];
  const host = new URL(service.runtime.env.BASE_URL).host;
  const tools = async (handle: string, claims: object) => {
    const token = await outsideToken(key, { scope: "openid agent.pages.read", ...claims });
    const asked = service.visitor.post(`/mcp/${handle}/mcp`).set({ host, authorization: `Bearer ${token}` });
    const list = { jsonrpc: "2.0", id: 1, method: "tools/list" };
    return asked.set("Accept", "application/json, text/event-stream").send(list);
  };
  const aud = "http://service.test/mcp/acme/mcp";
  for (const audience of [aud, ["https://signer.test/userinfo", aud]]) {
    const { status, text } = await tools("acme", { aud: audience });
    t.equal(status, 200);
    t.same(text.match(/"name":"\w+"/g), ['"name":"pages_list"', '"name":"pages_read"']);
    t.match((await tools("beta", { aud: audience })).body, { status: 401, code: "invalid_token" });
  }
  t.match((await tools("acme", { aud, scope: undefined })).body, { status: 403, code: "insufficient_scope" });
  const pages = service.visitor.get("/v2/handles/acme/pages");
  const token = await outsideToken(key, { aud });
  t.match((await pages.set("Authorization", `Bearer ${token}`)).body, { status: 401, code: "invalid_token" });
});

t.test("a key set in a file works the same", async (t) => {
  const key = await outsideKey("one");
  const file = join(t.testdir(), "keys.json");
  await writeFile(file, JSON.stringify({ keys: [key.jwk] }));
  const { code } = movable(t, {
    AUTH_JWKS_FILE: file,
    AUTH_ISSUER: "https://signer.test",
    AUTH_AUDIENCE: "platform",
  });
  t.equal(await code(await outsideToken(key, {})), "accepted");
});

t.test("new keys are found when they are first used, and unknown key ids can't flood the signer", async (t) => {
  const { signer, env } = await startSigner(t);
  const { time, code } = movable(t, env);
  const [first, second, third] = await Promise.all([outsideKey("first"), outsideKey("second"), outsideKey("third")]);
  const valid = { exp: Math.floor(Date.now() / 1000) + 7200 };
  signer.published = [first.jwk];
  t.equal(await code(await outsideToken(first, valid)), "accepted");
  signer.published = [second.jwk];
  t.equal(await code(await outsideToken(second, valid)), "accepted");
  t.equal(signer.reads, 2);
  t.equal(await code(await outsideToken(first, { ...valid, jti: "new" })), "invalid_token", "a withdrawn key is out");
  for (let one = 0; one < 20; one++)
    t.equal(await code(await outsideToken(await outsideKey(`made-up-${one}`), valid)), "invalid_token");
  t.equal(signer.reads, 2);
  signer.published = [second.jwk, third.jwk];
  time.at += minute;
  t.equal(await code(await outsideToken(third, valid)), "accepted");
  t.equal(signer.reads, 3);
});

t.test("a checked token whose key was withdrawn is good for a minute from its check, and no longer", async (t) => {
  const { signer, env } = await startSigner(t);
  const { time, code } = movable(t, env);
  const [first, second] = await Promise.all([outsideKey("first"), outsideKey("second")]);
  const valid = { exp: Math.floor(Date.now() / 1000) + 7200 };
  const token = await outsideToken(first, valid);
  signer.published = [first.jwk];
  t.equal(await code(token), "accepted");
  signer.published = [second.jwk];
  t.equal(await code(await outsideToken(second, valid)), "accepted");
  time.at += minute - 1000;
  t.equal(await code(token), "accepted", "its use does not prolong it");
  time.at += 1001;
  t.equal(await code(token), "invalid_token");
});

t.test("a key that can't be used is as good as none, and its neighbours are used", async (t) => {
  const { signer, env } = await startSigner(t);
  const service = await startService(t, { env });
  await service.handle("acme", { owner: "user_outside" });
  const sent = (token: string) => service.visitor.get(me).set("Authorization", `Bearer ${token}`);
  const [good, short] = await Promise.all([outsideKey("good"), outsideKey("short", "RS256")]);
  const weak = generateKeyPairSync("rsa", { modulusLength: 1024 }).publicKey.export({ format: "jwk" }) as JWK;
  const unusable: Record<string, JWK> = {
    "cut off": { ...short.jwk, n: "AQ" },
    "too weak": { ...short.jwk, ...weak },
    "of another form": { ...short.jwk, n: 5 } as unknown as JWK,
    private: { ...short.jwk, ...(await exportJWK(short.private)) },
  };
  const named = Object.entries(unusable).map(([kid, jwk]) => ({ ...jwk, kid }));
  signer.published = [null, 5, [], {}, ...named, good.jwk] as JWK[];
  await sent(await outsideToken(good, {})).expect(200);
  for (const kid of Object.keys(unusable))
    t.match((await sent(await outsideToken({ ...short, kid }, {}))).body, { status: 401, code: "invalid_token" }, kid);
});

t.test("tokens with a new key that come at once all wait for the one read of the key set", async (t) => {
  const { signer, env } = await startSigner(t);
  const { code } = movable(t, env);
  const [first, second] = await Promise.all([outsideKey("first"), outsideKey("second")]);
  signer.published = [first.jwk];
  t.equal(await code(await outsideToken(first, {})), "accepted");
  signer.published = [first.jwk, second.jwk];
  const tokens = await Promise.all(["a", "b", "c"].map((jti) => outsideToken(second, { jti })));
  t.same(await Promise.all(tokens.map(code)), ["accepted", "accepted", "accepted"]);
  t.equal(signer.reads, 2);
});

t.test(
  "while the signer is away its known keys are valid for an hour; then the answer is 503, never 401",
  async (t) => {
    const { signer, env } = await startSigner(t);
    const { time, code } = movable(t, env);
    const key = await outsideKey("one");
    const fresh = (jti: string) =>
      outsideToken(key, { jti, exp: Math.floor(time.at / 1000) + 600, iat: Math.floor(time.at / 1000) });
    signer.published = [key.jwk];
    t.equal(await code(await fresh("a")), "accepted");
    signer.away = true;
    for (const [name, passed] of Object.entries({ b: 5, c: 20, d: 34 })) {
      time.at += passed * minute;
      t.equal(await code(await fresh(name)), "accepted", `${name}: known keys go on`);
    }
    t.equal(
      await code(await outsideToken(await outsideKey("new"), { exp: Math.floor(time.at / 1000) + 600 })),
      "service_unavailable",
    );
    t.equal(
      await code(await outsideToken(await outsideKey("new"), { exp: Math.floor(time.at / 1000) + 600 })),
      "service_unavailable",
    );
    time.at += 2 * minute;
    t.equal(await code(await fresh("e")), "service_unavailable");
    signer.away = false;
    time.at += 2000;
    t.equal(await code(await fresh("f")), "accepted", "and it recovers by itself");
  },
);

t.test("a signer that hangs while its old key set is read again delays no token with a known key", async (t) => {
  const { signer, env } = await startSigner(t);
  const { time, code } = movable(t, env);
  const key = await outsideKey("one");
  signer.published = [key.jwk];
  t.equal(await code(await outsideToken(key, {})), "accepted");
  signer.hangs = true;
  time.at += 11 * minute;
  const token = await outsideToken(key, { jti: "later" });
  const start = performance.now();
  t.equal(await code(token), "accepted");
  t.ok(performance.now() - start < 1500, "its reader waits 3 s");
  await eventually(() => signer.reads === 2);
});

t.test("a key set of more than 100 keys is no key set", async (t) => {
  const { signer, env } = await startSigner(t);
  const { time, code } = movable(t, env);
  const key = await outsideKey("one");
  signer.published = Array.from({ length: 101 }, () => key.jwk);
  t.equal(await code(await outsideToken(key, {})), "service_unavailable");
  signer.published = [key.jwk, ...Array.from({ length: 99 }, (_, n) => ({ ...key.jwk, kid: `other-${n}` }))];
  time.at += 2000;
  t.equal(await code(await outsideToken(key, {})), "accepted");
});

t.test("a signer that was never reached is 503; the service's own tokens don't care", async (t) => {
  const { signer, env } = await startSigner(t);
  signer.away = true;
  const service = await startService(t, { env });
  const owner = await service.handle("acme");
  const answer = await service.visitor
    .get(me)
    .set("Authorization", `Bearer ${await outsideToken(await outsideKey("one"), {})}`)
    .expect(503);
  t.match(answer.body, { code: "service_unavailable" });
  t.ok(Number(answer.headers["retry-after"]) > 0);
  await owner.get(me).expect(200);
});

t.test("a cached signature expires in time", async (t) => {
  const { signer, env } = await startSigner(t);
  const { time, code } = movable(t, env);
  const key = await outsideKey("one");
  signer.published = [key.jwk];
  const token = await outsideToken(key, { exp: Math.floor(time.at / 1000) + 30 });
  t.equal(await code(token), "accepted");
  time.at += 20_000;
  t.equal(await code(token), "accepted");
  time.at += 16_000;
  t.equal(await code(token), "invalid_token");
});

t.test("while Redis is away a good token is 503, not 401", async (t) => {
  const service = await startService(t, { endsRedis: true });
  const owner = await service.handle("acme");
  await owner.get(me).expect(200);
  await service.redis.kill();
  t.match((await owner.get(me).expect(503)).body, { code: "service_unavailable" });
  t.match((await owner.get("/v2/handles/acme/pages").expect(503)).body, { code: "service_unavailable" });
  t.match((await service.visitor.get(me).set("Authorization", "Bearer garbage").expect(401)).body, {
    code: "invalid_token",
  });
});

const sessions = "/v2/account/sessions";

/** A desktop paired with a user's account: its token. */
async function pairDesktop(
  service: Service,
  user: { post: (path: string) => SuperTest },
  deviceName: string,
): Promise<string> {
  const desktop = "/oauth/assistant/desktop";
  const verifier = `verifier of ${deviceName}`;
  const started = { deviceProofChallenge: challengeOf(verifier), deviceName };
  const { attemptId } = (await service.visitor.post(`${desktop}/start`).send(started).expect(200)).body;
  await user.post(`${desktop}/authorize`).send({ attemptId, decision: "allow" }).expect(200);
  const redeemed = await service.visitor.post(`${desktop}/redeem`).send({ attemptId, deviceProofVerifier: verifier });
  return redeemed.body.session.token;
}

t.test(
  "users see their sessions, and a revoked session is refused from the next request on, in every process",
  async (t) => {
    const redis = await startRedis();
    t.teardown(() => redis.stop());
    const [one, other] = [await startService(t, { redis }), await startService(t, { redis })];
    const owner = await one.handle("acme");
    const token = await pairDesktop(one, owner, "Ada's MacBook");
    const routes = [me, "/v2/handles/acme/pages", "/v2/account/tokens"];
    const statuses = async () => {
      const asked = [one, other].flatMap(({ visitor }) =>
        routes.map((path) => visitor.get(path).set("Authorization", `Bearer ${token}`)),
      );
      return (await Promise.all(asked)).map(({ status }) => status);
    };
    t.same(await statuses(), [200, 200, 200, 200, 200, 200]);
    const listed = (await owner.get(sessions).expect(200)).body;
    t.equal(listed.nextCursor, null);
    t.match(listed.sessions, [
      { kind: "desktop", device: "Ada's MacBook", current: false },
      { kind: "browser", device: "Test", current: true },
    ]);
    const [{ sessionId, createdAt, lastUsedAt, expiresAt }] = listed.sessions;
    t.ok(Date.parse(createdAt) <= Date.parse(lastUsedAt) && Date.parse(lastUsedAt) <= Date.now());
    t.equal(Math.round((Date.parse(expiresAt) - Date.now()) / 86_400_000), 30);
    await one.handle("beta", { owner: "user_beta" });
    const stranger = await one.as("user_beta");
    t.match((await stranger.delete(`${sessions}/${sessionId}`).expect(404)).body, { code: "session_not_found" });
    t.match((await owner.delete(`${sessions}/used:${sessionId}`).expect(404)).body, { code: "session_not_found" });
    t.same((await owner.get(sessions).expect(200)).body.sessions.length, 2, "half a session is never removed");
    await owner.delete(`${sessions}/${sessionId}`).expect(204);
    t.same(await statuses(), [401, 401, 401, 401, 401, 401]);
    t.match((await owner.delete(`${sessions}/${sessionId}`).expect(404)).body, { code: "session_not_found" });
    t.match((await owner.get(sessions).expect(200)).body.sessions, [{ kind: "browser" }]);
  },
);

t.test("signing out ends the session of the caller, also for the cookie of the browser", async (t) => {
  const service = await startService(t);
  await service.handle("acme");
  const token = await service.token("user_acme");
  const { attemptId } = (
    await service.visitor.post("/oauth/assistant/desktop/start").send({ deviceProofChallenge: "x" })
  ).body;
  const visit = () =>
    service.visitor.get(`/oauth/assistant/desktop/authorize?attemptId=${attemptId}`).set("Cookie", `session=${token}`);
  t.match((await visit().expect(200)).text, /user_acme/);
  const signedIn = (verb: "get" | "delete", path: string) =>
    service.visitor[verb](path).set("Authorization", `Bearer ${token}`);
  await signedIn("delete", `${sessions}/current`).expect(204);
  t.match((await signedIn("get", me).expect(401)).body, { code: "invalid_token" });
  t.notMatch((await visit().expect(200)).text, /user_acme/);
});

t.test("the last use of a session is noted, and sessions end and are bounded by themselves", async (t) => {
  const service = await startService(t);
  const { redis } = service.runtime;
  const owner = await service.handle("acme");
  const key = keys.sessions("user_acme");
  const first = (await owner.get(sessions)).body.sessions[0];
  await redis.hset(key, `used:${first.sessionId}`, Date.now() - 600_000);
  await owner.get(me).expect(200);
  const noted = await eventually(async () => {
    const [now] = (await owner.get(sessions)).body.sessions;
    return Date.parse(now.lastUsedAt) > Date.now() - 60_000 && now;
  });
  t.equal(noted.sessionId, first.sessionId);
  await service.token("user_acme", { seconds: 1 });
  await new Promise((resolve) => setTimeout(resolve, 1100));
  t.equal((await owner.get(sessions)).body.sessions.length, 1, "an expired session is no session");
  await redis.hset(key, `used:${first.sessionId}`, Date.now() - 30_000);
  for (let at = 0; at < 99; at++) await service.token("user_acme", { seconds: 3600 });
  t.equal(await redis.hlen(key), 200, "what has expired is gone");
  const left = await redis.pttl(key);
  t.ok(left > 3_590_000 && left <= 3_600_000, `${left} ms until the last of them expires`);
  const firstPage = (await owner.get(`${sessions}?limit=60`).expect(200)).body;
  const second = (await owner.get(`${sessions}?limit=60&cursor=${firstPage.nextCursor}`).expect(200)).body;
  const ids = [...firstPage.sessions, ...second.sessions].map(({ sessionId }) => sessionId);
  t.equal(new Set(ids).size, 100);
  t.equal(second.nextCursor, null);
  await redis.hset(key, `used:${first.sessionId}`, Date.now() - 90_000);
  await service.token("user_acme");
  t.equal(await redis.hlen(key), 200);
  t.equal(await redis.hexists(key, first.sessionId), 0, "the one that was unused for longest made room");
});

t.test("a token of this service without a session is invalid, and external tokens have no session here", async (t) => {
  const { signer, env } = await startSigner(t);
  const service = await startService(t, { env });
  await service.handle("acme", { owner: "user_outside" });
  const { signingKey } = service.runtime;
  const bare = await new SignJWT({})
    .setProtectedHeader({ alg: "EdDSA", kid: signingKey.kid })
    .setSubject("user_outside")
    .setIssuer("http://service.test")
    .setAudience("http://service.test")
    .setExpirationTime("1h")
    .sign(signingKey.private);
  t.match((await service.visitor.get(me).set("Authorization", `Bearer ${bare}`).expect(401)).body, {
    code: "invalid_token",
  });
  const key = await outsideKey("one");
  signer.published = [key.jwk];
  const outside = await outsideToken(key, { sid: "ses_of_the_signer" });
  const asked = (verb: "get" | "delete", path: string) =>
    service.visitor[verb](path).set("Authorization", `Bearer ${outside}`);
  await asked("get", me).expect(200);
  const listed: { current: boolean }[] = (await asked("get", sessions).expect(200)).body.sessions;
  t.notOk(listed.some(({ current }) => current));
  t.match((await asked("delete", `${sessions}/current`).expect(404)).body, { code: "session_not_found" });
});

t.test("sessions work while Redis is full", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const { redis } = service.runtime;
  await redis.hset(keys.sessions("user_acme"), `used:${(await owner.get(sessions)).body.sessions[0].sessionId}`, 1);
  await Promise.all(mastersOf(redis).map((server) => server.config("SET", "maxmemory", "1mb")));
  await owner.get(me).expect(200);
  await owner.delete(`${sessions}/current`).expect(204);
});
