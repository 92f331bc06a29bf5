import t from "tap";
import { promoteDueSends } from "../core/campaigns/delayed-sends.ts";
import { keys } from "../core/store/keys.ts";
import { rules, type StartedCampaign, startCampaign } from "../fixtures/campaigns.ts";
import { eventually } from "../fixtures/service.ts";
import { stopClock } from "../fixtures/time.ts";

/** Two hours are four seconds of the tests. */
const inTwoHours = { trigger: "LEAD_CAPTURED_DELAYED", delayMinutes: 120 };
const twoHours = 7_200_000;

const outside = ({ service }: StartedCampaign): Promise<string[]> =>
  service.runtime.redis.zrange(keys.delayedSends("acme"), "0", "-1");

const delayed = ({ service }: StartedCampaign): Promise<number> =>
  service.runtime.queues.queue("campaigns").getDelayedCount();

t.test("a distant send waits as ids alone, and goes at its time", async (t) => {
  const campaign = await startCampaign(t, { runtime: { sendsAheadMs: 1000 } });
  const clock = stopClock(campaign.service.runtime);
  await campaign.rule(inTwoHours);
  const people = ["a", "b", "c", "d", "e", "f"].map((name) => `${name}@example.com`);
  const begun = campaign.service.runtime.now();
  for (const [at, email] of people.entries()) {
    await campaign.capture({ email });
    await eventually(async () => (await campaign.counts()).waiting === at + 1);
  }
  t.equal(await delayed(campaign), 0);
  const names = await outside(campaign);
  t.equal(names.length, 6);
  t.ok(names.every((name) => /^cmp_spring cer_[0-9a-f-]{36} lead_[A-Za-z0-9]+$/.test(name)));
  const erased = names[0]?.split(" ")[2] as string;
  const { email } = (await campaign.sending.owner.get(`/v2/handles/acme/leads/${erased}`).expect(200)).body.lead;
  await campaign.sending.owner.delete(`/v2/handles/acme/leads/${erased}`).expect(204);
  clock.run();
  await eventually(async () => (await campaign.counts()).waiting === 0);
  t.same(await campaign.counts(), { waiting: 0, sent: 5, denied: 1 });
  await eventually(() => campaign.mails.length === 5);
  t.same(campaign.mails.map(({ to }) => to[0]).sort(), people.filter((one) => one !== email).sort());
  const { messages } = (await campaign.sending.owner.get("/v2/handles/acme/email/messages").expect(200)).body;
  for (const { createdAt } of messages) t.ok(Date.parse(createdAt) >= begun + twoHours, "none goes before its time");
  t.same(await outside(campaign), []);
});

t.test("a promotion that died in the middle, or that several workers make, sends each mail once", async (t) => {
  const campaign = await startCampaign(t, {
    workers: false,
    runtime: { sendsAheadMs: 500 },
  });
  const { runtime } = campaign.service;
  const clock = stopClock(runtime);
  await campaign.rule(inTwoHours);
  for (const name of ["a", "b", "c"]) await campaign.capture({ email: `${name}@example.com` });
  const workers = await campaign.service.startWorkers();
  await eventually(async () => (await outside(campaign)).length === 3);
  const left = await runtime.redis.zrange(keys.delayedSends("acme"), "0", "-1", "WITHSCORES");
  await workers.close();
  clock.move(twoHours - 450_000);
  const again = async (): Promise<void> => {
    // What a crash before the removal leaves, and a look that is due.
    for (let at = 0; at < left.length; at += 2)
      await runtime.redis.zadd(keys.delayedSends("acme"), left[at + 1] as string, left[at] as string);
    await runtime.redis.zadd(keys.delayedSendPolls, 0, "acme");
  };
  await eventually(async () => {
    await again();
    return (await Promise.all([promoteDueSends(runtime), promoteDueSends(runtime)])).some((promoted) => promoted === 3);
  });
  t.equal(await delayed(campaign), 3);
  await again();
  clock.run();
  await campaign.service.startWorkers();
  await eventually(async () => (await campaign.counts()).waiting === 0);
  await eventually(async () => (await outside(campaign)).length === 0);
  await again();
  await eventually(async () => (await outside(campaign)).length === 0);
  await eventually(
    async () => (await runtime.queues.queue("campaigns").getJobCountByTypes("waiting", "active", "delayed")) === 0,
  );
  t.same(await campaign.counts(), { waiting: 0, sent: 3, denied: 0 });
  const { messages } = (await campaign.sending.owner.get("/v2/handles/acme/email/messages").expect(200)).body;
  t.equal(messages.length, 3);
});

t.test("waiting sends of a deleted rule are denied when they are due", async (t) => {
  const campaign = await startCampaign(t, { runtime: { sendsAheadMs: 500 } });
  const clock = stopClock(campaign.service.runtime);
  const { ruleId } = await campaign.rule(inTwoHours);
  await campaign.capture({ email: "ada@example.com" });
  await eventually(async () => (await outside(campaign)).length === 1);
  await campaign.sending.owner.delete(`${rules}/${ruleId}`).expect(204);
  clock.run();
  const [event] = await eventually(async () => {
    const found = await campaign.events();
    return found.length > 0 && found;
  });
  t.match(event, { type: "DENIED", reason: "email_rule_not_found", recipient: "ada@example.com" });
  t.same(campaign.mails, []);
  const counts = () => campaign.service.runtime.redis.hgetall(keys.ruleCounts("acme", ruleId));
  await eventually(async () => (await counts()).denied);
  t.same(await counts(), { waiting: "0", denied: "1" });
});

t.test("near sends are jobs", async (t) => {
  const campaign = await startCampaign(t, { runtime: { sendsAheadMs: 3_600_000 } });
  await campaign.rule({ ...inTwoHours, delayMinutes: 43_200 });
  await campaign.capture({ email: "ada@example.com" });
  await eventually(async () => (await delayed(campaign)) === 1);
  t.same(await outside(campaign), []);
});
