import { Buffer } from "node:buffer";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import process from "node:process";
import PostalMime from "postal-mime";
import { Webhook } from "standardwebhooks";
import t from "tap";
import { deliveryOfAddress, returnAddress, unsubscribeUrl } from "../core/email/return-path.ts";
import { keys } from "../core/store/keys.ts";
import { makeSending, type Sending, startMailing } from "../fixtures/email.ts";
import { bounce, complaint } from "../fixtures/reports.ts";
import { eventually, type Service, startService } from "../fixtures/service.ts";
import { type MailServer, startMailServer } from "../fixtures/smtp.ts";

const secret = `whsec_${Buffer.from("a secret of the feedback routes").toString("base64")}`;
const settings = { env: { EMAIL_FEEDBACK_SECRET: secret, BASE_URL: "https://service.test" }, workers: ["email"] };

async function start(
  t: Parameters<typeof startMailing>[0],
): Promise<{ server: MailServer; service: Service; acme: Sending }> {
  const server = await startMailServer(t);
  const service = await startMailing(t, server.url, settings);
  return { server, service, acme: await makeSending(service) };
}

/** Posts bytes signed as Standard Webhooks says, by the npm package. */
function post({ visitor }: Service, path: "feedback" | "inbound", body: string, at = new Date(), key = secret) {
  const signature = new Webhook(key).sign("id_1", at, body);
  const type = path === "feedback" ? "application/json" : "message/rfc822";
  const headers = {
    "webhook-id": "id_1",
    "webhook-timestamp": String(Math.floor(at.getTime() / 1000)),
    "webhook-signature": signature,
  };
  return visitor
    .post(`/v2/email/${path}`)
    .set({ "Content-Type": type, ...headers })
    .send(body);
}

t.test("unsigned feedback is refused", async (t) => {
  const { service, acme } = await start(t);
  const body = JSON.stringify({ type: "DELIVERED", messageId: "msg_x", recipient: "ann@far.example" });
  t.match((await post(service, "feedback", body)).body, { applied: 0 }, "signed, of an unknown message");
  for (const path of ["feedback", "inbound"] as const) {
    const plain = await service.visitor.post(`/v2/email/${path}`).set("Content-Type", "application/json").send(body);
    t.match(plain.body, { status: 401, code: "invalid_token" });
    t.match((await post(service, path, body, new Date(Date.now() - 600_000))).body, { status: 401 }, "too old");
    t.match((await post(service, path, body, new Date(Date.now() + 600_000))).body, { status: 401 }, "of the future");
    t.match(
      (
        await post(
          service,
          path,
          body,
          new Date(),
          `whsec_${Buffer.from("another secret of that length!").toString("base64")}`,
        )
      ).body,
      { status: 401 },
    );
    t.match((await post(service, path, body).send(`${body} `)).body, { status: 401 }, "changed on the way");
  }
  const without = await startMailing(t, "smtp://127.0.0.1:9");
  t.match((await post(without, "feedback", body)).body, { status: 401 }, "no secret, no feedback");
  const announced = request(`${without.url}/v2/email/inbound`, {
    method: "POST",
    headers: { "content-length": 25_000_000 },
  });
  announced.on("error", () => undefined).flushHeaders();
  const [refused] = (await once(announced, "response")) as [IncomingMessage];
  t.equal(refused.statusCode, 401, "nor is a body read");
  announced.destroy();
  for (const bad of [
    "[]",
    "{",
    "{}",
    '{"type":"OPENED"}',
    '{"type":"BOUNCED","messageId":"m"}',
    '{"type":"BOUNCED","messageId":"m","recipient":"no"}',
  ]) {
    t.match((await post(service, "feedback", bad)).body, { status: 400, code: "invalid_request" }, bad);
  }
  t.ok(acme);
});

t.test("the body of a forged report is never held in memory", async (t) => {
  const service = await startService(t, settings);
  const forge = (more: Record<string, string | number> = {}) => {
    const forged = request(`${service.url}/v2/email/inbound`, { method: "POST", headers: more });
    forged.on("error", () => undefined).flushHeaders();
    t.teardown(() => forged.destroy());
    return forged;
  };
  const size = 20_000_000;
  const [unsigned] = (await once(forge({ "content-length": size }), "response")) as [IncomingMessage];
  t.equal(unsigned.statusCode, 401, "without a signature no byte is awaited");
  const signed = {
    "webhook-id": "id_1",
    "webhook-timestamp": String(Math.floor(Date.now() / 1000)),
    "webhook-signature": "v1,AAAA",
  };
  const before = process.memoryUsage().arrayBuffers;
  const part = Buffer.alloc(1_000_000, "x");
  const waiting = Array.from({ length: 12 }, () =>
    forge({ ...signed, "content-length": size + 1, "idempotency-key": "1" }),
  );
  for (const one of waiting)
    for (let sent = 0; sent < size; sent += part.length) await new Promise((resolve) => one.write(part, resolve));
  t.ok(process.memoryUsage().arrayBuffers - before < (waiting.length * size) / 2, "what has arrived is gone");
  for (const one of waiting) one.end("x");
  const answers = await Promise.all(waiting.map((one) => once(one, "response")));
  t.same([...new Set(answers.map(([response]) => response.statusCode))], [401]);
});

t.test("a reason that is cut inside an emoji, or has half of one, stops no later event of the message", async (t) => {
  const { service, acme } = await start(t);
  const id = await acme.send(["ann@far.example", "bob@far.example"]);
  await acme.until(id, "SENT");
  const tell = (recipient: string, type: string, reason?: string) =>
    post(service, "feedback", JSON.stringify({ type, messageId: id, recipient, reason })).expect(200, { applied: 1 });
  await tell("ann@far.example", "BOUNCED", `${"x".repeat(299)}\u{1f600}`);
  await tell("ann@far.example", "COMPLAINED", "half \ud83d of one");
  await tell("bob@far.example", "DELIVERED");
  const { redis, env } = service.runtime;
  const timeline = keys.messageEvents("acme", id);
  const stored = (await redis.lindex(timeline, -1)) as string;
  await redis.lset(timeline, -1, stored.replace(/}$/, ',"reason":"\\ud83d"}'));
  await service.visitor.post(new URL(unsubscribeUrl(env, { messageId: id, n: 1 })).pathname).expect(200);
  const reasons = (await acme.read(id)).timeline.slice(-4).map(({ type, reason }) => [type, reason]);
  t.same(reasons, [
    ["BOUNCED", "x".repeat(299)],
    ["COMPLAINED", "half of one"],
    ["DELIVERED", "\ud83d"],
    ["UNSUBSCRIBED", "link"],
  ]);
});

t.test("a provider's notices move a sent message on, each once", async (t) => {
  const { service, acme } = await start(t);
  const id = await acme.send(["ann@far.example", "bob@far.example"]);
  await acme.until(id, "SENT");
  const tell = async (body: object) => (await post(service, "feedback", JSON.stringify(body)).expect(200)).body.applied;
  t.equal(await tell({ type: "DELIVERED", messageId: id, recipient: "ANN@far.example" }), 1);
  t.equal(await tell({ type: "DELIVERED", messageId: id, recipient: "ann@far.example" }), 0, "again");
  t.equal(await tell({ type: "DELIVERED", messageId: id, recipient: "eve@far.example" }), 0, "nobody's");
  const data = {
    messageId: id,
    recipient: "bob@far.example",
    smtpCode: 550,
    enhancedStatus: "5.1.1",
    reason: "550 5.1.1 unknown",
  };
  t.equal(
    await tell({ type: "bounced", timestamp: new Date().toISOString(), data }),
    1,
    "in the envelope of Standard Webhooks",
  );
  const events = [
    { type: "COMPLAINED", messageId: id, recipient: "ann@far.example" },
    { type: "DELIVERED", messageId: id, recipient: "bob@far.example" },
  ];
  t.equal(await tell({ events }), 1, "a bounce is not taken back");
  const { message, timeline } = await acme.read(id);
  t.match(message.deliveries, [{ status: "COMPLAINED" }, { status: "BOUNCED" }]);
  t.equal(message.status, "SENT", "of several, sent is what was sent");
  t.match(
    timeline.find(({ type }) => type === "BOUNCED"),
    { reason: "550 5.1.1 unknown", smtpCode: 550, recipient: "bob@far.example" },
  );
  const { suppressions } = (await acme.owner.get(`${acme.root}/suppressions`)).body;
  t.same(suppressions.map(({ email, source }: { email: string; source: string }) => [email, source]).sort(), [
    ["ann@far.example", "COMPLAINT"],
    ["bob@far.example", "HARD_BOUNCE"],
  ]);
  t.match((await acme.ask({ to: ["ann@far.example"] })).body, { code: "email_recipient_suppressed" });
});

t.test("a bounce finds its delivery by the return path, which can't be forged", async (t) => {
  const { server, service, acme } = await start(t);
  const id = await acme.send(["ann@far.example", "bob@far.example"]);
  await acme.until(id, "SENT");
  const path = server.mails.find(({ to }) => to[0] === "bob@far.example")?.from as string;
  const tell = async (mail: string) => (await post(service, "inbound", mail).expect(200)).body.applied;
  t.equal(await tell(bounce(path.replace(/.@/, (end) => (end === "0@" ? "1@" : "0@")))), 0, "a forged return path");
  t.equal(await tell(bounce(path.replace(".1.", ".0."))), 0, "of another recipient");
  t.equal(await tell(bounce(path, { action: "delayed", status: "4.4.1" })), 0, "a delay");
  t.equal(await tell("From: a@far.example\r\nSubject: Out of office\r\n\r\nBack on Monday"), 0, "no report");
  t.equal(await tell(bounce(path, { status: "5.2.2", words: "552 5.2.2 full" })), 1);
  t.match((await acme.read(id)).message.deliveries, [{ status: "SENT" }, { status: "BOUNCED" }]);
  t.same(
    (await acme.owner.get(`${acme.root}/suppressions`)).body.suppressions,
    [],
    "a full mailbox is no reason to stop",
  );
  const one = await acme.send(["ann@far.example"]);
  await acme.until(one, "SENT");
  const upper = String(server.mails.at(-1)?.from).toUpperCase();
  t.equal(await tell(bounce(`"x" <${upper}>`)), 1, "in whatever case it comes back");
  const { timeline, message } = await acme.read(one);
  t.equal(message.status, "BOUNCED");
  t.match(timeline.at(-1), { type: "BOUNCED", smtpCode: 550, reason: /^550 5\.1\.1 <ann@far\.example>: unknown$/ });
  t.match((await acme.owner.get(`${acme.root}/suppressions`)).body.suppressions, [
    { email: "ann@far.example", source: "HARD_BOUNCE", messageId: one },
  ]);
});

t.test("a report counts whichever way its server writes it", async (t) => {
  const { server, service, acme } = await start(t);
  for (const { suppressed = true, ...report } of [
    { status: "5.0.0" },
    { status: "" },
    { status: "5.1.1 (bad destination mailbox)", action: "failed (permanently)" },
    { status: "", words: "550 no thanks, see 5.1.1.1", suppressed: false },
    { status: "5.7.1", words: "550 5.1.1 unknown", suppressed: false },
    { status: "", words: "host mx[10.5.1.1] said: 550 no thanks", suppressed: false },
  ] as { status: string; action?: string; words?: string; suppressed?: boolean }[]) {
    const id = await acme.send(["ann@far.example"]);
    await acme.until(id, "SENT");
    const { from } = server.mails.at(-1) as { from: string };
    t.match((await post(service, "inbound", bounce(from, report))).body, { applied: 1 }, JSON.stringify(report));
    const { suppressions } = (await acme.owner.get(`${acme.root}/suppressions`)).body;
    t.equal(suppressions.length, suppressed ? 1 : 0, JSON.stringify(report));
    await acme.owner.delete(`${acme.root}/suppressions/ann@far.example`).expect(204);
  }
  await acme.until(await acme.send(["ann@far.example"]), "SENT");
  const obsolete = bounce(server.mails.at(-1)?.from as string).replace("Action:", "Action\t:");
  t.match((await post(service, "inbound", obsolete)).body, { applied: 1 }, "white space after a field's name");
});

t.test("an internationalised bounce counts, and one that a mail system wrote as text", async (t) => {
  const { server, service, acme } = await start(t);
  const text = (...lines: string[]) =>
    ["Subject: failure notice", "", ...lines, "--- Below is a copy.", "5.1.1"].join("\r\n");
  const [system, person] = ["From: MAILER-DAEMON@mx.far.example", "From: ann@far.example"];
  const qmail = text("<ann@far.example>:", "Sorry, no mailbox here by that name. (#5.1.1)");
  const exim = (reply: string) => text("  ann@far.example", `    host mx.far.example [10.5.1.1]: ${reply}`);
  const givenUp = (...words: string[]) =>
    text("This is a permanent error; I've given up. Sorry it didn't work out.", "", "<ann@far.example>:", ...words);
  const withCopy = [
    "MIME-Version: 1.0",
    "Content-Type: multipart/mixed; boundary=BB",
    "",
    "--BB",
    "Content-Type: text/plain",
    "",
    "Remote host said: 550 5.1.1 unknown",
    "--BB",
    "Content-Type: message/rfc822",
    "",
    "Subject: Hello",
    "",
    "Hello",
    "--BB--",
  ].join("\r\n");
  const cases: [mail: (to: string) => string, status: string, suppressed?: boolean][] = [
    [
      (to) =>
        bounce(to).replace("message/delivery", "message/global-delivery").replace("message/rfc822", "message/global"),
      "BOUNCED",
    ],
    [(to) => `${system}\r\nTo: ${to}\r\n${qmail}`, "BOUNCED"],
    [(to) => `${system}\r\nTo: ${to}\r\n${text("Not yet: 451 4.4.1 busy. I keep trying.")}`, "SENT"],
    [(to) => `${person}\r\nTo: ${to}\r\n${qmail}`, "SENT"],
    [(to) => `${system}\r\nTo: ${to}\r\n${exim("550 5.1.1 No such user")}`, "BOUNCED"],
    [(to) => `${system}\r\nTo: ${to}\r\n${exim("550 No such user")}`, "BOUNCED", false],
    [(to) => `${system}\r\nTo: ${to}\r\n${exim("450 Busy, 550 others wait")}`, "SENT"],
    [(to) => `${system}\r\nTo: ${to}\r\n${text("<ann@far.example>:", "550: No such user")}`, "BOUNCED", false],
    [(to) => `${system}\r\nTo: ${to}\r\n${givenUp("550 No such user")}`, "BOUNCED", false],
    [(to) => `${system}\r\nTo: ${to}\r\n${givenUp("Unrouteable address")}`, "BOUNCED", false],
    [
      (to) => `${system}\r\nTo: ${to}\r\n${givenUp("I can't connect (#4.4.1)", "It has been too long.")}`,
      "BOUNCED",
      false,
    ],
    [(to) => `${person}\r\nTo: ${to}\r\n${givenUp("Unrouteable address")}`, "SENT"],
    [(to) => `${system}\r\nTo: ${to}\r\n${withCopy}`, "BOUNCED"],
    [(to) => `${system}\r\n${bounce(to, { action: "delayed", status: "", words: "550 5.1.1 not yet" })}`, "SENT"],
  ];
  for (const [mail, status, suppressed = status === "BOUNCED"] of cases) {
    const id = await acme.send(["ann@far.example"]);
    await acme.until(id, "SENT");
    await post(service, "inbound", mail(server.mails.at(-1)?.from as string)).expect(200);
    const { message, timeline } = await acme.read(id);
    t.equal(message.status, status);
    if (!suppressed && status === "BOUNCED") {
      const reason = timeline.at(-1)?.reason;
      t.match(reason, /^(550:? No such user|Unrouteable address|I can't connect \(#4\.4\.1\))$/);
      t.equal(timeline.at(-1)?.smtpCode, reason?.startsWith("550") ? 550 : undefined);
    }
    const { suppressions } = (await acme.owner.get(`${acme.root}/suppressions`)).body;
    t.equal(suppressions.length, suppressed ? 1 : 0);
    await acme.owner.delete(`${acme.root}/suppressions/ann@far.example`).expect(204);
  }
});

t.test("a mail that can't be read is refused for good, and says why", async (t) => {
  const service = await startService(t, settings);
  const refused = async (mail: string) => (await post(service, "inbound", mail).expect(400)).body;
  const large = await refused(`From: a@far.example\r\nX-Long: ${"x".repeat(2_200_000)}\r\n\r\nBody`);
  t.match(large, { code: "invalid_request", detail: /header/ });
  const nested = Array.from({ length: 400 }, (_, at) => part(at)).join("");
  t.match(await refused(`From: a@far.example\r\n${nested}`), { code: "invalid_request", detail: /nesting/ });
});

/** The head of a multipart whose only part is another one. */
function part(at: number): string {
  const opening = at === 0 ? "" : `--b${at - 1}\r\n`;
  return `${opening}Content-Type: multipart/mixed; boundary="b${at}"\r\n\r\n`;
}

t.test("a complaint suppresses the address; its withdrawal changes nothing", async (t) => {
  const { server, service, acme } = await start(t);
  const id = await acme.send(["ann@far.example"]);
  await acme.until(id, "SENT");
  const header = server.mails[0]?.headers["message-id"] as string;
  const tell = async (mail: string) => (await post(service, "inbound", mail).expect(200)).body.applied;
  for (const kind of ["not-spam", "Not-Spam (by mistake)", "auth-failure"])
    t.equal(await tell(complaint(header, kind)), 0, kind);
  t.equal(await tell(complaint("<other@far.example>")), 0);
  t.equal(await tell(complaint(header)), 1);
  t.equal((await acme.read(id)).message.status, "COMPLAINED");
  t.match((await acme.owner.get(`${acme.root}/suppressions`)).body.suppressions, [{ source: "COMPLAINT" }]);
});

t.test("a recipient can report only its own mail: a Message-ID without our signature is ignored", async (t) => {
  const { server, service, acme } = await start(t);
  const id = await acme.send(["mallory@far.example", "bob@far.example"]);
  await acme.until(id, "SENT");
  const header = server.mails.find(({ to }) => to[0] === "mallory@far.example")?.headers["message-id"] as string;
  const [, mac = "", host = ""] = /^<msg_\w+\.0\.([\w-]{16})@(.*)>$/.exec(header) ?? [];
  const tell = async (messageId: string) =>
    (await post(service, "inbound", complaint(messageId)).expect(200)).body.applied;
  for (const forged of [
    `<${id}.1@${host}>`,
    `<${id}.0@${host}>`,
    `<${id}.1.${mac}@${host}>`,
    `<${id}.1.@${host}>`,
    `<${id}.0.${mac.slice(1)}@${host}>`,
    `<${id}.0.${"A".repeat(16)}@${host}>`,
  ])
    t.equal(await tell(forged), 0, forged);
  t.match((await acme.owner.get(`${acme.root}/suppressions`)).body.suppressions, []);
  t.equal(await tell(header), 1, "her own");
  t.match((await acme.read(id)).message.deliveries, [{ status: "COMPLAINED" }, { status: "SENT" }]);
});

t.test("one click ends the mail, and looking at the link doesn't", async (t) => {
  const { server, service, acme } = await start(t);
  const id = await acme.send(["ann@far.example"], { purpose: "PRODUCT_NOTIFICATION" });
  await acme.until(id, "SENT");
  const [, link = "", address = ""] =
    /^<(\S+)>, <mailto:(\S+)\?subject=unsubscribe>$/.exec(server.mails[0]?.headers["list-unsubscribe"] as string) ?? [];
  const { pathname } = new URL(link);
  const page = await service.visitor.get(pathname).expect(200);
  t.match(page.text, /ann@far\.example/);
  t.match(page.text, /<form method="post">/);
  t.match(page.headers, {
    "content-type": /text\/html/,
    "content-security-policy": /default-src 'none'/,
    "cache-control": "no-store",
    vary: "Accept-Encoding, Origin, Accept-Language",
  });
  await acme.ask({ to: ["ann@far.example"] }).expect(202);
  const click = () =>
    service.visitor.post(pathname).type("form").send("List-Unsubscribe=One-Click").redirects(0).expect(200);
  const [clicked] = await Promise.all([click(), click(), click()]);
  t.match(clicked.text, /You are unsubscribed\./);
  t.match(clicked.text, /will get no more mail/);
  t.match((await acme.ask({ to: ["ann@far.example"] })).body, { code: "email_recipient_suppressed" });
  await click();
  const multipart = service.visitor.post(pathname).field("List-Unsubscribe", "One-Click");
  await multipart.expect(200);
  const { timeline } = await acme.read(id);
  t.same(timeline.filter(({ type }) => type === "UNSUBSCRIBED").length, 1, "once is enough");
  t.match(timeline.at(-1), { type: "UNSUBSCRIBED", reason: "link" });
  t.match((await acme.owner.get(`${acme.root}/suppressions`)).body.suppressions, [
    { source: "UNSUBSCRIBE", messageId: id },
  ]);
  for (const wrong of [pathname.slice(0, -2), pathname.replace(/\.0\./, ".1."), "/v2/public/email/unsubscribe/x"]) {
    t.match(await service.visitor.get(wrong), { status: 404, type: "text/html" });
    await service.visitor.post(wrong).type("form").send("List-Unsubscribe=One-Click").expect(404);
  }
  await acme.owner.delete(`${acme.root}/suppressions/ann@far.example`).expect(204);
  t.equal(
    (
      await post(service, "inbound", `From: ann@far.example\r\nTo: ${address}\r\nSubject: unsubscribe\r\n\r\n`).expect(
        200,
      )
    ).body.applied,
    1,
    "by mail too",
  );
  t.match((await acme.ask({ to: ["ann@far.example"] })).body, { code: "email_recipient_suppressed" });
});

t.test("a notice may come before the worker has recorded the sending, and stops the retries", async (t) => {
  const service = await startMailing(t, "smtp://127.0.0.1:9", { env: settings.env });
  const acme = await makeSending(service);
  const id = await acme.send(["ann@far.example"]);
  const tell = async (body: object) => (await post(service, "feedback", JSON.stringify(body)).expect(200)).body.applied;
  t.equal(
    await tell({ type: "DELIVERED", messageId: id, recipient: "ann@far.example" }),
    0,
    "but not before it was tried",
  );
  const { redis } = service.runtime;
  await redis.hset(keys.message("acme", id), "statuses", "DEFERRED", "status", "DEFERRED");
  t.equal(await tell({ type: "DELIVERED", messageId: id, recipient: "ann@far.example" }), 1);
  t.equal(await redis.zcard(keys.emailQueue("acme", 1)), 0);
  t.equal((await acme.read(id)).message.status, "DELIVERED");
});

t.test("addresses and links of deliveries survive a change of the secret, and fit into a local part", async (t) => {
  const env = { SECRET_KEY: Buffer.alloc(32, 1).toString("base64"), SECRET_KEY_PREVIOUS: undefined };
  const rotated = { SECRET_KEY: Buffer.alloc(32, 2).toString("base64"), SECRET_KEY_PREVIOUS: env.SECRET_KEY };
  const at = { kind: "b", messageId: "msg_0123456789ABCDEFGHIJab", n: 49 } as const;
  const address = returnAddress(env, at, "acme.example");
  t.ok(address.split("@")[0]!.length <= 64);
  t.same(deliveryOfAddress(env, address), at);
  t.same(deliveryOfAddress(rotated, address), at);
  t.same(deliveryOfAddress({ SECRET_KEY: rotated.SECRET_KEY, SECRET_KEY_PREVIOUS: undefined }, address), undefined);
  const link = unsubscribeUrl({ ...env, BASE_URL: "http://localhost" }, at);
  t.match(link, /\/msg_0123456789ABCDEFGHIJab\.49\.[\w-]{43}$/);
});

t.test("the page of a link works without a script and for a screen reader", async (t) => {
  const { server, service, acme } = await start(t);
  await acme.until(await acme.send(["ann@far.example"], { purpose: "PRODUCT_NOTIFICATION" }), "SENT");
  const link = new URL(/<(https:\S+)>/.exec(server.mails[0]?.headers["list-unsubscribe"] as string)?.[1] as string);
  const { text } = await eventually(() => service.visitor.get(link.pathname));
  t.match(text, /<html lang="en" dir="ltr">/);
  t.match(text, /<h1>Unsubscribe<\/h1>\n<p>Unsubscribe .*ann@far\.example.* from .*Acme<\/strong>\?<\/p>/);
  t.notMatch(text, /<script/);
});

t.test("an unsubscribe page shows its state, undoes it, and uses the visitor's language", async (t) => {
  const { server, service, acme } = await start(t);
  const id = await acme.send(["ann@far.example"], { purpose: "PRODUCT_NOTIFICATION" });
  await acme.until(id, "SENT");
  const [, link = ""] = /<(https:\S+)>/.exec(server.mails[0]?.headers["list-unsubscribe"] as string) ?? [];
  const { pathname } = new URL(link);
  const open = async (language = "en") =>
    (await service.visitor.get(pathname).set("Accept-Language", language).expect(200)).text;
  const send = async (form: string) => (await service.visitor.post(pathname).type("form").send(form).expect(200)).text;
  await send("List-Unsubscribe=One-Click");
  t.match(await open(), /You are unsubscribed\..*name="undo"/s, "opened again");
  t.match(await open("de-AT,en;q=0.5"), /<html lang="de" dir="ltr">.*Sie sind abgemeldet\./s);
  t.match(await open("sv, fr;q=0.8, en;q=0.2"), /<html lang="fr" .*Vous êtes désabonné\./s);
  t.match(await open("es-MX"), /<html lang="es" .*Se ha cancelado su suscripción\./s);
  t.match(await open("sv"), /<html lang="en"/, "a language without words");
  t.match(await send("undo=1"), /You are subscribed again\./);
  t.notMatch(await send("undo=1"), /You are unsubscribed/, "again");
  await acme.ask({ to: ["ann@far.example"] }).expect(202);
  t.match(await open(), /<h1>Unsubscribe<\/h1>/);
  const { timeline } = await acme.read(id);
  t.match(timeline.slice(-2), [{ type: "UNSUBSCRIBED" }, { type: "RESUBSCRIBED", reason: "link" }]);
  await acme.owner.post(`${acme.root}/suppressions`).send({ email: "ann@far.example" }).expect(201);
  t.match(await open(), /You are unsubscribed\./);
  t.notMatch(await open(), /name="undo"/, "what the owner has decided is not undone by the recipient");
  await send("undo=1");
  t.match((await acme.ask({ to: ["ann@far.example"] })).body, { code: "email_recipient_suppressed" });
  const gone = await service.visitor.get("/v2/public/email/unsubscribe/x").set("Accept-Language", "de").expect(404);
  t.match(gone.text, /href="\/">Zur Startseite</, "a dead link leads on");
  t.match(
    gone.text,
    /<html lang="de".*unvollständig oder funktioniert nicht mehr\. Verwenden Sie den aus der neuesten/s,
  );
  for (const sign of ["%5D", "%3E.", ")"]) {
    const extended = await service.visitor.get(pathname + sign);
    t.match(extended.text, /You are unsubscribed/, "with punctuation that a mail program adds");
  }
});

t.test("undoing an unsubscription lifts no suppression that came after it", async (t) => {
  const { server, service, acme } = await start(t);
  const unsubscribed = async (to: string) => {
    const id = await acme.send([to], { purpose: "PRODUCT_NOTIFICATION" });
    await acme.until(id, "SENT");
    const mail = server.mails.find((one) => one.to[0] === to);
    const [, link = ""] = /<(https:\S+)>/.exec(mail?.headers["list-unsubscribe"] as string) ?? [];
    const post = (form: string) => service.visitor.post(new URL(link).pathname).type("form").send(form).expect(200);
    await post("List-Unsubscribe=One-Click");
    return { id, undo: () => post("undo=1"), again: () => post("List-Unsubscribe=One-Click") };
  };
  const [ann, bob, cid] = [
    await unsubscribed("ann@far.example"),
    await unsubscribed("bob@far.example"),
    await unsubscribed("cid@far.example"),
  ];
  const add = acme.owner.post(`${acme.root}/suppressions`).send({ email: "ann@far.example", reason: "by phone" });
  t.match((await add.expect(201)).body.suppression, { source: "OWNER", reason: "by phone", messageId: null });
  const data = { messageId: bob.id, recipient: "bob@far.example", enhancedStatus: "5.1.1" };
  t.match((await post(service, "feedback", JSON.stringify({ type: "BOUNCED", ...data }))).body, { applied: 1 });
  for (const { undo, again } of [ann, bob, cid]) {
    await again();
    t.notMatch((await undo()).text, /name="undo"/);
  }
  const { suppressions } = (await acme.owner.get(`${acme.root}/suppressions`)).body;
  t.same(
    suppressions.map(({ email, source }: { email: string; source: string }) => [email, source]),
    [
      ["bob@far.example", "HARD_BOUNCE"],
      ["ann@far.example", "OWNER"],
    ],
  );
  for (const name of ["ann", "bob"])
    t.match((await acme.ask({ to: [`${name}@far.example`] })).body, { code: "email_recipient_suppressed" });
  await acme.ask({ to: ["cid@far.example"] }).expect(202);
});

t.test("the suppression of an erased person holds, without the address", async (t) => {
  const env = { PUBLIC_PAGE_AGENT_ALLOWED_HANDLES: "acme" };
  const service = await startMailing(t, "smtp://127.0.0.1:9", { env, workers: ["campaigns"] });
  const acme = await makeSending(service);
  const captured = await service.visitor
    .post("/v2/public/handles/acme/leads")
    .send({ email: "ann@far.example" })
    .expect(202);
  const add = acme.owner.post(`${acme.root}/suppressions`).send({ email: "Ann@far.example", reason: "Ann Lee phoned" });
  await add.expect(201);
  await acme.owner.delete(`/v2/handles/acme/leads/${captured.body.lead.leadId}`).expect(204);
  const stored = () => service.runtime.redis.hvals(keys.suppressed("acme"));
  await eventually(async () => !/ann/i.test(String(await stored())));
  t.match((await acme.owner.get(`${acme.root}/suppressions`)).body.suppressions, [
    { email: "erased@erased.invalid", source: "OWNER", reason: "OWNER" },
  ]);
  t.match((await acme.ask({ to: ["ann@far.example"] })).body, { code: "email_recipient_suppressed" });
  await acme.owner.delete(`${acme.root}/suppressions/ann@far.example`).expect(204);
  await acme.ask({ to: ["ann@far.example"] }).expect(202);
});

t.test("reports and clicks about an erased person change nothing, and bring no address back", async (t) => {
  const server = await startMailServer(t);
  const env = { ...settings.env, PUBLIC_PAGE_AGENT_ALLOWED_HANDLES: "acme" };
  const service = await startMailing(t, server.url, { env, workers: ["email", "campaigns"] });
  const acme = await makeSending(service);
  const captured = await service.visitor.post("/v2/public/handles/acme/leads").send({ email: "ann@far.example" });
  const id = await acme.send(["ann@far.example", "bob@far.example"], { purpose: "PRODUCT_NOTIFICATION" });
  await acme.until(id, "SENT");
  await acme.owner.delete(`/v2/handles/acme/leads/${captured.body.lead.leadId}`).expect(204);
  await eventually(async () => !/ann@far/.test(JSON.stringify(await acme.read(id))));
  const mail = server.mails.find(({ to }) => to[0] === "ann@far.example");
  const [, link = ""] = /<(https:\S+)>/.exec(mail?.headers["list-unsubscribe"] as string) ?? [];
  t.match((await post(service, "inbound", bounce(mail?.from ?? ""))).body, { applied: 0 });
  t.match((await post(service, "inbound", complaint(mail?.headers["message-id"] as string))).body, { applied: 0 });
  await service.visitor.get(new URL(link).pathname).expect(404);
  await service.visitor.post(new URL(link).pathname).type("form").send("List-Unsubscribe=One-Click").expect(404);
  t.notMatch(JSON.stringify(await acme.read(id)), /ann@far/);
  t.same((await acme.owner.get(`${acme.root}/suppressions`)).body.suppressions, []);
  const report = { type: "COMPLAINED", messageId: id, recipient: "bob@far.example" };
  t.match(
    (await post(service, "feedback", JSON.stringify(report))).body,
    { applied: 1 },
    "other recipients have theirs",
  );
});

t.test("however often a recipient changes their mind, a message's timeline stays short", async (t) => {
  const { server, service, acme } = await start(t);
  const id = await acme.send(["ann@far.example"], { purpose: "PRODUCT_NOTIFICATION" });
  await acme.until(id, "SENT");
  const [, link = ""] = /<(https:\S+)>/.exec(server.mails[0]?.headers["list-unsubscribe"] as string) ?? [];
  const { pathname } = new URL(link);
  const send = async (form: string) => (await service.visitor.post(pathname).type("form").send(form)).status;
  const statuses: number[] = [];
  for (let round = 0; round < 12; round++)
    statuses.push(await send("List-Unsubscribe=One-Click"), await send("undo=1"));
  t.same(statuses.slice(0, 10), Array(10).fill(200));
  t.same(
    statuses.slice(10),
    Array.from({ length: 14 }, (_, at) => (at % 2 === 0 ? 200 : 429)),
  );
  t.equal((await acme.read(id)).timeline.length, 3 + 11);
  t.match((await acme.ask({ to: ["ann@far.example"] })).body, { code: "email_recipient_suppressed" });
});

t.test("a notification ends with an unsubscribe line, unless its template has one", async (t) => {
  const { server, acme } = await start(t);
  const templates = {
    tmpl_none: { subject: "News", html: "<html><body><p>Hello, this is the news of the week</p></body></html>" },
    tmpl_text: { subject: "Neuigkeiten", text: "Das sind die Neuigkeiten der Woche, und es gibt mehr.\n" },
    tmpl_own: {
      subject: "News",
      html: '<p>Bye: <a href="{{unsubscribeUrl}}">leave</a></p>',
      text: "Leave: {{unsubscribeUrl}}",
    },
    tmpl_half: { subject: "News", html: '<p><a href="{{unsubscribeUrl}}">leave</a></p>', text: "This is the news" },
  };
  for (const [templateId, content] of Object.entries(templates))
    await acme.owner
      .post(`${acme.root}/templates`)
      .send({ templateId, name: "n", ...content })
      .expect(201);
  const sent = async (templateId: string) => {
    const id = await acme.send(["ann@far.example"], { templateId, purpose: "PRODUCT_NOTIFICATION", variables: {} });
    await acme.until(id, "SENT");
    const mail = server.mails.at(-1)!;
    const [, link = ""] = /<(https:\S+)>/.exec(mail.headers["list-unsubscribe"] as string) ?? [];
    t.ok(link);
    const { html = "", text = "" } = await PostalMime.parse(mail.raw);
    return { link, html: html.trim(), text: text.trim() };
  };
  const none = await sent("tmpl_none");
  t.ok(none.html.endsWith(`<a href="${none.link}">Unsubscribe</a></p>\n</body></html>`), none.html);
  t.match(none.text.split("\n").at(-1), /^Unsubscribe/);
  t.match(none.text, none.link);
  const text = await sent("tmpl_text");
  t.same(text.text.split(/\r?\n/).at(-1), `Abmelden: ${text.link}`, "in the language of the mail");
  const own = await sent("tmpl_own");
  t.equal(own.html, `<p>Bye: <a href="${own.link}">leave</a></p>`);
  t.equal(own.text, `Leave: ${own.link}`);
  const half = await sent("tmpl_half");
  t.notMatch(half.html, /Unsubscribe/);
  t.match(half.text, `Unsubscribe: ${half.link}`);
  const other = await acme.ask({ templateId: "tmpl_own", variables: {} });
  t.match(other.body, { code: "template_variables_missing" }, "other mails have no such link");
  const preview = await acme.owner.post(`${acme.root}/templates/tmpl_own/preview`).send({ variables: {} }).expect(200);
  t.match(preview.body.text, /^Leave: https:\/\/service\.test\/v2\/public\/email\/unsubscribe\//);
});
