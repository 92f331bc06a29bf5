/**
 * Sends a form of a card once: on a slow line a second click would use up a code, or report a decision as already made. After some seconds,
 * or when the page is shown again, the visitor can send again. A click that nobody can have meant sends nothing.
 */
import { isUnread } from "./account/focus.ts";

const PAUSE_MS = 10_000;
let sentAt = Number.NEGATIVE_INFINITY;

addEventListener("submit", (event) => {
  // What is typed is meant, also a code that was pasted at once on the way back from the window of the mail.
  const isTyped = (event.target as HTMLFormElement).querySelector("input:not([type=hidden])") !== null;
  if ((!isTyped && isUnread()) || performance.now() - sentAt < PAUSE_MS) event.preventDefault();
  else sentAt = performance.now();
});
addEventListener("pageshow", () => {
  sentAt = Number.NEGATIVE_INFINITY;
});
