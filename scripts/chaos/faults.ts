import process from "node:process";
import { Redis } from "ioredis";
import { keys } from "../../core/store/keys.ts";
import { flood } from "./flood.ts";
import { attackCalendars } from "./hostile-calendar.ts";
import type { ChaosTown } from "./town.ts";

/** A fault that lasts for some ms; `run` ends once it is repaired. */
interface InjectedFault {
  name: string;
  run(town: ChaosTown, lasts: number): Promise<void>;
}

const minute = 60_000;
/** Ms after which the wait for writes to continue is given up. */
const recoveryLimitMs = 30_000;

/** Every injected fault. */
export const faults: InjectedFault[] = [
  { name: "a web process killed", run: ({ webs }, lasts) => killed(webs.slice(0, 1), lasts / 2) },
  { name: "a worker killed", run: ({ workers }, lasts) => killed(workers.slice(0, 1), lasts / 2) },
  { name: "all workers killed", run: ({ workers }, lasts) => killed(workers, lasts / 2) },
  { name: "every process killed", run: ({ webs, workers }, lasts) => killed([...webs, ...workers], lasts / 4) },
  { name: "a rolling restart", run: ({ webs, workers }) => rolled([...webs, ...workers]) },
  {
    name: "Redis killed and started again from its AOF",
    async run({ redis }, lasts) {
      await redis.kill();
      await pause(lasts / 4);
      await redis.restartMaster();
    },
  },
  {
    name: "Redis fails over and leaves its connections open",
    async run(town, lasts) {
      await town.redis.failOver();
      town.recoveries.push(...(await Promise.all(town.urls.map(writesAgain))));
      await pause(lasts / 2);
    },
  },
  {
    name: "Redis stopped (SIGSTOP)",
    async run({ redis }, lasts) {
      process.kill(redis.pid, "SIGSTOP");
      try {
        await pause(lasts);
      } finally {
        process.kill(redis.pid, "SIGCONT");
      }
    },
  },
  {
    name: "the mail server hangs",
    async run({ mail }, lasts) {
      mail.delay = 60_000;
      await pause(lasts);
      mail.delay = 0;
    },
  },
  {
    name: "the disk of the mail server is full",
    async run({ mail }, lasts) {
      mail.refuseContent = () => ({ code: 452, words: "4.3.1 Insufficient system storage" });
      await pause(lasts);
      mail.refuseContent = undefined;
    },
  },
  { name: "the model hangs", run: (town, lasts) => modelFails(town, "hang", lasts) },
  { name: "the model is busy", run: (town, lasts) => modelFails(town, "busy", lasts) },
  { name: "the model breaks off", run: (town, lasts) => modelFails(town, { breakAfter: 3 }, lasts) },
  { name: "the receiver of webhooks hangs", run: (town, lasts) => hookFails(town, "hangs", lasts) },
  { name: "the receiver of webhooks fails", run: (town, lasts) => hookFails(town, "fails", lasts) },
  { name: "an anonymous flood", run: flood },
  { name: "a hostile calendar server", run: attackCalendars },
  {
    name: "the clock jumps three hours ahead and ten minutes back",
    async run(town) {
      for (const by of [180 * minute, -10 * minute]) await moveClock(town, by);
    },
  },
];

async function killed(members: ChaosTown["webs"], away: number): Promise<void> {
  await Promise.all(members.map((member) => member.end("SIGKILL")));
  await pause(away);
  await Promise.all(members.map((member) => member.start()));
}

async function rolled(members: ChaosTown["webs"]): Promise<void> {
  for (const member of members) {
    await member.end("SIGTERM");
    await member.start();
  }
}

/** Ms until a web process can write to Redis, according to its readiness. */
async function writesAgain(url: string): Promise<number> {
  const began = Date.now();
  const isReady = (): Promise<boolean> => fetch(`${url}/readyz`).then(({ ok }) => ok);
  while (Date.now() < began + recoveryLimitMs && !(await isReady())) await pause(50);
  return Date.now() - began;
}

async function modelFails(
  { model }: ChaosTown,
  failure: ChaosTown["model"]["script"]["failure"],
  lasts: number,
): Promise<void> {
  model.script.failure = failure;
  await pause(lasts);
  model.script.failure = undefined;
}

async function hookFails({ hook }: ChaosTown, mood: ChaosTown["hook"]["mood"], lasts: number): Promise<void> {
  hook.mood = mood;
  await pause(lasts);
  hook.mood = "takes";
}

/** A clock moves for all processes of a machine at once. Domain time is read at the start, so all of them restart. */
async function moveClock({ redis: server, webs, workers, env }: ChaosTown, by: number): Promise<void> {
  const members = [...webs, ...workers];
  await Promise.all(members.map((member) => member.end("SIGTERM")));
  const redis = new Redis(server.url);
  await redis.incrby(keys.clockOrigin, Math.round(-by / Number(env.TEST_CLOCK_RATE ?? 1)));
  redis.disconnect();
  await Promise.all(members.map((member) => member.start()));
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
