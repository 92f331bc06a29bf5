/**
 * Tells a click that was meant for this page from one that was meant for a window in front of it. A hostile page can ask for a double click,
 * open a decision behind its own window, and close that window at the first click (double-clickjacking), which no policy about frames
 * prevents.
 */

/** Ms after the page has got the focus within which nobody has read it. */
const READING_MS = 500;
let focusedAt = Number.NEGATIVE_INFINITY;

addEventListener("focus", () => {
  focusedAt = performance.now();
});

/** True if the page has had the focus for too short a time to be read. */
export function isUnread(): boolean {
  return performance.now() - focusedAt < READING_MS;
}
