import { setTimeout as sleep } from "node:timers/promises";
import type { EventWrite } from "./providers/provider.ts";

/** Attempts to write an event under concurrent changes. */
const MAX_ATTEMPTS = 5;
/** Polls of an event whose meeting is still being created, and ms before the first one; each later one waits as much longer. */
const MAX_POLLS = 4;
const POLL_MS = 200;

/** How a provider stores an event, for `bringTo`. */
interface EventStore<S> {
  /** Writes over a state; creates the event if that is undefined. Returns undefined if the provider has another state by now. */
  write(over: S | undefined): Promise<S | undefined>;
  /** The provider's state; undefined if there is no event. */
  read(): Promise<S | undefined>;
  /** The booking's sequence in a state; -1 if it has none, or if the state must be replaced for another reason. */
  sequenceOf(state: S): number;
}

/**
 * Brings an event to its booking's state under concurrent writers. A state with a higher sequence stays. An event that was not written
 * before is created without a look at the provider's state.
 */
export async function bringTo<S>({ event: { sequence }, earlier }: EventWrite, store: EventStore<S>): Promise<S> {
  let state = earlier && (await store.read());
  for (let tries = 0; tries < MAX_ATTEMPTS; tries++) {
    if (state !== undefined && store.sequenceOf(state) > sequence) return state;
    const written = await store.write(state);
    if (written !== undefined) return written;
    state = await store.read();
  }
  throw new Error("The event changes too often.");
}

/** The event once its meeting exists, which a provider may create a moment later. Throws without a meeting, so that it is retried. */
export async function awaitMeeting<S>(
  made: S,
  { awaits, read }: { awaits(current: S): boolean; read(): Promise<S> },
): Promise<S> {
  let current = made;
  for (let polls = 1; awaits(current); polls++) {
    if (polls > MAX_POLLS) throw new Error("The provider made no meeting.");
    await sleep(polls * POLL_MS);
    current = await read();
  }
  return current;
}

/** Longest link of a meeting, in characters. */
const MAX_LINK_LENGTH = 2048;

/** The link of a meeting as attendees get it, by mail and on pages; null unless it is a web address. */
export function meetingLink(given: unknown): string | null {
  const isLink =
    typeof given === "string" && given.length <= MAX_LINK_LENGTH && /^https?:\/\/[\x21-\x7e]+$/i.test(given);
  return isLink && URL.canParse(given) ? given : null;
}
