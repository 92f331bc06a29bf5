import { Buffer } from "node:buffer";
import { Webhook as Verifier } from "standardwebhooks";
import t from "tap";
import { dkimKey } from "../core/email/identity.ts";
import { resealAll } from "../core/operations/rotation.ts";
import { isSigned, sign } from "../core/platform/sealing.ts";
import { credentialRecords, secretOf, storeCredential } from "../core/scheduling/credentials.ts";
import { makeSending } from "../fixtures/email.ts";
import { startRedis } from "../fixtures/redis.ts";
import { eventually, startService } from "../fixtures/service.ts";
import { startReceiver } from "../fixtures/webhook-receiver.ts";

const [old, fresh] = ["old", "new"].map((word) => Buffer.alloc(32, word).toString("base64")) as [string, string];
const at = { domain: "acme.example", account: "acct_acme" };

t.test("SECRET_KEY is changed in three steps, and nothing that was sealed or signed is lost", async (t) => {
  const redis = await startRedis();
  t.teardown(() => redis.stop());
  const open = (SECRET_KEY: string, previous = "", workers = false) =>
    startService(t, { redis, workers, env: { SECRET_KEY, SECRET_KEY_PREVIOUS: previous } });

  const before = await open(old);
  await makeSending(before);
  const owner = await before.as("user_acme");
  const receiver = await startReceiver(t);
  const hooks = "/v2/handles/acme/scheduling/webhooks";
  const { webhook } = (await owner.post(hooks).send({ url: receiver.url }).expect(201)).body;
  const rotated = (await owner.post(`${hooks}/${webhook.webhookId}/rotate-secret`).expect(200)).body.webhook.secret;
  const account = { providerKey: "caldav" as const, account: "ann", secret: "pass phrase" };
  await storeCredential(before.runtime, "acme", account);
  const dkim = await dkimKey(before.runtime, at);
  const signed = sign(before.runtime.env, "test", "text");

  // First both keys are known everywhere, the old one still seals: processes of the next step are understood by these.
  const ready = await open(old, fresh);
  t.same(await resealAll(ready.runtime), { signingKeys: 0, identities: 0, webhooks: 0, credentials: 0 });
  // Then the new key seals.
  const moving = await open(fresh, old);
  t.ok(isSigned(moving.runtime.env, "test", "text", signed), "what visitors carry is still good");
  t.same(await resealAll(moving.runtime), { signingKeys: 1, identities: 1, webhooks: 1, credentials: 1 });
  t.same(await resealAll(moving.runtime), { signingKeys: 0, identities: 0, webhooks: 0, credentials: 0 }, "once");
  await (await ready.as("user_acme")).get(hooks).expect(200);
  t.ok(
    (await dkimKey(ready.runtime, at)).key.equals(dkim.key),
    "a process of the first step opens newly sealed values",
  );
  // Now no stored value needs the old key.
  const after = await open(fresh, "", true);
  await owner.get(hooks).expect(200);
  t.equal(after.runtime.signingKey.kid, before.runtime.signingKey.kid, "sessions go on: the signing key is the same");
  t.ok((await dkimKey(after.runtime, at)).key.equals(dkim.key));
  const [credential] = await credentialRecords.all(after.runtime, "acme");
  t.equal(credential && secretOf(after.runtime, "acme", credential), "pass phrase");
  await (await after.as("user_acme")).post(`${hooks}/${webhook.webhookId}/test`).expect(202);
  const got = await eventually(() => receiver.received[0]);
  for (const secret of [rotated, webhook.secret]) t.ok(new Verifier(secret).verify(got.body, got.headers));
});

t.test("a wrong previous key changes nothing", async (t) => {
  const redis = await startRedis();
  t.teardown(() => redis.stop());
  const { runtime } = await startService(t, { redis, env: { SECRET_KEY: old } });
  const env = { ...runtime.env, SECRET_KEY: fresh };
  await t.rejects(resealAll({ ...runtime, env }), /key that is not known/);
  t.same(await resealAll(runtime), { signingKeys: 0, identities: 0, webhooks: 0, credentials: 0 });
});
