import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { SignJWT } from "jose";
import t, { type Test } from "tap";
import { revokeRole, setEntitlement } from "../core/account/handles.ts";
import { Sessions } from "../core/account/sessions.ts";
import { readEnv } from "../core/platform/env.ts";
import type { Fail } from "../core/platform/errors.ts";
import { startService } from "../fixtures/service.ts";
import { KeySetServer, outsideKey, outsideToken } from "../fixtures/signer.ts";

const me = "/v2/account/assistant/me";
const minute = 60_000;

async function startSigner(t: Test): Promise<{ signer: KeySetServer; env: Record<string, string> }> {
  const signer = new KeySetServer();
  const url = await signer.start();
  t.teardown(() => signer.stop());
  return { signer, env: { AUTH_JWKS_URL: url, AUTH_ISSUER: "https://signer.test", AUTH_AUDIENCE: "platform" } };
}

/** Sessions of their own, at a time that the test moves. */
async function movable(t: Test, env: Record<string, string>) {
  const { runtime } = await startService(t);
  const time = { at: Date.now() };
  const settings = readEnv({ BASE_URL: "http://service.test", REDIS_URL: "redis://127.0.0.1:1", ...env });
  const sessions = new Sessions(settings, runtime.signingKey, () => time.at);
  const code = (token: string) =>
    sessions.check(token).then(
      () => "accepted",
      (error: Fail) => error.code,
    );
  return { time, code };
}

t.test("the session check tells who, where and what, and 401 without the entitlement", async (t) => {
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
  t.same((await owner.get(me).expect(200)).body.entitlements, ["assistant", "marketing_tools"]);
  const guest = await service.as("user_guest");
  t.match((await guest.get(me).expect(401)).body, { code: "invalid_token" });
  t.match((await (await service.as("user_nobody")).get(me).expect(401)).body, { code: "invalid_token" });
  t.match((await service.visitor.get(me).expect(401)).body, { code: "missing_bearer_token" });
  await revokeRole(service.runtime.redis, { handle: "acme", userId: "user_acme" });
  t.match((await owner.get(me).expect(401)).body, { code: "invalid_token" });
});

t.test("a user who is removed loses access at once, whatever was remembered of the token", async (t) => {
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
  const { code } = await movable(t, { ...env, AUTH_AUDIENCE: "" });
  const key = await outsideKey("one");
  signer.published = [key.jwk];
  t.equal(await code(await outsideToken(key, { aud: "http://service.test" })), "accepted");
  t.equal(await code(await outsideToken(key, { aud: "platform" })), "invalid_token");
});

t.test("a key set in a file works the same", async (t) => {
  const key = await outsideKey("one");
  const file = join(t.testdir(), "keys.json");
  await writeFile(file, JSON.stringify({ keys: [key.jwk] }));
  const { code } = await movable(t, {
    AUTH_JWKS_FILE: file,
    AUTH_ISSUER: "https://signer.test",
    AUTH_AUDIENCE: "platform",
  });
  t.equal(await code(await outsideToken(key, {})), "accepted");
});

t.test("new keys are found when they are first used, and unknown key ids can't flood the signer", async (t) => {
  const { signer, env } = await startSigner(t);
  const { time, code } = await movable(t, env);
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

t.test("while the signer is away its known keys go on for an hour, then 503 and never 401", async (t) => {
  const { signer, env } = await startSigner(t);
  const { time, code } = await movable(t, env);
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

t.test("what was checked is not believed longer than its time", async (t) => {
  const { signer, env } = await startSigner(t);
  const { time, code } = await movable(t, env);
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
