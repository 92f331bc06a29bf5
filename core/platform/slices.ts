/** Longest time for which a slice of work may block the event loop, in ms. */
const SLICE_MS = 4;

/** Tells when a slice of long work is over, so that the caller awaits `setImmediate`, and starts the next one. */
export function sliceClock(): () => boolean {
  let end = performance.now() + SLICE_MS;
  return () => {
    const now = performance.now();
    if (now < end) return false;
    end = now + SLICE_MS;
    return true;
  };
}
