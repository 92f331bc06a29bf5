import { sendSignInCode } from "../core/account/face.ts";
import { jobRow, type WorkerRow } from "./job.ts";

/** Jobs of the account noun. */
export const accountJobs: WorkerRow[] = [jobRow("account.sign-in-code", sendSignInCode)];
