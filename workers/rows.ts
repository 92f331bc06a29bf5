import { sendSignInCode } from "../core/account/face.ts";
import { answerRun } from "../core/assistant/face.ts";
import { fireRules, promoteDueSends, sendRule } from "../core/campaigns/face.ts";
import { checkDomain, dispatchMail, erasePerson, readBounces, scheduleNextCheck } from "../core/email/face.ts";
import { indexDocument } from "../core/knowledge/face.ts";
import { sendLeadCode, sendLeadDigest, sendLeadNotice } from "../core/leads/face.ts";
import {
  closeCheckout,
  erasePurchases,
  refundBooking,
  sendAccessMail,
  sendPurchaseMail,
} from "../core/payments/face.ts";
import type { JobAttempt, Runtime } from "../core/platform/runtime.ts";
import {
  expireHold,
  pullCalendars,
  scheduleNextPull,
  sendBookingDigest,
  sendMails,
  syncBooking,
} from "../core/scheduling/face.ts";
import { dispatchEvent, dispatchEvents, sendDeliveries } from "../core/webhooks/face.ts";
import type { JobData, QueueName } from "../schemas/jobs.ts";
import { jobRow, mailRow, type Repetition, repeat, type Task, type WorkerRow } from "./job.ts";

/** Every job with its function, and its group if it calls other people's servers. */
export const workerRows: WorkerRow[] = [
  jobRow("account.sign-in-code", sendSignInCode),
  jobRow("assistant.answer", answerRun),
  jobRow("campaigns.trigger", fireRules),
  jobRow("campaigns.send", sendRule),
  { ...jobRow("email.check", checkDomain, ({ account }) => account), slotless: true, giveUp: scheduleNextCheck },
  jobRow("knowledge.index", indexDocument),
  mailRow("leads.notify", sendLeadNotice),
  mailRow("leads.digest", sendLeadDigest),
  jobRow("leads.erase", eraseEverywhere),
  jobRow("leads.send-code", sendLeadCode),
  jobRow("payments.close", closeCheckout),
  jobRow("payments.refund", refundBooking),
  mailRow("payments.purchase-mail", sendPurchaseMail),
  mailRow("payments.access-mail", sendAccessMail),
  jobRow("scheduling.expire", expireHold),
  // A pull that stalls needs no other worker: the next one is scheduled anyway.
  { ...jobRow("scheduling.pull", pullCalendars, ({ handle }) => handle), maxStalls: 0, giveUp: scheduleNextPull },
  mailRow("scheduling.mail", sendMails),
  mailRow("scheduling.digest", sendBookingDigest),
  jobRow("scheduling.sync", syncBooking, ({ handle }) => handle),
  jobRow("webhooks.dispatch", dispatchEvent),
  jobRow("webhooks.dispatch-all", dispatchEvents),
  { ...jobRow("webhooks.deliver", sendDeliveries), slotless: true },
];

/** Continuous work while the process serves a queue; it ends soon after the signal. */
interface WorkerLoop {
  queue: QueueName;
  run: (runtime: Runtime, signal: AbortSignal) => Promise<void>;
}

/** Ms between two polls of the bounce mailbox, and for delayed sends that are nearly due. */
const MAILBOX_POLL_MS = 30_000;
const SEND_POLL_MS = 1000;

export const workerLoops: WorkerLoop[] = [
  { queue: "email", run: dispatchMail },
  { queue: "email", run: every(MAILBOX_POLL_MS, readBounces, "email.mailbox.read_failed") },
  { queue: "campaigns", run: every(SEND_POLL_MS, promoteDueSends, "campaign.promotion_failed") },
];

function every(ms: number, task: Task, failure: Repetition["failure"]): WorkerLoop["run"] {
  return (runtime, signal) => repeat(runtime, task, { ms, signal, failure });
}

async function eraseEverywhere(runtime: Runtime, person: JobData<"leads.erase">, { due }: JobAttempt): Promise<void> {
  await erasePurchases(runtime, person, due);
  await erasePerson(runtime, person, due);
}
