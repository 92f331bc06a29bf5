import type { StoredBooking } from "../../schemas/scheduling.ts";
import { chunksOf } from "../platform/chunks.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { job } from "../store/outbox.ts";
import { readRecords } from "../store/records.ts";
import { reminderJobs } from "./booking-mails.ts";
import { expiryJobs } from "./checkout.ts";
import { ALL_STATUSES } from "./ledger.ts";
import { refundJobs } from "./refunds.ts";

const BOOKING_BATCH = 200;

type Store = Pick<Runtime, "redis" | "queues" | "env" | "now">;

/**
 * Schedules the jobs of an imported handle's bookings, since jobs are not exported: reminders, ends of unpaid holds, and due refunds.
 * Idempotent. Returns the number of reminders.
 */
export async function resumeBookings(store: Store, handle: string): Promise<number> {
  const { redis, queues } = store;
  const ids = await redis.zrange(keys.bookings(handle, ALL_STATUSES), 0, "-1");
  let count = 0;
  for (const some of chunksOf(ids, BOOKING_BATCH)) {
    const found = await readRecords<StoredBooking>(redis, some, (id) => keys.booking(handle, id));
    const reminders = found.flatMap((booking) => reminderJobs(store, handle, booking));
    const others = found.flatMap((booking) => [...expiryJobs(store, handle, booking), ...refundJobs(handle, booking)]);
    // The original handle may exist here too, with jobs of the same names.
    await queues.later(...[...reminders, ...others].map((one) => ({ ...one, id: `${one.id}-${handle}` })));
    count += reminders.length;
  }
  return count;
}

/** Pulls the selected calendars of an imported handle, which schedules all further pulls. */
export async function resumePulls({ redis, queues }: Store, handle: string): Promise<void> {
  if (await redis.exists(keys.selectedCalendars(handle)))
    await queues.later(job("scheduling.pull", `pull-${handle}-imported-${Date.now()}`, { handle }));
}
