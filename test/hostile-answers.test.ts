import { Buffer } from "node:buffer";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import process from "node:process";
import { Worker } from "node:worker_threads";
import { gzipSync } from "node:zlib";
import t, { type Test as TapTest } from "tap";
import { SessionTokens } from "../core/account/session-tokens.ts";
import { accessToken } from "../core/engines/calendars/access-tokens.ts";
import { calendarObject, writtenSequence } from "../core/engines/calendars/calendar-file.ts";
import { openDns } from "../core/engines/mail/dns.ts";
import { readReport } from "../core/engines/mail/reports.ts";
import { readEnv } from "../core/platform/env.ts";
import { ResponseRefused } from "../core/platform/exchange.ts";
import { parseJson } from "../core/platform/json.ts";
import { Outbound } from "../core/platform/outbound.ts";
import { Threads } from "../core/platform/threads.ts";
import { eventually, startService } from "../fixtures/service.ts";

const MEGABYTE = 1_048_576;

async function listening(t: TapTest, answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function outbound(t: TapTest): Outbound {
  const made = new Outbound({ production: false, OUTBOUND_ALLOW_HOSTS: [] });
  t.teardown(() => made.close());
  return made;
}

/** Writes parts until the client leaves. */
const endless =
  (part: string): RequestListener =>
  (_request, response) => {
    const bytes = Buffer.from(part.repeat(65_536 / part.length));
    const more = (): void => {
      while (!response.destroyed && response.write(bytes));
    };
    response.writeHead(200, { "content-type": "application/json" }).on("drain", more);
    more();
  };
const packed = gzipSync(" ".repeat(32 * MEGABYTE));
const bomb: RequestListener = (_request, response) =>
  void response.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" }).end(packed);
const dribbling: RequestListener = (_request, response) => {
  response.writeHead(200, { "content-type": "application/json" });
  const timer = setInterval(() => response.write(" "), 100);
  response.once("close", () => clearInterval(timer));
};
const text =
  (body: string): RequestListener =>
  (_request, response) =>
    void response.writeHead(200, { "content-type": "application/json" }).end(body);

/** CPU in ms that some work takes in this process. */
async function cpuOf(work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

t.test("an answer is given up for its size, parts, encoding and silence while it is read", async (t) => {
  const call = outbound(t);
  const refused = async (
    answer: RequestListener,
    reason: string,
    times: { idleTimeoutMs?: number; timeoutMs?: number },
  ) => {
    const url = await listening(t, answer);
    const limits = { maxBytes: 65_536, idleTimeoutMs: 60_000, timeoutMs: 60_000, ...times };
    await t.rejects(call.request(url, limits), { name: "ResponseRefused", reason }, reason);
  };
  await refused(endless("a"), "limit", {});
  await refused(bomb, "encoding", {});
  await refused(dribbling, "timeout", { timeoutMs: 5000 });
  await refused(() => undefined, "timeout", { idleTimeoutMs: 500 });
  const url = await listening(t, bomb);
  const dropped = await call.request(url, { beyond: "drop", maxBytes: 1024 });
  t.equal(dropped.body.length, 1024, "where the rest is dropped, nothing is unpacked");
});

t.test("JSON of a provider is refused for depth and number of values before it is parsed", async (t) => {
  for (const [name, json] of [
    ["deep", "[".repeat(8 * MEGABYTE)],
    ["flat", `[${"{},".repeat(2 * MEGABYTE)}0]`],
  ] as const)
    t.throws(() => parseJson(Buffer.from(json)), ResponseRefused, name);
  const page = () => parseJson(Buffer.from("<html>Ada"));
  t.throws(page, { name: "SyntaxError", message: "The answer is not JSON." }, "its message reaches the log");
  const value = { text: 'a "quoted" [[[[ \\', list: [1, [2, { three: null }]] };
  for (const mark of ["", "\uFEFF"])
    t.same(parseJson(Buffer.from(mark + JSON.stringify(value))), value, "signs in strings count for nothing");
});

t.test("a token endpoint that never ends, is deep, compressed or silent fails in 5 s", async (t) => {
  const { runtime } = await startService(t);
  const stale = { accessToken: "old", refreshToken: "refresh", staleAt: 0 };
  const credentials = { ...runtime.credentials, secret: async () => JSON.stringify(stale) };
  const tools = { ...runtime, credentials, outbound: outbound(t) };
  for (const [name, answer] of Object.entries({
    ...{ endless: endless(" "), bomb, dribbling, silent: () => undefined, deep: text("[".repeat(60_000)) },
  })) {
    const base = await listening(t, answer);
    const client = { clientId: "id", clientSecret: "secret", login: "post", parameters: {} } as const;
    const settings = { ...client, authorize: base, token: `${base}/token`, api: base, scope: "" };
    const started = Date.now();
    const account = { handle: "acme", credentialId: name };
    const token = accessToken({ runtime: tools, account, settings });
    t.ok((await token.catch((error: unknown) => error)) instanceof Error, name);
    t.ok(Date.now() - started < 5500, `${name}: ${Date.now() - started} ms`);
  }
});

t.test("a key set that is endless, compressed, deep or silent is no key set, and costs no more than 4 s", async (t) => {
  const token = ["", "", ""].join(".");
  for (const [name, answer] of Object.entries({
    ...{ endless: endless(" "), bomb, silent: () => undefined, deep: text("[".repeat(200_000)), none: text("{}") },
  })) {
    const AUTH_JWKS_URL = await listening(t, answer);
    const env = readEnv({ AUTH_JWKS_URL, AUTH_ISSUER: "https://signer.example" });
    const own = { kid: "own", publicJwk: { kty: "OKP", kid: "own" } };
    const sessions = new SessionTokens(env, own as never, { isLive: async () => true, outbound: outbound(t) });
    const claims = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const signed = [claims({ alg: "EdDSA", kid: "theirs" }), claims({ iss: "https://signer.example" }), "x"].join(".");
    const started = Date.now();
    await t.rejects(sessions.check(signed), { code: "service_unavailable" }, name);
    t.ok(Date.now() - started < 4000, name);
    await t.rejects(sessions.check(token), { code: "invalid_token" });
  }
});

t.test("a mail that is made to be hard to read takes less than a second", async (t) => {
  const multipart = 'Content-Type: multipart/report; boundary="b"\r\n\r\n';
  const status = `${multipart}--b\r\nContent-Type: message/delivery-status\r\n\r\n`;
  const mails: Record<string, string> = {
    "5 MB of empty lines": `Content-Type: text/plain\r\n\r\n${"\n".repeat(5 * MEGABYTE)}`,
    "700,000 parts": multipart + "--b\r\n\r\n".repeat(700_000),
    "a long word for an address": `Delivered-To: ${"a".repeat(60_000)}\r\n\r\nx`,
    "a header of groups": `To: ${"a:".repeat(30_000)}\r\n\r\nx`,
    "a recipient of 4 MB": `${status}Action: failed\r\nFinal-Recipient: rfc822; ${"a".repeat(4 * MEGABYTE)}\r\n`,
    "a million notices": status + "Action: failed\r\n\r\n".repeat(300_000),
    "60,000 spaces where a reply could be": `From: mailer-daemon@far.example\r\n\r\n${" ".repeat(60_000)}x\r\n`,
    "flowed text": `Content-Type: text/plain; format=flowed\r\n\r\n${"> a \r\n".repeat(800_000)}`,
  };
  for (const [name, mail] of Object.entries(mails)) {
    const ms = await cpuOf(() => readReport(Buffer.from(mail)).catch(() => undefined));
    t.ok(ms < 1000, `${name}: ${Math.round(ms)} ms of CPU`);
  }
  await t.rejects(readReport(Buffer.from(`To: ${"a".repeat(100_000)}\r\n\r\nx`)), { code: "invalid_request" });
});

t.test("the sequence of an object is found in time that grows with its length", async (t) => {
  t.equal(writtenSequence("BEGIN:VEVENT\r\nX-BOOKING-SEQUENCE:7\r\n"), 7);
  t.equal(writtenSequence("BEGIN:VEVENT\r\nx-booking-sequence;VALUE=TEXT:8\r\n"), 8, "a server may add a parameter");
  t.equal(writtenSequence("SUMMARY:X-BOOKING-SEQUENCE:9\r\n"), -1);
  const object = "\u2028X-BOOKING-SEQUENCE".repeat(MEGABYTE / 19);
  const ms = await cpuOf(async () => t.equal(writtenSequence(object), -1));
  t.ok(ms < 1000, `${Math.round(ms)} ms of CPU for 1 MB of names`);
});

t.test("a name server that sends without an end over TCP is given up", async (t) => {
  const server = createTcpServer((socket) => {
    socket.on("error", () => undefined);
    const part = Buffer.alloc(65_536, 7);
    const more = (): void => {
      while (!socket.destroyed && socket.write(part));
    };
    socket.on("drain", more);
    more();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => void server.close());
  const ask = await openDns({ DNS_SERVERS: [`127.0.0.1:${(server.address() as AddressInfo).port}`] });
  t.match(await ask("TXT", "far.example"), { kind: "unknown" });
});

t.test(
  "an object that is malformed, too long or deeply nested is replaced by its event, whatever a server answers",
  async (t) => {
    const event = {
      ...{ uid: "b1@service.test", bookingUid: "b1", sequence: 1, title: "Talk", description: "", location: null },
      ...{ start: "2026-10-07T11:00:00Z", end: "2026-10-07T11:30:00Z", updatedAt: "2026-10-01T09:00:00Z" },
      ...{ timeZone: "UTC", meeting: false },
    } as unknown as Parameters<typeof calendarObject>[0];
    const objectOf = (inner: string) =>
      `BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:b1\r\n${inner}END:VEVENT\r\nEND:VCALENDAR\r\n`;
    const plain = calendarObject(event);
    const after = (object: string) => calendarObject(event, { object, owners: [] });
    t.equal(after("no calendar"), plain);
    t.equal(after(objectOf(`COLOR:red\r\nX-LONG:${"a".repeat(70_000)}\r\n`)), plain);
    const nested = `${"BEGIN:X\r\n".repeat(3000)}${"END:X\r\n".repeat(3000)}`;
    t.equal(after(objectOf(nested)), plain);
    t.equal(after(objectOf("GEO;VALUE=PERIOD:20261010T000000Z/PT1H\r\n")), plain, "it can't be written again");
    t.match(after(objectOf("COLOR:red\r\n")), "COLOR:red");
  },
);

t.test(
  "a thread that fails while nobody waits for it ends no process, and the next message gets another one",
  async (t) => {
    const code = `
    import { parentPort } from "node:worker_threads";
    parentPort.on("message", () => {
      parentPort.postMessage("answer");
      setTimeout(() => { throw new Error("late"); }, 20);
    });
    parentPort.postMessage("ready");`;
    let hasFailed = false;
    const { unref } = Worker.prototype;
    Worker.prototype.unref = function (this: Worker) {
      this.once("error", () => {
        hasFailed = true;
      });
      unref.call(this);
    };
    t.teardown(() => {
      Worker.prototype.unref = unref;
    });
    const threads = new Threads(new URL(`data:text/javascript,${encodeURIComponent(code)}`), 1);
    const question = { asker: "a", message: "hello", timeoutMs: 5_000 };
    t.equal(await threads.ask(question), "answer");
    await eventually(() => hasFailed);
    t.equal(await threads.ask(question), "answer");
  },
);
