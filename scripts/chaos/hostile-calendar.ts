import { attacks } from "../../fixtures/providers/hostile-dav.ts";
import { asker } from "../../fixtures/settled-handle.ts";
import { type CalendarAttack, type ChaosTown, victim } from "./town.ts";

const scheduling = `/v2/handles/${victim}/scheduling`;
const names = Object.keys(attacks) as (keyof typeof attacks)[];
/** The limit of `/healthz` in ms, and the factor by which a machine under load may exceed its own unloaded time. */
const MAX_HEALTH_MS = 500;
const MAX_SLOWDOWN = 4;

/** Reads calendars whose server attacks in different ways, and records the effect of each. */
export async function attackCalendars(town: ChaosTown, lasts: number): Promise<void> {
  const owner = asker(town.url, town.token);
  const credentialId = await connect(town);
  const select = () =>
    owner("POST", `${scheduling}/selected-calendars`, { credentialId, busyCalendarIds: [town.dav.calendar] });
  const calm = await slowestHealth(town.urls, select);
  for (const until = Date.now() + lasts; Date.now() < until; ) {
    const name = names[town.calendarAttacks.length % names.length] as (typeof names)[number];
    for (const step of ["sync", "objects"] as const) town.dav.attacks.set(step, attacks[name]);
    const healthMs = await slowestHealth(town.urls, select);
    const account = (await accounts(town))[0] as CalendarAttack["account"];
    town.calendarAttacks.push({ name, healthMs, limitMs: Math.max(MAX_HEALTH_MS, MAX_SLOWDOWN * calm), account });
    town.dav.attacks.clear();
  }
  await select();
}

async function connect(town: ChaosTown): Promise<string> {
  const [known] = await accounts(town);
  if (known) return known.credentialId;
  const body = { serverUrl: town.dav.url, username: "alice", password: "secret" };
  const answer = await asker(town.url, town.token)("POST", `${scheduling}/integrations/caldav/credentials`, body);
  return (answer.body.credential as { credentialId: string }).credentialId;
}

async function accounts(town: ChaosTown): Promise<{ credentialId: string; status: string }[]> {
  const { body } = await asker(town.url, town.token)("GET", `${scheduling}/integrations`);
  return body.credentials as { credentialId: string; status: string }[];
}

/** Ms of the slowest `/healthz` of these processes during some work. */
async function slowestHealth(urls: string[], work: () => Promise<unknown>): Promise<number> {
  let [slowest, isOver] = [0, false];
  const probe = async (url: string): Promise<void> => {
    while (!isOver) {
      const began = performance.now();
      await (await fetch(`${url}/healthz`)).text();
      slowest = Math.max(slowest, performance.now() - began);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  const probes = Promise.all(urls.map(probe));
  await work();
  isOver = true;
  await probes;
  return Math.round(slowest);
}
