import { promises } from "node:dns";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import t, { type Test as TapTest } from "tap";
import { AddressRefused, isPublicAddress, type Lookup, lookupBy, Outbound } from "../core/platform/outbound.ts";
import { startDns } from "../fixtures/dns.ts";
import { eventually } from "../fixtures/service.ts";

/** A server on loopback that echoes its request. */
async function listening(t: TapTest, answer: RequestListener): Promise<number> {
  const server = createServer(answer).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

function outbound(t: TapTest, more: { production?: boolean; allow?: string[]; lookup?: Lookup } = {}): Outbound {
  const settings = { production: more.production ?? true, OUTBOUND_ALLOW_HOSTS: more.allow ?? [] };
  const made = new Outbound(settings, more.lookup);
  t.teardown(() => made.close());
  return made;
}

/** Every name means this address. */
const resolvesTo =
  (...addresses: string[]): Lookup =>
  async () =>
    addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));

const forms = [
  "https://127.0.0.1/",
  "https://localhost/",
  "https://localhost./",
  "https://127.1/",
  "https://127.0.0.1./",
  "https://0x7f000001/",
  "https://0x7f.0.0.1/",
  "https://0177.0.0.1/",
  "https://2130706433/",
  "https://①②⑦.0.0.1/",
  "https://0.0.0.0/",
  "https://0/",
  "https://10.1.2.3/",
  "https://172.16.0.1/",
  "https://172.31.255.255/",
  "https://192.168.1.1/",
  "https://100.64.0.1/",
  "https://169.254.169.254/latest/meta-data/",
  "https://192.0.0.1/",
  "https://198.18.0.1/",
  "https://224.0.0.1/",
  "https://240.0.0.1/",
  "https://255.255.255.255/",
  "https://[::]/",
  "https://[::1]/",
  "https://[::7f00:1]/",
  "https://[::ffff:127.0.0.1]/",
  "https://[::ffff:7f00:1]/",
  "https://[::ffff:0:127.0.0.1]/",
  "https://[64:ff9b::7f00:1]/",
  "https://[2002:7f00:1::]/",
  "https://[2001::7f00:1]/",
  "https://[fe80::1]/",
  "https://[fc00::1]/",
  "https://[fd00:ec2::254]/",
  "https://[ff02::1]/",
  "https://[2001:db8::1]/",
  "http://203.0.113.9/",
  "http://example.com/",
  "ftp://example.com/",
  "file:///etc/passwd",
  "https://user:secret@example.com/",
  "nonsense",
];

for (const form of forms)
  t.test(`${form} is refused`, async (t) => {
    const guard = outbound(t);
    await t.rejects(guard.request(form), AddressRefused);
    await t.rejects(guard.check(form), AddressRefused);
  });

for (const address of ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fd00::1", "::ffff:10.0.0.1", "0.0.0.0"])
  t.test(`a name that means ${address} is refused where the connection is made`, async (t) => {
    const guard = outbound(t, { lookup: resolvesTo(address) });
    await t.rejects(guard.request("https://rebound.example/"), AddressRefused);
    await t.rejects(guard.check("https://rebound.example/"), AddressRefused);
  });

t.test("one private address among public ones is enough", async (t) => {
  const guard = outbound(t, { lookup: resolvesTo("93.184.215.14", "192.168.0.1") });
  await t.rejects(guard.request("https://mixed.example/"), AddressRefused);
});

t.test("public addresses are public", async (t) => {
  for (const address of ["93.184.215.14", "1.1.1.1", "2606:4700:4700::1111"]) t.ok(isPublicAddress(address), address);
});

t.test("NAT64 reaches the public addresses of IPv4 and no others", async (t) => {
  for (const [address, isPublic] of [
    ["64:ff9b::5db8:d70e", true],
    ["64:ff9b::a9fe:a9fe", false],
    ["64:ff9b::a00:1", false],
    ["64:ff9b:1::5db8:d70e", false],
  ] as const)
    t.equal(isPublicAddress(address), isPublic, address);
});

t.test("silent name servers hold up no other name, and addresses of IPv6 are tried first", async (t) => {
  const lookupAt = async (): Promise<{ dns: Awaited<ReturnType<typeof startDns>>; lookup: Lookup }> => {
    const dns = await startDns(t);
    const resolver = new promises.Resolver({ timeout: 500, tries: 1 });
    resolver.setServers([dns.address]);
    return { dns, lookup: lookupBy(resolver) };
  };
  const [silent, other] = [await lookupAt(), await lookupAt()];
  silent.dns.trouble = "silence";
  const asked = Array.from({ length: 20 }, (_, n) => outbound(t, silent).request(`https://n${n}.silent.example/`));
  const waiting = Promise.all(asked.map((request) => t.rejects(request, { code: "ETIMEOUT" })));
  other.dns.zone.set("A other.example", ["93.184.215.14"]).set("AAAA other.example", ["2606:4700:4700::1111"]);
  const started = Date.now();
  const found = await other.lookup("other.example");
  t.ok(Date.now() - started < 400, "it is answered before the others have failed");
  t.same(found, [
    { address: "2606:4700:4700::1111", family: 6 },
    { address: "93.184.215.14", family: 4 },
  ]);
  await waiting;
  await t.rejects(outbound(t, other).request("https://missing.example/"), { code: "ENOTFOUND" });
});

t.test("the failure of a server with several addresses says what failed", async (t) => {
  const guard = outbound(t, { production: false, lookup: resolvesTo("::1", "127.0.0.1") });
  await t.rejects(guard.request("https://closed.example:1/"), { message: "connect ECONNREFUSED 127.0.0.1:1" });
});

t.test("a server without TLS is named so, without lines of a library's source", async (t) => {
  const port = await listening(t, (_request, response) => void response.end());
  const guard = outbound(t, { production: false });
  await t.rejects(guard.request(`https://127.0.0.1:${port}/`), {
    code: "ERR_SSL_WRONG_VERSION_NUMBER",
    message: /^(?!.*\.c:).*wrong version number\W*$/s,
  });
});

t.test("a server can't make us keep its idle connections for minutes", async (t) => {
  const open = new Set<unknown>();
  const port = await listening(t, (request, response) => {
    open.add(request.socket.once("close", () => open.delete(request.socket)));
    response.writeHead(200, { connection: "keep-alive", "keep-alive": "timeout=600" }).end();
  });
  await outbound(t, { production: false }).request(`http://127.0.0.1:${port}/`);
  t.equal(open.size, 1);
  await eventually(() => open.size === 0, 15_000);
});

t.test("an alias of a name without addresses is a name without addresses", async (t) => {
  const resolver = { resolve4: async () => [], resolve6: async () => [] };
  const guard = outbound(t, { lookup: lookupBy(resolver as unknown as promises.Resolver) });
  await guard.check("https://alias.example/");
  await t.rejects(guard.request("https://alias.example/"), { code: "ENODATA", message: /ENODATA alias\.example/ });
});

t.test("a name without meaning passes the check, for it may get one later", async (t) => {
  const guard = outbound(t, { lookup: () => Promise.reject(new Error("ENOTFOUND")) });
  await guard.check("https://not-yet.example/");
  await t.rejects(guard.request("https://not-yet.example/"), { message: /ENOTFOUND/ });
});

t.test("an exact host and port of the list is exempt, its neighbours are not", async (t) => {
  const port = await listening(t, (_request, response) => void response.end("here"));
  const guard = outbound(t, { allow: [`127.0.0.1:${port}`] });
  t.equal(String((await guard.request(`http://127.0.0.1:${port}/`)).body), "here");
  await t.rejects(guard.request(`http://127.0.0.1:${port + 1}/`), AddressRefused);
  await t.rejects(guard.request(`http://localhost:${port}/`), AddressRefused);
});

t.test("development may call loopback by http, but no other private address", async (t) => {
  const port = await listening(t, (_request, response) => void response.end("here"));
  const guard = outbound(t, { production: false });
  t.equal((await guard.request(`http://127.0.0.1:${port}/`)).status, 200);
  t.equal((await guard.request(`http://localhost:${port}/`)).status, 200);
  await t.rejects(guard.request("http://10.0.0.1/"), AddressRefused);
  await t.rejects(guard.request("http://example.com/"), AddressRefused);
});

t.test("redirects are followed only on request, each one through the guard", async (t) => {
  const port = await listening(t, (request, response) =>
    request.url === "/"
      ? void response.writeHead(302, { location: "http://169.254.169.254/" }).end()
      : void response.writeHead(302, { location: "/" }).end(),
  );
  const guard = outbound(t, { allow: [`127.0.0.1:${port}`] });
  t.equal((await guard.request(`http://127.0.0.1:${port}/`)).status, 302);
  await t.rejects(guard.request(`http://127.0.0.1:${port}/first`, { redirects: 3 }), AddressRefused);
});

t.test("credentials stay with their origin", async (t) => {
  const seen: (string | undefined)[] = [];
  const other = await listening(t, (request, response) => {
    seen.push(request.headers.authorization);
    response.end();
  });
  const first = await listening(
    t,
    (_request, response) => void response.writeHead(307, { location: `http://127.0.0.1:${other}/` }).end(),
  );
  const guard = outbound(t, { allow: [`127.0.0.1:${first}`, `127.0.0.1:${other}`] });
  const call = { headers: { authorization: "Basic secret" }, redirects: 1 };
  await guard.request(`http://127.0.0.1:${first}/`, call);
  await guard.request(`http://127.0.0.1:${other}/`, call);
  t.same(seen, [undefined, "Basic secret"]);
});

t.test("size and time have caps", async (t) => {
  const port = await listening(t, (request, response) => {
    if (request.url === "/large") response.end("x".repeat(5000));
    else response.write("and then nothing");
  });
  const guard = outbound(t, { allow: [`127.0.0.1:${port}`] });
  const at = `http://127.0.0.1:${port}`;
  await t.rejects(guard.request(`${at}/large`, { maxBytes: 1000 }), { message: /larger than 1000/ });
  t.equal((await guard.request(`${at}/large`, { maxBytes: 1000, beyond: "drop" })).body.length, 1000);
  await t.rejects(guard.request(`${at}/slow`, { timeoutMs: 100 }), { message: /in time/ });
});

t.test(
  "the time counts for all of a call: an answer that trickles and a connection that isn't made end with it",
  async (t) => {
    const port = await listening(t, (_request, response) => {
      const timer = setInterval(() => response.write("x"), 20);
      response.on("close", () => clearInterval(timer));
    });
    const guard = outbound(t, { allow: [`127.0.0.1:${port}`], lookup: () => new Promise(() => undefined) });
    const started = Date.now();
    await t.rejects(guard.request(`http://127.0.0.1:${port}/`, { timeoutMs: 300 }), { message: /in time/ });
    await t.rejects(guard.request("https://never-resolved.example/", { timeoutMs: 300 }), { message: /in time/ });
    t.ok(Date.now() - started < 3000, "it ended in time");
  },
);

t.test("a redirect takes no more time than the call has", async (t) => {
  const port = await listening(t, (request, response) => {
    if (request.url === "/") setTimeout(() => response.writeHead(302, { location: "/slow" }).end(), 2500);
  });
  const guard = outbound(t, { allow: [`127.0.0.1:${port}`] });
  const started = Date.now();
  const call = { redirects: 1, timeoutMs: 3000 };
  await t.rejects(guard.request(`http://127.0.0.1:${port}/`, call), { message: /in time/ });
  t.ok(Date.now() - started < 5000, "both parts together");
});

t.test("a request that times out before its connection is made is never sent", async (t) => {
  const seen: (string | undefined)[] = [];
  const port = await listening(t, (request, response) => {
    seen.push(request.url);
    response.end();
  });
  let resolved = (): void => undefined;
  const lookup: Lookup = () =>
    new Promise((resolve) => {
      resolved = () => resolve([{ address: "127.0.0.1", family: 4 }]);
    });
  const guard = outbound(t, { production: false, lookup });
  await t.rejects(guard.request(`http://localhost:${port}/late`, { timeoutMs: 100 }), { message: /in time/ });
  resolved();
  t.equal((await guard.request(`http://127.0.0.1:${port}/other`)).status, 200);
  t.same(seen, ["/other"]);
});

t.test("a server that hangs up in the middle of a long answer fails its call alone", async (t) => {
  const port = await listening(t, (_request, response) => {
    response.writeHead(200, { "content-length": "2000000" }).write("x".repeat(500_000));
    setTimeout(() => response.socket?.end(), 50);
  });
  const guard = outbound(t, { allow: [`127.0.0.1:${port}`] });
  await t.rejects(guard.request(`http://127.0.0.1:${port}/`), { message: /closed|mismatch|length/i });
});

t.test("informational answers are not the answer", async (t) => {
  const port = await listening(t, (_request, response) => {
    response.writeEarlyHints({ link: "</style.css>; rel=preload" });
    response.writeHead(201, { "x-last": "yes" }).end("made");
  });
  const guard = outbound(t, { allow: [`127.0.0.1:${port}`] });
  const answer = await guard.request(`http://127.0.0.1:${port}/`);
  t.match([answer.status, answer.headers["x-last"], String(answer.body)], [201, "yes", "made"]);
  t.equal(answer.headers.link, undefined);
});
