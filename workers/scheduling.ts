import { expireHold, pullCalendars, sendMails, syncBooking } from "../core/scheduling/face.ts";
import { jobRow, type WorkerRow } from "./job.ts";

/** Jobs of the scheduling noun. */
export const schedulingJobs: WorkerRow[] = [
  jobRow("scheduling.expire", expireHold),
  jobRow("scheduling.pull", pullCalendars, ({ handle }) => handle),
  jobRow("scheduling.mail", sendMails),
  jobRow("scheduling.sync", syncBooking, ({ handle }) => handle),
];
