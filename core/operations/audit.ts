import { findHandle } from "../account/face.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { transact } from "../store/redis.ts";

/** One write by an owner: who changed what, never the content. */
export interface AuditEntry {
  handle: string;
  userId: string;
  route: string;
  subject: string;
}

/** Retention of entries in ms (docs/reference.md, "Audit"). */
const RETENTION_MS = 90 * 86_400_000;

/** Adds an entry to the handle's audit stream, from which the old ones go. A failure is only logged, since the write itself has succeeded. */
export async function recordWrite({ redis, log, now }: Runtime, entry: AuditEntry): Promise<void> {
  const fields = ["who", entry.userId, "route", entry.route, "id", entry.subject, "at", new Date(now()).toISOString()];
  try {
    // A call may outlast the erasure of its handle.
    if ((await findHandle(redis, entry.handle)) === undefined) return;
    const key = keys.audit(entry.handle);
    await transact(redis, (transaction) =>
      transaction.xadd(key, "MINID", Date.now() - RETENTION_MS, "*", ...fields).pexpire(key, RETENTION_MS),
    );
  } catch (error) {
    log.warn({ error: (error as Error).message, route: entry.route }, "audit.write_failed");
  }
}
