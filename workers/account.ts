import { sendSignInCode } from "../core/account/sign-in-mail.ts";
import { job, type WorkerRow } from "./job.ts";

/** Jobs of the account noun. */
export const accountJobs: WorkerRow[] = [job("account.sign-in-code", sendSignInCode)];
