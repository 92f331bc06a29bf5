import { accountJobs } from "./account.ts";
import { assistantJobs } from "./assistant.ts";
import { emailJobs, emailLoops } from "./email.ts";
import type { WorkerLoop, WorkerRow } from "./job.ts";
import { knowledgeJobs } from "./knowledge.ts";
import { leadJobs, leadLoops } from "./leads.ts";
import { paymentJobs } from "./payments.ts";
import { schedulingJobs } from "./scheduling.ts";
import { webhookJobs } from "./webhooks.ts";

/** Every job with its function. */
export const workerRows: WorkerRow[] = [
  ...accountJobs,
  ...assistantJobs,
  ...emailJobs,
  ...knowledgeJobs,
  ...leadJobs,
  ...paymentJobs,
  ...schedulingJobs,
  ...webhookJobs,
];

/** Continuous work besides jobs. */
export const workerLoops: WorkerLoop[] = [...emailLoops, ...leadLoops];
