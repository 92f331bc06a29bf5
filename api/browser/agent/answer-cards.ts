import type { CtaCard, EvidenceCard, LessonCard } from "../../../schemas/assistant.ts";
import { parseWebAddress } from "./address.ts";
import { element, widgetIcon } from "./element.ts";
import { link } from "./markdown.ts";
import { isHere, showPassage } from "./sources.ts";
import { words } from "./words.ts";

/** One card per source, with a link if the source has an address. `leave` closes a panel that covers the page. */
export function drawEvidenceCards(cards: EvidenceCard[], leave: () => void): HTMLElement {
  const items = cards.map((card, at) =>
    element("li", { part: "evidence-card", class: "source" }, evidenceCard(card, at + 1, leave)),
  );
  return element(
    "div",
    { class: "sources", role: "group", "aria-label": words.sources },
    element("h3", {}, words.sources),
    element("ol", {}, ...items),
  );
}

function evidenceCard(source: EvidenceCard, number: number, leave: () => void): HTMLElement {
  const { title, snippet, sourceType, sourceUrl } = source;
  const href = parseWebAddress(sourceUrl ?? "");
  const isOwn = href !== undefined && isHere(href);
  const card = isOwn ? passageLink(source, href, leave) : href ? link(href) : element("div");
  const name = element("span", { class: "source-title", dir: "auto" }, title, href && !isOwn && widgetIcon("link"));
  const kindName = isOwn ? words.here : sourceType === "page" ? words.page : words.document;
  const kind = element("span", { class: "kind" }, kindName);
  const about = element(
    "span",
    { class: "source-text" },
    element("span", {}, name, kind),
    element("span", { class: "snippet", dir: "auto" }, snippet),
  );
  card.append(element("span", { class: "number", "aria-hidden": "true" }, String(number)), about);
  return card;
}

/** A link to a passage of the current page. */
function passageLink(source: EvidenceCard, href: string, leave: () => void): HTMLElement {
  const show = (event: Event): void => {
    event.preventDefault();
    leave();
    showPassage(source);
  };
  return element("a", { href, click: show });
}

/** The page's calls to action, as links. */
export function actionLinks(cards: CtaCard[]): HTMLElement {
  const made = cards.flatMap(({ label, href }) => {
    const address = parseWebAddress(href);
    if (!address) return [];
    const anchor = link(address);
    anchor.setAttribute("part", "cta");
    anchor.setAttribute("class", "action");
    anchor.append(element("span", { dir: "auto" }, label), widgetIcon("link"));
    return [anchor];
  });
  return element("div", { class: "actions" }, ...made);
}

/** One button per suggested question. */
export function questionButtons(questions: string[], title: string, ask: (question: string) => void): HTMLElement {
  const buttons = questions.map((question) =>
    element(
      "button",
      { type: "button", part: "suggestion", class: "chip", dir: "auto", click: () => ask(question) },
      question,
    ),
  );
  return element("div", { class: "chips", role: "group", "aria-label": title }, ...buttons);
}

/** Lessons from the knowledge documents. */
export function drawLessonCards(cards: LessonCard[]): HTMLElement {
  return element("div", { class: "lessons", role: "group", "aria-label": words.lessons }, ...cards.map(lessonCard));
}

function lessonCard(card: LessonCard): HTMLElement {
  return element(
    "article",
    { part: "lesson-card", class: "lesson", dir: "auto" },
    element("p", { class: "kind" }, card.category),
    element("h3", {}, card.title),
    element("p", {}, card.summary),
    lessonList(words.whenToUse, card.whenToUse, "ul"),
    lessonList(words.steps, card.steps, "ol"),
    Boolean(card.tryNow) &&
      element("div", { class: "try" }, element("h4", {}, words.tryNow), element("p", {}, card.tryNow)),
    card.relatedTactics?.length > 0 &&
      element("p", { class: "small" }, `${words.related}: ${card.relatedTactics.join(" · ")}`),
    Boolean(card.sourceDisclosure) && element("p", { class: "small" }, card.sourceDisclosure),
  );
}

function lessonList(title: string, items: string[], tag: "ul" | "ol"): HTMLElement | undefined {
  if (!Array.isArray(items) || items.length === 0) return undefined;
  return element(
    "div",
    {},
    element("h4", {}, title),
    element(tag, {}, ...items.map((item) => element("li", {}, item))),
  );
}
