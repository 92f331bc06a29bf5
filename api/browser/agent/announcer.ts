import { type Answer, stateOf } from "./answer.ts";
import { element } from "./element.ts";
import { withoutMarkup } from "./markdown.ts";
import { words } from "./words.ts";

/** Ms after which an announcement is removed, so that a screen reader doesn't read it again. */
const ANNOUNCEMENT_MS = 15_000;

/** Announces to screen readers through a live region, in whole sentences. */
export interface Announcer {
  region: HTMLElement;
  say(text: string): void;
  /** A question was asked. */
  begin(): void;
  /** Announces the new complete sentences of a growing answer, and its state if that has changed. */
  follow(answer: Answer): void;
}

export function openAnnouncer(): Announcer {
  const region = element("div.unseen", { "aria-live": "polite" });
  let said = 0;
  let status = "";
  const say = (text: string): void => {
    if (text === "") return;
    const one = element("p", { dir: "auto" }, text);
    region.append(one);
    setTimeout(() => one.remove(), ANNOUNCEMENT_MS);
  };
  return {
    region,
    say,
    begin() {
      said = 0;
      status = "waiting";
      say(words.waiting);
    },
    follow(answer) {
      const fresh = answer.text.slice(said);
      const length = answer.textEnded ? fresh.length : endOfSentences(fresh);
      said += length;
      say(withoutMarkup(fresh.slice(0, length)).trim());
      if (answer.status !== status) say(stateOf(answer));
      status = answer.status;
    },
  };
}

/**
 * Length of the complete sentences: up to a full stop, question mark or exclamation mark with white space after it, a mark that needs
 * none, or a line break. A full stop after a digit is ignored, since it may end a list number or an ordinal.
 */
function endOfSentences(text: string): number {
  let length = 0;
  for (const { index, 0: end } of text.matchAll(/(?:[!?…؟]|[^\d\s]\.)[)\]"'*_»”’]*\s|[。！？]|\n/g))
    length = index + end.length;
  return length;
}
