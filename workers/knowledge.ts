import { indexDocument } from "../core/knowledge/face.ts";
import { job, type WorkerRow } from "./job.ts";

/** Jobs of the knowledge noun. */
export const knowledgeJobs: WorkerRow[] = [job("knowledge.index", indexDocument)];
