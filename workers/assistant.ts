import { answer } from "../core/assistant/face.ts";
import { job, type WorkerRow } from "./job.ts";

/** Jobs of the assistant. */
export const assistantJobs: WorkerRow[] = [job("assistant.answer", answer)];
