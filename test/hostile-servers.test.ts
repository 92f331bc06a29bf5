import t from "tap";
import {
  allAttacks,
  attacked,
  checkDegradation,
  checkRefusal,
  connected,
  idleAttacks,
  KNOWN_WITHIN,
  openHostileStage,
  owned,
  reasons,
  refusals,
} from "../fixtures/hostile-stage.ts";
import { spawnProgram } from "../fixtures/processes.ts";
import { attacks } from "../fixtures/providers/hostile-dav.ts";
import { eventually } from "../fixtures/service.ts";
import { asker } from "../fixtures/settled-handle.ts";

t.test("a calendar server that keeps us waiting is refused with its reason in 5 s", async (t) => {
  const stage = await openHostileStage(t);
  const credentialId = await connected(stage);
  for (const name of idleAttacks) {
    for (const at of refusals(stage, credentialId)) await checkRefusal(t, stage, name, at);
    await checkDegradation(t, stage, { name, step: "objects", credentialId });
  }
});

t.test("a hostile calendar server blocks no worker: other handles are served and SIGTERM works", async (t) => {
  const stage = await openHostileStage(t);
  const { runtime, dav, service } = stage;
  const credentialId = await connected(stage);
  t.equal((await stage.select(credentialId)).status, 200);
  const pull = (id: string) => runtime.queues.later({ name: "scheduling.pull", id, data: { handle: "evil" } });
  const visitor = asker(() => service.url);
  const question = { question: "What does a cargo bike cost?" };
  const isDegraded = async () => JSON.stringify(await stage.credentials()).includes("DEGRADED");
  for (const name of allAttacks)
    for (const step of ["sync", "objects"] as const) {
      const said = `${name} at ${step}`;
      const { result, took } = await attacked(stage, name, [step], async () => {
        await pull(`pull-${name}-${step}`);
        const answer = await visitor("POST", "/v2/public/pages/acme/bikes/agentic-question", question);
        await eventually(isDegraded);
        return answer;
      });
      t.match(result.body.answerMarkdown, /39 EUR/, `${said}: another handle's question is answered`);
      t.ok(took < KNOWN_WITHIN, `${said}: known after ${took} ms`);
      t.match(await stage.credentials(), [{ detail: reasons[name] }], said);
      await pull(`pull-${name}-${step}-calm`);
      await eventually(async () => !(await isDegraded()));
    }
  dav.attacks.set("sync", attacks.silence);
  const before = dav.asked.length;
  await pull("pull-last");
  await eventually(() => dav.asked.length > before);
  t.match(await service.worker.end(), { code: 0 }, "SIGTERM ends the process in order");
});

t.test("the next reading of selected calendars is certain before the first one ends", async (t) => {
  const { runtime, dav, connect, select } = await openHostileStage(t);
  const { credentialId } = (await connect()).body.credential as { credentialId: string };
  dav.attacks.set("sync", attacks.silence);
  let isAnswered = false;
  const selecting = select(credentialId).finally(() => {
    isAnswered = true;
  });
  const next = await eventually(async () => (await runtime.queues.queue("scheduling").getDelayed())[0]);
  t.notOk(isAnswered, "even if the process dies now");
  t.match(next, { name: "scheduling.pull", data: { handle: "evil" } });
  dav.attacks.clear();
  t.equal((await selecting).status, 200);
});

t.test("jobs that wait for one handle's server leave room for those of others", async (t) => {
  const { runtime, dav, connect, owner } = await openHostileStage(t);
  const { credentialId } = (await connect()).body.credential as { credentialId: string };
  const selection = { credentialId, busyCalendarIds: [], destinationCalendarId: dav.calendar };
  t.equal((await owner("POST", `${owned}/selected-calendars`, selection)).status, 200);
  const always = [0, 1, 2, 3, 4, 5, 6].map((day) => ({ day, startTime: "00:00", endTime: "24:00" }));
  await owner("POST", `${owned}/schedules`, { timeZone: "UTC", weeklyAvailability: always });
  await owner("POST", `${owned}/event-types`, { slug: "talk", title: "Talk", durationMinutes: 60 });
  dav.attacks.set("write", attacks.silence);
  const slot = { start: "2026-10-20T08:00:00Z", end: "2026-10-20T09:00:00Z" };
  const booking = { slot, attendee: { name: "Ada", email: "ada@example.com" } };
  const { bookingUid } = (await owner("POST", "/v2/public/scheduling/evil/talk/bookings", booking)).body;
  const data = { handle: "evil", bookingUid: bookingUid as string };
  const jobs = Array.from({ length: 600 }, (_, at) => ({ name: "scheduling.sync" as const, id: `sync-${at}`, data }));
  await runtime.queues.later(...jobs);
  await eventually(() => dav.asked.includes("write"));
  await runtime.queues.later({ name: "scheduling.pull", id: "of-acme", data: { handle: "acme" } });
  const isDone = async () => (await runtime.queues.queue("scheduling").getJob("of-acme"))?.isCompleted();
  await eventually(isDone, 8000);
  t.pass("the other handle's job is done at once");
});

t.test("a pull that ends its worker is carried on by no other, and the next pull waits", async (t) => {
  const { runtime, dav, connect, select, service } = await openHostileStage(t);
  const { credentialId } = (await connect()).body.credential as { credentialId: string };
  await select(credentialId);
  await service.worker.end();
  const queue = runtime.queues.queue("scheduling");
  const started = async () => {
    const worker = spawnProgram(t, "workers/main.ts", { ...service.env, WORKER_QUEUES: "scheduling" });
    await worker.says("worker.ready");
    return worker;
  };
  dav.attacks.set("sync", attacks.silence);
  await queue.drain(true);
  await runtime.queues.later({ name: "scheduling.pull", id: "stalls", data: { handle: "evil" } });
  const asked = dav.asked.length;
  const worker = await started();
  await eventually(() => dav.asked.length > asked);
  await worker.end("SIGKILL");
  t.match(await queue.getDelayed(), [{ name: "scheduling.pull", data: { handle: "evil" } }], "the next pull");
  // Only the job that stalls may ask the server.
  await queue.drain(true);
  const askedBefore = dav.asked.length;
  await started();
  const failed = await eventually(async () => (await queue.getFailed())[0]);
  t.match(failed, { id: "stalls", failedReason: "The job stalled too often." });
  t.equal(dav.asked.length, askedBefore, "the next worker leaves the server alone");
});
