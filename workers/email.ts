import { checkDomain, dispatchMail, startDueChecks, watchBounces } from "../core/email/face.ts";
import type { Runtime } from "../core/platform/runtime.ts";
import { jobRow, repeat, type WorkerLoop, type WorkerRow } from "./job.ts";

/** Ms between two polls for domains whose DNS records are due for a check. */
const POLL_INTERVAL_MS = 20_000;

/** Jobs of the email noun. */
export const emailJobs: WorkerRow[] = [jobRow("email.check", checkDomain, ({ account }) => account)];

/** What an email worker does continuously: sends due deliveries, checks domains, and reads bounces. */
export const emailLoops: WorkerLoop[] = [
  { queue: "email", run: dispatchMail },
  { queue: "email", run: checkDomains },
  { queue: "email", run: watchBounces },
];

function checkDomains(runtime: Runtime, signal: AbortSignal): Promise<void> {
  return repeat(POLL_INTERVAL_MS, signal, () =>
    startDueChecks(runtime).catch((error: Error) =>
      runtime.log.warn({ error: error.message }, "email.identity.check_failed"),
    ),
  );
}
