import { CalendarServerError } from "../engines/calendars/calendars.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { updateHealth } from "./credentials.ts";
import { selectionsOf } from "./selections.ts";

/** The first pause in real ms; each interruption doubles it until a calendar has been read. */
const FIRST_PAUSE_MS = 5 * 60_000;
const MAX_PAUSE_MS = 86_400_000;
/** Ms after a pause for which interruptions are counted. */
const REMEMBERED_MS = 3_600_000;

interface Pause {
  interruptions: number;
  /** Real ms. */
  until: number;
}

/** Real ms until which a handle's calendar servers are paused; 0 if they are not. */
export async function pausedUntil(runtime: Runtime, handle: string): Promise<number> {
  const { until } = await readPause(runtime, handle);
  return until > Date.now() ? until : 0;
}

/**
 * Pauses the calendar servers of a handle, because a job that called them hangs with its process. Degrades the accounts. Returns the real
 * ms at which the pause ends.
 */
export async function pauseCalendars(runtime: Runtime, handle: string): Promise<number> {
  const { interruptions } = await readPause(runtime, handle);
  const pauseMs = Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** interruptions);
  const pause: Pause = { interruptions: interruptions + 1, until: Date.now() + pauseMs };
  await runtime.redis.set(keys.calendarPause(handle), JSON.stringify(pause), "PX", pauseMs + REMEMBERED_MS);
  const failure = new CalendarServerError("interrupted");
  for (const { account } of await selectionsOf(runtime, handle))
    await updateHealth(runtime, handle, { credentialId: account.credential.credentialId, failure });
  return pause.until;
}

/** Forgets the interruptions of a handle, after its calendars have been read. */
export async function endPause({ redis }: Runtime, handle: string): Promise<void> {
  await redis.del(keys.calendarPause(handle));
}

async function readPause({ redis }: Runtime, handle: string): Promise<Pause> {
  return JSON.parse((await redis.get(keys.calendarPause(handle))) ?? '{"interruptions":0,"until":0}') as Pause;
}
