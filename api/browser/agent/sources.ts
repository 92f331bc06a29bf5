import type { EvidenceCard } from "../../../schemas/assistant.ts";
import type { Answer } from "./answer.ts";
import { withoutMarkup } from "./markdown.ts";

/** Number of words to look for on the page, most first: links, addresses and table cells may interrupt a passage. */
const PASSAGE_WORDS = [12, 6, 3, 2];
/** Ms for which a passage is highlighted. */
const HIGHLIGHT_MS = 2500;
/** Initial highlight colour. */
const HIGHLIGHT_COLOUR = "#f5b30099";

/** The text of an answer without a final line that only names the sources, once their cards are shown below it. */
export function visibleText({ text, textEnded, evidence }: Answer): string {
  if (!textEnded || evidence.length === 0) return text;
  const at = text.trimEnd().lastIndexOf("\n\n");
  const rest = evidence.reduce((line, { title }) => line.replace(title, ""), withoutMarkup(text.slice(at)));
  return at > 0 && /^[^:：]{1,30}[:：][\s,，]*$/.test(rest.trim()) ? text.slice(0, at) : text;
}

/** True for the current page. */
export function isHere(address: string): boolean {
  const canonical = document.querySelector<HTMLLinkElement>("link[rel=canonical]")?.href;
  return [location.href, canonical].some((own) => own && placeOf(own) === placeOf(address));
}

/** Scrolls to the passage of a card, highlights it for a moment and moves the focus there; to the top of the page if it isn't found. */
export function showPassage({ snippet }: EvidenceCard): void {
  const found = findPassage(snippet);
  if (!found) return void scrollTo({ top: 0, behavior: motion() });
  found.scrollIntoView({ block: "center", behavior: motion() });
  found.animate({ backgroundColor: [HIGHLIGHT_COLOUR, "transparent"] }, HIGHLIGHT_MS);
  if (!found.hasAttribute("tabindex")) found.setAttribute("tabindex", "-1");
  found.focus({ preventScroll: true });
}

/** The innermost element that contains the beginning of a passage. */
function findPassage(snippet: string): HTMLElement | undefined {
  const words = normalized(snippet).split(" ");
  const elements = [...document.body.querySelectorAll<HTMLElement>("*:not(script, style)")];
  for (const count of PASSAGE_WORDS) {
    const wanted = words.slice(0, count).join(" ");
    const holding = elements.filter((one) => normalized(one.textContent ?? "").includes(wanted));
    const found = holding.find((one) => !holding.some((other) => other !== one && one.contains(other)));
    if (found) return found;
  }
  return undefined;
}

function normalized(text: string): string {
  return text.replace(/[\s…]+/g, " ").trim();
}

function placeOf(address: string): string {
  const { origin, pathname } = new URL(address);
  return origin + pathname.replace(/\/$/, "");
}

function motion(): ScrollBehavior {
  return matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth";
}
