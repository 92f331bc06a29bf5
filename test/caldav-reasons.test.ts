import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test } from "tap";
import { providers } from "../core/engines/calendars/providers/table.ts";
import { asCalendarServerError } from "../core/engines/calendars/server-error.ts";
import { readSelected } from "../core/scheduling/busy-calendars.ts";
import { storeCredential } from "../core/scheduling/credentials.ts";
import { disconnectAll } from "../core/scheduling/integrations.ts";
import { keys } from "../core/store/keys.ts";
import { freePort } from "../fixtures/ports.ts";
import { startService } from "../fixtures/service.ts";

/** A server on loopback that answers everything in one way; its address. */
async function answering(t: Test, answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const status =
  (code: number, headers: Record<string, string> = {}, body = ""): RequestListener =>
  (_request, response) =>
    void response.writeHead(code, headers).end(body);

const reasons: Record<string, [RequestListener, RegExp]> = {
  "a wrong password": [status(401, { "www-authenticate": "Basic" }), /refused the login/],
  "a refused user": [status(403), /refused the login/],
  "a path without anything": [status(404), /Not found.*path/],
  "too many requests": [status(429, { "retry-after": "60" }), /limits requests/],
  "a server that is down": [status(503), /unavailable; try again later/],
  "a web site": [status(200, { "content-type": "text/html" }, "<html><p>Hello</html>"), /no calendar server/],
  "a server without WebDAV": [status(405), /no calendar server/],
  "a server that says nothing": [() => undefined, /Timeout/],
  "words of the server": [
    status(207, { "content-encoding": "gzip, call us" }),
    /compressed, which was not asked for\.$/,
  ],
};

t.test("a calendar server that can't be connected is reported with its reason", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const connect = async (serverUrl: string) => {
    const body = { serverUrl, username: "alice", password: "secret" };
    return (await owner.post("/v2/handles/acme/scheduling/integrations/caldav/credentials").send(body).expect(400))
      .body;
  };
  for (const [name, [answer, detail]] of Object.entries(reasons))
    t.match(await connect(await answering(t, answer)), { code: "caldav_login_failed", detail }, name);
  const refused = await connect(`http://127.0.0.1:${await freePort()}`);
  t.match(refused, { code: "caldav_login_failed", detail: /connection was refused/ });
});

t.test("a reading whose events are expanded for ten minutes is abandoned", async (t) => {
  const event = ["BEGIN:VCALENDAR", "BEGIN:VEVENT", "UID:1", "DTSTART:20261006T100000Z", "END:VEVENT", "END:VCALENDAR"];
  const objects = ["1", "2"].map(
    (name) =>
      `<response><href>/office/${name}.ics</href><propstat><prop><getetag>"1"</getetag><calendar-data>${event.join("&#13;\n")}</calendar-data></prop></propstat></response>`,
  );
  const { now } = Date;
  let late = 0;
  t.intercept(Date, "now", { value: () => now() + late });
  const serverUrl = await answering(t, (request, response) => {
    const answer = request.method === "REPORT" ? objects.join("") : "";
    if (answer !== "") late = 601_000;
    response.writeHead(207).end(`<multistatus xmlns="DAV:">${answer}</multistatus>`);
  });
  const { runtime } = await startService(t);
  const login = { serverUrl, username: "alice", password: "secret", home: `${serverUrl}/` };
  const connected = { providerKey: "caldav", account: "alice", secret: JSON.stringify(login) } as const;
  const account = { handle: "acme", ...(await storeCredential(runtime, "acme", connected)) };
  const question = { calendarId: `${serverUrl}/office/`, from: 0, to: Date.parse("2027-01-01"), zone: "UTC" };
  const reading = providers.caldav?.calendars?.busy(runtime, account, question);
  await t.rejects(reading as Promise<unknown>, { name: "CalendarServerError", message: /take too long to read/ });
});

t.test("an account that is connected several times at once is one, and the others are kept", async (t) => {
  const { runtime } = await startService(t);
  const accounts = ["ada", "ada", "bob", "ada", "bob"];
  const kept = await Promise.all(
    accounts.map((account) => storeCredential(runtime, "acme", { providerKey: "caldav", account, secret: "{}" })),
  );
  t.same(new Set(kept.map(({ account, credentialId }) => `${account} ${credentialId}`)).size, 2);
  t.equal(await runtime.redis.zcard(keys.credentials("acme")), 2);
});

t.test("one handle's many accounts are read a few at a time, once for all that ask meanwhile", async (t) => {
  let [running, most, asked] = [0, 0, 0];
  const serverUrl = await answering(t, async (_request, response) => {
    asked += 1;
    most = Math.max(most, ++running);
    await sleep(50);
    running -= 1;
    response.writeHead(404).end();
  });
  const { runtime } = await startService(t);
  const names = Array.from({ length: 50 }, (_, at) => `user${at}`);
  const secretOf = (username: string) =>
    JSON.stringify({ serverUrl, username, password: "secret", home: `${serverUrl}/` });
  const keep = (account: string) =>
    storeCredential(runtime, "acme", { providerKey: "caldav", account, secret: secretOf(account) });
  const busyCalendarIds = ["a", "b", "c", "d"].map((name) => `${serverUrl}/${name}/`);
  for (const name of names) {
    const selected = { credentialId: (await keep(name)).credentialId, busyCalendarIds, destinationCalendarId: null };
    if (name < "user15")
      await runtime.redis.hset(keys.selectedCalendars("acme"), selected.credentialId, JSON.stringify(selected));
  }
  await Promise.all(Array.from({ length: 5 }, () => readSelected(runtime, "acme")));
  t.ok(most <= 8, `${most} requests at once`);
  const once = asked;
  await readSelected(runtime, "acme");
  t.equal(asked, 2 * once, "five who asked at once had one reading");
  await t.rejects(keep("one more"), { code: "invalid_request", message: /at most 50/ });
  t.ok(await keep("user49"), "a connected one may be connected again");
  const before = asked;
  await disconnectAll(runtime, "acme");
  t.equal(asked, before, "calendars of a handle that goes are not read again");
});

t.test("a name that no name server answers for is named as the cause, whichever resolver asked", async (t) => {
  for (const code of ["EAI_AGAIN", "EREFUSED", "ESERVFAIL", "ETIMEOUT"]) {
    const { message } = asCalendarServerError(Object.assign(new Error(code), { code }));
    t.match(message, "The host name cannot be resolved right now.", code);
  }
});

t.test("a server whose TLS or certificate can't be used is reported with the reason", async (t) => {
  const reasons = {
    ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: "It speaks only old versions of TLS.",
    CERT_NOT_YET_VALID: "Its certificate is not valid yet.",
    UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "Its certificate is not trusted.",
  };
  for (const [code, reason] of Object.entries(reasons))
    t.match(asCalendarServerError(Object.assign(new Error(code), { code })).message, reason);
});
