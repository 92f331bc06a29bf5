import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test as TapTest } from "tap";
import { createHandle } from "../core/account/handles.ts";
import { tokenFor } from "../fixtures/session.ts";
import { openRuntime } from "../core/open.ts";
import { createPage } from "../core/pages/pages.ts";
import { readEnv } from "../core/platform/env.ts";
import type { Runtime } from "../core/platform/runtime.ts";
import { type SpawnedService, spawnProgram, spawnService } from "../fixtures/processes.ts";
import { attacks, type DavStep, type HostileDav, startHostileDav } from "../fixtures/providers/hostile-dav.ts";
import { startRedis } from "../fixtures/redis.ts";
import { eventually } from "../fixtures/service.ts";
import { type ApiCall, type ApiAnswered, asker } from "../fixtures/settled-handle.ts";

t.setTimeout(280_000);

const owned = "/v2/handles/evil/scheduling";

/** A web and a worker process, the handle whose calendar server is hostile, and another handle with a page. */
interface Stage {
  service: SpawnedService;
  runtime: Runtime;
  dav: HostileDav;
  owner: ApiCall;
  /** The milliseconds that `/healthz` takes meanwhile, at most. */
  slowestHealth<T>(work: () => Promise<T>): Promise<{ result: T; ms: number }>;
  connect(): Promise<ApiAnswered>;
  select(credentialId: string): Promise<ApiAnswered>;
  credentials(): Promise<unknown>;
}

async function open(t: TapTest): Promise<Stage> {
  const redis = await startRedis({ own: true });
  const dav = await startHostileDav();
  t.teardown(async () => {
    dav.close();
    await redis.stop();
  });
  const runtime = await openRuntime(readEnv({ ...redis.env, LOG_LEVEL: "silent" }));
  t.teardown(() => runtime.close());
  for (const handle of ["evil", "acme"])
    await createHandle(runtime, { handle, account: `acct_${handle}`, owner: "user_1", assistant: true });
  await createPage(runtime, {
    ...{ handle: "acme", pageSlug: "bikes", title: "Bikes", description: "", teaser: "" },
    ...{ template: "html_render", accessMode: "PUBLIC", status: "PUBLISHED" },
    content: "<h1>Bikes</h1><p>A cargo bike costs 39 EUR a day.</p>",
  });
  const service = await spawnService(t, redis, {
    ...{ TEST_CLOCK: "2026-10-11T00:00:00Z", PUBLIC_PAGE_AGENT_ENABLED: "1", PUBLIC_PAGE_AGENT_RATE: "1000" },
  });
  const token = await tokenFor({ ...runtime, env: readEnv(service.env) }, { userId: "user_1" });
  const owner = asker(() => service.url, token);
  return {
    ...{ service, runtime, dav, owner, slowestHealth: (work) => slowestHealth(service.url, work) },
    connect: () => {
      const body = { serverUrl: dav.url, username: "alice", password: "secret" };
      return owner("POST", `${owned}/integrations/caldav/credentials`, body);
    },
    select: (credentialId) =>
      owner("POST", `${owned}/selected-calendars`, { credentialId, busyCalendarIds: [dav.calendar] }),
    credentials: async () => (await owner("GET", `${owned}/integrations`)).body.credentials,
  };
}

async function slowestHealth<T>(url: string, work: () => Promise<T>): Promise<{ result: T; ms: number }> {
  let [ms, isOver] = [0, false];
  const probing = (async () => {
    while (!isOver) {
      const started = performance.now();
      await (await fetch(`${url}/healthz`)).text();
      ms = Math.max(ms, performance.now() - started);
      await sleep(20);
    }
  })();
  const result = await work();
  isOver = true;
  await probing;
  return { result, ms };
}

/** The owner's message for each attack. */
const reasons: Record<keyof typeof attacks, RegExp> = {
  "900 KB of nested elements": /exceeds a limit/,
  "31 MB of flat elements": /exceeds a limit/,
  "31 MB of responses": /exceeds a limit/,
  "an endless body": /exceeds a limit/,
  "an endless name": /exceeds a limit/,
  "a compressed bomb": /no calendar server.*compressed/,
  "a dribbling body": /Timeout/,
  silence: /Timeout/,
};
const names = Object.keys(attacks) as (keyof typeof attacks)[];
/** The promise is 500 ms; a machine that is slow with everything gets more. */
const mostFor = (calm: number): number => Math.max(500, 4 * calm);
/** Ms within which a failure is known: 5 s, and the time that the requests before and after it take. */
const KNOWN_WITHIN = 6500;

/** Does something while the server attacks at these steps; returns the answer and how long it took. */
async function attacked<T>(stage: Stage, name: keyof typeof attacks, steps: DavStep[], work: () => Promise<T>) {
  for (const step of steps) stage.dav.attacks.set(step, attacks[name]);
  const started = Date.now();
  const { result, ms } = await stage.slowestHealth(work);
  stage.dav.attacks.clear();
  return { result, took: Date.now() - started, health: ms };
}

t.test("a hostile calendar server is refused with its reason in 5 s and delays no web process", async (t) => {
  const stage = await open(t);
  const credentialId = ((await stage.connect()).body.credential as { credentialId: string }).credentialId;
  const calm = (await stage.slowestHealth(() => sleep(1500))).ms;
  const calendars = () => stage.owner("GET", `${owned}/integrations/caldav/calendars`);
  for (const name of names)
    for (const [step, status, ask] of [
      ["login", 400, stage.connect],
      ["home", 400, stage.connect],
      ["list", 503, calendars],
      ["list", 503, () => stage.select(credentialId)],
    ] as const) {
      const { result, took, health } = await attacked(stage, name, [step], ask);
      const said = `${name} at ${step}`;
      t.match({ status: result.status, ...result.body }, { status, detail: reasons[name] }, said);
      if (status === 400) t.equal(result.body.code, "caldav_login_failed", said);
      t.ok(took < KNOWN_WITHIN, `${said}: known after ${took} ms`);
      t.ok(health < mostFor(calm), `${said}: healthz took ${Math.round(health)} ms, ${Math.round(calm)} in calm`);
    }
  for (const name of names)
    for (const step of ["sync", "objects"] as const) {
      const { result, took, health } = await attacked(stage, name, [step], () => stage.select(credentialId));
      const said = `${name} at ${step} of a selection`;
      t.equal(result.status, 200, said);
      t.match(await stage.credentials(), [{ status: "DEGRADED", detail: reasons[name] }], said);
      t.ok(took < KNOWN_WITHIN, `${said}: known after ${took} ms`);
      t.ok(health < mostFor(calm), `${said}: healthz took ${Math.round(health)} ms, ${Math.round(calm)} in calm`);
      await stage.select(credentialId);
      t.match(await stage.credentials(), [{ status: "OK", detail: undefined }], "it heals");
    }
  t.match(await stage.service.web.end(), { code: 0 }, "SIGTERM ends the process in order");
});

t.test("a hostile calendar server blocks no worker: other handles are served and SIGTERM works", async (t) => {
  const stage = await open(t);
  const { runtime, dav, service } = stage;
  const credentialId = ((await stage.connect()).body.credential as { credentialId: string }).credentialId;
  t.equal((await stage.select(credentialId)).status, 200);
  const pull = (id: string) => runtime.queues.later({ name: "scheduling.pull", id, data: { handle: "evil" } });
  const visitor = asker(() => service.url);
  const question = { question: "What does a cargo bike cost?" };
  const isDegraded = async () => JSON.stringify(await stage.credentials()).includes("DEGRADED");
  for (const name of names)
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

t.test("jobs that wait for one handle's server leave room for those of others", async (t) => {
  const { runtime, dav, connect, owner } = await open(t);
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

t.test("a job that hangs with its worker is not handed to the next one, and one of a crashed worker is", async (t) => {
  const { runtime, dav, connect, select, credentials, service } = await open(t);
  const { credentialId } = (await connect()).body.credential as { credentialId: string };
  await select(credentialId);
  const env = { ...service.env, WORKER_QUEUES: "scheduling" };
  const started = async () => {
    const worker = spawnProgram(t, "workers/main.ts", env);
    await worker.says("worker.ready");
    return worker;
  };
  const pull = async (id: string) => {
    const before = dav.asked.length;
    await runtime.queues.later({ name: "scheduling.pull", id, data: { handle: "evil" } });
    await eventually(() => dav.asked.length > before);
  };
  const state = async (id: string) => (await runtime.queues.queue("scheduling").getJob(id))?.getState();
  await service.worker.end();
  dav.attacks.set("sync", attacks.silence);
  const crashing = await started();
  await pull("crashes");
  await crashing.end("SIGKILL");
  const asked = dav.asked.length;
  const hanging = await started();
  await eventually(() => dav.asked.length > asked, 40_000);
  t.pass("the job of the crashed worker is done by the next one");
  await eventually(async () => (await state("crashes")) === "completed", 40_000);
  await pull("hangs");
  process.kill(hanging.pid, "SIGSTOP");
  // What it had sent by then still arrives.
  await sleep(500);
  const unasked = dav.asked.length;
  await started();
  await eventually(async () => (await state("hangs")) === "completed", 40_000);
  t.equal(dav.asked.length, unasked, "the server that hangs a worker is left alone");
  t.match(await credentials(), [{ status: "DEGRADED", detail: /interrupted/ }]);
  process.kill(hanging.pid, "SIGCONT");
});
