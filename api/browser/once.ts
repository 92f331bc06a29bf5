/**
 * Sends a form of a card once: on a slow line a second click would use up a code, or report a decision as already made. After some seconds,
 * or when the page is shown again, the visitor can send again. A click before anybody can have read the page sends nothing.
 */
import { isUnread } from "./account/focus.ts";

const PAUSE_MS = 10_000;
let sentAt = Number.NEGATIVE_INFINITY;

addEventListener("submit", (event) => {
  // A form with typed text is sent on purpose, even right after the focus: a code copied from the mail is pasted at once.
  const isTyped = (event.target as HTMLFormElement).querySelector("input:not([type=hidden])") !== null;
  if ((!isTyped && isUnread()) || performance.now() - sentAt < PAUSE_MS) event.preventDefault();
  else sentAt = performance.now();
});
addEventListener("pageshow", () => {
  sentAt = Number.NEGATIVE_INFINITY;
});
