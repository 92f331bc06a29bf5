import { fileOf } from "../../platform/files.ts";
import { Threads } from "../../platform/threads.ts";
import type { Expansion, BusyInterval } from "./recurrence.ts";
import { CalendarServerError } from "./server-error.ts";

/** Calendar objects that are expanded in one go; each one counts for itself. */
export type Batch = Expansion;

/** What came of one object: the time that it takes, or why it can't be read. */
export interface Expanded {
  taken: BusyInterval[];
  fault?: string;
}

/** Ms that one object may take. It is retried once by itself, because a busy machine is slow with everything. */
const TIMEOUT_MS = 1_500;
const MAX_THREADS = 2;

/** The thread's file, in the sources and in the build alike. */
const file = fileOf(`core/engines/calendars/expansion-thread.${import.meta.url.endsWith(".ts") ? "ts" : "js"}`);
const threads = new Threads(file, MAX_THREADS);

/**
 * Expands calendar objects in a thread, which is ended if one takes too long: the objects are other people's. An object that cannot
 * be read or never ends takes no time and has a fault; the others are unaffected. `CalendarServerError` if a second object takes too
 * long. `asker` is the handle whose calendar it is.
 */
export async function expandApart(batch: Batch, asker: string): Promise<Expanded[]> {
  const found = await expandInOrder(batch, asker);
  if (found.length === batch.objects.length) return found;
  const [slow = "", ...others] = batch.objects.slice(found.length);
  const [again = { taken: [], fault: tooLong }] = await expandInOrder({ ...batch, objects: [slow] }, asker);
  const rest = await expandInOrder({ ...batch, objects: others }, asker);
  if (rest.length < others.length) throw new CalendarServerError("limit", tooLong);
  return [...found, again, ...rest];
}

/** The expanded objects up to the first one that takes too long. */
async function expandInOrder(message: Batch, asker: string): Promise<Expanded[]> {
  const answers = message.objects.length;
  return answers === 0 ? [] : threads.ask<Expanded>({ asker, message, answers, timeoutMs: TIMEOUT_MS });
}

const tooLong = "Its events take too long to read.";
