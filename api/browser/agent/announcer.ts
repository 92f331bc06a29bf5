import { element } from "./element.ts";
import { withoutMarkup } from "./markdown.ts";

/** Ms after which an announcement is removed, so that a screen reader doesn't read it again. */
const ANNOUNCEMENT_MS = 15_000;

/** Announces to screen readers through a live region, in whole sentences. */
export interface Announcer {
  region: HTMLElement;
  say(words: string): void;
  /** Announces the new complete sentences of a growing text; with `whole`, the remainder too. */
  follow(text: string, whole: boolean): void;
  /** Starts a new text. */
  restart(): void;
}

export function openAnnouncer(): Announcer {
  const region = element("div.unseen", { "aria-live": "polite" });
  let said = 0;
  const say = (words: string): void => {
    if (words === "") return;
    const one = element("p", { dir: "auto" }, words);
    region.append(one);
    setTimeout(() => one.remove(), ANNOUNCEMENT_MS);
  };
  return {
    region,
    say,
    follow(text, whole) {
      const fresh = text.slice(said);
      const length = whole ? fresh.length : endOfSentences(fresh);
      said += length;
      const words = withoutMarkup(fresh.slice(0, length)).trim();
      say(words);
    },
    restart() {
      said = 0;
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
