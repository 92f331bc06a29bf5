import t, { type Test as TapTest } from "tap";
import { accessToken, tokensIn } from "../core/engines/calendars/access-tokens.ts";
import { AccountApi } from "../core/engines/calendars/account-api.ts";
import type { OAuthSettings } from "../core/engines/calendars/providers/provider.ts";
import { providers } from "../core/engines/calendars/providers/table.ts";
import { openRuntime } from "../core/open.ts";
import { eraseHandle } from "../core/operations/erasure.ts";
import { readEnv } from "../core/platform/env.ts";
import type { Runtime } from "../core/platform/runtime.ts";
import { credentialRecords, secretOf } from "../core/scheduling/credentials.ts";
import { keys } from "../core/store/keys.ts";
import { agree, connectAccount } from "../fixtures/providers/consent.ts";
import { startGoogle } from "../fixtures/providers/google.ts";
import { startMicrosoft } from "../fixtures/providers/microsoft.ts";
import { type OAuthServer, oauthClient, Refusal } from "../fixtures/providers/oauth.ts";
import { startZoom } from "../fixtures/providers/zoom.ts";
import { eventually, type Service, startService } from "../fixtures/service.ts";
import { startReceiver } from "../fixtures/webhook-receiver.ts";

const owned = "/v2/handles/acme/scheduling";
type Owner = Awaited<ReturnType<Service["handle"]>>;

interface Started {
  service: Service;
  owner: Owner;
  oauth: OAuthServer;
}

/** The providers that are connected by OAuth and refreshed: a server of each, an account there, and an address of its API. */
const kinds = {
  google: { start: startGoogle, account: "owner@gmail.test", path: "/calendar/v3/users/me/calendarList/primary" },
  microsoft: { start: startMicrosoft, account: "owner@contoso.test", path: "/v1.0/me" },
  zoom: { start: startZoom, account: "owner@zoom.test", path: "/v2/users/me" },
} as const;
type Kind = keyof typeof kinds;

async function start(
  t: TapTest,
  kind: Kind,
  workers: string[] = [],
  more: Record<string, string> = {},
): Promise<Started> {
  const server = await kinds[kind].start();
  t.teardown(() => server.close());
  const service = await startService(t, {
    env: { ...server.env, ...more },
    ...(workers.length > 0 ? { workers } : {}),
  });
  return { service, owner: await service.handle("acme"), oauth: server.oauth };
}

async function begin(owner: Owner, kind: Kind): Promise<{ authorizeUrl: string; state: string }> {
  return (await owner.post(`${owned}/integrations/${kind}/oauth/start`).expect(200)).body;
}

const credentialsOf = async (owner: Owner) => (await owner.get(`${owned}/integrations`).expect(200)).body.credentials;

/** One use of an account by a process. */
async function use(runtime: Runtime, kind: Kind, credentialId: string): Promise<number> {
  const settings = providers[kind]?.oauth?.(runtime.env) as OAuthSettings;
  const api = new URL(settings.token).origin;
  const calls = new AccountApi({ runtime, account: { handle: "acme", credentialId }, settings: { ...settings, api } });
  return (await calls.send({ path: kinds[kind].path })).status;
}

/** The settings by which a second process of the same installation starts. */
function base({ redis }: Service): Record<string, string> {
  return { LOG_LEVEL: "silent", ...redis.env, BASE_URL: "http://service.test" };
}

function settingsOf({ runtime }: Service, kind: Kind): Record<string, string> {
  const own = Object.entries(runtime.env).filter(([name]) => name.startsWith(`${kind.toUpperCase()}_`));
  return Object.fromEntries(own.map(([name, value]) => [name, String(value)]));
}

const refreshes = ({ asked }: OAuthServer) => asked.filter(({ grant }) => grant === "refresh_token");

for (const kind of Object.keys(kinds) as Kind[]) {
  t.test(`${kind}: an account is connected with PKCE by a client that catches the redirect`, async (t) => {
    const { service, owner, oauth } = await start(t, kind);
    const listed = (await owner.get(`${owned}/integrations`)).body.providers;
    t.match(
      listed.find(({ providerKey }: { providerKey: string }) => providerKey === kind),
      { configured: true },
    );
    const { authorizeUrl, state } = await begin(owner, kind);
    t.match(Object.fromEntries(new URL(authorizeUrl).searchParams), {
      state,
      code_challenge_method: "S256",
      redirect_uri: `http://service.test/oauth/scheduling/${kind}/return`,
    });
    const back = (await agree(authorizeUrl)).searchParams;
    t.equal(back.get("state"), state, "the state comes back as it went");
    const callback = `${owned}/integrations/${kind}/oauth/callback`;
    const body = { code: back.get("code"), state };
    const { credential } = (await owner.post(callback).send(body).expect(201)).body;
    t.match(credential, { providerKey: kind, account: kinds[kind].account, status: "OK", createdAt: String });
    t.same(await credentialsOf(owner), [credential]);
    t.equal((await owner.post(callback).send(body).expect(400)).body.code, "invalid_oauth_state", "a state works once");
    const stored = JSON.stringify(
      await service.runtime.redis.hgetall(keys.credential("acme", credential.credentialId)),
    );
    for (const { access, refresh } of oauth.grants)
      t.notOk(stored.includes(access) || stored.includes(refresh), "tokens are stored sealed");
  });

  t.test(
    `${kind}: the browser's return does not connect: it redirects to the application with code and state`,
    async (t) => {
      const env = { APP_URL: "https://app.example/console" };
      const { service, owner } = await start(t, kind, [], env);
      const { authorizeUrl, state } = await begin(owner, kind);
      const back = await agree(authorizeUrl);
      const answer = await service.visitor.get(back.pathname + back.search).expect(303);
      const onward = new URL(answer.headers.location as string);
      t.equal(onward.origin + onward.pathname, env.APP_URL);
      const code = back.searchParams.get("code");
      t.same(Object.fromEntries(onward.searchParams), { providerKey: kind, code, state });
      t.match(answer.headers, { "cache-control": "no-store", "referrer-policy": "no-referrer" });
      t.same(await credentialsOf(owner), []);
      await service.grant("acme", "user_other", "OWNER");
      const callback = `${owned}/integrations/${kind}/oauth/callback`;
      const other = await (await service.as("user_other")).post(callback).send({ code, state }).expect(400);
      t.equal(other.body.code, "invalid_oauth_state", "another user of the same handle did not start it");
      t.same(await credentialsOf(owner), []);
      await connectAccount(owner, kind);
      t.match(await credentialsOf(owner), [{ account: kinds[kind].account }]);
      const refused = await service.visitor.get(`${back.pathname}?error=access_denied&state=${state}`).expect(303);
      t.match(refused.headers.location, /\?providerKey=\w+&state=[^&]+&error=access_denied$/);
      for (const unknown of ["nope", "caldav"])
        await service.visitor.get(`/oauth/scheduling/${unknown}/return?code=c&state=s`).expect(404);
    },
  );

  t.test(`${kind}: with built-in sign-in, a page asks only the user who started`, async (t) => {
    const { service, owner, oauth } = await start(t, kind, [], { LOGIN_BUILTIN: "1" });
    await service.grant("acme", "user_victim", "OWNER");
    await owner.put("/v2/handles/acme/settings").send({ displayName: "Acme Kitchens" }).expect(200);
    const said = (html: string): string => html.replace(/<[^>]+>/g, "");
    const [mine, theirs] = [await service.token("user_acme"), await service.token("user_victim")];
    const get = (path: string, token?: string) =>
      token ? service.visitor.get(path).set("Cookie", `session=${token}`) : service.visitor.get(path);
    const decide = (path: string, token: string, form: object) =>
      service.visitor.post(path).set("Cookie", `session=${token}`).type("form").send(form);
    const back = await agree((await begin(owner, kind)).authorizeUrl);
    const base = service.runtime.env.BASE_URL;
    const signIn = async (path: string): Promise<string> => {
      const { headers } = await get(path).expect(303).expect("referrer-policy", "no-referrer");
      const to = new URL(headers.location as string);
      t.equal(to.origin + to.pathname, `${base}/login`, "without a session nothing happens");
      return (to.searchParams.get("returnTo") as string).slice(base.length);
    };
    const address = await signIn(back.pathname + back.search);
    const lured = await agree((await begin(owner, kind)).authorizeUrl);
    const refused = await get(lured.pathname + lured.search, theirs).expect(400);
    t.match(refused.text, /not started in this browser/, "in a victim's browser neither");
    t.equal(oauth.grants.length, 0, "no code was used");
    const asking = new URL((await get(address, mine).expect(303)).headers.location as string);
    t.notMatch(asking.search, /code=|state=/);
    t.same(await credentialsOf(owner), [], "nothing is connected before the user says so");
    const page = asking.pathname + asking.search;
    t.equal(await signIn(page), page);
    await get(page, theirs).expect(400);
    const { text } = await get(page, mine).expect(200);
    t.match(said(text), `Connect ${kinds[kind].account} to Acme Kitchens?`);
    const consentId = asking.searchParams.get("consentId");
    const proof = /name="proof" value="([^"]+)"/.exec(text)?.[1];
    await decide(asking.pathname, theirs, { consentId, proof, decision: "connect" }).expect(403);
    await decide(asking.pathname, mine, { consentId, proof: "forged", decision: "connect" }).expect(403);
    t.same(await credentialsOf(owner), []);
    const done = await decide(asking.pathname, mine, { consentId, proof, decision: "connect" }).expect(200);
    t.match(said(done.text), "is connected to Acme Kitchens");
    t.match(await credentialsOf(owner), [{ account: kinds[kind].account }]);
    const connect = "POST /oauth/scheduling/:providerKey/connect";
    const audited = await eventually(async () => {
      const entries = await service.runtime.redis.xrange(keys.audit("acme"), "-", "+");
      return entries.find(([, fields]) => fields.includes(connect));
    });
    t.match(audited[1], ["who", "user_acme", "route", connect, "id", kind]);
    await decide(asking.pathname, mine, { consentId, proof, decision: "connect" }).expect(400);
    t.match(
      (await get(address, mine).expect(400)).text,
      /already answered, was not started in this browser/,
      "a state works once",
    );
  });

  t.test(`${kind}: states of others, of other providers and old ones are refused, wrong codes too`, async (t) => {
    const { service, owner } = await start(t, kind);
    const other = await service.handle("other");
    const callback = `${owned}/integrations/${kind}/oauth/callback`;
    const refused = async (by: Owner, path: string, body: object) =>
      (await by.post(path).send(body).expect(400)).body.code;
    const first = await begin(owner, kind);
    const code = (await agree(first.authorizeUrl)).searchParams.get("code");
    const theirs = callback.replace("acme", "other");
    t.equal(await refused(other, theirs, { code, state: first.state }), "invalid_oauth_state");
    const old = await begin(owner, kind);
    await service.runtime.redis.del(keys.oauthState(old.state));
    t.equal(await refused(owner, callback, { code, state: old.state }), "invalid_oauth_state");
    const second = await begin(owner, kind);
    t.equal(await refused(owner, callback, { code: "wrong", state: second.state }), "oauth_exchange_failed");
    const third = await begin(owner, kind);
    t.equal(
      await refused(owner, callback, { code, state: third.state }),
      "oauth_exchange_failed",
      "a code of another verifier",
    );
    const fourth = await begin(owner, kind);
    await owner.post(`${owned}/integrations/stripe/oauth/callback`).send({ code, state: fourth.state }).expect(409);
    t.same(await credentialsOf(owner), []);
  });

  t.test(`${kind}: an account whose name is not a line of text is not connected`, async (t) => {
    for (const odd of [{}, "two\nlines", "x".repeat(1000)]) {
      const server = await kinds[kind].start(odd as string);
      t.teardown(() => server.close());
      const service = await startService(t, { env: server.env });
      const owner = await service.handle("acme");
      const { authorizeUrl, state } = await begin(owner, kind);
      const code = (await agree(authorizeUrl)).searchParams.get("code");
      const ended = await owner.post(`${owned}/integrations/${kind}/oauth/callback`).send({ code, state }).expect(400);
      t.equal(ended.body.code, "oauth_exchange_failed", JSON.stringify(odd).slice(0, 20));
      t.same(await credentialsOf(owner), []);
    }
  });

  t.test(`${kind}: twenty uses in two processes refresh an ended token once`, async (t) => {
    const { service, owner, oauth } = await start(t, kind);
    const credentialId = await connectAccount(owner, kind);
    const second = await openRuntime(readEnv({ ...base(service), ...settingsOf(service, kind) }));
    t.teardown(() => second.close());
    oauth.expire();
    oauth.slowness = 100;
    const uses = Array.from({ length: 20 }, (_, at) => use(at % 2 ? second : service.runtime, kind, credentialId));
    t.same(new Set(await Promise.all(uses)), new Set([200]));
    t.same(refreshes(oauth), [{ grant: "refresh_token", answer: "ok" }]);
    t.match(await credentialsOf(owner), [{ status: "OK" }]);
  });

  t.test(`${kind}: refresh after refresh, each with the token of the one before`, async (t) => {
    const { service, owner, oauth } = await start(t, kind);
    const credentialId = await connectAccount(owner, kind);
    for (let turn = 0; turn < 3; turn++) {
      oauth.expire();
      t.equal(await use(service.runtime, kind, credentialId), 200);
    }
    t.same(
      refreshes(oauth).map(({ answer }) => answer),
      ["ok", "ok", "ok"],
    );
  });

  t.test(`${kind}: a token that is about to end is refreshed before it is used`, async (t) => {
    const { service, owner, oauth } = await start(t, kind);
    oauth.lasts = 1;
    const credentialId = await connectAccount(owner, kind);
    oauth.lasts = 3600;
    const settings = providers[kind]?.oauth?.(service.runtime.env) as OAuthSettings;
    await eventually(async () => {
      await accessToken({ runtime: service.runtime, account: { handle: "acme", credentialId }, settings });
      return refreshes(oauth).length === 1;
    });
    t.equal(oauth.calls.length, 1, "no call was made with the old one");
  });

  t.test(`${kind}: tokens are kept before they are used`, async (t) => {
    const { service, owner, oauth } = await start(t, kind);
    const credentialId = await connectAccount(owner, kind);
    oauth.expire();
    const { runtime } = service;
    const settings = providers[kind]?.oauth?.(runtime.env) as OAuthSettings;
    const holder = { runtime, account: { handle: "acme", credentialId }, settings };
    const refused = await accessToken(holder);
    const token = await accessToken(holder, refused);
    const kept = secretOf(runtime, "acme", await credentialRecords.read(runtime, "acme", credentialId));
    t.match(tokensIn(kept), { accessToken: token, refreshToken: oauth.grants[0]?.refresh });
  });

  t.test(`${kind}: a grant that its owner ended degrades the account, once; connecting again heals it`, async (t) => {
    const { service, owner, oauth } = await start(t, kind, ["webhooks"]);
    const receiver = await startReceiver(t);
    await owner.post(`${owned}/webhooks`).send({ url: receiver.url }).expect(201);
    const credentialId = await connectAccount(owner, kind);
    oauth.revokeAll();
    const uses = Array.from({ length: 5 }, () => use(service.runtime, kind, credentialId));
    for (const result of await Promise.allSettled(uses))
      t.match(result, { status: "rejected", reason: { code: "integration_revoked" } });
    await t.rejects(use(service.runtime, kind, credentialId), { code: "integration_revoked" });
    t.equal(refreshes(oauth).length, 1, "the provider is not asked again");
    t.match(await credentialsOf(owner), [{ credentialId, status: "DEGRADED" }]);
    const [told] = await eventually(() => receiver.received.length > 0 && receiver.received);
    t.match(told?.event, {
      type: "scheduling.sync.degraded",
      data: { handle: "acme", providerKey: kind, credentialId, reason: "integration_revoked" },
    });
    t.equal(await connectAccount(owner, kind), credentialId, "the same account keeps its id");
    t.match(await credentialsOf(owner), [{ credentialId, status: "OK" }]);
    t.equal(await use(service.runtime, kind, credentialId), 200);
    t.equal(receiver.received.length, 1);
  });

  t.test(`${kind}: a provider that asks to slow down is obeyed by all processes`, async (t) => {
    const { service, owner, oauth } = await start(t, kind);
    const credentialId = await connectAccount(owner, kind);
    oauth.pausesFor = 1000;
    const before = oauth.calls.length;
    t.equal(await use(service.runtime, kind, credentialId), 200);
    t.equal(oauth.refusedAsTooMany, 1, "not again before the time that was said");
    t.equal(oauth.calls.length, before + 2);
    const later = new Date(Date.now() + 120_000).toUTCString();
    oauth.trouble.push(new Refusal(429, {}, { "retry-after": later }));
    for (let turn = 0; turn < 3; turn++)
      await t.rejects(use(service.runtime, kind, credentialId), {
        code: "service_unavailable",
        details: { retryAfter: Number },
      });
    t.equal(oauth.calls.length, before + 3, "nothing is asked until then");
  });

  t.test(
    `${kind}: disconnecting forgets the account${kind === "microsoft" ? "" : " and takes the grant back"}`,
    async (t) => {
      const { service, owner, oauth } = await start(t, kind);
      const credentialId = await connectAccount(owner, kind);
      const path = `${owned}/integrations/${kind}/credentials/${credentialId}`;
      await owner.delete(path).expect(204);
      t.equal(oauth.revoked.length, kind === "microsoft" ? 0 : 1);
      t.same(await credentialsOf(owner), []);
      await t.rejects(use(service.runtime, kind, credentialId), { code: "integration_not_found" });
      await owner.delete(path).expect(404);
    },
  );
}

t.test("a grant that another handle of the owner uses is not taken back before that goes too", async (t) => {
  const { service, owner, oauth } = await start(t, "google");
  const second = await service.handle("second", { account: "acct_acme", owner: "user_acme" });
  await connectAccount(owner, "google");
  await connectAccount(second, "google", "second");
  const disconnect = async (by: Owner, handle: string) => {
    const base = `/v2/handles/${handle}/scheduling/integrations`;
    const [{ credentialId }] = (await by.get(base).expect(200)).body.credentials;
    await by.delete(`${base}/google/credentials/${credentialId}`).expect(204);
  };
  await disconnect(owner, "acme");
  t.equal(oauth.revoked.length, 0);
  await second.get("/v2/handles/second/scheduling/integrations/google/calendars").expect(200);
  await disconnect(second, "second");
  t.equal(oauth.revoked.length, 1);
});

t.test("google: a client whose secret is wrong is named in the log, and its accounts are not revoked", async (t) => {
  const { service, owner, oauth } = await start(t, "google");
  await connectAccount(owner, "google");
  const { env, log } = service.runtime;
  const logged: unknown[] = [];
  t.intercept(log, "warn", { value: (...line: unknown[]) => void logged.push(line) });
  oauth.expire();
  Object.assign(env, { GOOGLE_CLIENT_SECRET: "old" });
  await owner.get(`${owned}/integrations/google/calendars`).expect(503);
  const error = "The provider refused the refresh: invalid_client.";
  t.match(logged, [[{ error }, "http.request.unavailable"]]);
  Object.assign(env, { GOOGLE_CLIENT_SECRET: oauthClient.secret });
  await owner.get(`${owned}/integrations/google/calendars`).expect(200);
});

t.test("google: a refused revocation is logged with the provider's response code", async (t) => {
  const { service, owner, oauth } = await start(t, "google");
  const credentialId = await connectAccount(owner, "google");
  const logged: unknown[] = [];
  service.runtime.log.warn = (...line: unknown[]) => void logged.push(line);
  oauth.grants.length = 0;
  await owner.delete(`${owned}/integrations/google/credentials/${credentialId}`).expect(204);
  const fields = { handle: "acme", providerKey: "google", error: "The provider answered 400 to a revocation." };
  t.same(logged, [[fields, "integration.revoke_failed"]]);
});

t.test("a grant that Redis keeps from being taken back is logged, and its account is disconnected", async (t) => {
  const { service, owner, oauth } = await start(t, "google");
  const credentialId = await connectAccount(owner, "google");
  const { redis, log } = service.runtime;
  const logged: unknown[] = [];
  t.intercept(log, "warn", { value: (...line: unknown[]) => void logged.push(line) });
  const error = "LOADING Redis is loading the dataset in memory";
  const hget = redis.hget.bind(redis);
  const refused = (key: string, field: string) =>
    key === keys.handle("acme") ? Promise.reject(new Error(error)) : hget(key, field);
  t.intercept(redis, "hget", { value: refused });
  await owner.delete(`${owned}/integrations/google/credentials/${credentialId}`).expect(204);
  t.equal(oauth.revoked.length, 0);
  t.same(logged, [[{ handle: "acme", providerKey: "google", error }, "integration.revoke_failed"]]);
});

t.test("an account whose secret can't be opened any more is disconnected", async (t) => {
  const { service, owner } = await start(t, "google");
  const credentialId = await connectAccount(owner, "google");
  const key = keys.credential("acme", credentialId);
  const stored = JSON.parse((await service.runtime.redis.hget(key, "json")) as string);
  await service.runtime.redis.hset(key, "json", JSON.stringify({ ...stored, secret: "v1.lost01.AAAA" }));
  await owner.delete(`${owned}/integrations/google/credentials/${credentialId}`).expect(204);
  t.same(await credentialsOf(owner), []);
});

t.test("erasing a handle gives its grants back, and is done whether or not the provider answers", async (t) => {
  const [google, microsoft] = [await startGoogle(), await startMicrosoft()];
  t.teardown(() => microsoft.close());
  const service = await startService(t, { env: { ...google.env, ...microsoft.env } });
  await connectAccount(await service.handle("acme"), "google");
  await connectAccount(await service.handle("next"), "google", "next");
  await connectAccount(await service.handle("third"), "microsoft", "third");
  t.match(await eraseHandle(service.runtime, "acme"), { handle: "acme", grantsLeft: [] });
  t.equal(google.oauth.revoked.length, 1);
  await google.close();
  t.match(await eraseHandle(service.runtime, "next"), { handle: "next", grantsLeft: ["google"] });
  t.match(await eraseHandle(service.runtime, "third"), { grantsLeft: ["microsoft"] }, "its owner must revoke it there");
  t.equal(await service.runtime.redis.exists(keys.handle("next")), 0);
});

t.test("a provider that does not answer is not taken for one that refuses", async (t) => {
  const { owner, oauth } = await start(t, "microsoft");
  const back = await agree((await begin(owner, "microsoft")).authorizeUrl);
  oauth.trouble.push(new Refusal(500, {}));
  const body = { code: back.searchParams.get("code"), state: back.searchParams.get("state") };
  const failed = await owner.post(`${owned}/integrations/microsoft/oauth/callback`).send(body).expect(503);
  t.equal(failed.body.code, "service_unavailable");
  const again = await agree((await begin(owner, "microsoft")).authorizeUrl);
  await oauth.close();
  const late = { code: again.searchParams.get("code"), state: again.searchParams.get("state") };
  const away = await owner.post(`${owned}/integrations/microsoft/oauth/callback`).send(late).expect(503);
  t.equal(away.body.code, "service_unavailable");
});

t.test("google: an owner who unticks the calendar learns that the authorisation is not enough", async (t) => {
  const { owner, oauth } = await start(t, "google");
  oauth.granted = "https://www.googleapis.com/auth/calendar.calendarlist.readonly";
  const back = (await agree((await begin(owner, "google")).authorizeUrl)).searchParams;
  const body = { code: back.get("code"), state: back.get("state") };
  const refused = await owner.post(`${owned}/integrations/google/oauth/callback`).send(body).expect(400);
  t.equal(refused.body.code, "oauth_exchange_failed");
  t.same(await credentialsOf(owner), []);
});

t.test("zoom: a refresh token that another process used up is not taken for the end of the grant", async (t) => {
  const { service, owner, oauth } = await start(t, "zoom");
  const credentialId = await connectAccount(owner, "zoom");
  const { redis } = service.runtime;
  const record = keys.credential("acme", credentialId);
  const before = await redis.hgetall(record);
  oauth.expire();
  await use(service.runtime, "zoom", credentialId);
  const after = await redis.hgetall(record);
  // A process that was delayed after its read: it sends the previous token, while the new one is stored.
  await redis.hset(record, before);
  let answer = (): void => undefined;
  oauth.held = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const late = use(service.runtime, "zoom", credentialId);
  await eventually(() => oauth.thinking === 1);
  await redis.hset(record, { ...after, version: Number(after.version) + 5 });
  answer();
  t.equal(await late, 200);
  t.match(await credentialsOf(owner), [{ status: "OK" }]);
});

t.test("zoom: the result of a refresh is not lost if Redis is away at that moment", async (t) => {
  const { service, owner, oauth } = await start(t, "zoom");
  const credentialId = await connectAccount(owner, "zoom");
  oauth.expire();
  oauth.slowness = 300;
  const late = use(service.runtime, "zoom", credentialId);
  await eventually(async () => (await service.runtime.redis.exists(keys.refreshLock("acme", credentialId))) === 1);
  // Longer than a command may take: the first attempts to write the new tokens fail.
  await service.runtime.redis.call("CLIENT", "PAUSE", "3000", "WRITE");
  t.equal(await late, 200);
  const kept = secretOf(service.runtime, "acme", await credentialRecords.read(service.runtime, "acme", credentialId));
  t.equal(tokensIn(kept).refreshToken, oauth.grants[0]?.refresh);
});

t.test("zoom: a process that stops stores the result of a refresh that has just begun", async (t) => {
  const { service, owner, oauth } = await start(t, "zoom");
  const credentialId = await connectAccount(owner, "zoom");
  const second = await openRuntime(readEnv({ ...base(service), ...settingsOf(service, "zoom") }));
  oauth.expire();
  oauth.slowness = 500;
  use(second, "zoom", credentialId).catch(() => undefined);
  await eventually(() => oauth.thinking === 1);
  await second.close();
  await eventually(() => oauth.thinking === 0);
  const kept = secretOf(service.runtime, "acme", await credentialRecords.read(service.runtime, "acme", credentialId));
  t.equal(tokensIn(kept).refreshToken, oauth.grants[0]?.refresh);
});

t.test("google: tokens that can't be used are not kept, so that the next refresh heals the account", async (t) => {
  const { service, owner, oauth } = await start(t, "google");
  const credentialId = await connectAccount(owner, "google");
  const tokens = ["line\nline", "\u20ac", "x".repeat(20_000), "", 5].map((access_token) => ({ access_token }));
  for (const given of [...tokens, { refresh_token: "a\nb" }, { expires_in: -5 }, { expires_in: "soon" }]) {
    oauth.expire();
    oauth.falseTokens = given;
    await t.rejects(use(service.runtime, "google", credentialId), JSON.stringify(given).slice(0, 50));
    oauth.falseTokens = {};
    t.equal(await use(service.runtime, "google", credentialId), 200, "sane again");
  }
});
