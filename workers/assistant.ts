import { answerRun } from "../core/assistant/face.ts";
import { jobRow, type WorkerRow } from "./job.ts";

/** Jobs of the assistant. */
export const assistantJobs: WorkerRow[] = [jobRow("assistant.answer", answerRun)];
