import t from "tap";
import { SmtpPool } from "../core/engines/mail/mail.ts";
import { openMailbox } from "../core/engines/mail/mailbox.ts";
import { makeSending, startMailing } from "../fixtures/email.ts";
import { eventually, type ServiceOptions } from "../fixtures/service.ts";
import { startMailServer, startRudeServer } from "../fixtures/smtp.ts";
import { stopClock } from "../fixtures/time.ts";

/** Domain time runs so fast that waits of minutes take milliseconds. */
const hurried = (rate: number): ServiceOptions => ({
  env: { TEST_CLOCK: "2026-01-05T08:00:00Z", TEST_CLOCK_RATE: String(rate) },
  workers: ["email"],
});
const types = (timeline: { type: string }[]) => timeline.map(({ type }) => type);

for (const does of ["hang", "close", "421"] as const) {
  for (const at of ["mail", "recipient", "data", "dot"] as const) {
    t.test(
      `a server that ${does === "421" ? "says 421" : `${does}s`} at ${at} costs an attempt and no mail`,
      async (t) => {
        const rude = await startRudeServer(t, { at, does });
        // Only a server that hangs is waited for, long enough for one that is slow.
        const options = does === "hang" ? "?socketTimeout=2000" : "";
        const service = await startMailing(t, `${rude.url}${options}`, hurried(100));
        const clock = stopClock(service.runtime);
        const { send, read, until } = await makeSending(service);
        const id = await send(["ann@far.example"]);
        const deferred = await eventually(async () =>
          (await read(id)).timeline.find(({ type }) => type === "DEFERRED"),
        );
        t.match(deferred, {
          attempt: 1,
          reason: does === "421" ? /^deferred_by_server: 421/ : at === "dot" ? /^outcome_unknown/ : /^connection_lost/,
        });
        rude.rudeness = undefined;
        clock.run();
        await until(id, "SENT");
        const ids = rude.contents.map((content) => /^Message-ID: (.*)$/m.exec(content)?.[1]);
        t.equal(new Set(ids).size, 1, "each copy with the same Message-ID");
        t.match(ids[0], new RegExp(`^<${id}\\.0\\.[\\w-]{16}@mail\\.acme\\.example>$`));
        t.equal(ids.length, at === "dot" ? 2 : 1);
      },
    );
  }
}

for (const at of ["hello", "recipient", "dot"] as const)
  t.test(`a server that trickles a reply at ${at} is left in the end`, async (t) => {
    const rude = await startRudeServer(t, { at, does: "trickle" });
    const service = await startMailing(t, `${rude.url}?sendTimeout=1000`, hurried(100));
    const { send, read, until } = await makeSending(service);
    const id = await send(["ann@far.example"]);
    const deferred = await eventually(async () => (await read(id)).timeline.find(({ type }) => type === "DEFERRED"));
    const word = { hello: "server_unavailable", recipient: "connection_lost", dot: "outcome_unknown" }[at];
    t.equal(deferred.reason, `${word}: The server took too long.`);
    if (at === "hello") await eventually(() => rude.connections >= 3);
    rude.rudeness = undefined;
    await until(id, "SENT");
  });

t.test(
  "the content and its reply have a time of their own: ten minutes, or the mail would be sent twice",
  async (t) => {
    const server = await startMailServer(t, { onRcptTo: (_address, _session, done) => void setTimeout(done, 3000) });
    server.delay = 3000;
    const service = await startMailing(t, `${server.url}?sendTimeout=5000`, { workers: ["email"] });
    const { send, read, until } = await makeSending(service);
    const id = await send(["ann@far.example"]);
    await until(id, "SENT");
    t.same(types((await read(id)).timeline), ["QUEUED", "SENDING", "SENT"]);
    const pool = new SmtpPool("smtp://127.0.0.1:9");
    t.ok(pool.settings.socketTimeout >= 600_000, "RFC 5321, section 4.5.3.2.6");
    t.ok(pool.settings.sendTimeout >= 600_000);
    pool.close();
  },
);

t.test("servers of mail that speak no TLS are named so, without lines of a library's source", async (t) => {
  const { port } = await startMailServer(t);
  const pool = new SmtpPool(`smtps://127.0.0.1:${port}`);
  const named = { message: /^(?!.*\.c:).*wrong version number\W*$/s };
  await t.rejects(pool.probe(), named);
  await t.rejects(openMailbox(`imaps://user:password@127.0.0.1:${port}`), named);
  pool.close();
});

for (const [name, does] of [
  ["hangs", "hang"],
  ["closes", "close"],
  ["says 421", "421"],
] as const) {
  t.test(`a server that ${name} at its greeting costs no attempt`, async (t) => {
    const rude = await startRudeServer(t, { at: "greeting", does });
    const service = await startMailing(t, `${rude.url}?greetingTimeout=300`, { workers: ["email"] });
    const { send, until } = await makeSending(service);
    const id = await send(["ann@far.example"]);
    await eventually(() => rude.connections >= 2);
    rude.rudeness = undefined;
    const { timeline } = await until(id, "SENT");
    t.equal(timeline.at(-1)?.attempt, 1);
  });
}

t.test(
  "while logins fail nothing is sent, the metrics tell how long, and everything is sent once they work again",
  async (t) => {
    let open = false;
    const onAuth = (
      _auth: unknown,
      _session: unknown,
      done: (error: Error | null, answer?: { user: string }) => void,
    ) => (open ? done(null, { user: "u" }) : done(Object.assign(new Error("Bad login"), { responseCode: 535 })));
    const server = await startMailServer(t, { authOptional: false, onAuth: onAuth as never, allowInsecureAuth: true });
    const service = await startMailing(t, server.url.replace("//", "//user:secret@"), { workers: ["email"] });
    const warned: object[] = [];
    service.runtime.log.warn = (fields, event) => void warned.push({ ...fields, event });
    const { send, read, until } = await makeSending(service);
    const ids = await Promise.all(Array.from({ length: 20 }, (_, at) => send([`a${at}@far.example`])));
    await eventually(() => server.connections >= 2);
    const seen = await Promise.all(ids.map((id) => read(id)));
    const started = seen.filter(({ timeline }) => timeline.some(({ type }) => type === "SENDING")).length;
    t.ok(started <= 10, `${started} of 20 were under way when it was noticed, the others wait untouched`);
    const waited = async (): Promise<number> => {
      const { text } = await service.visitor.get("/metrics").expect(200);
      return Number(/^mail_wait_seconds (.*)$/m.exec(text)?.[1]);
    };
    await eventually(async () => (await waited()) > 1);
    t.match(warned[0], { event: "email.server.unavailable", error: /timeline/ }, "the log says so before a probe ends");
    open = true;
    for (const id of ids) {
      const { timeline } = await until(id, "SENT");
      t.equal(timeline.at(-1)?.attempt, 1, "no attempt was lost");
      t.ok(
        types(timeline).filter((type) => type === "SENDING").length <= 2,
        "one message was not probed with over and over",
      );
    }
    t.ok((await waited()) < 1);
  },
);

t.test("a wrong certificate is the server's trouble", async (t) => {
  const server = await startMailServer(t, { secure: true });
  const service = await startMailing(t, server.url.replace("smtp:", "smtps:"), { workers: ["email"] });
  const { send, read } = await makeSending(service);
  const id = await send(["ann@far.example"]);
  const deferred = await eventually(async () => (await read(id)).timeline.find(({ type }) => type === "DEFERRED"));
  t.match(deferred, { reason: /^server_unavailable/ });
  t.same(server.named, []);
});
