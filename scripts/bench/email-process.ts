/**
 * The processes of the email bench: `email-process.ts sink` receives and counts mail; `email-process.ts pool` sends mail by nodemailer's
 * own pool; `email-process.ts koa` is a bare handler that writes what the accept route writes.
 */
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import process from "node:process";
import { Redis } from "ioredis";
import Koa from "koa";
import { koaBody } from "koa-body";
import nodemailer from "nodemailer";

/** The mails since the sink was last reset: real ms, recipient and Message-ID of each. */
export type DeliveryLog = [at: number, to: string, messageId: string][];

const [role] = process.argv.slice(2);
if (role === "sink") await sink();
if (role === "pool") await pool();
if (role === "koa") await koa();

/** The smallest SMTP server that clients accept, so that the senders get the machine. */
async function sink(): Promise<void> {
  let taken: DeliveryLog = [];
  const server = createServer((socket) =>
    converse(socket, (to, messageId) => taken.push([performance.timeOrigin + performance.now(), to, messageId])),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  process.on("message", (wish) => {
    if (wish === "begin") taken = [];
    process.send?.(wish === "count" ? taken.length : taken);
  });
  process.send?.((server.address() as AddressInfo).port);
}

function converse(socket: Socket, take: (to: string, messageId: string) => void): void {
  let pending = "";
  let to = "";
  let inContent = false;
  socket.on("error", () => socket.destroy());
  socket.write("220 sink\r\n");
  socket.on("data", (bytes) => {
    pending += bytes.toString("latin1");
    let said = "";
    for (;;) {
      const end = inContent ? pending.indexOf("\r\n.\r\n") : pending.indexOf("\r\n");
      if (end === -1) break;
      const piece = pending.slice(0, end);
      pending = pending.slice(end + (inContent ? 5 : 2));
      if (inContent) take(to, /^message-id: (.*)$/im.exec(piece)?.[1] ?? "");
      if (/^RCPT/i.test(piece) && !inContent) to = /<(.*)>/.exec(piece)?.[1] ?? "";
      const begins = !inContent && /^DATA/i.test(piece);
      said += begins
        ? "354 go on\r\n"
        : /^EHLO/i.test(piece) && !inContent
          ? "250-sink\r\n250 PIPELINING\r\n"
          : "250 ok\r\n";
      inContent = begins;
    }
    if (said) socket.write(said);
  });
}

/** Sends the requested number of identical mails through nodemailer's pool, signed with a key object. */
async function pool(): Promise<void> {
  const { BENCH_SMTP: port, BENCH_HTML: html = "", BENCH_CONNECTIONS: connections } = process.env;
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const dkim = { domainName: "acme.example", keySelector: "s1", privateKey: privateKey as never };
  const transport = nodemailer.createTransport({
    host: "127.0.0.1",
    port: Number(port),
    pool: true,
    maxConnections: Number(connections),
    maxMessages: 100,
    dkim,
  });
  const text = html.replace(/<[^>]+>/g, "");
  process.on("message", async (count: number) => {
    const sent = Array.from({ length: count }, (_, at) => {
      const to = `a${at}@far.example`;
      return transport.sendMail({
        from: "Acme <noreply@acme.example>",
        to,
        envelope: { from: "b@mail.acme.example", to },
        subject: "Hello Ann",
        html,
        text,
      });
    });
    await Promise.all(sent);
    process.send?.("sent");
  });
  process.send?.("ready");
}

/** A bare Koa handler that reads a body and writes the same hashes, lists and sets for a message to one recipient. */
async function koa(): Promise<void> {
  const redis = new Redis(process.env.BENCH_REDIS ?? "", { enableAutoPipelining: true });
  const app = new Koa();
  app.use(koaBody());
  let made = 0;
  app.use(async (ctx) => {
    const { to, purpose } = ctx.request.body as { to: string[]; purpose: string };
    const id = `msg_${made++}`;
    const at = Date.now();
    const json = JSON.stringify({ messageId: id, handle: "bare", purpose, to, createdAt: new Date(at).toISOString() });
    const step = redis.multi();
    step.hset(`message:{bare}:${id}`, {
      json,
      content: JSON.stringify(ctx.request.body),
      purpose,
      rank: 1,
      quota: made,
      statuses: "QUEUED",
      status: "QUEUED",
      "about:0": json,
      "digest:0": "x",
    });
    step.rpush(`message-events:{bare}:${id}`, json);
    step.zadd(`email-events:{bare}:${purpose}`, at, `${id}:0`);
    step.zadd(`email-events:{bare}:to:${made}`, at, `${id}:0`);
    step.zadd("email-queue:{bare}:1", at, `${id}:0`);
    step.zadd("messages:{bare}", at, id);
    step.incr("email-quota:{bare}");
    step.expire("email-quota:{bare}", 172_800);
    step.expire(`message:{bare}:${id}`, 7_776_000);
    step.expire(`message-events:{bare}:${id}`, 7_776_000);
    step.set(`message-owner:{bare}:${id}`, "bare", "EX", 7_776_000);
    step.zadd("email-turns:{bare}", "LT", at * 1000, "bare");
    step.set("email-stamp:{bare}", at * 1000);
    step.set(`idempotent:{bare}:${id}`, json, "EX", 86_400);
    await step.exec();
    ctx.status = 202;
    ctx.body = { message: JSON.parse(json) };
  });
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  process.send?.((server.address() as AddressInfo).port);
}
