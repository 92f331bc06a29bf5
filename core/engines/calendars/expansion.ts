import { fileOf } from "../../platform/files.ts";
import { Threads } from "../../platform/threads.ts";
import type { Expanded, Expansion } from "./recurrence.ts";
import { CalendarServerError } from "./server-error.ts";

/** Ms per object. A slow object is retried once alone, since a busy machine slows everything down. */
const TIMEOUT_MS = 1_500;
const MAX_THREADS = 2;

/** The thread's file, in the sources and in the build alike. */
const file = fileOf(`core/engines/calendars/expansion-thread.${import.meta.url.endsWith(".ts") ? "ts" : "js"}`);
const threads = new Threads(file, MAX_THREADS);

/**
 * Expands calendar objects in a thread, since the objects are untrusted; the thread is ended if one takes too long. An object that can't be
 * read or never ends blocks no time and has a fault; the others are unaffected. `CalendarServerError` if a second object takes too long.
 * `asker` is the calendar's handle.
 */
export async function expandApart(batch: Expansion, asker: string): Promise<Expanded[]> {
  const found = await expandInOrder(batch, asker);
  if (found.length === batch.objects.length) return found;
  const [slow = "", ...others] = batch.objects.slice(found.length);
  const [again = { taken: [], fault: tooLong }] = await expandInOrder({ ...batch, objects: [slow] }, asker);
  const rest = await expandInOrder({ ...batch, objects: others }, asker);
  if (rest.length < others.length) throw new CalendarServerError("limit", tooLong);
  return [...found, again, ...rest];
}

/** The expanded objects up to the first slow one. */
async function expandInOrder(message: Expansion, asker: string): Promise<Expanded[]> {
  const answers = message.objects.length;
  return answers === 0 ? [] : threads.ask<Expanded>({ asker, message, answers, timeoutMs: TIMEOUT_MS });
}

const tooLong = "Its events take too long to read.";
