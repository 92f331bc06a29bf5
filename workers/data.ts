import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { Fail } from "../core/platform/errors.ts";
import { type JobName, jobs } from "../schemas/jobs.ts";

const ajv = new Ajv2020({ strict: false, formats: { address: true, instant: true, "time-zone": true, line: true } });
const checks = new Map<JobName, ValidateFunction>();

/** Checks a job's data against its row; jobs outlive deploys. */
export function checkData(name: JobName, data: unknown): void {
  const check = checks.get(name) ?? ajv.compile(jobs[name].data);
  checks.set(name, check);
  if (!check(data)) throw new Fail("invalid_request", { detail: `Data of ${name}: ${ajv.errorsText(check.errors)}` });
}
