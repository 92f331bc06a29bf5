import { sendSignInCode } from "../core/account/face.ts";
import { job, type WorkerRow } from "./job.ts";

/** Jobs of the account noun. */
export const accountJobs: WorkerRow[] = [job("account.sign-in-code", sendSignInCode)];
