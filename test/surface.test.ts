import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";
import { connect } from "node:net";
import process from "node:process";
import { text } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { decodeJwt, generateKeyPair, SignJWT } from "jose";
import t from "tap";
import { Metrics } from "../api/metrics.ts";
import { rows } from "../api/rows.ts";
import { setHandleActive } from "../core/account/handles.ts";
import type { Runtime } from "../core/platform/runtime.ts";
import { keys } from "../core/store/keys.ts";
import { makeSending } from "../fixtures/email.ts";
import { eventually, startService } from "../fixtures/service.ts";
import { formOf, type Schema } from "../schemas/schema.ts";

t.test("every failure is a problem document with the request's id", async (t) => {
  const { visitor, url } = await startService(t);
  const missing = await visitor
    .get("/nowhere")
    .set("X-Request-Id", "my-id.1")
    .expect(404)
    .expect("content-type", /application\/problem\+json/);
  t.match(missing.body, {
    type: "about:blank",
    title: "Not Found",
    status: 404,
    code: "not_found",
    requestId: "my-id.1",
  });
  t.equal(missing.headers["x-request-id"], "my-id.1");
  const minted = await visitor.get("/nowhere").set("X-Request-Id", "not an id!").expect(404);
  t.match(minted.headers["x-request-id"], /^[\w-]{36}$/);
  const method = await visitor.delete("/healthz").expect(405);
  t.match(method.body, { code: "method_not_allowed" });
  t.match(method.headers.allow, /GET/);
  t.match((await visitor.get("//")).body, { status: 404, code: "not_found" });
  for (const asset of ["none.js", "page.css.map", "..%2Fserver.js"])
    t.match((await visitor.get(`/assets/${asset}`)).body, { status: 404, code: "not_found" }, asset);
  const bare = request(url, { path: "http://" }).end();
  const [answer] = (await once(bare, "response")) as [IncomingMessage];
  t.equal(answer.resume().statusCode, 404, "a request target without a path");
});

t.test("a request has one host: that of its target, else of its one field (RFC 9112, section 3.2)", async (t) => {
  const service = await startService(t, { env: { PUBLIC_DOMAIN: "pages.test" } });
  const owner = await service.handle("acme");
  const page = { pageSlug: "hello", title: "Hello", status: "PUBLISHED" };
  await owner.post("/v2/handles/acme/pages").send(page).expect(201);
  const statusOf = async (target: string, ...hosts: string[]): Promise<number> => {
    const socket = connect(Number(new URL(service.url).port), "127.0.0.1");
    const fields = hosts.map((host) => `Host: ${host}\r\n`).join("");
    socket.write(`GET ${target} HTTP/1.1\r\n${fields}Connection: close\r\n\r\n`);
    return Number((await text(socket)).split(" ")[1]);
  };
  t.equal(await statusOf("/hello", "acme.pages.test"), 200);
  t.equal(await statusOf("http://acme.pages.test/hello", "service.test"), 200);
  t.equal(await statusOf("http://service.test/docs", "acme.pages.test"), 200);
  t.equal(await statusOf("http://service.test/hello", "acme.pages.test"), 404);
  t.equal(await statusOf("http://%@acme.pages.test/hello", "service.test"), 200);
  for (const target of ["http://[::/hello", "foo://bar", "*"])
    t.equal(await statusOf(target, "service.test"), 404, target);
  t.equal(await statusOf("/hello", "acme.pages.test", "service.test"), 400);
  for (const host of ["acme.pages.test service.test", "acme.pages.test/x", "user@acme.pages.test", "acme.pages.test#"])
    t.equal(await statusOf("/hello", host), 400, host);
  for (const host of ["", "[::1]:8080", "service.test.", "xn--mnchen-3ya.test", "a_b.test"])
    t.equal(await statusOf("/healthz", host), 200, host);
});

t.test("responses over 1 kB are compressed with br or gzip, smaller ones are not", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  await owner
    .post("/v2/handles/acme/pages")
    .send({ pageSlug: "long", title: "Long", status: "PUBLISHED", content: `<p>${"tea ".repeat(500)}</p>` })
    .expect(201);
  const encodingOf = async (path: string, accepted: string) => {
    const { headers, text } = await owner.get(path).set("Accept-Encoding", accepted).expect(200);
    t.match(headers.vary, /accept-encoding/i);
    t.match(text, /tea tea|openapi|font|ok/, "the bytes are in the coding that is named");
    return headers["content-encoding"];
  };
  for (const path of ["/p/acme/long", "/v2/handles/acme/pages/long", "/openapi.json", "/assets/page.css"]) {
    t.equal(await encodingOf(path, "gzip, br"), "br", path);
    t.equal(await encodingOf(path, "gzip"), "gzip", path);
    t.equal(await encodingOf(path, "identity"), undefined, path);
    t.equal(await encodingOf(path, "br;q=0, gzip;q=0.5"), "gzip", path);
  }
  t.equal(await encodingOf("/healthz", "gzip, br"), undefined);
  const tagOf = async (path: string, accepted: string) =>
    (await service.visitor.get(path).set("Accept-Encoding", accepted)).headers.etag;
  for (const path of ["/assets/page.css", "/p/acme/long"]) {
    const tags = new Set([await tagOf(path, "br"), await tagOf(path, "gzip"), await tagOf(path, "identity")]);
    t.equal(tags.size, 3, `each coding of ${path} has its own strong tag (RFC 9110, section 8.8.3)`);
  }
  const [tag, again] = [await service.visitor.get("/p/acme/long"), service.visitor.get("/p/acme/long")];
  await again.set("If-None-Match", tag.headers.etag as string).expect(304);
});

t.test("a copy that is current costs a 304, also if the request tells caches not to answer", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  await owner
    .post("/v2/handles/acme/pages")
    .send({ pageSlug: "index", title: "Home", status: "PUBLISHED" })
    .expect(201);
  for (const path of ["/p/acme/index", "/assets/public-page-agent.js", "/openapi.json"]) {
    const { headers } = await service.visitor.get(path).expect(200);
    // What `fetch` sends with a condition.
    const condition = { "if-none-match": headers.etag as string, "cache-control": "no-cache", pragma: "no-cache" };
    const again = await service.visitor.get(path).set(condition).expect(304);
    t.equal(again.headers.etag, headers.etag, path);
    // The date is ignored beside a tag (RFC 9110, section 13.1.3).
    const dated = { ...condition, "if-modified-since": "Sat, 29 Oct 1994 19:43:31 GMT" };
    await service.visitor.get(path).set(dated).expect(304);
  }
});

t.test("HEAD answers with the coding of GET, and never with the length of another one", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const content = `<p>${"tea ".repeat(500)}</p>`;
  await owner
    .post("/v2/handles/acme/pages")
    .send({ pageSlug: "long", title: "Long", status: "PUBLISHED", content })
    .expect(201);
  const authorization = `Bearer ${await service.token("user_acme")}`;
  const ask = (method: string, path: string, accepted: string) =>
    fetch(service.url + path, { method, headers: { authorization, "accept-encoding": accepted } });
  for (const path of ["/p/acme/long", "/v2/handles/acme/pages/long", "/openapi.json", "/assets/page.css", "/healthz"])
    for (const accepted of ["br", "gzip", "identity"]) {
      const [get, head] = [await ask("GET", path, accepted), await ask("HEAD", path, accepted)];
      t.equal(head.status, 200, path);
      for (const name of ["content-encoding", "content-type", "vary", "etag"])
        t.equal(head.headers.get(name), get.headers.get(name), `${name} of ${path} in ${accepted}`);
      const length = head.headers.get("content-length");
      if (length !== null) t.equal(length, get.headers.get("content-length"), path);
      t.equal((await get.text()) === "", false, path);
      t.equal(await head.text(), "", path);
    }
});

t.test("an internal error is reported without details", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  await service.runtime.redis.hset(keys.campaign("acme", "cmp_broken"), { version: 1, json: "{a secret" });
  const path = "/v2/handles/acme/campaigns/cmp_broken/email-rules";
  const answer = await owner.get(path).expect(500);
  t.match(answer.body, { status: 500, code: "internal_error" });
  t.notMatch(JSON.stringify(answer.body), /secret|JSON|stack/);
});

t.test("401 comes before 403, 403 before 400, and a stranger can't tell handles apart", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  await service.grant("acme", "user_creator", "CREATOR");
  const path = "/v2/handles/acme/pages";
  for (const header of [undefined, "Basic abc", ""]) {
    const asked = service.visitor.post(path).send({ nonsense: 1 });
    const answer = await (header === undefined ? asked : asked.set("Authorization", header));
    t.match(answer.body, { status: 401, code: "missing_bearer_token" });
    t.match(answer.headers["www-authenticate"], /^Bearer \w+="/, "a challenge has a parameter (RFC 6750, section 3)");
  }
  const stranger = await service.as("user_stranger");
  const known = await stranger.post(path).send({ nonsense: 1 }).expect(403);
  const unknown = await stranger.post("/v2/handles/nobody/pages").send({ nonsense: 1 }).expect(403);
  const same = ({ requestId: _, ...body }: Record<string, unknown>) => body;
  t.same(same(known.body), same(unknown.body));
  t.equal(known.body.code, "forbidden");
  await (await service.as("user_creator")).post(path).send({ pageSlug: "a", title: "A" }).expect(201);
  await setHandleActive(service.runtime.redis, "acme", false);
  t.match((await owner.get(path).expect(403)).body, { code: "forbidden" });
});

t.test("no forged, expired or foreign token is taken", async (t) => {
  const service = await startService(t);
  await service.handle("acme");
  const { signingKey: own, env } = service.runtime;
  const other = await generateKeyPair("EdDSA", { crv: "Ed25519" });
  const { sid } = decodeJwt(await service.token("user_acme"));
  const claims = { sub: "user_acme", sid, iss: env.BASE_URL, aud: env.BASE_URL, iat: 1, exp: 4_000_000_000 };
  const signed = (payload: object, key = own.private, header: object = {}) =>
    new SignJWT({ ...payload }).setProtectedHeader({ alg: "EdDSA", kid: own.kid, ...header }).sign(key);
  const secret = new TextEncoder().encode(JSON.stringify(own.publicJwk));
  const bare = (part: object) => Buffer.from(JSON.stringify(part)).toString("base64url");
  const bad = {
    garbage: "garbage",
    "three dots": "a.b.c",
    "wrong key": await signed(claims, other.privateKey),
    "unknown kid": await signed(claims, own.private, { kid: "other" }),
    none: `${bare({ alg: "none", typ: "JWT" })}.${bare(claims)}.`,
    HS256: await new SignJWT({ ...claims }).setProtectedHeader({ alg: "HS256", kid: own.kid }).sign(secret),
    expired: await signed({ ...claims, exp: Math.floor(Date.now() / 1000) - 10 }),
    "not yet": await signed({ ...claims, nbf: Math.floor(Date.now() / 1000) + 60 }),
    "wrong audience": await signed({ ...claims, aud: "https://elsewhere.test" }),
    "wrong issuer": await signed({ ...claims, iss: "https://elsewhere.test" }),
    "no subject": await signed({ ...claims, sub: undefined }),
    "no expiry": await signed({ ...claims, exp: undefined }),
    "no session": await signed({ ...claims, sid: undefined }),
    "unknown session": await signed({ ...claims, sid: "ses_unknown" }),
    "another user's session": await signed({ ...claims, sid: decodeJwt(await service.token("user_two")).sid }),
  };
  for (const [name, token] of Object.entries(bad)) {
    const answer = await service.visitor.get("/v2/handles/acme/pages").set("Authorization", `Bearer ${token}`);
    t.match(answer.body, { status: 401, code: "invalid_token" }, name);
  }
  const good = await signed(claims);
  await service.visitor.get("/v2/handles/acme/pages").set("Authorization", `Bearer ${good}`).expect(200);
});

t.test("in production every response tells browsers to use HTTPS only", async (t) => {
  const production = { NODE_ENV: "production", SECRET_KEY: "a".repeat(43), METRICS_TOKEN: "secret" };
  const hsts = async (env: Record<string, string>) => {
    const service = await startService(t, { env });
    const paths = [
      "/healthz",
      "/docs",
      "/p/acme/none",
      "/v2/handles/acme/pages",
      "/assets/page.css",
      "/none",
      "/metrics",
    ];
    const answers = await Promise.all(paths.map((path) => service.visitor.get(path)));
    return [...new Set(answers.map(({ headers }) => headers["strict-transport-security"]))];
  };
  t.same(await hsts({ ...production, BASE_URL: "https://service.test" }), ["max-age=31536000"]);
  t.same(await hsts({ ...production, BASE_URL: "http://service.test" }), [undefined]);
  t.same(await hsts({ BASE_URL: "https://service.test" }), [undefined]);
});

t.test("bad bodies get a code and change nothing", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const path = "/v2/handles/acme/pages";
  const raw = (body: string | Buffer, type = "application/json") =>
    owner
      .post(path)
      .set("Content-Type", type)
      .send(body as string);
  t.match((await raw("{ no json")).body, {
    status: 400,
    code: "invalid_request",
    detail: /not valid JSON at position 2/,
  });
  t.match((await raw('{"title":')).body, { status: 400, detail: "The body is not valid JSON: it ends too early." });
  t.match((await raw(Buffer.from([0, 255, 254, 1]))).body, { status: 400, code: "invalid_request" });
  t.match((await raw("[1,2]")).body, { status: 400, code: "invalid_request" });
  t.match((await raw('"text"')).body, { status: 400, code: "invalid_request" });
  t.match(await raw("<a/>", "application/xml"), {
    headers: { accept: "application/json" },
    body: { status: 415, code: "unsupported_media_type", detail: /send application\/json/ },
  });
  t.match((await raw('{"pageSlug":"Z","title":"Z"}', "application/vnd.owner+json")).body, {
    errors: [{ path: "/pageSlug", message: /lower-case/ }],
  });
  t.match((await raw(JSON.stringify({ pageSlug: "a", title: "A", content: "x".repeat(1_100_000) }))).body, {
    status: 413,
    code: "payload_too_large",
  });
  t.match((await raw(`{"pageSlug":"a","title":"A","__proto__":{"x":1}}`)).body, {
    status: 400,
    code: "invalid_request",
  });
  t.match((await owner.post(path)).body, { status: 400, code: "invalid_request" });
  for (const encoding of ["gzip", "deflate", "br"]) {
    const squeezed = raw(`{"pageSlug":"a","title":"A"}`).set("Content-Encoding", encoding);
    t.match((await squeezed).body, { status: 400, code: "invalid_request" }, encoding);
  }
  t.match(await raw("{}").set("Content-Encoding", "zstd"), {
    headers: { "accept-encoding": "gzip, deflate, br" },
    body: { status: 415, detail: /^The content coding / },
  });
  // The names of codings ignore case, and x-gzip is gzip (RFC 9110, section 8.4.1).
  for (const encoding of ["GZIP", "x-gzip", "X-GZip"]) {
    const packed = raw(gzipSync('{"pageSlug":"Z","title":"Z"}')).serialize((body) => body);
    t.match(
      (await packed.set("Content-Encoding", encoding)).body,
      { status: 400, errors: [{ path: "/pageSlug" }] },
      encoding,
    );
  }
  const deep = (levels: number) => `{"pageSlug":"a","title":"A","x":${"[".repeat(levels)}${"]".repeat(levels)}}`;
  for (const levels of [64, 8000, 400_000])
    t.match((await raw(deep(levels)).set("Idempotency-Key", "deep")).body, { status: 400, errors: [{ path: "" }] });
  t.match((await raw(deep(63)).set("Idempotency-Key", "deep")).body, { status: 400, errors: [{ path: "/x" }] });
  const wide = (values: number) => `{"pageSlug":"a","title":"A","status":0,"language":[${"0,".repeat(values)}0]}`;
  t.match((await raw(wide(50_000))).body, { status: 400, errors: [{ path: "", message: /at most 50000 values/ }] });
  t.match((await raw(wide(49_990))).body, { status: 400, errors: [{ path: "/status" }] });
  for (const title of ["a\u0000", "\u001b", "a\nb", "\u007f", " ", `${"a".repeat(300_000)}\u0001\u0001`])
    t.match((await owner.post(path).send({ pageSlug: "a", title })).body, {
      status: 400,
      errors: [{ path: "/title" }],
    });
  t.match((await owner.post(`${path}?title=A`).send({ pageSlug: "a" })).body, {
    status: 400,
    errors: [{ path: "/title" }],
  });
  t.same((await owner.get(path).expect(200)).body, { pages: [], nextCursor: null });
});

t.test("a refused body of unknown length does not hold up the next request on its connection", async (t) => {
  const { url, handle } = await startService(t, { env: { PUBLIC_PAGE_AGENT_ENABLED: "1" } });
  await handle("acme");
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.teardown(() => agent.destroy());
  const ask = async (method: string, path: string, type: string, body = ""): Promise<number | undefined> => {
    const headers = { "content-type": type, "transfer-encoding": "chunked" };
    const sent = request(url + path, { agent, method, signal: AbortSignal.timeout(10_000), ...(body && { headers }) });
    for (let at = 0; at < body.length; at += 8192) sent.write(body.slice(at, at + 8192));
    sent.end();
    const [answer] = (await once(sent, "response")) as [IncomingMessage];
    await once(answer.resume(), "end");
    return answer.statusCode;
  };
  const [leads, long] = ["/v2/public/handles/acme/leads", "x".repeat(1_000_000)];
  for (const [type, status] of [
    ["application/json", 413],
    ["application/x-www-form-urlencoded", 413],
    ["text/plain", 415],
  ] as const) {
    t.equal(await ask("POST", leads, type, long), status, type);
    t.equal(await ask("GET", "/healthz", ""), 200, `after ${type}`);
  }
});

t.test("a fault is the end of a sentence that its path begins", async (t) => {
  const service = await startService(t, { env: { PUBLIC_PAGE_AGENT_ENABLED: "1" } });
  const owner = await service.handle("acme");
  const faults = async (path: string, body: object) =>
    (await owner.post(`/v2/handles/acme/${path}`).send(body).expect(400)).body.errors;
  t.same(await faults("pages", { pageSlug: "a", language: "??", colour: "red" }), [
    { path: "/title", message: "is required" },
    { path: "/colour", message: "is not a known field" },
    { path: "/language", message: "must be a language tag, such as en or pt-BR" },
  ]);
  t.match(await faults("scheduling/schedules", { scheduleId: "a", timeZone: "Europe/Berln", weeklyAvailability: [] }), [
    { path: "/timeZone", message: "must be an IANA time zone, such as Europe/Berlin" },
  ]);
  t.match(await faults("email/suppressions", { email: "ada" }), [
    { path: "/email", message: "must be an email address" },
  ]);
  t.same(await faults("pages", { pageSlug: "a", title: "a".repeat(1001), status: "GONE", content: 1 }), [
    { path: "/title", message: "must have at most 200 characters" },
    { path: "/status", message: "must be one of DRAFT, PUBLISHED" },
    { path: "/content", message: "must be a string" },
  ]);
  for (const query of [" ", "\u200b", "\u{e0041}"])
    t.same(await faults("knowledge/query", { query }), [{ path: "/query", message: "must not be blank" }]);
  t.same(await faults("pages", { pageSlug: "a", title: "\u3164" }), [
    { path: "/title", message: "must be one line that is not blank" },
  ]);
  t.same(await faults("webhooks", { url: "http://example.com", events: ["lead.captured"] }), [
    { path: "/url", message: "must be an https address" },
  ]);
  t.same(await faults("webhooks", { url: "https://example.com", events: ["lead.captured", "lead.captured"] }), [
    { path: "/events", message: "must not contain an item twice" },
  ]);
  t.same(await faults("pages", { pageSlug: "Ada_1", title: "a\nb" }), [
    { path: "/pageSlug", message: "must consist of lower-case letters and digits, with single hyphens between them" },
    { path: "/title", message: "must be one line that is not blank" },
  ]);
  const hours = { day: 1, startTime: "9:00", endTime: "24:30" };
  t.same(await faults("scheduling/schedules", { timeZone: "UTC", weeklyAvailability: [hours] }), [
    { path: "/weeklyAvailability/0/startTime", message: "must be a time, such as 09:30" },
    { path: "/weeklyAvailability/0/endTime", message: "must be a time, such as 17:30, or 24:00" },
  ]);
  const event = { slug: "intro", title: "Intro", durationMinutes: 30 };
  await owner.post("/v2/handles/acme/scheduling/event-types").send(event).expect(201);
  const booking = { attendee: { name: "Ada", email: "ada@example.com" }, start: "2026-01-01T09:00:00Z" };
  const guests = await service.visitor
    .post("/v2/public/scheduling/acme/intro/bookings")
    .send({ ...booking, end: booking.start, guests: ["ada", { email: "ada" }, 1] })
    .expect(400);
  t.same(guests.body.errors, [
    { path: "/guests/0", message: "must be an email address" },
    { path: "/guests/0", message: "has none of the documented forms" },
    { path: "/guests/1/email", message: "must be an email address" },
    { path: "/guests/1", message: "has none of the documented forms" },
    { path: "/guests/2", message: "has none of the documented forms" },
  ]);
  const form = service.visitor.post("/v2/public/handles/acme/leads").set("Content-Type", "text/plain").send("email=a");
  t.match(await form.expect(415), {
    headers: { accept: "application/json, application/x-www-form-urlencoded, multipart/form-data" },
    body: { detail: /send application\/x-www-form-urlencoded/ },
  });
});

t.test("no fault shows a regular expression", async (t) => {
  const { runtime } = await startService(t);
  const patterns = (schema: unknown): unknown[] => {
    if (typeof schema !== "object" || schema === null) return [];
    const { pattern = "\\S" } = schema as Schema<unknown>;
    const isUnnamed = typeof pattern === "string" && pattern !== "\\S" && formOf(schema) === undefined;
    return [...(isUnnamed ? [pattern] : []), ...Object.values(schema).flatMap(patterns)];
  };
  for (const { method, path, input } of rows(new Metrics(runtime))) t.same(patterns(input), [], `${method} ${path}`);
});

t.test("a specific code is found behind any number of other faults", async (t) => {
  const owner = await (await startService(t)).handle("acme");
  const unknown = Object.fromEntries(Array.from({ length: 40_000 }, (_, at) => [`x${at}`, at]));
  const { body } = await owner
    .post("/v2/handles/acme/email/messages")
    .send({ ...unknown, senderId: "a" })
    .expect(400);
  t.match(body, { code: "invalid_sender_id", errors: { length: 20 } });
});

t.test("public routes allow any origin, owner routes the application's alone", async (t) => {
  const service = await startService(t, { env: { APP_URL: "https://app.test" } });
  const preflight = (path: string, origin: string, method = "POST") =>
    service.visitor.get(path).set("Origin", origin).set("Access-Control-Request-Method", method);
  const ask = (path: string, origin: string, method = "POST") => {
    const asked = preflight(path, origin, method);
    asked.method = "OPTIONS";
    return asked;
  };
  const open = await ask("/v2/public/pages/acme/pricing/agentic-chat", "https://anywhere.test").expect(204);
  t.equal(open.headers["access-control-allow-origin"], "*");
  t.equal(open.headers["access-control-allow-credentials"], undefined);
  const own = await ask("/v2/handles/acme/pages", "https://app.test").expect(204);
  t.equal(own.headers["access-control-allow-origin"], "https://app.test");
  const refused = await service.visitor
    .get("/v2/public/handles/acme/leads")
    .set("Origin", "https://anywhere.test")
    .expect(405);
  t.equal(refused.headers["access-control-allow-origin"], "*");
  const wrong = await ask("/v2/handles/acme/pages", "https://app.test", "DELETE").expect(405);
  t.match(wrong.headers.allow, /GET/);
  const foreign = await ask("/v2/handles/acme/pages", "https://anywhere.test");
  t.equal(foreign.headers["access-control-allow-origin"], undefined);
  for (const path of ["/.well-known/jwks.json", "/assets/page.css"]) {
    const { headers } = await service.visitor.get(path).expect(200);
    t.match(headers, { "cache-control": /max-age/, vary: /Origin/ }, `${path} is cached for each origin`);
  }
});

t.test("the service describes itself", async (t) => {
  const { visitor } = await startService(t);
  t.same((await visitor.get("/healthz").expect(200)).body, { status: "ok" });
  t.match((await visitor.get("/readyz").expect(200)).body, {
    status: "ready",
    redis: "ok",
    queuesWithoutWorker: ["generation"],
  });
  const { body } = await visitor.get("/openapi.json").expect(200);
  t.equal(body.openapi, "3.1.0");
  t.ok(body.paths["/v2/handles/{handle}/pages"].post.requestBody);
  t.match(Object.keys(body.paths["/v2/account/domains"].post.responses).join(), /^200,201,400,.*default$/);
  t.match((await visitor.get("/docs").expect(200)).text, /<a href="\/openapi.json">/);
  t.match((await visitor.get("/metrics").expect(200)).text, /http_requests_total/);
  t.match((await visitor.get("/.well-known/jwks.json").expect(200)).body, { keys: [{ kty: "OKP", crv: "Ed25519" }] });
});

t.test("each write of an owner records who, what and when, and no content", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const kept = `${Date.now() - 89 * 86_400_000}-0`;
  for (const id of [`${Date.now() - 91 * 86_400_000}-0`, kept])
    await service.runtime.redis.xadd("audit:{acme}", id, "who", "user_acme");
  await owner.post("/v2/handles/acme/pages").send({ pageSlug: "a", title: "Very private title" }).expect(201);
  await owner.delete("/v2/handles/acme/pages/a").expect(204);
  await owner.get("/v2/handles/acme/pages").expect(200);
  const suppressions = "/v2/handles/acme/email/suppressions";
  await owner.post(suppressions).send({ email: "private@far.example" }).expect(201);
  await owner.delete(`${suppressions}/private@far.example`).expect(204);
  const entries = await eventually(async () => {
    const found = await service.runtime.redis.xrange("audit:{acme}", "-", "+");
    return found.length === 5 && found;
  });
  t.match(entries, [
    [kept, ["who", "user_acme"]],
    [String, ["who", "user_acme", "route", "POST /v2/handles/:handle/pages", "id", "a", "at", String]],
    [String, ["who", "user_acme", "route", "DELETE /v2/handles/:handle/pages/:pageSlug", "id", "a", "at", String]],
    [String, { 3: "POST /v2/handles/:handle/email/suppressions", 5: "" }],
    [String, { 3: "DELETE /v2/handles/:handle/email/suppressions/:email", 5: "" }],
  ]);
  t.notMatch(JSON.stringify(entries), /private/);
  const unnamed = rows(new Metrics(service.runtime)).filter(
    ({ method, path, access, status, isReadOnly, createdId }) =>
      method === "POST" &&
      access.kind === "handle" &&
      !isReadOnly &&
      !createdId &&
      (status === 201 || !path.replace(":handle", "").includes(":")),
  );
  t.same(
    unnamed.map(({ path }) => path),
    [],
    "a row whose path has no id of what it wrote names it",
  );
});

t.test("a query that repeats a name costs little, and says that it does", async (t) => {
  const service = await startService(t);
  await service.handle("acme");
  const path = "/v2/public/scheduling/acme/talk/slots?";
  const before = process.cpuUsage();
  for (const part of ["a&", "=&"])
    for (let times = 0; times < 5; times++) await service.visitor.get(path + part.repeat(7500));
  const { user, system } = process.cpuUsage(before);
  t.ok((user + system) / 1000 < 2000, `${(user + system) / 1000} ms of CPU for ten requests`);
  const owner = await service.as("user_acme");
  const { body } = await owner.get("/v2/handles/acme/pages?limit=1&limit=2").expect(400);
  t.match(body.errors, [{ path: "/limit", message: "must be an integer" }]);
  await owner.get("/v2/handles/acme/pages?__proto__=1").expect(400);
});

t.test("a body of no bytes counts as none, whatever its headers say", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const path = "/v2/handles/acme/pages";
  await owner.post(path).send({ pageSlug: "a", title: "A" }).expect(201);
  const authorization = `Bearer ${await service.token("user_acme")}`;
  const chunked = async (address: string, body: string, type?: string) => {
    const headers = { authorization, "transfer-encoding": "chunked", ...(type ? { "content-type": type } : {}) };
    const asked = request(`${service.url}${address}`, { method: "POST", headers }).end(body);
    const [answer] = (await once(asked, "response")) as [IncomingMessage];
    answer.resume();
    return answer.statusCode;
  };
  for (const type of [undefined, "application/json", "application/octet-stream"]) {
    t.equal(await chunked(`${path}/a/publish`, "", type), 200, String(type));
    t.equal(await chunked(path, "", type), 400, String(type));
  }
  t.equal(await chunked(path, '{"pageSlug":"b","title":"B"}', "application/json"), 201);
  for (const type of [undefined, "text/plain"])
    t.equal(await chunked(`${path}/a/publish`, "{}", type), 415, String(type));
});

t.test("an Idempotency-Key of any length is ignored by routes that have none", async (t) => {
  const service = await startService(t, { env: { PUBLIC_PAGE_AGENT_ENABLED: "1" } });
  const owner = await service.handle("acme");
  const key = "k".repeat(256);
  await owner.get("/v2/handles/acme/pages").set("Idempotency-Key", key).expect(200);
  const lead = service.visitor.post("/v2/public/handles/acme/leads").send({ email: "ann@far.example" });
  await lead.set("Idempotency-Key", key).expect(202);
  const refused = await owner.post("/v2/handles/acme/email/messages").send({}).set("Idempotency-Key", key).expect(400);
  t.match(refused.body.errors, [{ path: "/Idempotency-Key", message: /255/ }]);
});

t.test("a body that is cut off or malformed on its way is no failure of the service", async (t) => {
  const { url, runtime } = await startService(t);
  const logged: unknown[] = [];
  for (const level of ["warn", "error"] as const)
    t.intercept(runtime.log, level, { value: (...line: unknown[]) => void logged.push(line) });
  const statuses: number[] = [];
  t.intercept(runtime.log, "info", { value: ({ status }: { status: number }) => void statuses.push(status) });
  const lines = [
    "POST /oauth/assistant/desktop/start HTTP/1.1\r\ncontent-type: application/json",
    "POST /oauth/assistant/desktop/start HTTP/1.1\r\ncontent-type: text/plain",
    "POST /v2/public/providers/stripe/webhook HTTP/1.1\r\ncontent-type: application/json",
  ];
  const chunks = ['5\r\n{"dev\r\nzz\r\n', "zz\r\n", `5;${"x".repeat(30_000)}`, ""];
  for (const line of lines)
    for (const chunk of chunks) {
      const socket = connect(Number(new URL(url).port), "127.0.0.1");
      socket.on("error", () => undefined);
      // On a busy machine a connection can take longer than 50 ms: only a request that was sent is one that breaks off.
      socket.write(`${line}\r\nhost: service.test\r\ntransfer-encoding: chunked\r\n\r\n${chunk}`, () => {
        if (chunk === "") setTimeout(() => socket.destroy(), 50);
      });
      await once(socket.resume(), "close");
    }
  await eventually(() => statuses.length === lines.length * chunks.length);
  t.same(logged, []);
  t.notOk(
    statuses.some((status) => status >= 500),
    statuses.join(),
  );
});

t.test("a body that dribbles in is refused in time and changes nothing", async (t) => {
  const service = await startService(t);
  const token = await service.handle("acme").then(() => service.token("user_acme"));
  const { port } = new URL(service.url);
  const socket = connect(Number(port), "127.0.0.1");
  let answer = "";
  socket.on("data", (data) => {
    answer += data;
  });
  socket.write(
    `POST /v2/handles/acme/pages HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"pageSlug":`,
  );
  await eventually(() => answer.includes("invalid_request"));
  t.match(answer, /^HTTP\/1.1 400 /);
  socket.destroy();
});

/** Rows of owners that make or change a resource and show it; the others do something with one, or look for some. */
const acts =
  /\/(?:publish|confirm|decline|cancel|sync|rotate-secret|test|redeliver|preview|reconcile|callback|query|retrieve)$/;
const writing = rows(new Metrics({} as Runtime)).filter(
  ({ access, method, path, returns }) =>
    /^(user|handle)$/.test(access.kind) && /^(POST|PUT)$/.test(method) && !acts.test(path) && returns,
);

t.test("no row of an owner refuses a field of the resource that it makes or changes", async (t) => {
  t.ok(writing.length > 15);
  for (const { method, path, input, returns } of writing) {
    const known = Object.keys(input.properties as object);
    const shown = Object.values(returns?.properties as Record<string, Schema<unknown>>).flatMap((one) =>
      Object.keys((one.properties ?? {}) as object),
    );
    t.same(
      shown.filter((name) => !known.includes(name)),
      [],
      `${method} ${path}: add them to \`s.ignored\` of its input, since a client may send back what it has read`,
    );
  }
});

t.test("what was created can be read at its Location, if it can be read alone", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const handled = "/v2/handles/acme";
  const hours = [0, 1, 2, 3, 4, 5, 6].map((day) => ({ day, startTime: "00:00", endTime: "24:00" }));
  const made: [path: string, body: object][] = [
    [`${handled}/pages`, { pageSlug: "a", title: "A" }],
    [`${handled}/pages/`, { pageSlug: "b", title: "B" }],
    [`${handled}/scheduling/schedules`, { timeZone: "UTC", weeklyAvailability: hours }],
    [`${handled}/scheduling/event-types`, { slug: "a", title: "A", durationMinutes: 30 }],
    [`${handled}/email/templates`, { templateId: "tmpl_a", name: "A", subject: "A", text: "A" }],
    [`${handled}/webhooks`, { url: "http://127.0.0.1:1/hook" }],
    [`${handled}/scheduling/webhooks`, { url: "http://127.0.0.1:1/hook" }],
  ];
  for (const [path, body] of made) {
    const { headers } = await owner.post(path).send(body).expect(201);
    await owner.get(headers.location as string).expect(200);
  }
  const event = "/v2/public/scheduling/acme/a";
  const [start, end] = [1, 2].map((days) => new Date(Date.now() + days * 86_400_000).toISOString());
  const [slot] = (await service.visitor.get(`${event}/slots?start=${start}&end=${end}`).expect(200)).body.slots;
  const attendee = { name: "Ada", email: "ada@example.com" };
  const booked = await service.visitor.post(`${event}/bookings`).send({ slot, attendee }).expect(201);
  await service.visitor.get(booked.headers.location as string).expect(200);
  const campaign = await owner.post(`${handled}/campaigns`).send({ name: "A" }).expect(201);
  t.equal(campaign.headers.location, undefined, "there is no route for one campaign");
});

t.test("an owner can send back a resource as it was read", async (t) => {
  const service = await startService(t, {
    env: { PUBLIC_PAGE_AGENT_ALLOWED_HANDLES: "acme", SMTP_URL: "smtp://127.0.0.1:1" },
  });
  const { owner, root, ask, send } = await makeSending(service);
  const { body } = await service.visitor.post("/v2/public/handles/acme/leads").send({ email: "ann@far.example" });
  const rules = "/v2/handles/acme/campaigns/cmp_a/email-rules";
  const handled = "/v2/handles/acme";
  const template = { name: "A", subject: "A", text: "A" };
  const weekly = [{ day: 1, startTime: "09:00", endTime: "12:00" }];
  const made: { path: string; of: object; again?: object; put?: string }[] = [
    { path: "/v2/account/domains", of: { domain: "far.example" } },
    { path: "/v2/account/tokens", of: { name: "A", scopes: ["agent.pages.read"] } },
    { path: `${handled}/campaigns`, of: { campaignId: "cmp_a", name: "A" }, again: { campaignId: "cmp_b" } },
    { path: `${handled}/conversions`, of: { campaignId: "cmp_a", leadId: body.lead.leadId } },
    {
      path: `${root}/templates`,
      of: { ...template, templateId: "tmpl_a" },
      again: { templateId: "tmpl_b" },
      put: "tmpl_a",
    },
    { path: `${root}/suppressions`, of: { email: "bob@far.example" } },
    { path: rules, of: { trigger: "LEAD_CAPTURED", templateId: "tmpl_a", senderId: "sender_main" }, put: "ruleId" },
    { path: `${handled}/pages`, of: { pageSlug: "a", title: "A" }, again: { pageSlug: "b" }, put: "a" },
    { path: `${handled}/knowledge/documents`, of: { title: "A", content: "A" }, put: "documentId" },
    { path: `${handled}/scheduling/schedules`, of: { scheduleId: "a", timeZone: "UTC", weeklyAvailability: weekly } },
    {
      path: `${handled}/scheduling/event-types`,
      of: { slug: "a", title: "A", durationMinutes: 30 },
      again: { slug: "b" },
      put: "eventTypeId",
    },
    { path: `${handled}/scheduling/webhooks`, of: { url: "http://127.0.0.1:1/hook" } },
  ];
  for (const { path, of, again = {}, put } of made) {
    const first = await owner.post(path).send(of);
    const [shown] = Object.values(first.body) as [Record<string, string>];
    const second = await owner.post(path).send({ ...of, ...shown, ...again });
    t.ok([200, 201, 202].includes(second.status), `POST ${path} ${JSON.stringify(second.body)}`);
    if (put === undefined) continue;
    const changed = await owner.put(`${path}/${shown[put] ?? put}`).send(shown);
    t.equal(changed.status, 200, `PUT ${path} ${JSON.stringify(changed.body)}`);
  }
  const [sender] = (await owner.get(`${root}/senders`).expect(200)).body.senders;
  await owner.put(`${root}/senders/sender_main`).send(sender).expect(200);
  await send(["ann@far.example"]);
  const [message] = (await owner.get(`${root}/messages`).expect(200)).body.messages;
  await ask(message).expect(202);
});
