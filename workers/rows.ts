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
import { dispatchEvents, sendDeliveries } from "../core/webhooks/face.ts";
import type { JobData, JobName, QueueName } from "../schemas/jobs.ts";
import { every, mailRow, type Task, type WorkerRow } from "./job.ts";

/** Every job with its function. */
export const workerRows: { [N in JobName]: WorkerRow<JobData<N>> } = {
  "account.sign-in-code": { run: sendSignInCode },
  "assistant.answer": { run: answerRun },
  "campaigns.trigger": { run: fireRules },
  "campaigns.send": { run: sendRule },
  "email.check": { run: checkDomain, group: ({ account }) => account, slotless: true, giveUp: scheduleNextCheck },
  "knowledge.index": { run: indexDocument },
  "leads.notify": mailRow(sendLeadNotice),
  "leads.digest": mailRow(sendLeadDigest),
  "leads.erase": { run: eraseEverywhere },
  "leads.send-code": { run: sendLeadCode },
  "payments.close": { run: closeCheckout },
  "payments.refund": { run: refundBooking },
  "payments.purchase-mail": mailRow(sendPurchaseMail),
  "payments.access-mail": mailRow(sendAccessMail),
  "scheduling.expire": { run: expireHold },
  // A pull that stalls needs no other worker: the next one is scheduled anyway.
  "scheduling.pull": { run: pullCalendars, group: ({ handle }) => handle, maxStalls: 0, giveUp: scheduleNextPull },
  "scheduling.mail": mailRow(sendMails),
  "scheduling.digest": mailRow(sendBookingDigest),
  "scheduling.sync": { run: syncBooking, group: ({ handle }) => handle },
  "webhooks.dispatch": {
    run: (runtime, { handle, eventId }) => dispatchEvents(runtime, { handle, eventIds: [eventId] }),
  },
  "webhooks.dispatch-all": { run: dispatchEvents },
  "webhooks.deliver": { run: sendDeliveries, slotless: true },
};

/** Ms between two polls of the bounce mailbox, and for delayed sends that are nearly due. */
const MAILBOX_POLL_MS = 30_000;
const SEND_POLL_MS = 1000;

/** Continuous work while the process serves a queue; it ends soon after the signal. */
export const workerLoops: { queue: QueueName; run: Task }[] = [
  { queue: "email", run: dispatchMail },
  { queue: "email", run: every(MAILBOX_POLL_MS, readBounces, "email.mailbox.read_failed") },
  { queue: "campaigns", run: every(SEND_POLL_MS, promoteDueSends, "campaign.promotion_failed") },
];

async function eraseEverywhere(runtime: Runtime, person: JobData<"leads.erase">, { due }: JobAttempt): Promise<void> {
  await erasePurchases(runtime, person, due);
  await erasePerson(runtime, person, due);
}
