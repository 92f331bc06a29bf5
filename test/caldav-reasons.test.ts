import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import t, { type Test } from "tap";
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
  "a path without anything": [status(404), /Not found.*path/],
  "too many requests": [status(429, { "retry-after": "60" }), /limits requests/],
  "a server that is down": [status(503), /unavailable; try again later/],
  "a web site": [status(200, { "content-type": "text/html" }, "<html><p>Hello</html>"), /no calendar server/],
  "a server without WebDAV": [status(405), /no calendar server/],
  "a server that says nothing": [() => undefined, /Timeout/],
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
