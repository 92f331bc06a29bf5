/** What the others may use of operations. */
export { type AuditEntry, recordWrite } from "./audit.ts";
export { heartbeat, type Stats, stats, type Readiness, readiness } from "./health.ts";
