import { Buffer } from "node:buffer";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test as TapTest } from "tap";
import { readBounces } from "../core/email/bounces.ts";
import { openMailbox } from "../core/engines/mail/mailbox.ts";
import type { Mailbox } from "../core/platform/runtime.ts";
import { makeSending, type Sending, startMailing } from "../fixtures/email.ts";
import { type Dovecot, hasDovecot, startDovecot } from "../fixtures/providers/dovecot.ts";
import { bounce } from "../fixtures/reports.ts";
import { eventually, type Service, startService } from "../fixtures/service.ts";
import { type MailServer, startMailServer } from "../fixtures/smtp.ts";
import { every } from "../workers/job.ts";

const skip = hasDovecot() ? false : "dovecot-imapd is not installed, or this user may not run it";

interface Started {
  service: Service;
  acme: Sending;
  server: MailServer;
  mailbox: Dovecot;
}

/** A service that sends, and a real IMAP server with the mailbox of its bounces. */
async function start(t: TapTest): Promise<Started> {
  const [server, mailbox] = [await startMailServer(t), await startDovecot(t)];
  const service = await startMailing(t, server.url, { env: { BOUNCE_IMAP_URL: mailbox.url } });
  return { service, acme: await makeSending(service), server, mailbox };
}

/** Sends a mail and gives its message id and the address to which its bounces return. */
async function sent({ service, acme, server }: Started): Promise<{ messageId: string; returnPath: string }> {
  const workers = await service.startWorkers(["email"]);
  const messageId = await acme.send(["ann@far.example"]);
  await acme.until(messageId, "SENT");
  await workers.close();
  return { messageId, returnPath: server.mails.at(-1)?.from ?? "" };
}

/** Watches until the test's end, and lets its mailbox pass through the test's hands. */
function watch(t: TapTest, { service: { runtime }, mailbox }: Started, wrap: (mailbox: Mailbox) => Mailbox) {
  const stopping = new AbortController();
  const tried = { times: 0, warnings: [] as string[] };
  const openBounces = async (url: string): Promise<Mailbox> => {
    tried.times++;
    return wrap(await openMailbox(url));
  };
  const warn = (_fields: object, event: string) => void tried.warnings.push(event);
  const log = Object.assign(Object.create(runtime.log), { warn });
  const env = { ...runtime.env, BOUNCE_IMAP_URL: mailbox.url };
  const watch = every(50, readBounces, "email.mailbox.read_failed");
  const watching = watch({ ...runtime, env, openBounces, log }, stopping.signal);
  t.teardown(async () => {
    stopping.abort();
    await watching;
  });
  return tried;
}

const bouncesOf = async ({ acme }: Started, messageId: string): Promise<number> =>
  (await acme.read(messageId)).timeline.filter(({ type }) => type === "BOUNCED").length;

t.test(
  "a bounce in the mailbox finds its delivery, and is marked as seen; other mail blocks no bounce",
  { skip },
  async (t) => {
    const started = await start(t);
    const { service, acme, mailbox } = started;
    const { messageId, returnPath } = await sent(started);
    mailbox.deliver("Subject: hello\r\n\r\nNo report at all.\r\n");
    mailbox.deliver("\u0000\u0001 nor is this a mail");
    mailbox.deliver(bounce(returnPath));
    mailbox.deliver(bounce(returnPath.replace(/\d/g, "0")));
    await service.startWorkers(["email"]);
    const { timeline } = await acme.until(messageId, "BOUNCED");
    t.match(timeline.at(-1), { type: "BOUNCED", smtpCode: 550, recipient: "ann@far.example" });
    await eventually(() => mailbox.count().seen === 4);
    t.match((await acme.owner.get(`${acme.root}/suppressions`).expect(200)).body.suppressions, [
      { email: "ann@far.example" },
    ]);
  },
);

t.test("a mail is seen once its report is recorded, and reading it again changes nothing", { skip }, async (t) => {
  const started = await start(t);
  const { messageId, returnPath } = await sent(started);
  let fails = 2;
  watch(t, started, (mailbox) => ({
    ...mailbox,
    async markSeen(uid) {
      t.equal(await bouncesOf(started, messageId), 1, "it is recorded first");
      if (fails-- > 0) throw new Error("The process dies.");
      await mailbox.markSeen(uid);
    },
  }));
  started.mailbox.deliver(bounce(returnPath));
  await eventually(() => started.mailbox.count().seen === 1);
  t.equal(fails, -1);
  t.equal(await bouncesOf(started, messageId), 1);
});

t.test("of several workers one reads at a time", { skip }, async (t) => {
  const started = await start(t);
  const { messageId, returnPath } = await sent(started);
  const seen = { open: 0, most: 0, reads: 0 };
  for (let worker = 0; worker < 3; worker++)
    watch(t, started, (mailbox) => {
      seen.most = Math.max(seen.most, ++seen.open);
      return {
        ...mailbox,
        read(uid) {
          seen.reads++;
          return mailbox.read(uid);
        },
        close() {
          seen.open--;
          mailbox.close();
        },
      };
    });
  started.mailbox.deliver(bounce(returnPath));
  await eventually(() => started.mailbox.count().seen === 1);
  t.same([seen.most, seen.reads], [1, 1]);
  t.equal(await bouncesOf(started, messageId), 1);
});

t.test("a mailbox that can't be reached is waited for, and logged once", { skip }, async (t) => {
  const started = await start(t);
  const { messageId, returnPath } = await sent(started);
  await started.mailbox.stop();
  started.mailbox.deliver(bounce(returnPath));
  const tried = watch(t, started, (mailbox) => mailbox);
  await eventually(() => tried.times >= 3);
  t.same(tried.warnings, ["email.mailbox.read_failed"]);
  await started.mailbox.start();
  await started.acme.until(messageId, "BOUNCED");
  await started.mailbox.stop();
  // The next outage is logged again.
  await eventually(() => tried.warnings.length > 1);
  const wrong = new URL(started.mailbox.url);
  wrong.password = "wrong";
  await t.rejects(openMailbox(wrong.href), "a login that is refused is trouble too");
});

t.test("of several workers each logs an outage once, however often another one is at the mailbox", async (t) => {
  const service = await startService(t);
  const stopping = new AbortController();
  const seen = { polls: 0, busy: 0, warnings: 0 };
  const openBounces = async (): Promise<Mailbox> => {
    await sleep(30 + 40 * Math.random());
    seen.polls++;
    throw new Error("The mailbox is silent.");
  };
  const log = Object.assign(Object.create(service.runtime.log), { warn: () => void seen.warnings++ });
  const env = { ...service.runtime.env, BOUNCE_IMAP_URL: "imap://silent.example" };
  const runtime = { ...service.runtime, env, openBounces, log };
  const poll = async (...args: Parameters<typeof readBounces>) => {
    const done = await readBounces(...args);
    if (done === "busy") seen.busy++;
    return done;
  };
  const polls = every(20, poll, "email.mailbox.read_failed");
  const polling = [1, 2, 3].map(() => polls(runtime, stopping.signal));
  await eventually(() => seen.polls > 15 && seen.busy > 15);
  stopping.abort();
  await Promise.all(polling);
  t.ok(seen.warnings <= 3, `${seen.warnings} lines`);
});

/** An IMAP server on loopback with one unseen mail, which refuses one command; returns the address of its mailbox. */
async function startRefusing(t: TapTest, refused: string): Promise<string> {
  const answers: Record<string, string> = {
    CAPABILITY: "* CAPABILITY IMAP4rev1\r\n",
    SELECT: "* 1 EXISTS\r\n* OK [UIDVALIDITY 1] ok\r\n",
    "UID SEARCH": "* SEARCH 1\r\n",
  };
  const server = createServer((socket) => {
    socket.on("error", () => undefined).write("* OK ready\r\n");
    createInterface(socket).on("line", (line) => {
      const [, tag, command = ""] = /^(\S+) ((?:UID )?\S+)/.exec(line) ?? [];
      const isRefused = command.toUpperCase() === refused;
      socket.write(isRefused ? `${tag} NO refused\r\n` : `${answers[command.toUpperCase()] ?? ""}${tag} OK done\r\n`);
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => server.close());
  return `imap://bounces:secret@127.0.0.1:${(server.address() as AddressInfo).port}/INBOX`;
}

t.test("a mailbox that refuses to search or to mark a mail fails, so that the log says so", async (t) => {
  const unsearchable = await openMailbox(await startRefusing(t, "UID SEARCH"));
  t.teardown(() => unsearchable.close());
  await t.rejects(unsearchable.unseen(), { message: "The mail server refuses to search the mailbox." });
  const unmarkable = await openMailbox(await startRefusing(t, "UID STORE"));
  t.teardown(() => unmarkable.close());
  t.same(await unmarkable.unseen(), [1]);
  await t.rejects(unmarkable.markSeen(1), { message: "The mail server refuses to mark a mail as seen." });
});

t.test("a mail that can't be marked as seen keeps no other from being read", async (t) => {
  const service = await startService(t);
  const seen: number[] = [];
  const mailbox: Mailbox = {
    unseen: async () => [1, 2],
    read: async () => Buffer.from("Subject: hello\r\n\r\nNo report at all.\r\n"),
    async markSeen(uid) {
      if (uid === 1) throw new Error("The mailbox is read-only.");
      seen.push(uid);
    },
    close() {},
  };
  const env = { ...service.runtime.env, BOUNCE_IMAP_URL: "imap://mailbox.example" };
  const reader = { ...service.runtime, env, openBounces: async () => mailbox };
  await t.rejects(readBounces(reader, new AbortController().signal), { message: "The mailbox is read-only." });
  t.same(seen, [2]);
});
