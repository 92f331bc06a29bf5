import t from "tap";
import { keys } from "../core/store/keys.ts";
import { eventJob } from "../core/webhooks/events.ts";
import { freePort } from "../fixtures/ports.ts";
import { spawnProgram } from "../fixtures/processes.ts";
import { startRedis } from "../fixtures/redis.ts";
import { eventually, type Service, startService } from "../fixtures/service.ts";
import { startReceiver } from "../fixtures/webhook-receiver.ts";
import type { WebhookEventType } from "../schemas/webhooks.ts";

const path = "/v2/handles/acme/scheduling/webhooks";

/** Writes an event with its cause in one step, as the nouns do. */
async function cause({ runtime }: Service, type: WebhookEventType, data: unknown): Promise<string> {
  const { event, ...dispatch } = eventJob(runtime, "acme", { type, data });
  await runtime.queues.commit(
    "acme",
    [dispatch],
    (step) => void step.set(event.key, event.content, "PX", event.retentionMs),
  );
  return dispatch.data.eventId;
}

t.test("accepted events survive kill -9 of the worker that sends them", async (t) => {
  const service = await startService(t, { appendonly: true });
  const owner = await service.handle("acme");
  let answers = false;
  const receiver = await startReceiver(t, (response) => answers && void response.writeHead(204).end());
  await owner.post(path).send({ url: receiver.url }).expect(201);
  const env = { ...service.redis.env, WORKER_QUEUES: "webhooks" };
  const first = spawnProgram(t, "workers/main.ts", env);
  await first.says("worker.ready");
  const wanted = new Set<string>();
  for (let count = 0; count < 30; count++) wanted.add(await cause(service, "scheduling.booking.created", { count }));
  await eventually(() => receiver.received.length >= 5);
  await first.end("SIGKILL");
  answers = true;
  const before = receiver.received.length;
  const second = spawnProgram(t, "workers/main.ts", env);
  await second.says("worker.ready");
  await eventually(() => {
    const got = new Set(receiver.received.slice(before).map(({ headers }) => headers["webhook-id"]));
    return [...wanted].every((eventId) => got.has(eventId));
  }, 90_000);
  t.pass("all arrived");
});

t.test(
  "an endpoint's response during a Redis restart is recorded afterwards, and the event is not sent again",
  async (t) => {
    const place = { port: await freePort(), dir: t.testdir(), appendonly: true };
    const first = await startRedis(place);
    let second = first;
    t.teardown(() => second.stop());
    const service = await startService(t, { redis: first, workers: ["webhooks"] });
    const owner = await service.handle("acme");
    const held: (() => void)[] = [];
    const receiver = await startReceiver(t, (response) => {
      held.push(() => void response.writeHead(204).end());
    });
    const { webhook } = (await owner.post(path).send({ url: receiver.url }).expect(201)).body;
    const causes = Array.from({ length: 5 }, () => cause(service, "scheduling.booking.created", {}));
    const ids = (await Promise.all(causes)).map((eventId) => `dlv_${eventId}_${webhook.webhookId}`);
    await eventually(() => held.length === 5);
    await first.kill();
    for (const answer of held) answer();
    await new Promise((resolve) => setTimeout(resolve, 1000));
    second = await startRedis(place);
    await eventually(async () => {
      const asked = service.runtime.redis.mget(ids.map((id) => keys.webhookDelivery("acme", id)));
      const found = await asked.catch(() => []);
      return found.length === 5 && found.every((json) => json?.includes('"SUCCEEDED"'));
    }, 15_000);
    t.equal(receiver.received.length, 5);
  },
);
