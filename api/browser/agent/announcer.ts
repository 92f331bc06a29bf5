import { plainText } from "./markdown.ts";
import { element } from "./element.ts";

/** Ms after which what was said is taken away, so that nobody meets it again while reading. */
const lasts = 15_000;

/** Speaks to those who don't see the widget: a live region that gets whole sentences. */
export interface Announcer {
  region: HTMLElement;
  say(words: string): void;
  /** Says the sentences of a growing text that are whole and were not said; with `whole`, also what is left. */
  follow(text: string, whole: boolean): void;
  /** A new text begins. */
  restart(): void;
}

export function openAnnouncer(): Announcer {
  const region = element("div", { class: "unseen", "aria-live": "polite" });
  let said = 0;
  const say = (words: string): void => {
    if (words === "") return;
    const one = element("p", { dir: "auto" }, words);
    region.append(one);
    setTimeout(() => one.remove(), lasts);
  };
  return {
    region,
    say,
    follow(text, whole) {
      const fresh = text.slice(said);
      const length = whole ? fresh.length : endOfSentences(fresh);
      said += length;
      const words = plainText(fresh.slice(0, length)).trim();
      say(words);
    },
    restart() {
      said = 0;
    },
  };
}

/**
 * Length of the sentences that are whole: a mark of the end with white space after it, one that needs none, or a new line. A point
 * after a digit is that of a list or an ordinal as often as an end, so it is none.
 */
function endOfSentences(text: string): number {
  let length = 0;
  for (const { index, 0: end } of text.matchAll(/(?:[!?…؟]|[^\d\s]\.)[)\]"'*_»”’]*\s|[。！？]|\n/g))
    length = index + end.length;
  return length;
}
