import t from "tap";
import { fillQueue, makeSending, startMailing } from "../fixtures/email.ts";
import { spawnProgram } from "../fixtures/processes.ts";
import { eventually } from "../fixtures/service.ts";
import { startMailServer } from "../fixtures/smtp.ts";

t.test("kill -9 of the worker loses no message, and every copy has the same Message-ID", async (t) => {
  const server = await startMailServer(t);
  server.delay = 15;
  const service = await startMailing(t, server.url);
  const acme = await makeSending(service);
  const env = {
    ...service.redis.env,
    SMTP_URL: `${server.url}?maxConnections=5`,
    WORKER_QUEUES: "email",
    BASE_URL: "http://service.test",
  };
  const total = 300;
  await fillQueue(service, acme, total);
  let kills = 0;
  for (; kills < 4; kills++) {
    const seen = server.mails.length;
    const worker = spawnProgram(t, "workers/main.ts", env);
    await eventually(() => server.mails.length >= seen + 20);
    await worker.end("SIGKILL");
  }
  spawnProgram(t, "workers/main.ts", env);
  await eventually(() => new Set(server.mails.map(({ to }) => to[0])).size === total);
  const { messages } = (await acme.owner.get(`${acme.root}/messages?limit=100`).expect(200)).body;
  for (const { messageId } of messages) await acme.until(messageId, "SENT");
  const copies = server.mails.length - total;
  t.ok(copies <= kills * 5, `${copies} copies after ${kills} kills with 5 under way`);
  const ids = new Map<string, Set<string>>();
  for (const { to, headers } of server.mails)
    ids.set(to[0] as string, (ids.get(to[0] as string) ?? new Set()).add(headers["message-id"] as string));
  t.ok([...ids.values()].every((one) => one.size === 1));
});
