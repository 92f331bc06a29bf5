import { refundBooking, sendAccessMail, sendPurchaseMail } from "../core/payments/face.ts";
import { jobRow, type WorkerRow } from "./job.ts";

/** Jobs of the payments noun. */
export const paymentJobs: WorkerRow[] = [
  jobRow("payments.refund", refundBooking),
  jobRow("payments.purchase-mail", sendPurchaseMail),
  jobRow("payments.access-mail", sendAccessMail),
];
