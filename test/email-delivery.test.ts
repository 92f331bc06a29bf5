import { Buffer } from "node:buffer";
import { authenticate } from "mailauth";
import PostalMime from "postal-mime";
import t from "tap";
import { acceptMessage } from "../core/email/acceptance.ts";
import { openDns } from "../core/engines/mail/dns.ts";
import { keys } from "../core/store/keys.ts";
import { startDns } from "../fixtures/dns.ts";
import { makeSending, startMailing } from "../fixtures/email.ts";
import { keyNames, storedText } from "../fixtures/redis.ts";
import { eventually, type ServiceOptions } from "../fixtures/service.ts";
import { startMailServer, type TakenMail } from "../fixtures/smtp.ts";
import type { DnsRecord } from "../schemas/email.ts";

/** Domain time runs so fast that waits of minutes take milliseconds. */
const hurried = (rate: number): ServiceOptions => ({
  env: { TEST_CLOCK: "2026-01-05T08:00:00Z", TEST_CLOCK_RATE: String(rate) },
  workers: ["email"],
});
const types = (timeline: { type: string }[]) => timeline.map(({ type }) => type);

t.test("each recipient gets a mail of their own", async (t) => {
  const server = await startMailServer(t);
  const service = await startMailing(t, server.url, { workers: ["email"] });
  const { send, until, owner, root } = await makeSending(service);
  await owner.put(`${root}/senders/sender_main`).send({ replyTo: "desk@acme.example" }).expect(200);
  const id = await send(["ann@far.example", "Bob@far.example"], { variables: { name: "Änn & Co" } });
  const { message, timeline } = await until(id, "SENT");
  t.match(message.deliveries, [
    { recipient: "ann@far.example", status: "SENT" },
    { recipient: "Bob@far.example", status: "SENT" },
  ]);
  t.same(types(timeline.filter(({ recipient }) => recipient === "ann@far.example")), ["QUEUED", "SENDING", "SENT"]);
  t.equal(server.mails.length, 2);
  for (const [n, recipient] of ["ann@far.example", "Bob@far.example"].entries()) {
    const mail = server.mails.find(({ to }) => to[0] === recipient) as TakenMail;
    t.same([mail.to, mail.headers.to], [[recipient], recipient]);
    t.match(mail.from, /^b\+[0-9a-f.]+@mail\.acme\.example$/, "the return path names the delivery");
    t.match(mail.headers["message-id"], new RegExp(`^<${id}\\.${n}\\.[\\w-]{16}@mail\\.acme\\.example>$`));
    t.notMatch(mail.raw, server.mails.find((one) => one !== mail)?.to[0] as string, "and no one else");
    t.ok(
      mail.raw.split("\r\n").every((line) => /^[\x20-\x7e\t]{0,120}$/.test(line)),
      "ASCII in short lines",
    );
    const read = await PostalMime.parse(mail.raw);
    t.match(read, {
      subject: "Hello Änn & Co",
      from: { name: "Acme", address: "noreply@acme.example" },
      replyTo: [{ address: "desk@acme.example" }],
    });
    t.match([read.html, read.text], ["<p>Hello Änn &amp; Co</p>", "Hello Änn & Co"]);
  }
});

t.test("a subject is read as it was written, whatever its words look like", async (t) => {
  const server = await startMailServer(t);
  const service = await startMailing(t, server.url, { workers: ["email"] });
  const { send, until } = await makeSending(service);
  for (const name of ["=?utf-8?Q?Eve=0D=0A?=", "a".repeat(990), `${"word ".repeat(40)}end`]) {
    await until(await send(["ann@far.example"], { variables: { name } }), "SENT");
    const { raw } = server.mails.at(-1) as TakenMail;
    t.equal((await PostalMime.parse(raw)).subject, `Hello ${name}`);
    t.ok(
      raw
        .toString()
        .split("\r\n")
        .every((line) => line.length <= 998),
      "and no line is too long for a server",
    );
  }
});

t.test("a sender's name is read as it was written, whatever its words look like", async (t) => {
  const server = await startMailServer(t);
  const service = await startMailing(t, server.url, { workers: ["email"] });
  const { send, until, owner, root } = await makeSending(service);
  for (const displayName of ["=?utf-8?Q?Eve=0D=0A?=", 'A "b" =?', "a".repeat(120)]) {
    await owner.put(`${root}/senders/sender_main`).send({ displayName }).expect(200);
    await until(await send(["ann@far.example"]), "SENT");
    const { from } = await PostalMime.parse((server.mails.at(-1) as TakenMail).raw);
    t.match(from, { name: displayName, address: "noreply@acme.example" });
  }
});

t.test("mails are signed so that another implementation agrees: DKIM, SPF and DMARC pass", async (t) => {
  const [server, dns] = [await startMailServer(t), await startDns(t)];
  const service = await startMailing(t, server.url, { workers: ["email"], env: { DNS_SERVERS: dns.address } });
  const { send, until, owner } = await makeSending(service);
  const { identity } = (await owner.get("/v2/account/domains/acme.example/email-identity")).body;
  for (const { type, name, value } of identity.requiredDnsRecords as DnsRecord[])
    dns.zone.set(`${type} ${name}`, [value]);
  dns.zone.set("TXT spf.localhost", ["v=spf1 ip4:127.0.0.1 -all"]);
  const long = `${"A long line with a tab\tand  spaces and dots. ".repeat(40)}\n.\n..\nFrom here \n\n\n`;
  await until(
    await send(["ann@far.example"], {
      purpose: "PRODUCT_NOTIFICATION",
      variables: { name: long.replace(/[\n\t]/g, " ").slice(0, 900) },
    }),
    "SENT",
  );
  const content = {
    subject: "日本語の件名 und ein sehr langer Betreff, der umgebrochen werden muss",
    text: `${long}日本語\n`,
  };
  await acceptMessage(service.runtime, {
    handle: "acme",
    senderId: "sender_main",
    to: ["bob@far.example"],
    purpose: "CALENDAR",
    content,
  });
  await eventually(() => server.mails.length === 2);
  const ask = await openDns(service.runtime.env);
  const resolve = async (name: string, type: "TXT" | "MX") => {
    const answer = await ask(type, name);
    if (answer.kind === "found") return answer.values.map((value) => [value]);
    throw Object.assign(new Error(answer.kind), { code: "ENOTFOUND" });
  };
  for (const { raw, from } of server.mails) {
    const look = (mail: string) =>
      authenticate(Buffer.from(mail, "latin1"), {
        ip: "127.0.0.1",
        helo: "relay.example",
        sender: from,
        mta: "mx.far.example",
        resolver: resolve as never,
      });
    const { dkim, spf, dmarc } = await look(raw);
    t.match(dkim.results[0], { status: { result: "pass", aligned: "acme.example" } });
    t.match([spf ? spf.status.result : "none", dmarc ? dmarc.status.result : "none"], ["pass", "pass"]);
    const changed = await look(raw.replace(/^Subject: ./m, "Subject: !"));
    t.equal(changed.dkim.results[0]?.status.result, "fail", "a changed subject is seen");
    const second = await look(`From: evil@acme.example\r\n${raw}`);
    t.not(second.dkim.results[0]?.status.result, "pass", "a second From is seen");
  }
  const marketing = server.mails.find(({ to }) => to[0] === "ann@far.example") as TakenMail;
  const signed =
    /h=([^;]*);/
      .exec(marketing.headers["dkim-signature"] as string)?.[1]
      ?.replace(/\s/g, "")
      .split(":") ?? [];
  t.ok(
    ["from", "subject", "list-unsubscribe", "list-unsubscribe-post"].every((name) => signed.includes(name)),
    "both fields of one-click are under the signature",
  );
  t.match(marketing.headers, {
    "list-unsubscribe": /^<http:\/\/service\.test\/\S+>, <mailto:u\+\S+@mail\.acme\.example\?subject=unsubscribe>$/,
    "list-unsubscribe-post": "List-Unsubscribe=One-Click",
  });
  const other = server.mails.find(({ to }) => to[0] === "bob@far.example") as TakenMail;
  t.notOk(other.headers["list-unsubscribe"], "only notifications carry them");
  t.match(await PostalMime.parse(other.raw), { subject: content.subject });
});

t.test("a mail that would leave unsigned fails instead", async (t) => {
  const server = await startMailServer(t);
  const service = await startMailing(t, server.url);
  const { send, until } = await makeSending(service);
  const key = keys.emailIdentity("acme.example", "acct_acme");
  const made = JSON.parse((await service.runtime.redis.hget(key, "made")) as string);
  await service.runtime.redis.hset(
    key,
    "made",
    JSON.stringify({ ...made, sealed: `${made.sealed.slice(0, -8)}AAAAAAAA` }),
  );
  const id = await send(["ann@far.example"]);
  await service.startWorkers(["email"]);
  t.match((await until(id, "FAILED")).timeline.at(-1), { type: "FAILED", reason: "dkim_signing_failed", attempt: 1 });
  t.same(server.named, [], "the server heard nothing of it");
});

t.test("a refused recipient fails alone, and only a hopeless one is suppressed", async (t) => {
  const server = await startMailServer(t);
  server.refuseRecipient = (address) => {
    const [, code, words] = /^(\d{3})-([\d.]*)@/.exec(address) ?? [];
    return code ? { code: Number(code), words: `${words} said the server` } : undefined;
  };
  const service = await startMailing(t, server.url, { workers: ["email"] });
  const { send, until, owner, root } = await makeSending(service);
  const refused = ["550-5.1.1", "550-5.1.10", "550-5.2.1", "550-5.7.1", "552-5.2.2", "550-5.1.2", "553-"].map(
    (name) => `${name}@far.example`,
  );
  const id = await send(["ann@far.example", ...refused.map((address) => address.replace("-@", "@")).slice(0, 6)]);
  const { message, timeline } = await until(id, "SENT");
  t.same(
    message.deliveries.map(({ status }) => status),
    ["SENT", ...Array(6).fill("FAILED")],
    "sent is what was sent, failed what was refused",
  );
  t.match(
    timeline.find(({ recipient, type }) => recipient === refused[0] && type === "FAILED"),
    { smtpCode: 550, reason: /^recipient_refused: 550 5\.1\.1 said the server/ },
  );
  const { suppressions } = (await owner.get(`${root}/suppressions`)).body;
  t.same(suppressions.map(({ email }: { email: string }) => email).sort(), [
    "550-5.1.10@far.example",
    "550-5.1.1@far.example",
    "550-5.2.1@far.example",
  ]);
  t.match(suppressions[0], { source: "HARD_BOUNCE", messageId: id });
  t.equal(server.mails.length, 1);
});

t.test("an erased recipient is gone from the server's words too", async (t) => {
  const server = await startMailServer(t);
  const others = ", as is ada@far.example";
  server.refuseRecipient = (address) => ({ code: 550, words: `5.1.1 <${address.toUpperCase()}>: unknown${others}` });
  const env = { PUBLIC_PAGE_AGENT_ENABLED: "1" };
  const service = await startMailing(t, server.url, { env, workers: ["email", "campaigns"] });
  const { send, until, read, owner } = await makeSending(service);
  const lead = await service.visitor.post("/v2/public/handles/acme/leads").send({ email: "ada@far.example" });
  const id = await send(["ada@far.example", "o-ada@far.example"]);
  await until(id, "FAILED");
  await owner.delete(`/v2/handles/acme/leads/${lead.body.lead.leadId}`).expect(204);
  const told = async () =>
    (await read(id)).timeline.filter(({ type }) => type === "FAILED").map(({ reason }) => reason);
  await eventually(async () => !/<ADA/i.test(String(await told())));
  t.same((await told()).sort(), [
    "recipient_refused: 550 5.1.1 <O-ADA@FAR.EXAMPLE>: unknown, as is erased@erased.invalid",
    "recipient_refused: 550 5.1.1 <erased@erased.invalid>: unknown, as is erased@erased.invalid",
  ]);
});

for (const [code, words] of [
  [451, "4.3.0 <ada@far.example>: later"],
  [550, "5.1.1 <ada@far.example>: unknown"],
] as const)
  t.test(
    `nothing of a recipient stays who is erased while a mail is under way that the server answers with ${code}`,
    async (t) => {
      const server = await startMailServer(t);
      let answer = (): void => {};
      const erased = new Promise<void>((resolve) => {
        answer = resolve;
      });
      server.refuseContent = ({ to }) =>
        to[0] === "ada@far.example" ? erased.then(() => ({ code, words })) : undefined;
      const env = { PUBLIC_PAGE_AGENT_ENABLED: "1" };
      const service = await startMailing(t, server.url, { env, workers: ["email", "campaigns"] });
      const { send, until, read, owner } = await makeSending(service);
      await owner.put("/v2/handles/acme/settings").send({ leadNotifications: false }).expect(200);
      await owner.post("/v2/handles/acme/webhooks").send({ url: "http://127.0.0.1:9/hook" }).expect(201);
      const lead = await service.visitor.post("/v2/public/handles/acme/leads").send({ email: "ada@far.example" });
      const id = await send(["ada@far.example", "bob@far.example"]);
      const deliveries = async () => (await read(id)).message.deliveries;
      await eventually(async () => (await deliveries()).map(({ status }) => status).join() === "SENDING,SENT");
      await owner.delete(`/v2/handles/acme/leads/${lead.body.lead.leadId}`).expect(204);
      await eventually(async () => (await deliveries())[0]?.recipient !== "ada@far.example");
      answer();
      await until(id, "SENT");
      t.match(await deliveries(), [{ recipient: "erased@erased.invalid", status: "CANCELLED" }, { status: "SENT" }]);
      const { redis } = service.runtime;
      for (const key of await keyNames(redis, "*{acme}*")) t.notMatch(await storedText(redis, key), /ada@far/i, key);
    },
  );

t.test("a recipient who is refused with the code of a login is retried later, and delays nobody", async (t) => {
  const server = await startMailServer(t);
  server.refuseRecipient = (address) =>
    address.startsWith("ann") ? { code: 454, words: "4.7.1 relay access denied" } : undefined;
  const service = await startMailing(t, server.url, { workers: ["email"] });
  const { send, until, read } = await makeSending(service);
  const refused = await send(["ann@far.example"]);
  await until(refused, "DEFERRED");
  for (const name of ["bob", "cid", "dan"]) await until(await send([`${name}@far.example`]), "SENT");
  const { timeline } = await read(refused);
  t.same(types(timeline), ["QUEUED", "SENDING", "DEFERRED"]);
  t.match(timeline.at(-1), { smtpCode: 454, reason: /^deferred_by_server: 454 4\.7\.1/ });
});

for (const code of [454, 530]) {
  t.test(`a sender who is refused with the login code ${code} is retried later, and not for ever`, async (t) => {
    const server = await startMailServer(t, {
      onMailFrom: ({ address }, _session, done) =>
        done(
          address.endsWith("@mail.acme.example")
            ? Object.assign(new Error("4.7.0 log in first"), { responseCode: code })
            : null,
        ),
    });
    const service = await startMailing(t, server.url, hurried(60));
    const [acme, other] = [await makeSending(service), await makeSending(service, "other")];
    const refused = await acme.send(["ann@far.example"], { purpose: "LEAD_VERIFICATION" });
    await acme.until(refused, "DEFERRED");
    for (const name of ["bob", "cid", "dan"])
      await other.until(await other.send([`${name}@far.example`]), "SENT", 10_000);
    const { timeline } = await acme.until(refused, "FAILED");
    t.match(timeline.at(-1), { smtpCode: code, reason: /^given_up: .*log in first/ });
    const attempts = timeline.filter(({ type }) => type === "SENDING").map(({ attempt }) => attempt);
    t.same(
      attempts,
      attempts.map((_, at) => at + 1),
      "each attempt counts",
    );
    t.ok(attempts.length < 20, `${attempts.length} attempts`);
    t.equal(server.mails.length, 3, "the refused mail reached nobody");
  });
}

t.test("a refused content fails, without consequences for the address", async (t) => {
  const server = await startMailServer(t);
  server.refuseContent = () => ({ code: 554, words: "5.1.1 looks like spam" });
  const service = await startMailing(t, server.url, { workers: ["email"] });
  const { send, until, owner, root } = await makeSending(service);
  const { timeline } = await until(await send(["ann@far.example"]), "FAILED");
  t.match(timeline.at(-1), { type: "FAILED", smtpCode: 554, reason: /^content_refused/ });
  t.same((await owner.get(`${root}/suppressions`)).body.suppressions.length, 1, "but for the codes that do");
});

t.test("a deferred mail is retried with the same Message-ID", async (t) => {
  const server = await startMailServer(t);
  let refusals = 0;
  server.refuseRecipient = () => (refusals++ < 2 ? { code: 450, words: "4.2.0 greylisted" } : undefined);
  server.refuseContent = ({ raw }) => (refusals++ < 6 && raw ? { code: 451, words: "4.3.0 later" } : undefined);
  const service = await startMailing(t, server.url, hurried(2000));
  const { send, until } = await makeSending(service);
  const id = await send(["ann@far.example"]);
  const { timeline } = await until(id, "SENT");
  const deferred = timeline.filter(({ type }) => type === "DEFERRED");
  t.ok(deferred.length >= 3);
  t.match(deferred[0], { smtpCode: 450, attempt: 1, reason: /^deferred_by_server: 450 4\.2\.0/ });
  t.match(deferred.at(-1), { smtpCode: 451 });
  t.same(
    timeline.filter(({ type }) => type === "SENDING").map(({ attempt }) => attempt),
    Array.from({ length: deferred.length + 1 }, (_, at) => at + 1),
  );
  t.match(server.mails[0]?.headers["message-id"], new RegExp(`^<${id}\\.0\\.`));
});

t.test("an undeliverable mail fails in the end", async (t) => {
  const server = await startMailServer(t);
  server.refuseRecipient = () => ({ code: 451, words: "4.3.0 not now" });
  const service = await startMailing(t, server.url, hurried(30_000));
  const { send, until } = await makeSending(service);
  const mail = await send(["ann@far.example"]);
  const code = await send(["bob@far.example"], { purpose: "LEAD_VERIFICATION" });
  const given = { type: "FAILED", reason: /^given_up: deferred_by_server: 451 4.3.0 not now/, smtpCode: 451 };
  t.match((await until(mail, "FAILED")).timeline.at(-1), given);
  t.match((await until(code, "FAILED")).timeline.at(-1), given);
});

t.test("what was allowed at acceptance is checked again at delivery", async (t) => {
  const server = await startMailServer(t);
  const service = await startMailing(t, server.url);
  const { redis } = service.runtime;
  const names = ["sender", "purpose", "domain", "claim", "suppressed", "inactive", "quota"];
  const sendings = await Promise.all(names.map((name) => makeSending(service, name)));
  const ids = await Promise.all(sendings.map(({ send, handle }) => send([`ann@${handle}.far.example`])));
  const { owner, root } = sendings[0] as (typeof sendings)[number];
  await owner.put(`${root}/senders/sender_main`).send({ enabled: false }).expect(200);
  await sendings[1]?.owner
    .put(`${sendings[1].root}/senders/sender_main`)
    .send({ purposes: ["CALENDAR"] })
    .expect(200);
  await redis.hset(keys.emailIdentity("domain.example", "acct_domain"), "status", "FAILED");
  await redis.del(keys.domain("claim.example"));
  await sendings[4]?.owner
    .post(`${sendings[4].root}/suppressions`)
    .send({ email: "ann@suppressed.far.example" })
    .expect(201);
  await redis.hset(keys.message("quota", ids[6] as string), "quota", service.runtime.env.EMAIL_QUOTA_PER_DAY);
  await redis.hset(keys.handle("inactive"), "status", "INACTIVE");
  await service.startWorkers(["email"]);
  const reasons = [
    "sender_not_ready",
    "sender_purpose_not_allowed",
    "domain_email_identity_not_ready",
    "account_domain_not_found",
    "email_recipient_suppressed",
    "handle_inactive",
    "email_quota_exceeded",
  ];
  for (const [at, reason] of reasons.entries()) {
    const timeline = await eventually(async () => {
      const found = (await redis.lrange(keys.messageEvents(names[at] as string, ids[at] as string), 0, -1)).map(
        (json) => JSON.parse(json),
      );
      return found.at(-1)?.type === "DENIED" && found;
    });
    t.match(timeline.at(-1), { type: "DENIED", reason }, reason);
  }
  t.same(server.named, []);
});

t.test("a message keeps the version and the sender that it was accepted with", async (t) => {
  const server = await startMailServer(t);
  const service = await startMailing(t, server.url);
  const { send, until, owner, root } = await makeSending(service);
  const id = await send(["ann@far.example"]);
  await owner
    .put(`${root}/templates/tmpl_hello`)
    .send({ subject: "Changed", html: "<p>Changed</p>", status: "PAUSED" })
    .expect(200);
  await owner.put(`${root}/senders/sender_main`).send({ localPart: "support", displayName: "Other" }).expect(200);
  await service.startWorkers(["email"]);
  const { message } = await until(id, "SENT");
  t.equal(server.mails[0]?.headers.subject, "Hello Ann");
  t.equal(server.mails[0]?.headers.from, message.fromEmail);
});

t.test("a mail of the service's own carries its files, and an invitation as one", async (t) => {
  const server = await startMailServer(t);
  const service = await startMailing(t, server.url, { workers: ["email"] });
  await makeSending(service);
  const invitation = "BEGIN:VCALENDAR\r\nMETHOD:REQUEST\r\nEND:VCALENDAR\r\n";
  const base64 = (content: string) => Buffer.from(content).toString("base64");
  await acceptMessage(service.runtime, {
    ...{ handle: "acme", senderId: "sender_main", to: ["ann@far.example"], purpose: "CALENDAR" },
    content: { subject: "Your booking", text: "Booked", html: "<p>Booked</p>" },
    attachments: [
      {
        filename: "invite.ics",
        contentType: "text/calendar; charset=utf-8; method=REQUEST",
        content: base64(invitation),
      },
      { filename: 'Über "x".pdf', contentType: "application/pdf", content: base64("%PDF") },
    ],
  });
  await eventually(() => server.mails.length === 1);
  const raw = server.mails[0]?.raw as string;
  t.match(raw, /Content-Type: text\/calendar; charset=utf-8; method=REQUEST/);
  t.match(raw, /Content-Type: application\/ics/);
  const { attachments, text, html } = await PostalMime.parse(raw);
  t.match([text, html], ["Booked", "<p>Booked</p>"]);
  const names = attachments.map(({ filename }) => filename);
  t.ok(names.includes("invite.ics") && names.includes('Über "x".pdf'), names.join());
  t.equal(
    Buffer.from(attachments.find(({ filename }) => filename === "invite.ics")?.content as ArrayBuffer).toString(),
    invitation.replaceAll("\r\n", "\n"),
  );
});

t.test("a cancelled message is not sent", async (t) => {
  const server = await startMailServer(t);
  const service = await startMailing(t, server.url);
  const { send, until, owner, root } = await makeSending(service);
  const [one, two] = [await send(["ann@far.example"]), await send(["bob@far.example"])];
  await owner.post(`${root}/messages/${one}/cancel`).expect(200);
  await service.startWorkers(["email"]);
  await until(two, "SENT");
  t.same(server.named, ["bob@far.example"]);
});
