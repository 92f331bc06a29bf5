import { Buffer } from "node:buffer";
import t, { type Test as TapTest } from "tap";
import { readBounces } from "../core/email/bounces.ts";
import { makeSending } from "../fixtures/email.ts";
import { live, openTown, type Town } from "../fixtures/mixed-life.ts";
import { startRedis } from "../fixtures/redis.ts";
import { tell } from "../fixtures/redis-pair.ts";
import { bounce } from "../fixtures/reports.ts";
import { eventually } from "../fixtures/service.ts";

/** A town whose user of Redis has these rights at first; `permit` changes them. */
async function openLimited(
  t: TapTest,
  rules: string[],
): Promise<{ town: Town; permit: (...rules: string[]) => Promise<unknown> }> {
  const server = await startRedis({ single: true });
  t.teardown(() => server.stop());
  const permit = (...some: string[]) => tell(server, (redis) => redis.call("ACL", "SETUSER", "app", ...some));
  await permit("on", ">secret", "~*", "&*", ...rules);
  const url = `redis://app:secret@127.0.0.1:${server.port}`;
  return { town: await openTown(t, { ...server, url, env: { REDIS_URL: url } }), permit };
}

const rights = {
  CONFIG: ["+@all", "-@admin", "-@dangerous", "+info"],
  "CONFIG and INFO": ["+@all", "-@admin", "-@dangerous"],
};

for (const [forbidden, rules] of Object.entries(rights))
  t.test(`a Redis user without ${forbidden} serves every noun and queue`, async (t) => {
    const { town } = await openLimited(t, rules);
    t.match(await live(town, "acme"), { answer: /within 30 days/ });
    await town.service.visitor.get("/metrics").expect(200);
    await town.service.visitor.get("/readyz").expect(200);
  });

t.test("while a right is missing requests are answered 503, and a bounce waits in its mailbox", async (t) => {
  const { town, permit } = await openLimited(t, ["+@all"]);
  const { service, mails } = town;
  const acme = await makeSending(service);
  const messageId = await acme.send(["ann@far.example"]);
  await acme.until(messageId, "SENT");
  const report = Buffer.from(bounce(mails.at(-1)?.from ?? ""));
  const seen: number[] = [];
  const mailbox = {
    unseen: async () => [1],
    read: async () => report,
    markSeen: async (uid: number) => void seen.push(uid),
    close() {},
  };
  const env = { ...service.runtime.env, BOUNCE_IMAP_URL: "imap://mailbox.example" };
  const reader = { ...service.runtime, env, openBounces: async () => mailbox };
  const read = () => readBounces(reader, new AbortController().signal);
  const warnings: string[] = [];
  t.intercept(service.runtime.log, "warn", { value: ({ error = "" }) => void warnings.push(error) });
  await permit("-hmget");
  const lead = () => service.visitor.post("/v2/public/handles/acme/leads").send({ email: "a@far.example" });
  const { status, headers } = await lead();
  t.same([status, Number(headers["retry-after"]) > 0], [503, true]);
  t.match(warnings.join(), /NOPERM .*'hmget'/, "the log names the command");
  await t.rejects(read(), /NOPERM/);
  t.same(seen, []);
  await permit("+@all");
  await lead().expect(202);
  await read();
  t.same(seen, [1]);
  await eventually(async () => (await acme.read(messageId)).timeline.some(({ type }) => type === "BOUNCED"));
});
