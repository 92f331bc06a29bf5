import { fileOf } from "../../platform/files.ts";
import { Threads } from "../../platform/threads.ts";
import type { ExpandedObject, Expansion } from "./recurrence.ts";
import { CalendarServerError } from "./server-error.ts";

/** Ms per object. A slow object is retried once, since a busy machine slows everything down. */
const TIMEOUT_MS = 1_500;
/** Slow objects per call: a stranger can send some with invitations. */
const MAX_SLOW_OBJECTS = 8;
const MAX_THREADS = 2;

/** The thread's file, in the sources and in the build alike. */
const file = fileOf(`core/engines/calendars/expansion-thread.${import.meta.url.endsWith(".ts") ? "ts" : "js"}`);
const threads = new Threads(file, MAX_THREADS);

/**
 * Expands calendar objects in a thread, since the objects are untrusted; the thread is ended if one takes too long. An object that can't be
 * read or never ends blocks no time and has a fault; the others are unaffected. `CalendarServerError` if too many take too long.
 * `asker` is the calendar's handle.
 */
export async function* expandApart(
  objects: string[],
  expansion: Expansion,
  asker: string,
): AsyncIterable<ExpandedObject> {
  let slow = 0;
  for (const object of objects) {
    const message: ThreadMessage = [object, expansion];
    const ask = () => threads.ask<ExpandedObject>({ asker, message, timeoutMs: TIMEOUT_MS });
    const first = await ask();
    if (first === undefined && ++slow > MAX_SLOW_OBJECTS) throw new CalendarServerError("limit", TOO_LONG);
    yield first ?? (await ask()) ?? { busy: [], fault: TOO_LONG };
  }
}

/** A message to the thread: one object, and how to expand it. */
export type ThreadMessage = [object: string, expansion: Expansion];

/** For the owner of a calendar whose expansion takes too long. */
export const TOO_LONG = "Its events take too long to read.";
