/** What other modules may import from operations. */
export { type AuditEntry, recordWrite } from "./audit.ts";
export { heartbeat, type Readiness, readiness, type Stats, stats } from "./health.ts";
