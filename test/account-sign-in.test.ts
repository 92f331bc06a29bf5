import t, { type Test } from "tap";
import { createHandle } from "../core/account/handles.ts";
import { sixDigits } from "../core/platform/sealing.ts";
import { keys } from "../core/store/keys.ts";
import { Inbox } from "../fixtures/inbox.ts";
import { keyNames } from "../fixtures/redis.ts";
import { eventually, type Service, startService } from "../fixtures/service.ts";
import { startRudeServer } from "../fixtures/smtp.ts";

const base = "http://service.test";
const address = "ada@example.com";

async function startSignIn(t: Test, env: Record<string, string> = {}): Promise<{ service: Service; inbox: Inbox }> {
  const inbox = new Inbox();
  const settings = { LOGIN_BUILTIN: "1", SMTP_URL: await inbox.start(t), APP_URL: "https://app.test", ...env };
  const service = await startService(t, { env: settings, workers: ["email"] });
  await createHandle(service.runtime, {
    handle: "acme",
    account: "acct_acme",
    owner: "user_ada",
    email: "Ada@Example.com",
    assistant: true,
  });
  return { service, inbox };
}

function post(service: Service, fields: Record<string, string>) {
  return service.visitor.post("/login").type("form").send(fields);
}

/** Asks for a code and returns the id that the page's form carries. */
async function askForCode(service: Service, email = address, returnTo = ""): Promise<string> {
  const { text } = await post(service, { email, returnTo }).expect(200);
  return /name="signInId" value="([^"]+)"/.exec(text)?.[1] as string;
}

function codeAt(inbox: Inbox, email = address): Promise<string> {
  return eventually(() => inbox.codeFor(email));
}

/** The digits as a phone with an Arabic keyboard writes them. */
function inArabicDigits(digits: string): string {
  return digits.replace(/\d/g, (digit) => String.fromCodePoint(0x660 + Number(digit)));
}

t.test("a person signs in with the code that was mailed, once", async (t) => {
  const { service, inbox } = await startSignIn(t);
  const page = await service.visitor.get("/login").expect(200).expect("content-type", /html/);
  t.match(page.text, /type="email"/);
  const signInId = await askForCode(service, " \u202aADA@example.com\u202c ", "https://app.test/inbox?x=1#old");
  const code = await codeAt(inbox);
  t.match(inbox.mails[0]?.source, /^From: noreply@service.test\r$/m);
  t.notMatch(inbox.mails[0]?.source, new RegExp(`Subject:.*${code}`));
  const done = await post(service, {
    signInId,
    code: `${code.slice(0, 3)} ${inArabicDigits(code.slice(3))}`,
    returnTo: "https://app.test/inbox?x=1#old",
  }).expect(303);
  const [, token] = /^https:\/\/app\.test\/inbox\?x=1#token=(.+)$/.exec(done.headers.location ?? "") ?? [];
  const me = await service.visitor.get("/v2/account/assistant/me").set("Authorization", `Bearer ${token}`).expect(200);
  t.match(me.body.user, { userId: "user_ada", email: "ada@example.com" });
  t.match(done.headers["set-cookie"]?.[0], /^session=[^;]+; Max-Age=43200; Path=\/oauth; HttpOnly; SameSite=Lax$/);
  const late = (await post(service, { signInId, code, email: address }).expect(400)).text;
  t.match(late, /That code is no longer valid.*name="email" value="ada@example\.com"/s, "the address stays");
  t.notMatch(late, "aria-invalid", "since nothing is wrong with it");
});

t.test("an international address signs in however the browser spells its domain", async (t) => {
  const { service, inbox } = await startSignIn(t);
  const returnTo = "https://app.test/inbox";
  const ida = { handle: "acme", account: "acct_acme", owner: "user_ida", email: "Ida@Bücher.example", assistant: true };
  await createHandle(service.runtime, ida);
  for (const [place, typed] of ["ida@xn--bcher-kva.example", "Ida@bücher.example"].entries()) {
    const signInId = await askForCode(service, typed, returnTo);
    await eventually(() => inbox.mails.length === place + 1);
    const code = await codeAt(inbox, "ida@bücher.example");
    await post(service, { signInId, code, returnTo }).expect(303);
  }
});

t.test("a code whose delivery is unsure is mailed again as the same mail", async (t) => {
  const rude = await startRudeServer(t, { at: "dot", does: "close" });
  const { service } = await startSignIn(t, { SMTP_URL: rude.url });
  await askForCode(service);
  await eventually(() => rude.contents.length === 1);
  rude.rudeness = undefined;
  await eventually(() => rude.contents.length === 2);
  const [first, second] = rude.contents.map((mail) => [
    /^Message-ID: .*$/im.exec(mail)?.[0],
    /^ *(\d{6})\r?$/m.exec(mail)?.[1],
  ]);
  t.match(first, [/^Message-ID: <[\w-]{32}@service\.test>$/, /^\d{6}$/]);
  t.same(second, first);
  await eventually(() => rude.goodbyes === 1);
});

t.test("the sign-in names its service, speaks the visitor's language and sends a new code when asked", async (t) => {
  const { service, inbox } = await startSignIn(t);
  const page = await service.visitor.get("/login").set("Accept-Language", "de").expect(200);
  t.match(page.text, /<html lang="de".*<h1>Bei service\.test anmelden<\/h1>/s);
  const first = await post(service, { email: address, returnTo: "/docs?x=1" }).expect(200);
  await codeAt(inbox);
  t.notMatch(first.text, 'role="status"');
  const again = first.text.split("<form").findLast((form) => form.includes('name="email"'));
  t.match(again, /name="returnTo" value="\/docs\?x=1".*name="email" value="ada@example\.com".*Send a new code/s);
  const second = await post(service, { email: address, returnTo: "/docs?x=1" }).expect(200);
  t.match(second.text, 'name="signInId"');
  const third = await post(service, { email: address }).set("Cookie", cookiesOf(second)).expect(200);
  t.match(third.text, /<p role="status">Only the code in the newest mail works\./);
  await eventually(() => inbox.mails.length === 3);
});

t.test("a signed-in person sees the account, can continue, and can switch accounts", async (t) => {
  const { service, inbox } = await startSignIn(t);
  const signInId = await askForCode(service);
  const cookie = cookiesOf(await post(service, { signInId, code: await codeAt(inbox) }).expect(200));
  const open = (query = "") => service.visitor.get(`/login${query}`).set("Cookie", cookie).expect(200);
  t.match((await open()).text, /You are signed in to .*service\.test.* as .*ada@example\.com.*type="email"/s);
  const signedIn = (await open("?returnTo=/oauth/x")).text;
  t.match(signedIn, /Continue.*Use another address/s);
  t.notMatch(signedIn, /autofocus/, "the way on comes first");
  t.match((await open("?returnTo=/oauth/x")).text, /href="http:\/\/service\.test\/oauth\/x">Continue/);
  t.notMatch((await open("?returnTo=https://evil.example/")).text, /evil\.example\/">Continue|Continue/);
  t.notMatch((await service.visitor.get("/login").expect(200)).text, /You are signed in/);
});

t.test("signing in again ends the browser's earlier session, and no other one", async (t) => {
  const { service, inbox } = await startSignIn(t);
  const returnTo = "https://app.test/";
  const signIn = async (cookie = "") => {
    const before = inbox.mails.length;
    const signInId = await askForCode(service);
    await eventually(() => inbox.mails.length > before);
    const code = inbox.codeFor(address) ?? "";
    const done = await post(service, { signInId, code, returnTo }).set("Cookie", cookie).expect(303);
    return { cookie: cookiesOf(done), token: done.headers.location?.split("#token=")[1] };
  };
  const statusOf = async ({ token = "" }) =>
    (await service.visitor.get("/v2/account/sessions").set("Authorization", `Bearer ${token}`)).status;
  const [first, elsewhere] = [await signIn(), await signIn()];
  const second = await signIn(first.cookie);
  t.same(await Promise.all([first, elsewhere, second].map(statusOf)), [401, 200, 200]);
});

t.test("a person signs out on the sign-in page, which other sites can't make the browser do", async (t) => {
  const { service, inbox } = await startSignIn(t);
  const signInId = await askForCode(service);
  const cookie = cookiesOf(await post(service, { signInId, code: await codeAt(inbox) }).expect(200));
  const signedIn = /You are signed in/;
  const open = async () => (await service.visitor.get("/login").set("Cookie", cookie).expect(200)).text;
  const [form] = /<form.*name="signOut".*Sign out<\/button><\/form>/.exec(await open()) ?? [];
  t.ok(form);
  const signOut = () => post(service, { returnTo: "/docs", signOut: "1" }).set("Cookie", cookie);
  await signOut().set("Origin", "https://evil.example").expect(403);
  t.match(await open(), signedIn);
  const { text } = await signOut().set("Accept", "text/html").expect(200);
  t.match(text, /name="email".*name="returnTo" value="\/docs"/s);
  t.notMatch(text, signedIn);
  t.notMatch(await open(), signedIn);
  await signOut().expect(200);
});

t.test("reloading a page of the sign-in in a browser sends nothing again", async (t) => {
  const { service, inbox } = await startSignIn(t);
  const browse = (fields: Record<string, string>) => post(service, fields).set("Accept", "text/html");
  const open = async (answer: { headers: Record<string, string> }, status = 200) => {
    const { pathname, search } = new URL(answer.headers.location as string, `${base}/login`);
    return (
      await service.visitor
        .get(pathname + search)
        .set("Cookie", cookiesOf(answer))
        .expect(status)
    ).text;
  };
  const asked = await browse({ email: address, returnTo: "/docs?x=1" }).expect(303);
  const page = await open(asked);
  t.match(page, /If .*ada@example\.com.* has an account.*name="returnTo" value="\/docs\?x=1".*name="signInId"/s);
  t.equal(await open(asked), page, "the same page again");
  t.notMatch(page, 'role="status"');
  const again = await browse({ email: address }).set("Cookie", cookiesOf(asked)).expect(303);
  t.match(await open(again), /<p role="status">Only the code in the newest mail works\./);
  await eventually(() => inbox.mails.length === 2);
  const signInId = /sgn_\w+/.exec(again.headers.location as string)?.[0] as string;
  const wrong = (await codeAt(inbox)) === "000000" ? "111111" : "000000";
  t.match((await browse({ signInId, code: wrong }).expect(400)).text, "not right");
  const done = await browse({ signInId, code: await codeAt(inbox) }).expect(303);
  t.match(await open(done), /You are signed in.*ada@example\.com.*href="https:\/\/app\.test.*Continue/s);
  t.match(await open({ headers: { location: again.headers.location as string } }, 400), "no longer valid");
  await browse({ email: "nobody" }).expect(400);
  t.equal(inbox.mails.length, 2);
});

t.test("a sign-in at a host of its own leads to a consent page that knows its session", async (t) => {
  const { service, inbox } = await startSignIn(t, { LOGIN_URL: "http://login.test/login" });
  const redirect = "http://127.0.0.1/callback";
  const client = await service.visitor
    .post("/oauth/register")
    .send({ redirect_uris: [redirect] })
    .expect(201);
  const challenge = { code_challenge: "x".repeat(43), code_challenge_method: "S256", response_type: "code" };
  const asked = { client_id: client.body.client_id, redirect_uri: redirect, resource: `${base}/mcp/acme/mcp` };
  const address = `/oauth/authorize?${new URLSearchParams({ ...asked, ...challenge })}`;
  const first = await service.visitor.get(address).set("Host", "service.test").expect(303);
  const returnTo = new URL(first.headers.location as string).searchParams.get("returnTo") as string;
  const signInId = await askForCode(service, undefined, returnTo);
  const done = await post(service, { signInId, code: await codeAt(inbox), returnTo }).expect(303);
  const { origin, pathname, search } = new URL(done.headers.location as string);
  t.equal(origin, "http://login.test");
  const visit = service.visitor.get(pathname + search).set("Host", "login.test");
  t.match((await visit.set("Cookie", cookiesOf(done)).expect(200)).text, /ada@example\.com/);
});

t.test("an address without a user gets the same answer, and no mail", async (t) => {
  const { service, inbox } = await startSignIn(t);
  const known = await post(service, { email: address }).expect(200);
  const unknown = await post(service, { email: "nobody@example.com" }).expect(200);
  const same = (text: string) => text.replace(/sgn_\w+/g, "id").replaceAll("nobody@example.com", address);
  t.equal(same(unknown.text), same(known.text));
  await codeAt(inbox);
  const signInId = /sgn_\w+/.exec(unknown.text)?.[0] as string;
  const code = sixDigits(service.runtime.env.SECRET_KEY, "sign-in code", signInId);
  t.match((await post(service, { signInId, code }).expect(400)).text, /That code is not right/);
  await eventually(
    async () => (await service.runtime.queues.queue("email").getJobCountByTypes("waiting", "active", "delayed")) === 0,
  );
  t.same(
    inbox.mails.map(({ to }) => to),
    [address],
  );
});

t.test("the code is in no key and in no job", async (t) => {
  const { service, inbox } = await startSignIn(t);
  const signInId = await askForCode(service);
  const code = await codeAt(inbox);
  const { redis } = service.runtime;
  for (const key of await keyNames(redis, "*")) {
    const type = await redis.type(key);
    const held = type === "hash" ? await redis.hgetall(key) : type === "string" ? await redis.get(key) : "";
    t.notOk(JSON.stringify(held).includes(`"${code}"`), key);
  }
  t.ok((await redis.pttl(keys.signIn(signInId))) <= 600_000);
});

t.test("the fifth wrong code ends the sign-in, also when they come at once", async (t) => {
  const { service, inbox } = await startSignIn(t);
  const signInId = await askForCode(service);
  const code = await codeAt(inbox);
  const wrong = code === "000000" ? "111111" : "000000";
  const tries = await Promise.all(Array.from({ length: 8 }, () => post(service, { signInId, code: wrong })));
  const said = tries
    .map(({ text }) => (/not right/.test(text) ? "wrong" : /no longer valid/.test(text) ? "over" : "else"))
    .sort();
  t.same(said, ["over", "over", "over", "over", "wrong", "wrong", "wrong", "wrong"]);
  t.match((await post(service, { signInId, code }).expect(400)).text, /That code is no longer valid/);
});

/** The cookies that an answer sets, as the browser sends them back. */
function cookiesOf({ headers }: { headers: Record<string, unknown> }): string {
  return ((headers["set-cookie"] ?? []) as string[]).map((line) => line.split(";")[0]).join("; ");
}

t.test("strangers can't keep the owner of an address from signing in, and can't fill the mailbox", async (t) => {
  const { service, inbox } = await startSignIn(t, { TRUST_PROXY: "1" });
  const ask = (network: string, cookie = "") =>
    post(service, { email: address }).set("X-Forwarded-For", network).set("Cookie", cookie);
  const signInId = await askForCode(service);
  const signedIn = await post(service, { signInId, code: await codeAt(inbox) }).expect(200);
  const known = cookiesOf(signedIn);
  t.match(
    signedIn.headers["set-cookie"]?.[1],
    /^known-browser=[^;]+; Max-Age=34560000; Path=\/login; HttpOnly; SameSite=Lax$/,
  );
  for (const status of [200, 200, 200, 429, 429]) await ask("192.0.2.66", "").expect(status);
  await ask("192.0.2.1").expect(200);
  for (let network = 0; network < 40; network++) await ask(`198.51.100.${network}`);
  await ask("192.0.2.2").expect(429);
  const mails = inbox.mails.length;
  await ask("192.0.2.2", known).expect(200);
  await eventually(() => inbox.mails.length > mails);
  t.ok(inbox.mails.length <= 22, `${inbox.mails.length} mails`);
  await ask("192.0.2.2", known.replace(/known-browser=[^.]+/, "known-browser=brw_other")).expect(429);
  await post(service, { email: "bob@example.com" })
    .set("X-Forwarded-For", "192.0.2.66")
    .set("Cookie", known)
    .expect(200);
});

t.test("one network that asks for an address all day leaves codes for the others", async (t) => {
  const { service } = await startSignIn(t, { TRUST_PROXY: "1" });
  const { redis } = service.runtime;
  const ask = (network: string) => post(service, { email: address }).set("X-Forwarded-For", network);
  /** As if so many ms had passed: each bucket is full earlier. */
  const pass = async (ms: number) => {
    for (const key of await keyNames(redis, "bucket:*"))
      await redis.set(key, Number(await redis.get(key)) - ms * 1000, "KEEPTTL");
  };
  const statuses: number[] = [];
  for (let asked = 0; asked < 96; asked++) {
    statuses.push((await ask("192.0.2.66")).status);
    await pass(900_000);
  }
  t.same(statuses.slice(0, 8), Array(8).fill(200), "its own people get theirs");
  for (let other = 0; other < 5; other++) await ask(`198.51.100.${other}`).expect(200);
});

t.test("a known browser has limits too", async (t) => {
  const { service, inbox } = await startSignIn(t);
  const signInId = await askForCode(service);
  const known = cookiesOf(await post(service, { signInId, code: await codeAt(inbox) }).expect(200));
  for (const status of [200, 200, 200, 429])
    await post(service, { email: address }).set("Cookie", known).expect(status);
  for (const status of [200, 200, 429]) await post(service, { email: address }).expect(status);
});

t.test("a browser that asks too often is led back to the code that was sent", async (t) => {
  const { service, inbox } = await startSignIn(t);
  const first = await post(service, { email: address }).expect(200);
  const pending = cookiesOf(first);
  t.match(
    first.headers["set-cookie"]?.[0],
    /^pending-sign-in=sgn_\w+; Max-Age=600; Path=\/login; HttpOnly; SameSite=Lax$/,
  );
  const code = await codeAt(inbox);
  for (let one = 0; one < 2; one++) await post(service, { email: address }).expect(200);
  await post(service, { email: address }).expect(429);
  const again = await post(service, { email: address }).set("Cookie", pending).expect(200);
  const signInId = /name="signInId" value="([^"]+)"/.exec(again.text)?.[1] as string;
  t.match(pending, signInId);
  await post(service, { email: "eve@example.com" }).expect(200);
  t.match((await post(service, { signInId, code }).expect(200)).text, /You are signed in/);
  await post(service, { email: address }).set("Cookie", pending).expect(429);
});

t.test("codes can't be asked for without end", async (t) => {
  const { service } = await startSignIn(t);
  for (let one = 0; one < 3; one++) await post(service, { email: address }).expect(200);
  const refused = await post(service, { email: address }).expect(429).expect("content-type", /html/);
  t.match(refused.text, /Too many attempts/);
  t.ok(Number(refused.headers["retry-after"]) > 0);
  await post(service, { email: "other@example.com" }).expect(200);
  const unknown = [0, 1, 2, 3].map(() => post(service, { email: "nobody@example.com" }));
  t.same(
    (await Promise.all(unknown)).map(({ status }) => status).sort(),
    [200, 200, 200, 429],
    "unknown addresses have the same limit",
  );
  const statuses: number[] = [];
  for (let one = 0; one < 40; one++) statuses.push((await post(service, { email: `person${one}@example.com` })).status);
  t.equal(statuses.at(-1), 429, "one network address can't ask for everybody");
});

t.test("behind a proxy the client's address is the one that the proxy reports", async (t) => {
  const { service } = await startSignIn(t, { TRUST_PROXY: "1" });
  const from = (forwarded: string, at: number) =>
    post(service, { email: `person${at}@example.com` }).set("X-Forwarded-For", forwarded);
  const statuses: number[] = [];
  for (let at = 0; at < 40; at++) statuses.push((await from(`10.0.0.${at}, 192.0.2.1`, at)).status);
  t.equal(statuses.at(-1), 429);
  await from("10.0.0.1, 192.0.2.2", 100).expect(200);
});

t.test("after signing in one goes to this service or to the application, nowhere else", async (t) => {
  const { service, inbox } = await startSignIn(t);
  const expected: Record<string, RegExp | undefined> = {
    "https://app.test/": /^https:\/\/app\.test\/#token=/,
    "/docs": /^http:\/\/service\.test\/docs#token=/,
    [`${base}/oauth/assistant/desktop/authorize?attemptId=att_1`]: /authorize\?attemptId=att_1$/,
    "https://evil.test/": undefined,
    "//evil.test/": undefined,
    "/\\evil.test": undefined,
    "https://app.test@evil.test/": undefined,
    "https://app.test.evil.test/": undefined,
    "javascript:alert(1)": undefined,
    "data:text/html,x": undefined,
  };
  for (const [returnTo, location] of Object.entries(expected)) {
    for (const key of await keyNames(service.runtime.redis, "bucket:*")) await service.runtime.redis.del(key);
    const before = inbox.mails.length;
    const signInId = await askForCode(service);
    await eventually(() => inbox.mails.length > before);
    const answer = await post(service, { signInId, code: inbox.codeFor(address) as string, returnTo });
    t.equal(answer.status, location ? 303 : 200, returnTo);
    if (location) t.match(answer.headers.location, location);
    else t.match(answer.text, /You are signed in/);
  }
});

t.test("forms of other sites can't sign a browser in", async (t) => {
  const { service } = await startSignIn(t);
  for (const origin of ["https://evil.test", "null"])
    await post(service, { email: address }).set("Origin", origin).expect(403);
  await post(service, { email: address }).set("Origin", base).expect(200);
  await post(service, { email: "other@example.com" }).set("Origin", new URL(service.url).origin).expect(200);
});

t.test("an invalid address is reported, and HTML in it is shown as text", async (t) => {
  const { service } = await startSignIn(t);
  for (const email of ["", "ada", "ada@", "@example.com", "a b@example.com", `${"a".repeat(65)}@example.com`])
    t.match((await post(service, { email }).expect(400)).text, `name="email" value="${email}"`, email);
  t.match((await post(service, { email: "ada@" })).text, /not an email address.*aria-invalid="true"/s);
  const odd = await post(service, {
    email: `"<script>alert(1)</script>"@example.com`.replace(/ /g, ""),
    returnTo: `"><script>alert(2)</script>`,
  });
  t.notMatch(odd.text, /<script>/);
  t.match(odd.headers["content-security-policy"], /default-src 'none'.*frame-ancestors 'none'/);
  t.equal(odd.headers["x-frame-options"], "DENY");
});

t.test("without LOGIN_BUILTIN there is no sign-in page, and without a mail server no code", async (t) => {
  const off = await startService(t);
  t.match((await off.visitor.get("/login").expect(404)).body, { code: "not_found" });
  for (const sent of [{ email: address }, { email: address, code: "1".repeat(33) }])
    t.match((await post(off, sent).expect(404)).body, { code: "not_found" });
  t.match(
    (
      await off.visitor
        .get("/login")
        .query({ returnTo: "x".repeat(9000) })
        .expect(404)
    ).body,
    { code: "not_found" },
  );
  const silent = await startService(t, { env: { LOGIN_BUILTIN: "1", LOGIN_URL: `${base}/account/enter` } });
  await silent.visitor.get("/account/enter").expect(200);
  await silent.visitor.get("/login").expect(404);
  const answer = await silent.visitor.post("/account/enter").type("form").send({ email: address }).expect(503);
  t.match(answer.text, /Mail is not available right now/);
});

t.test("over TLS no page without it can set the cookie of a session", async (t) => {
  const { service, inbox } = await startSignIn(t, { BASE_URL: "https://service.test" });
  const signInId = await askForCode(service);
  const done = await post(service, { signInId, code: await codeAt(inbox) }).expect(200);
  const secure =
    /^__Secure-(?:session|known-browser)=[^;]+; Max-Age=\d+; Path=\/(?:oauth|login); HttpOnly; SameSite=Lax; Secure$/;
  for (const line of done.headers["set-cookie"] as unknown as string[]) t.match(line, secure);
  const cookie = cookiesOf(done);
  const signedIn = /You are signed in/;
  const open = (jar: string) => service.visitor.get("/login").set("Cookie", jar).expect(200);
  t.match((await open(cookie)).text, signedIn);
  t.match((await open(`session=garbage; ${cookie}`)).text, signedIn);
  t.notMatch((await open(cookie.replaceAll("__Secure-", ""))).text, signedIn);
});

t.test("the length of a page with a token tells nothing of it", async (t) => {
  const { service } = await startSignIn(t);
  const token = await service.token("user_ada", { email: address });
  const lengthOf = async (guess: string) => {
    const page = service.visitor.get(`/login?returnTo=${encodeURIComponent(`https://app.test/#token=${guess}`)}`);
    const { headers, text } = await page.set({ cookie: `session=${token}`, "accept-encoding": "gzip" }).expect(200);
    t.match(text, `#token=${token}`);
    t.match(headers["cache-control"], "no-transform", "and asks proxies not to compress it");
    return Number(headers["content-length"]);
  };
  const right = token.slice(0, 40);
  t.equal(await lengthOf(right), await lengthOf([...right].reverse().join("")));
});

t.test("the browser's session decides a pairing by the page's own form alone", async (t) => {
  const { service } = await startSignIn(t);
  const start = () => service.visitor.post("/oauth/assistant/desktop/start").send({ deviceProofChallenge: "x" });
  const { attemptId } = (await start().expect(200)).body;
  const cookie = `other=1; session=${await service.token("user_ada", { email: address })}`;
  const visit = (id: string, jar = cookie) =>
    service.visitor.get(`/oauth/assistant/desktop/authorize?attemptId=${id}`).set("Cookie", jar);
  const page = await visit(attemptId).expect(200);
  t.match(page.text, /Signed in for.*30 days.*read and change pages/s);
  const french = await visit(attemptId).set("Accept-Language", "fr").expect(200);
  t.match(french.text, /<html lang="fr".*30 jours.*lire et modifier les pages/s);
  t.match(page.text, /ada@example\.com/);
  t.match(
    page.headers["content-security-policy"],
    /default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'/,
  );
  const proof = /name="proof" value="([^"]+)"/.exec(page.text)?.[1] as string;
  const decide = (fields: object, jar = cookie) =>
    service.visitor.post("/oauth/assistant/desktop/decide").type("form").set("Cookie", jar).send(fields);
  const good = { attemptId, decision: "allow", proof };
  await decide({ ...good, proof: "forged" }).expect(403);
  await decide({ ...good, proof: "" }).expect(403);
  await decide(good, "other=1").expect(401);
  await decide(good, `session=${await service.token("user_two")}`).expect(403);
  const other = (await start().expect(200)).body.attemptId;
  await decide({ ...good, attemptId: other }).expect(403);
  await decide({ ...good, decision: "perhaps" }).expect(400);
  t.match((await decide(good).expect(200)).text, /Desktop paired/);
  t.match((await decide(good).expect(409)).text, /Already decided/);
  t.match((await visit(attemptId).expect(409)).text, /Already decided/);
  t.match((await visit("att_unknown").expect(410)).text, /This pairing has expired/);
  const signedOut = await visit(other, "session=garbage").expect(200);
  t.match(
    signedOut.text,
    `${base}/login?returnTo=${encodeURIComponent(`${base}/oauth/assistant/desktop/authorize?attemptId=${other}`)}`,
  );
});
