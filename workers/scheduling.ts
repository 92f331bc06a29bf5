import { expireHold } from "../core/scheduling/bookings.ts";
import { pullCalendars } from "../core/scheduling/busy-calendars.ts";
import { syncBooking } from "../core/scheduling/calendar-events.ts";
import { sendMails } from "../core/scheduling/invitations.ts";
import { job, type WorkerRow } from "./job.ts";

/** Jobs of the scheduling noun. */
export const schedulingJobs: WorkerRow[] = [
  job("scheduling.expire", expireHold),
  job("scheduling.pull", pullCalendars, ({ handle }) => handle),
  job("scheduling.mail", sendMails),
  job("scheduling.sync", syncBooking, ({ handle }) => handle),
];
