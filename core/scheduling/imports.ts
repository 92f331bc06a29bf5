import type { StoredBooking } from "../../schemas/scheduling.ts";
import { chunksOf } from "../platform/chunks.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { readRecords } from "../store/records.ts";
import { reminderJobs } from "./booking-mails.ts";

const BOOKING_BATCH = 200;

/**
 * Schedules the reminders of an imported handle's future bookings, since their jobs were not exported. Idempotent. Returns the number of
 * bookings.
 */
export async function resumeReminders(
  { redis, queues, env, now }: Pick<Runtime, "redis" | "queues" | "env" | "now">,
  handle: string,
): Promise<number> {
  const ids = await redis.zrangebyscore(keys.bookings(handle, "ACCEPTED"), now(), "+inf");
  let count = 0;
  for (const some of chunksOf(ids, BOOKING_BATCH)) {
    const found = await readRecords<StoredBooking>(redis, some, (id) => keys.booking(handle, id));
    // The original handle may exist here too, with jobs of the same names.
    const jobs = found.flatMap((booking) => reminderJobs({ env, now }, handle, booking));
    await queues.later(...jobs.map((one) => ({ ...one, id: `${one.id}-${handle}` })));
    count += jobs.length;
  }
  return count;
}
