/** What the others may use of operations. */
export { type AuditEntry, recordWrite } from "./audit.ts";
export { beat, type Figures, figures, type Readiness, readiness } from "./health.ts";
