import t from "tap";
import { networkOf } from "../core/platform/network.ts";
import { mastersOf } from "../core/store/redis.ts";
import { keyNames } from "../fixtures/redis.ts";
import { type Service, startService } from "../fixtures/service.ts";

const open = { PUBLIC_PAGE_AGENT_ENABLED: "1", PUBLIC_SCHEDULING_RATE: "20" };

/** Bytes in use on all masters together. */
async function memory({ runtime }: Service): Promise<number> {
  const used = mastersOf(runtime.redis).map(async (server) =>
    Number(/used_memory_dataset:(\d+)/.exec(await server.info("memory"))?.[1]),
  );
  return (await Promise.all(used)).reduce((sum, one) => sum + one, 0);
}

t.test("an IPv4 address is a network, and so is the /64 of an IPv6 address, however it is written", async (t) => {
  const networks: Record<string, string[]> = {
    "192.0.2.1": [
      "192.0.2.1",
      "192.0.2.1:50000",
      "::ffff:192.0.2.1",
      "::FFFF:c000:201",
      "[::ffff:192.0.2.1]:50000",
      "64:ff9b::192.0.2.1",
    ],
    "2001:db8:0:1::/64": [
      "2001:db8:0:1::",
      "2001:DB8::1:0:0:0:5",
      "[2001:db8:0:1:2::9]:443",
      "2001:0db8:0000:0001:ffff:ffff:ffff:ffff",
    ],
    "fe80:0:0:0::/64": ["fe80::1%eth0", "fe80::2"],
    "0:0:0:0::/64": ["::1", "::"],
    unknown: ["", "localhost", "1.2.3", "1.2.3.4.5", "::g", "2001:db8::1::2", "1".repeat(10_000)],
  };
  for (const [network, addresses] of Object.entries(networks))
    for (const address of addresses) t.equal(networkOf(address), network, address.slice(0, 50));
});

t.test("10,000 requests with random handles of 10,000 letters leave few keys and little memory", async (t) => {
  const service = await startService(t, { env: open });
  const [keysBefore, bytesBefore] = [(await keyNames(service.runtime.redis, "*")).length, await memory(service)];
  const post = (path: string, body: object): Promise<Response> =>
    fetch(service.url + path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  const routes: ((handle: string) => Promise<Response>)[] = [
    (handle) => post(`/v2/public/pages/${handle}/x/agentic-question`, { question: "x" }),
    (handle) => post(`/v2/public/handles/${handle}/leads`, { email: "ada@example.com" }),
    (handle) => fetch(`${service.url}/v2/public/scheduling/${handle}`),
  ];
  const statuses = new Set<number>();
  for (let sent = 0; sent < 10_000; sent += 50) {
    const some = Array.from({ length: 50 }, (_, at) => {
      const random = Math.random().toString(36).slice(2);
      // Half of them have the form of a handle.
      const handle = at % 2 === 0 ? `${random}${"h".repeat(10_000)}` : random;
      return (routes[at % routes.length] as (typeof routes)[number])(handle);
    });
    for (const reply of await Promise.all(some)) {
      statuses.add(reply.status);
      // A body that isn't read keeps its connection busy.
      await reply.arrayBuffer();
    }
  }
  t.same(
    [...statuses].filter((status) => ![404, 429].includes(status)),
    [],
  );
  const names = await keyNames(service.runtime.redis, "*");
  t.ok(names.length - keysBefore < 1000, `${names.length - keysBefore} keys`);
  t.ok(
    names.every((name) => name.length < 200),
    "no key contains the input",
  );
  const grown = (await memory(service)) - bytesBefore;
  t.ok(grown < 2 ** 20, `${grown} bytes`);
});

t.test("a bucket expires ten seconds after it is full again", async (t) => {
  // So slow that no token comes back while the test runs: a token is 100 s.
  const service = await startService(t, { env: { ...open, PUBLIC_LEADS_RATE: "0.01", PUBLIC_LEADS_BURST: "4" } });
  await service.handle("acme");
  const lead = () => service.visitor.post("/v2/public/handles/acme/leads").send({ email: "ada@example.com" });
  const since = performance.now();
  const expiresIn = async (ms: number, when: string) => {
    const left = await service.runtime.redis.pttl("bucket:leads:{acme}");
    t.ok(left <= ms && left >= ms - (performance.now() - since) - 1, `${left} ms after ${when}`);
  };
  await lead().expect(202);
  await expiresIn(110_000, "one of four");
  for (const status of [202, 202, 202, 429]) await lead().expect(status);
  await expiresIn(410_000, "all four");
});

t.test("behind a proxy the limits count the network that the proxy saw: an IPv4 address or an IPv6 /64", async (t) => {
  const service = await startService(t, { env: { TRUST_PROXY: "1" } });
  const start = (from: string) =>
    service.visitor
      .post("/oauth/assistant/desktop/start")
      .set("X-Forwarded-For", `203.0.113.9, ${from}`)
      .send({ deviceProofChallenge: "x" });
  const burst = (from: (at: number) => string, count: number) =>
    Promise.all(Array.from({ length: count }, (_, at) => start(from(at))));
  const statuses = await burst((at) => `2001:db8:1:2::${at.toString(16)}`, 400);
  t.ok(
    statuses.some(({ status }) => status === 429),
    "one /64 is one network",
  );
  await start("2001:db8:1:3::1").expect(200);
  await start("192.0.2.1").expect(200);
  t.match(
    await keyNames(service.runtime.redis, "bucket:*"),
    [/^bucket:pairing:\{[\w-]{43}\}$/],
    "no key names a network",
  );
});
