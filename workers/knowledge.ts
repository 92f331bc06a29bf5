import { indexDocument } from "../core/knowledge/face.ts";
import { jobRow, type WorkerRow } from "./job.ts";

/** Jobs of the knowledge noun. */
export const knowledgeJobs: WorkerRow[] = [jobRow("knowledge.index", indexDocument)];
