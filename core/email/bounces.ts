import { setTimeout as sleep } from "node:timers/promises";
import type { Mailbox, Runtime } from "../platform/runtime.ts";
import { withSignal } from "../platform/signals.ts";
import { keys } from "../store/keys.ts";
import { tryLock } from "../store/lock.ts";
import { isRedisAway } from "../store/redis.ts";
import { readInbound } from "./feedback.ts";

/** Intervals of the mailbox poll in real ms. Tests pass shorter ones. */
interface WatchTimes {
  /** Between two polls of the mailbox. */
  pollMs: number;
  /** The first wait after a failure; it doubles up to the longest. */
  retryMs: number;
  maxRetryMs: number;
}

const usualTimes: WatchTimes = { pollMs: 30_000, retryMs: 5_000, maxRetryMs: 600_000 };

/**
 * Polls the mailbox of BOUNCE_IMAP_URL until the signal. Each unseen mail is recorded, then marked as seen; after a crash in between it is
 * read again without effect. Only one of all processes reads at a time. Failures are logged and retried later. Returns at once without a
 * mailbox.
 */
export async function watchBounces(
  runtime: Runtime,
  signal: AbortSignal,
  times: WatchTimes = usualTimes,
): Promise<void> {
  if (runtime.openBounces === undefined) return;
  let failures = 0;
  while (!signal.aborted) {
    try {
      await tryLock(runtime.redis, keys.bounceMailbox, (lease) =>
        withSignal([signal, lease], (either) => readBounces(runtime, either)),
      );
      failures = 0;
    } catch (error) {
      if (!signal.aborted)
        runtime.log.warn({ error: (error as Error).message, failures: ++failures }, "email.mailbox.read_failed");
    }
    await sleep(waitAfter(failures, times), undefined, { signal }).catch(() => undefined);
  }
}

function waitAfter(failures: number, { pollMs, retryMs, maxRetryMs }: WatchTimes): number {
  return failures === 0 ? pollMs : Math.min(retryMs * 2 ** (failures - 1), maxRetryMs);
}

/** One poll: every unseen mail, oldest first. */
async function readBounces(runtime: Runtime, signal: AbortSignal): Promise<void> {
  const mailbox = await (runtime.openBounces as () => Promise<Mailbox>)();
  const stop = (): void => mailbox.close();
  signal.addEventListener("abort", stop, { once: true });
  try {
    for (const uid of await mailbox.unseen()) {
      if (signal.aborted) return;
      const mail = await mailbox.read(uid);
      if (mail === undefined) continue;
      await readInbound(runtime, mail).catch((error: Error) => unreadable(runtime, uid, error));
      await mailbox.markSeen(uid);
    }
  } finally {
    mailbox.close();
  }
}

/** An unreadable mail stays for people and blocks no other; a storage failure propagates. */
function unreadable({ log }: Runtime, uid: number, error: Error): void {
  if (isRedisAway(error)) throw error;
  log.warn({ uid, error: error.message }, "email.bounce.malformed");
}
