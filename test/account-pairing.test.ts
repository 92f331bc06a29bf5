import { randomBytes } from "node:crypto";
import t from "tap";
import { setEntitlement } from "../core/account/handles.ts";
import { challengeOf } from "../core/account/pairing.ts";
import { keys } from "../core/store/keys.ts";
import { scripts } from "../core/store/scripts.ts";
import { type Service, startService } from "../fixtures/service.ts";

const desktop = "/oauth/assistant/desktop";

/** A started attempt and the requests that may follow it. */
async function startAttempt(service: Service) {
  const verifier = randomBytes(32).toString("base64url");
  const { body } = await service.visitor
    .post(`${desktop}/start`)
    .send({ deviceProofChallenge: challengeOf(verifier) })
    .expect(200);
  const attemptId = body.attemptId as string;
  const person = await service.as("user_acme");
  return {
    attemptId,
    body,
    decide: (decision: string) => person.post(`${desktop}/authorize`).send({ attemptId, decision }),
    redeem: (proof = verifier) =>
      service.visitor.post(`${desktop}/redeem`).send({ attemptId, deviceProofVerifier: proof }),
  };
}

t.test("any non-empty challenge up to 512 characters starts an attempt of ten minutes, without a token", async (t) => {
  const service = await startService(t);
  for (const deviceProofChallenge of ["x", " ", "not base64!", "é".repeat(512), "x".repeat(512)]) {
    const { body } = await service.visitor.post(`${desktop}/start`).send({ deviceProofChallenge }).expect(200);
    t.same(Object.keys(body).sort(), ["attemptId", "authorizeUrl", "expiresAt"]);
    t.match(body.attemptId, /^att_[A-Z2-9]{8}_[0-9A-Za-z]{22}$/);
    t.equal(body.authorizeUrl, `http://service.test${desktop}/authorize?attemptId=${body.attemptId}`);
    t.ok(Math.abs(Date.parse(body.expiresAt) - Date.now() - 600_000) < 10_000);
    const left = await service.runtime.redis.pttl(keys.pairing(body.attemptId));
    t.ok(left > 590_000 && left <= 600_000);
  }
  for (const body of [
    {},
    { deviceProofChallenge: "" },
    { deviceProofChallenge: 7 },
    { deviceProofChallenge: null },
    { deviceProofChallenge: ["x"] },
    { deviceProofChallenge: "x".repeat(513) },
  ]) {
    t.match(
      (await service.visitor.post(`${desktop}/start`).send(body)).body,
      { status: 400, code: "invalid_request" },
      JSON.stringify(body).slice(0, 40),
    );
  }
  t.match((await service.visitor.post(`${desktop}/start`)).body, { status: 400, code: "invalid_request" });
});

t.test("a device has the name that it gives, in 80 characters, else its user agent", async (t) => {
  const service = await startService(t);
  const deviceOf = async (body: object, agent?: string) => {
    const asked = service.visitor.post(`${desktop}/start`).send({ deviceProofChallenge: "x", ...body });
    const { attemptId } = (await (agent ? asked.set("User-Agent", agent) : asked).expect(200)).body;
    return service.runtime.redis.hget(keys.pairing(attemptId), "device");
  };
  t.equal(await deviceOf({ deviceName: " Laptop\u0000 " }, "Agent/1"), "Laptop");
  t.equal(await deviceOf({ deviceName: "é".repeat(200) }), "é".repeat(80));
  for (const deviceName of [5, null, "", " ", "\u3164", true, ["Laptop"], { name: "Laptop" }])
    t.equal(await deviceOf({ deviceName }, "Agent/1"), "Agent/1", JSON.stringify(deviceName));
  for (const userAgent of ["Forged/1", 5]) t.equal(await deviceOf({ userAgent }), "");
  t.equal(await deviceOf({ userAgent: "Forged/1" }, "Agent/1"), "Agent/1");
});

t.test("an allowed attempt issues one session, for the user who allowed it", async (t) => {
  const service = await startService(t);
  await service.handle("acme");
  await service.handle("beta", { account: "acct_acme", owner: "user_acme" });
  const attempt = await startAttempt(service);
  t.same((await attempt.redeem().expect(202)).body, { status: "pending" });
  t.same((await attempt.decide("allow").expect(200)).body, { attemptId: attempt.attemptId, status: "authorised" });
  const { body } = await attempt.redeem().expect(200);
  t.same(Object.keys(body).sort(), ["relay", "session", "status"]);
  t.equal(body.status, "authorised");
  t.same(body.relay, {
    baseUrl: "http://service.test",
    mcpUrls: ["http://service.test/mcp/acme/mcp", "http://service.test/mcp/beta/mcp"],
  });
  const claims = JSON.parse(Buffer.from(body.session.token.split(".")[1], "base64url").toString());
  t.ok(Math.abs(claims.exp * 1000 - Date.parse(body.session.expiresAt)) <= 1000);
  const me = await service.visitor
    .get("/v2/account/assistant/me")
    .set("Authorization", `Bearer ${body.session.token}`)
    .expect(200);
  t.equal(me.body.user.userId, "user_acme");
  for (let again = 0; again < 2; again++)
    t.match((await attempt.redeem().expect(410)).body, { code: "attempt_expired" });
});

t.test(
  "a form of a decision that is incomplete is refused in a sentence, without the names of its fields",
  async (t) => {
    const { visitor } = await startService(t);
    for (const path of [`${desktop}/decide`, "/oauth/scheduling/google/connect"]) {
      const { text } = await visitor
        .post(path)
        .type("form")
        .set("Accept", "text/html")
        .send("decision=allow")
        .expect(400);
      t.match(text, "Something is missing or invalid.", path);
      t.notMatch(text, /proof|attemptId/);
    }
  },
);

t.test("a pairing grants only rights that its user has: the session check is live", async (t) => {
  const service = await startService(t);
  await service.handle("acme", { assistant: false });
  const attempt = await startAttempt(service);
  await attempt.decide("allow").expect(200);
  const { body } = await attempt.redeem().expect(200);
  const check = () =>
    service.visitor.get("/v2/account/assistant/me").set("Authorization", `Bearer ${body.session.token}`);
  t.match((await check().expect(401)).body, { code: "invalid_token" });
  await setEntitlement(service.runtime.redis, "acct_acme", "assistant", true);
  await check().expect(200);
});

t.test("a denied attempt returns its denial and issues nothing", async (t) => {
  const service = await startService(t);
  await service.handle("acme");
  const attempt = await startAttempt(service);
  t.same((await attempt.decide("deny").expect(200)).body, { attemptId: attempt.attemptId, status: "denied" });
  t.match((await attempt.redeem().expect(403)).body, { code: "attempt_denied" });
  t.match((await attempt.decide("allow").expect(409)).body, { code: "attempt_not_pending" });
  t.match((await attempt.redeem().expect(403)).body, { code: "attempt_denied" });
});

t.test("who allowed a pairing can withdraw it, before the desktop redeems it and after", async (t) => {
  const service = await startService(t);
  await service.handle("acme");
  const stranger = await service.as("user_two");
  const me = (token: string) => service.visitor.get("/v2/account/assistant/me").set("Authorization", `Bearer ${token}`);
  const deny = (attemptId: string) => stranger.post(`${desktop}/authorize`).send({ attemptId, decision: "deny" });
  const early = await startAttempt(service);
  await early.decide("allow").expect(200);
  t.match((await deny(early.attemptId).expect(409)).body, { code: "attempt_not_pending" });
  t.match((await early.decide("deny").expect(200)).body, { status: "denied" });
  t.match((await early.redeem().expect(403)).body, { code: "attempt_denied" });
  t.match((await early.decide("allow").expect(409)).body, { code: "attempt_not_pending" });
  const late = await startAttempt(service);
  await late.decide("allow").expect(200);
  const { token } = (await late.redeem().expect(200)).body.session;
  t.match((await deny(late.attemptId).expect(410)).body, { code: "attempt_expired" });
  await me(token).expect(200);
  t.match((await late.decide("deny").expect(200)).body, { status: "denied" });
  await me(token).expect(401);
  t.match((await late.decide("deny").expect(410)).body, { code: "attempt_expired" });
});

t.test("a denial while the desktop's session begins ends it", async (t) => {
  const service = await startService(t);
  await service.handle("acme");
  const attempt = await startAttempt(service);
  await attempt.decide("allow").expect(200);
  const begin = scripts.startSession;
  const denied: number[] = [];
  const late = async (...call: Parameters<typeof begin>) => {
    denied.push((await attempt.decide("deny")).status);
    return begin(...call);
  };
  t.intercept(scripts, "startSession", { value: late });
  t.match((await attempt.redeem().expect(403)).body, { code: "attempt_denied" });
  t.same(denied, [200]);
  const user = await service.as("user_acme");
  const { sessions } = (await user.get("/v2/account/sessions").expect(200)).body;
  t.notOk(sessions.some(({ kind }: { kind: string }) => kind === "desktop"));
});

t.test("only a session decides, and only with a decision", async (t) => {
  const service = await startService(t);
  await service.handle("acme");
  const { attemptId, decide } = await startAttempt(service);
  const path = `${desktop}/authorize`;
  t.match((await service.visitor.post(path).send({ attemptId, decision: "allow" }).expect(401)).body, {
    code: "missing_bearer_token",
  });
  const owner = await service.as("user_acme");
  const made = await owner
    .post("/v2/account/tokens")
    .send({ name: "Agent", scopes: ["agent.strategy.read"] })
    .expect(201);
  const withToken = service.visitor.post(path).set("Authorization", `Bearer ${made.body.token.secret}`);
  t.match((await withToken.send({ attemptId, decision: "allow" }).expect(401)).body, { code: "invalid_token" });
  for (const decision of ["maybe", "", undefined, true])
    t.match((await decide(decision as string).expect(400)).body, { code: "invalid_request" });
  t.match((await owner.post(path).send({ attemptId: "att_unknown", decision: "allow" }).expect(410)).body, {
    code: "attempt_expired",
  });
  t.match((await owner.post(path).send({ attemptId, decision: "allow", user: "user_two" }).expect(400)).body, {
    code: "invalid_request",
  });
  await decide("allow").expect(200);
});

t.test("the fifth wrong proof ends the attempt, allowed or not", async (t) => {
  const service = await startService(t);
  await service.handle("acme");
  for (const allowed of [false, true]) {
    const attempt = await startAttempt(service);
    if (allowed) await attempt.decide("allow").expect(200);
    for (let wrong = 0; wrong < 5; wrong++)
      t.match((await attempt.redeem("wrong").expect(403)).body, { code: "device_proof_mismatch" });
    t.match((await attempt.redeem().expect(410)).body, { code: "attempt_expired" });
    t.match((await attempt.redeem("wrong").expect(410)).body, { code: "attempt_expired" });
  }
  const patient = await startAttempt(service);
  await patient.decide("allow").expect(200);
  for (let wrong = 0; wrong < 4; wrong++) await patient.redeem("wrong").expect(403);
  await patient.redeem().expect(200);
});

t.test("the challenge itself is no proof, and a challenge that is no hash is never met", async (t) => {
  const service = await startService(t);
  await service.handle("acme");
  const attempt = await startAttempt(service);
  await attempt.decide("allow").expect(200);
  const challenge = (await service.runtime.redis.hget(keys.pairing(attempt.attemptId), "challenge")) as string;
  t.match((await attempt.redeem(challenge).expect(403)).body, { code: "device_proof_mismatch" });
  const plain = (await service.visitor.post(`${desktop}/start`).send({ deviceProofChallenge: "plain" }).expect(200))
    .body.attemptId;
  const answer = await service.visitor
    .post(`${desktop}/redeem`)
    .send({ attemptId: plain, deviceProofVerifier: "plain" });
  t.match(answer.body, { status: 403, code: "device_proof_mismatch" });
});

t.test("an attempt that is unknown or past its ten minutes is expired", async (t) => {
  const service = await startService(t);
  await service.handle("acme");
  const redeem = (body: object) => service.visitor.post(`${desktop}/redeem`).send(body);
  t.match((await redeem({ attemptId: "att_unknown", deviceProofVerifier: "x" }).expect(410)).body, {
    code: "attempt_expired",
  });
  for (const body of [
    {},
    { attemptId: "a" },
    { deviceProofVerifier: "x" },
    { attemptId: 1, deviceProofVerifier: "x" },
    { attemptId: "a", deviceProofVerifier: "" },
  ])
    t.match((await redeem(body)).body, { status: 400, code: "invalid_request" });
  const attempt = await startAttempt(service);
  await attempt.decide("allow").expect(200);
  await service.runtime.redis.pexpire(keys.pairing(attempt.attemptId), 1);
  await new Promise((resolve) => setTimeout(resolve, 20));
  t.match((await attempt.redeem().expect(410)).body, { code: "attempt_expired" });
  t.match((await attempt.decide("allow").expect(410)).body, { code: "attempt_expired" });
});

t.test("of many that redeem or decide at once, one wins", async (t) => {
  const service = await startService(t);
  await service.handle("acme");
  for (let round = 0; round < 5; round++) {
    const attempt = await startAttempt(service);
    for (const decision of ["allow", "deny"]) {
      const decided = await Promise.all(Array.from({ length: 10 }, () => attempt.decide(decision)));
      t.same(decided.map(({ status }) => status).sort(), [200, ...Array(9).fill(409)]);
    }
    const mixed = await startAttempt(service);
    await Promise.all(Array.from({ length: 10 }, (_, at) => mixed.decide(at % 2 === 0 ? "allow" : "deny")));
    t.match((await mixed.redeem().expect(403)).body, { code: "attempt_denied" }, "a denial is the last word");
    const second = await startAttempt(service);
    await second.decide("allow").expect(200);
    const redeemed = await Promise.all(Array.from({ length: 20 }, () => second.redeem()));
    t.same(redeemed.map(({ status }) => status).sort(), [200, ...Array(19).fill(410)]);
  }
});
