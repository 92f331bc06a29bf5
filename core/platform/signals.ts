import { setMaxListeners } from "node:events";

/**
 * Runs work with one signal that aborts, with their reason, as soon as any of the sources does. It lets go of them when the work ends.
 * AbortSignal.any doesn't: Node 20 keeps such a signal, with all that listens to it, until a source aborts, and that of a process never does.
 */
export async function withSignal<T>(
  sources: readonly AbortSignal[],
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const [joined, done] = [new AbortController(), new AbortController()];
  // Many jobs listen to one process, and many requests to one job: more than ten are no leak here.
  setMaxListeners(0, joined.signal, ...sources);
  for (const source of sources) {
    const abort = (): void => joined.abort(source.reason);
    if (source.aborted) abort();
    else source.addEventListener("abort", abort, { once: true, signal: done.signal });
  }
  try {
    return await work(joined.signal);
  } finally {
    done.abort();
  }
}

/** The result of work, unless the signal aborts before: then its reason is thrown, and the work goes on alone. */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason as Error);
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
  return Promise.race([work, aborted]);
}
