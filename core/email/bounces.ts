import type { Mailbox, Runtime } from "../platform/runtime.ts";
import { withSignal } from "../platform/signals.ts";
import { keys } from "../store/keys.ts";
import { tryLock } from "../store/lock.ts";
import { isRedisAway } from "../store/redis.ts";
import { readInbound } from "./feedback.ts";

/**
 * One poll of the mailbox of BOUNCE_IMAP_URL: each unseen mail, oldest first, is recorded, then marked as seen; after a crash in between it
 * is read again without effect. Only one of all processes reads at a time; "busy" in the others. Does nothing without a mailbox.
 */
export async function readBounces(runtime: Runtime, signal: AbortSignal): Promise<"busy" | undefined> {
  const { BOUNCE_IMAP_URL: url } = runtime.env;
  if (url === undefined) return undefined;
  const read = await tryLock(runtime.redis, keys.bounceMailbox, (lease) =>
    withSignal([signal, lease], async (either) => readUnseen(runtime, await runtime.openBounces(url), either)),
  );
  return read ? undefined : "busy";
}

/** A mail that can't be marked, such as in a read-only mailbox, keeps no other from being read. */
async function readUnseen(runtime: Runtime, mailbox: Mailbox, signal: AbortSignal): Promise<void> {
  signal.addEventListener("abort", () => mailbox.close(), { once: true });
  let failure: unknown;
  try {
    for (const uid of await mailbox.unseen()) {
      if (signal.aborted) return;
      const mail = await mailbox.read(uid);
      if (mail === undefined) continue;
      await readInbound(runtime, mail).catch((error: Error) => unreadable(runtime, uid, error));
      await mailbox.markSeen(uid).catch((error: unknown) => {
        failure = error;
      });
    }
  } finally {
    mailbox.close();
  }
  if (failure !== undefined) throw failure;
}

/** An unreadable mail stays for people and blocks no other; a storage failure propagates. */
function unreadable({ log }: Runtime, uid: number, error: Error): void {
  if (isRedisAway(error)) throw error;
  log.warn({ uid, error: error.message }, "email.bounce.malformed");
}
