import { refundBooking, sendAccessMail, sendPurchaseMail } from "../core/payments/face.ts";
import { job, type WorkerRow } from "./job.ts";

/** Jobs of the payments noun. */
export const paymentJobs: WorkerRow[] = [
  job("payments.refund", refundBooking),
  job("payments.purchase-mail", sendPurchaseMail),
  job("payments.access-mail", sendAccessMail),
];
