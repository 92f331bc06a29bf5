/** What other modules may import from operations. */
export { type AuditEntry, recordWrite } from "./audit.ts";
export { heartbeat, type Stats, stats, type Readiness, readiness } from "./health.ts";
