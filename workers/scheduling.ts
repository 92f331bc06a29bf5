import { expireHold, pullCalendars, sendMails, syncBooking } from "../core/scheduling/face.ts";
import { job, type WorkerRow } from "./job.ts";

/** Jobs of the scheduling noun. */
export const schedulingJobs: WorkerRow[] = [
  job("scheduling.expire", expireHold),
  job("scheduling.pull", pullCalendars, ({ handle }) => handle),
  job("scheduling.mail", sendMails),
  job("scheduling.sync", syncBooking, ({ handle }) => handle),
];
