import t from "tap";
import { fastClock, startCampaign } from "../fixtures/campaigns.ts";
import { freePort } from "../fixtures/ports.ts";
import { spawnProgram } from "../fixtures/processes.ts";
import { startRedis } from "../fixtures/redis.ts";
import { eventually } from "../fixtures/service.ts";

const people = Array.from({ length: 40 }, (_, at) => `person${at}@example.com`);

t.test("kill -9 of Redis and the worker loses none of the sends that wait, and doubles none", async (t) => {
  const place = { port: await freePort(), dir: t.testdir(), appendonly: true, single: true };
  let redis = await startRedis(place);
  t.teardown(() => redis.stop());
  const campaign = await startCampaign(t, { workers: false, redis });
  const env = { ...redis.env, ...fastClock, SMTP_URL: campaign.smtpUrl, BASE_URL: "http://service.test" };
  const startWorker = async (queue: string) => {
    const worker = spawnProgram(t, "workers/main.ts", { ...env, WORKER_QUEUES: queue });
    await worker.says("worker.ready");
    return worker;
  };
  const crash = async (worker: Awaited<ReturnType<typeof startWorker>>) => {
    await Promise.all([worker.end("SIGKILL"), redis.kill()]);
    redis = await startRedis(place);
    const { waiting, sent } = await campaign.counts();
    t.equal(waiting + sent, people.length, "all are known while no worker is there");
    return startWorker("campaigns");
  };
  const accepted = async (): Promise<string[]> => {
    const { body } = await campaign.sending.owner.get("/v2/handles/acme/email/messages?limit=100").expect(200);
    return body.messages.map(({ deliveries }: { deliveries: { recipient: string }[] }) => deliveries[0]?.recipient);
  };
  const first = await startWorker("campaigns");
  // Five hours are ten seconds.
  await campaign.rule({ trigger: "LEAD_CAPTURED_DELAYED", delayMinutes: 300 });
  for (const email of people) await campaign.capture({ email });
  await eventually(async () => {
    const { waiting, sent } = await campaign.counts();
    return waiting + sent === people.length;
  });
  const second = await crash(first);
  await eventually(async () => (await accepted()).length > 0);
  await crash(second);
  await eventually(async () => (await campaign.counts()).waiting === 0);
  t.match(await campaign.counts(), { waiting: 0, sent: people.length, denied: 0 });
  t.same((await accepted()).sort(), [...people].sort(), "one message for each");
  await startWorker("email");
  await eventually(() => campaign.mails.length >= people.length);
  t.same(campaign.mails.map(({ to }) => to[0]).sort(), [...people].sort(), "one mail for each");
});
