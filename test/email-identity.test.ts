import t from "tap";
import { attachDomain, type DomainClaim, detachDomain, domainClaim, proveDomain } from "../core/account/domains.ts";
import { scheduleNextCheck } from "../core/email/domains.ts";
import { checkIdentity, identityOf } from "../core/email/identity.ts";
import { exportDomains, importDomain } from "../core/email/imports.ts";
import { openDns } from "../core/engines/mail/dns.ts";
import { handleOfHost } from "../core/pages/hosts.ts";
import { keys } from "../core/store/keys.ts";
import { job } from "../core/store/outbox.ts";
import { type DnsServer, startDns } from "../fixtures/dns.ts";
import { keyNames } from "../fixtures/redis.ts";
import { eventually, type Service, startService } from "../fixtures/service.ts";
import type { DnsRecord, Identity } from "../schemas/email.ts";

const hour = 3_600_000;
const path = (domain: string) => `/v2/account/domains/${domain}/email-identity`;

/** Publishes records as an owner copies them. */
function publish(dns: DnsServer, records: DnsRecord[]): void {
  for (const { type, name, value } of records) dns.zone.set(`${type} ${name}`, [value]);
}

/** A service with a DNS server, whose domain time the test moves. */
async function start(t: Parameters<typeof startService>[0], workers = false) {
  const dns = await startDns(t);
  const service = await startService(t, {
    env: { DNS_SERVERS: dns.address },
    ...(workers ? { workers: ["email"] } : {}),
  });
  let moved = 0;
  const real = service.runtime.now;
  Object.assign(service.runtime, { now: () => real() + moved });
  return { dns, service, later: (ms: number) => (moved += ms) };
}

async function check(service: Service, domain: string, account: string): Promise<Identity> {
  const claim = await domainClaim(service.runtime.redis, account, domain);
  return checkIdentity(service.runtime, await openDns(service.runtime.env), claim as NonNullable<typeof claim>);
}

const statuses = ({ requiredDnsRecords }: Identity) =>
  Object.fromEntries(requiredDnsRecords.map(({ purpose, status }) => [purpose, status]));

t.test("a domain whose records are published becomes ready after a reconcile", async (t) => {
  const { dns, service } = await start(t, true);
  const owner = await service.handle("acme");
  await attachDomain(service.runtime, { account: "acct_acme", domain: "Acme.Example" });
  const { identity, senderProfiles } = (await owner.get(path("acme.example")).expect(200)).body;
  t.match(identity, {
    identityKey: /^ident_\w+$/,
    status: "PENDING",
    lastCheckedAt: null,
    mailFromDomain: "mail.acme.example",
  });
  t.same(senderProfiles, []);
  t.same(
    identity.requiredDnsRecords.map(({ purpose, type, required }: DnsRecord) => [purpose, type, required]),
    [
      ["OWNERSHIP", "TXT", true],
      ["DKIM", "TXT", true],
      ["SPF", "TXT", true],
      ["MAIL_FROM_MX", "MX", true],
      ["DMARC", "TXT", false],
    ],
  );
  for (const { name } of identity.requiredDnsRecords) t.match(name, /\.acme\.example$/, "names are absolute");
  const before = await owner.post(`${path("acme.example")}/reconcile`).expect(202);
  t.match(before.body.identity, { domain: "acme.example" });
  await eventually(async () => (await owner.get(path("acme.example"))).body.identity.lastCheckedAt);
  t.match(statuses((await owner.get(path("acme.example"))).body.identity), {
    OWNERSHIP: "MISSING",
    DKIM: "MISSING",
    SPF: "MISSING",
    MAIL_FROM_MX: "MISSING",
    DMARC: "MISSING",
  });
  t.same(await handleOfHost(service.runtime, "acme.example"), undefined);

  publish(
    dns,
    identity.requiredDnsRecords.filter(({ required }: DnsRecord) => required),
  );
  await owner.post(`${path("ACME.example")}/reconcile`).expect(202);
  const ready = await eventually(async () => {
    const { body } = await owner.get(path("acme.example"));
    return body.identity.status === "READY" && body.identity;
  });
  t.match(statuses(ready), {
    OWNERSHIP: "FOUND",
    DKIM: "FOUND",
    SPF: "FOUND",
    MAIL_FROM_MX: "FOUND",
    DMARC: "MISSING",
  });
  t.match(
    await domainClaim(service.runtime.redis, "acct_acme", "acme.example"),
    { owned: true },
    "the record proves the domain",
  );
  const sender = { domain: "acme.example", localPart: "hello", purposes: ["CALENDAR"] };
  const made = (await owner.put("/v2/handles/acme/email/senders/sender_a").send(sender).expect(200)).body.sender;
  t.match(made, { status: "READY", identityKey: identity.identityKey, fromEmail: "hello@acme.example" });
  t.match((await owner.get(path("acme.example"))).body.senderProfiles, [{ senderId: "sender_a" }]);
});

t.test("however often a check is requested, a domain has one a second", async (t) => {
  const { service } = await start(t);
  const owner = await service.handle("acme");
  await attachDomain(service.runtime, { account: "acct_acme", domain: "acme.example" });
  const started = Date.now();
  for (let count = 0; count < 20; count++) await owner.post(`${path("acme.example")}/reconcile`).expect(202);
  const seconds = Math.floor(Date.now() / 1000) - Math.floor(started / 1000) + 1;
  const { delayed, waiting } = await service.runtime.queues.queue("email").getJobCounts("delayed", "waiting");
  t.ok((delayed as number) + (waiting as number) <= seconds);
});

t.test("however many name servers hang, they keep no other job of the queue waiting", async (t) => {
  const { dns, service } = await start(t, true);
  dns.trouble = "silence";
  const queue = service.runtime.queues.queue("email");
  for (let at = 0; at < 17; at++) await service.handle(`h${at}`, { account: `acct_${at}` });
  const checks = Array.from({ length: 68 }, (_, at) => ({ account: `acct_${at % 17}`, domain: `a${at}.example` }));
  await Promise.all(checks.map((one) => attachDomain(service.runtime, one)));
  // One key for all: each would take a moment to make.
  await identityOf(service.runtime, checks[0]!);
  const made = await service.runtime.redis.hget(keys.emailIdentity(checks[0]!.domain, checks[0]!.account), "made");
  for (const { domain, account } of checks)
    await service.runtime.redis.hset(keys.emailIdentity(domain, account), "made", made as string);
  await service.runtime.queues.later(...checks.map((one) => job("email.check", `check-${one.domain}`, one)));
  await eventually(async () => (await queue.getActiveCount()) === 68);
  await service.runtime.queues.later(job("account.sign-in-code", "code", { signInId: "gone" }));
  await eventually(async () => (await queue.getJobState("code")) === "completed");
});

t.test("records are compared as receivers read them", async (t) => {
  const { dns, service } = await start(t);
  await service.handle("acme");
  await attachDomain(service.runtime, { account: "acct_acme", domain: "mail.acme.example" });
  const { requiredDnsRecords: records } = await check(service, "mail.acme.example", "acct_acme");
  const of = (purpose: string) => records.find((one) => one.purpose === purpose) as DnsRecord;
  const with_ = async (purpose: string, values: string[]) => {
    publish(dns, records);
    dns.zone.set(`${of(purpose).type} ${of(purpose).name}`, values);
    return statuses(await check(service, "mail.acme.example", "acct_acme"))[purpose];
  };
  const key = of("DKIM").value;
  const publicKey = key.split("p=")[1] as string;
  t.equal(
    await with_("DKIM", [key.replace("; ", ";  ").replace(publicKey, publicKey.replace(/(.{60})/g, "$1 "))]),
    "FOUND",
    "white space in a key",
  );
  t.equal(await with_("DKIM", [`p=${publicKey}`]), "FOUND", "tags that have defaults");
  t.equal(await with_("DKIM", [key.replace(publicKey, `${publicKey.slice(0, -4)}AAAA`)]), "MISMATCH", "another key");
  t.equal(await with_("DKIM", [`v = DKIM1 ; k = rsa ; p = ${publicKey}`]), "FOUND", "white space in tags");
  for (const tags of ["s=email", "s=*", "h=sha1:sha256", "t=y:s", "n=a note"])
    t.equal(await with_("DKIM", [`${tags}; p=${publicKey}`]), "FOUND", tags);
  for (const tags of ["s=other", "h=sha1", "k=ed25519", "v=DKIM2"])
    t.equal(await with_("DKIM", [`${tags}; p=${publicKey}`]), "MISMATCH", `${tags}: no key for our signature`);
  t.equal(await with_("DKIM", [key, "v=DKIM1; p="]), "MISMATCH", "two keys at one name");
  t.equal(await with_("SPF", ["v=spf1 ip4:192.0.2.1 include:SPF.localhost. -all"]), "FOUND", "more terms beside ours");
  t.equal(await with_("SPF", ["v=spf1 +include:spf.localhost ?all"]), "FOUND");
  t.equal(await with_("SPF", ["v=spf1 include:other.example ~all"]), "MISMATCH");
  t.equal(await with_("SPF", ["v=spf1 -all include:spf.localhost"]), "MISMATCH", "a term that no receiver reaches");
  for (const qualifier of ["?", "~", "-"])
    t.equal(await with_("SPF", [`v=spf1 ${qualifier}include:spf.localhost ~all`]), "MISMATCH", "no mail passes by it");
  t.equal(await with_("SPF", [of("SPF").value, "v=spf1 -all"]), "MISMATCH", "two SPF records");
  t.equal(await with_("SPF", ["google-site-verification=x"]), "MISSING", "a TXT of another kind");
  t.equal(await with_("MAIL_FROM_MX", ["5 MX.localhost"]), "FOUND", "another preference, other case");
  t.equal(await with_("MAIL_FROM_MX", ["10 mx.other.example"]), "MISMATCH");
  t.equal(await with_("OWNERSHIP", ["other", of("OWNERSHIP").value]), "FOUND", "other texts at the name");
  t.equal(await with_("OWNERSHIP", ["domain-ownership=other"]), "MISMATCH");
  t.equal(await with_("DMARC", ["v=DMARC1; p=reject; rua=mailto:d@acme.example"]), "FOUND", "any policy");
  t.equal(await with_("DMARC", ["v = DMARC1 ; p = none"]), "FOUND", "white space");
  t.equal(await with_("DMARC", ["v=DMARC1; rua=mailto:d@acme.example"]), "FOUND", "reports alone are a policy of none");
  t.equal(await with_("DMARC", ["v=DMARC1; sp=none"]), "MISMATCH", "no policy");
  t.equal(await with_("DMARC", ["v=DMARC1; p=none", "v=DMARC1; p=reject"]), "MISMATCH", "two policies");
  dns.zone.delete("TXT _dmarc.mail.acme.example");
  publish(
    dns,
    records.filter(({ purpose }) => purpose !== "DMARC"),
  );
  dns.zone.delete("TXT _dmarc.mail.acme.example");
  dns.zone.set("TXT _dmarc.acme.example", ["v=DMARC1; p=none"]);
  t.equal(
    statuses(await check(service, "mail.acme.example", "acct_acme")).DMARC,
    "FOUND",
    "the policy of the domain above",
  );
});

t.test("failed DNS queries never make a domain unready, 72 hours of absence do", async (t) => {
  const { dns, service, later } = await start(t);
  await service.handle("acme");
  await attachDomain(service.runtime, { account: "acct_acme", domain: "acme.example" });
  const now = () => check(service, "acme.example", "acct_acme");
  const { requiredDnsRecords } = await now();
  publish(dns, requiredDnsRecords);
  t.equal((await now()).status, "READY");
  dns.trouble = "SERVFAIL";
  t.match(statuses(await now()), { DKIM: "UNKNOWN", SPF: "UNKNOWN" });
  later(100 * hour);
  t.equal((await now()).status, "READY", "SERVFAIL for a long time");
  dns.trouble = undefined;
  dns.zone.delete(`TXT ${requiredDnsRecords[1]?.name}`);
  t.equal((await now()).status, "READY", "absent at first");
  later(71 * hour);
  t.equal((await now()).status, "READY", "absent for 71 hours");
  dns.trouble = "SERVFAIL";
  later(2 * hour);
  t.equal((await now()).status, "READY", "nothing is known at the end");
  dns.trouble = undefined;
  t.equal((await now()).status, "FAILED", "absent after 72 hours");
  publish(dns, requiredDnsRecords);
  t.equal((await now()).status, "READY", "and back with the record");
  dns.zone.delete(`TXT ${requiredDnsRecords[1]?.name}`);
  t.equal((await now()).status, "READY", "a new absence starts a new period");
});

t.test("a record that was found meanwhile has 72 hours again, whatever the others are", async (t) => {
  const { dns, service, later } = await start(t);
  await service.handle("acme");
  await attachDomain(service.runtime, { account: "acct_acme", domain: "acme.example" });
  const now = () => check(service, "acme.example", "acct_acme");
  const { requiredDnsRecords } = await now();
  const without = (at: number) => {
    publish(dns, requiredDnsRecords);
    dns.zone.delete(`TXT ${requiredDnsRecords[at]?.name}`);
  };
  publish(dns, requiredDnsRecords);
  t.equal((await now()).status, "READY");
  without(1);
  t.match(statuses(await now()), { DKIM: "MISSING", SPF: "FOUND" });
  later(40 * hour);
  without(2);
  t.match(statuses(await now()), { DKIM: "FOUND", SPF: "MISSING" });
  later(40 * hour);
  without(1);
  t.equal((await now()).status, "READY", "absent again, for the first time since it was found");
  later(71 * hour);
  t.equal((await now()).status, "READY");
  later(hour);
  t.equal((await now()).status, "FAILED");
});

t.test("a check that learns nothing takes nothing back that another one has found meanwhile", async (t) => {
  const { dns, service } = await start(t);
  await service.handle("acme");
  await attachDomain(service.runtime, { account: "acct_acme", domain: "acme.example" });
  const first = await check(service, "acme.example", "acct_acme");
  publish(dns, first.requiredDnsRecords);
  let other: Promise<Identity> | undefined;
  const claim = await domainClaim(service.runtime.redis, "acct_acme", "acme.example");
  const hanging = async () => {
    other ??= check(service, "acme.example", "acct_acme");
    t.match(await other, { status: "READY" });
    return { kind: "unknown" as const, error: "SERVFAIL" };
  };
  await checkIdentity(service.runtime, hanging, claim as NonNullable<typeof claim>);
  t.match(await identityOf(service.runtime, { domain: "acme.example", account: "acct_acme" }), { status: "READY" });
});

t.test("a domain that is detached while its records are asked for stays so", async (t) => {
  const { dns, service } = await start(t);
  const { runtime } = service;
  await service.handle("acme");
  const at = { account: "acct_acme", domain: "acme.example" };
  await attachDomain(runtime, at);
  publish(dns, (await check(service, at.domain, at.account)).requiredDnsRecords);
  const ask = await openDns(runtime.env);
  const claim = (await domainClaim(runtime.redis, at.account, at.domain)) as DomainClaim;
  let detaching: Promise<unknown> | undefined;
  const askLate: typeof ask = async (...asked) => {
    detaching ??= detachDomain(runtime, at);
    await detaching;
    return ask(...asked);
  };
  await checkIdentity(runtime, askLate, claim);
  t.same(await keyNames(runtime.redis, `*${at.domain}*`), []);
});

t.test("a domain that is proven while its handle changes shows the pages of the new one", async (t) => {
  const { service } = await start(t);
  await service.handle("acme");
  const { redis } = service.runtime;
  for (let pause = 0; pause < 10; pause++) {
    const at = { account: "acct_acme", domain: `a${pause}.example` };
    await attachDomain(service.runtime, at);
    const attached = attachDomain(service.runtime, { ...at, handle: "acme" });
    for (let waits = 0; waits < pause; waits++) await redis.ping();
    t.equal(await proveDomain(service.runtime, at), true);
    await attached;
    t.equal(await handleOfHost(service.runtime, at.domain), "acme", `after ${pause} waits`);
    await attachDomain(service.runtime, { ...at, ready: true });
    t.match(await domainClaim(redis, at.account, at.domain), { handle: "acme" }, "a claim without a handle keeps it");
  }
});

t.test("only an answer that says so is absence", async (t) => {
  const { dns, service } = await start(t);
  const ask = await openDns(service.runtime.env);
  dns.zone.set("TXT a.example", ["one", "x".repeat(700)]);
  dns.zone.set("MX b.example", ["10 MX.A.Example."]);
  t.same(await ask("TXT", "A.example"), { kind: "found", values: ["one", "x".repeat(700)] });
  t.same(await ask("MX", "b.example"), { kind: "found", values: ["10 mx.a.example"] });
  t.same(await ask("TXT", "none.example"), { kind: "none" }, "no such name");
  t.same(await ask("MX", "a.example"), { kind: "none" }, "no such type");
  dns.trouble = "truncated";
  t.match(await ask("TXT", "a.example"), { kind: "found" }, "a long answer comes over TCP");
  dns.trouble = "SERVFAIL";
  t.same(await ask("TXT", "a.example"), { kind: "unknown", error: "SERVFAIL" });
  dns.trouble = "referral";
  t.match(await ask("TXT", "a.example"), { kind: "unknown" }, "a server that sends one elsewhere");
  dns.trouble = "silence";
  t.match(await ask("TXT", "a.example"), { kind: "unknown" }, "a server that says nothing");
  t.match(
    await (await openDns({ DNS_SERVERS: ["localhost:9"] }))("TXT", "a.example"),
    { kind: "unknown" },
    "nobody listens",
  );
  dns.trouble = undefined;
  const second = await openDns({ DNS_SERVERS: ["127.0.0.1:9", dns.address] });
  t.match(await second("TXT", "a.example"), { kind: "found" }, "the next server is asked");
});

/** The checks that wait for their time. */
async function nextChecks({ runtime }: Service) {
  const delayed = await runtime.queues.queue("email").getDelayed();
  return delayed.filter(({ name, data }) => name === "email.check" && data.domain === "acme.example");
}

t.test("domains are checked by themselves, until their account has no claim on them", async (t) => {
  const dns = await startDns(t);
  // Ten minutes take two seconds.
  const env = { DNS_SERVERS: dns.address, TEST_CLOCK: "2026-01-05T08:00:00Z", TEST_CLOCK_RATE: "300" };
  const service = await startService(t, { env, workers: ["email"] });
  const { runtime } = service;
  const claim = { domain: "acme.example", account: "acct_acme" };
  const owner = await service.handle("acme");
  const { domain } = (await owner.post("/v2/account/domains").send({ domain: claim.domain }).expect(201)).body;
  await eventually(async () => (await identityOf(runtime, claim)).lastCheckedAt);
  publish(dns, domain.requiredDnsRecords);
  await eventually(async () => (await identityOf(runtime, claim)).status === "READY");
  for (let process = 0; process < 3; process++) await scheduleNextCheck(runtime, claim);
  const daily = await eventually(async () => {
    const [next, ...others] = await nextChecks(service);
    return others.length === 0 && next;
  });
  const instantOf = ({ id = "" }: { id?: string | undefined }) => Number(id.split("-").at(-1));
  t.ok(instantOf(daily) > runtime.now(), "each check once");
  await daily.promote();
  const next = await eventually(async () => (await nextChecks(service))[0]);
  t.equal(instantOf(next), instantOf(daily) + 86_400_000, "a ready domain daily, also if a check begins early");
  // A check that is under way would claim the domain again.
  await eventually(() => daily.isCompleted());
  await runtime.redis.del(keys.domain(claim.domain));
  await next.promote();
  await eventually(() => next.isCompleted());
  t.same(await nextChecks(service), []);
});

t.test("a check that fails is followed by the next one", async (t) => {
  const { service } = await start(t);
  const owner = await service.handle("acme");
  await owner.post("/v2/account/domains").send({ domain: "acme.example" }).expect(201);
  await service.runtime.redis.hset(keys.emailIdentity("acme.example", "acct_acme"), "made", "no identity");
  const queue = service.runtime.queues.queue("email");
  const [first] = await nextChecks(service);
  await service.startWorkers(["email"]);
  const failed = await eventually(async () => (await nextChecks(service)).find(({ attemptsMade }) => attemptsMade > 0));
  t.equal(failed.id, first?.id);
  t.ok((await nextChecks(service)).some(({ id }) => id !== first?.id));
  await queue.drain(true);
});

t.test("an account attaches its own domains", async (t) => {
  const { dns, service } = await start(t, true);
  const owner = await service.handle("acme");
  const other = await service.handle("other");
  const post = (body: object, as = owner) => as.post("/v2/account/domains").send(body);
  const { domain } = (await post({ domain: "Shop.Example", handle: "acme" }).expect(201)).body;
  t.match(domain, { domain: "shop.example", accountId: "acct_acme", handle: "acme", owned: false, status: "PENDING" });
  await post({ domain: "shop.example" }).expect(200);
  t.match((await owner.get("/v2/account/domains")).body, {
    domains: [{ domain: "shop.example", handle: "acme" }],
    nextCursor: null,
  });
  t.same(await handleOfHost(service.runtime, "shop.example"), undefined, "it shows no pages yet");

  await post({ domain: "shop.example" }, other).expect(201);
  publish(
    dns,
    domain.requiredDnsRecords.filter(({ purpose }: DnsRecord) => purpose === "OWNERSHIP"),
  );
  await owner.post(`${path("shop.example")}/reconcile`).expect(202);
  await eventually(() => handleOfHost(service.runtime, "shop.example"));
  t.match((await post({ domain: "shop.example" }, other)).body, { status: 409, code: "domain_taken" });
  t.same(await service.runtime.redis.smembers(keys.accountDomains("acct_other")), [], "a taken one isn't listed");
  t.match(
    (await other.get(path("shop.example"))).body,
    { status: 404, code: "account_domain_not_found" },
    "the other claim is over",
  );
  t.same((await other.get("/v2/account/domains")).body.domains, []);
  // As an account has it whose domain another one has proven.
  await service.runtime.redis.sadd(keys.accountDomains("acct_other"), "shop.example");
  await post({ domain: "zoo.example" }, other).expect(201);
  const page = { domains: [{ domain: "zoo.example" }], nextCursor: null };
  t.match((await other.get("/v2/account/domains?limit=1")).body, page, "a page is full, without the lost one");

  for (const bad of [
    "nodots",
    "a b.example",
    "-a.example",
    "127.0.0.1",
    "a.0x",
    "xn--a.example",
    "",
    "https://a.example",
  ]) {
    t.match((await post({ domain: bad })).body, { status: 400, code: "invalid_request" }, bad);
  }
  t.match((await post({ domain: "new.example", handle: "other" })).body, { status: 403, code: "forbidden" });
  await service.grant("acme", "user_low", "CREATOR");
  t.match((await post({ domain: "new.example" }, await service.as("user_low"))).body, {
    status: 403,
    code: "insufficient_role",
  });
  t.match((await post({ domain: "new.example" }, await service.as("user_none"))).body, {
    status: 403,
    code: "forbidden",
  });
  await service.grant("other", "user_acme", "OWNER");
  t.match((await post({ domain: "new.example" })).body, {
    status: 400,
    code: "invalid_request",
    errors: [{ path: "/accountId" }],
  });
  t.match((await post({ domain: "new.example", accountId: "acct_other" }).expect(201)).body.domain, {
    accountId: "acct_other",
  });
  t.match((await post({ domain: "new.example", accountId: "acct_none" })).body, { status: 403, code: "forbidden" });
});

t.test("a domain whose first request ended before its check is checked after the repeated one", async (t) => {
  const { service } = await start(t);
  const owner = await service.handle("acme");
  // All that a request wrote which crashed.
  await attachDomain(service.runtime, { account: "acct_acme", domain: "acme.example" });
  await owner.post("/v2/account/domains").send({ domain: "acme.example" }).expect(200);
  const [waiting] = await service.runtime.queues.queue("email").getDelayed();
  t.match(waiting, { name: "email.check", data: { domain: "acme.example", account: "acct_acme" } });
  t.ok((waiting?.opts.delay ?? 0) <= 1000, "as soon as that of a new one");
});

t.test("an import that ended after it attached a domain is completed by the next run", async (t) => {
  const { service } = await start(t);
  const { runtime } = service;
  const owner = await service.handle("acme");
  await service.handle("new");
  await owner.post("/v2/account/domains").send({ domain: "shop.example", handle: "acme" }).expect(201);
  const [exported] = await exportDomains(runtime, { handle: "acme", account: "acct_acme" });
  await attachDomain(runtime, { account: "acct_new", domain: "shop.example", handle: "new" });
  const to = { handle: "new", account: "acct_new", from: "acct_acme" };
  t.equal(await importDomain(runtime, to, exported as NonNullable<typeof exported>), true);
  const [mine, theirs] = await Promise.all(
    ["acct_new", "acct_acme"].map((account) => identityOf(runtime, { domain: "shop.example", account })),
  );
  t.equal(mine?.identityKey, theirs?.identityKey, "the DNS records of the key may stay");
  const waiting = await runtime.queues.queue("email").getJobs(["waiting", "delayed"]);
  t.ok(
    waiting.some(({ data }) => data.account === "acct_new"),
    "and they are checked",
  );
});

t.test("of several requests that attach a domain at once one has created it", async (t) => {
  const { service } = await start(t);
  const owner = await service.handle("acme");
  const attach = () => owner.post("/v2/account/domains").send({ domain: "acme.example" });
  const answers = await Promise.all(Array.from({ length: 4 }, attach));
  t.same(answers.map(({ status }) => status).sort(), [200, 200, 200, 201]);
});

t.test("an account has at most 500 domains, also if many are attached at once", async (t) => {
  const service = await startService(t);
  const { redis } = service.runtime;
  const owner = await service.handle("acme");
  const attach = (domain: string) => owner.post("/v2/account/domains").send({ domain });
  await attach("first.example").expect(201);
  const list = keys.accountDomains("acct_acme");
  await redis.sadd(list, ...Array.from({ length: 497 }, (_, at) => `earlier-${at}.example`));
  const answers = await Promise.all(Array.from({ length: 8 }, (_, at) => attach(`late-${at}.example`)));
  const refused = answers.filter(({ status }) => status === 400);
  t.ok(refused.length >= 6, "no more than two had room");
  t.match(refused[0]?.body, { code: "invalid_request", detail: /at most 500 domains/ });
  t.ok((await redis.scard(list)) <= 500);
  await attach("first.example").expect(200);
  for (let at = 0; (await redis.scard(list)) < 500; at++) await redis.sadd(list, `last-${at}.example`);
  const same = await Promise.all(Array.from({ length: 8 }, () => attach("same.example")));
  t.same(new Set(same.map(({ status }) => status)), new Set([400]));
  t.equal(await redis.exists(keys.domain("same.example")), 0, "no claim is left out of the list");
});

t.test("the service's own names can't be attached", async (t) => {
  const service = await startService(t, { env: { PUBLIC_DOMAIN: "pages.example" } });
  const owner = await service.handle("acme");
  for (const domain of ["pages.example", "victim.pages.example"]) {
    t.match((await owner.post("/v2/account/domains").send({ domain })).body, { status: 409, code: "domain_taken" });
  }
});

t.test("the list of domains is paged", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  for (const name of ["a", "b", "c"])
    await attachDomain(service.runtime, { account: "acct_acme", domain: `${name}.example` });
  const first = (await owner.get("/v2/account/domains?limit=2")).body;
  const second = (await owner.get(`/v2/account/domains?limit=2&cursor=${first.nextCursor}`)).body;
  const names = (list: { domains: { domain: string }[] }) => list.domains.map(({ domain }) => domain);
  t.same([names(first), names(second), second.nextCursor], [["a.example", "b.example"], ["c.example"], null]);
});

t.test("a private key leaves Redis sealed only", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  await attachDomain(service.runtime, { account: "acct_acme", domain: "acme.example" });
  const [one, two] = await Promise.all([owner.get(path("acme.example")), owner.get(path("acme.example"))]);
  t.same(one.body, two.body, "two that make it at once get the same one");
  const stored = JSON.stringify(await service.runtime.redis.hgetall(keys.emailIdentity("acme.example", "acct_acme")));
  t.match(stored, /v1\.\w+/);
  t.notMatch(stored, /PRIVATE|MIIEv/);
});
