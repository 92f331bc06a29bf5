import type { CtaCard, EvidenceCard, LessonCard } from "../../../schemas/assistant.ts";
import { link, parseWebAddress } from "./address.ts";
import { element, widgetIcon } from "./element.ts";
import { isHere, showPassage } from "./sources.ts";
import { words } from "./words.ts";

/** One card per source, with a link if the source has an address. `leave` closes a panel that covers the page. */
export function drawEvidenceCards(cards: EvidenceCard[], leave: () => void): HTMLElement {
  const items = cards.map((card, at) =>
    element("li.source", { part: "evidence-card" }, evidenceCard(card, at + 1, leave)),
  );
  return element(
    "div.sources",
    { role: "group", "aria-label": words.sources },
    element("h3", words.sources),
    element("ol", ...items),
  );
}

function evidenceCard(source: EvidenceCard, number: number, leave: () => void): HTMLElement {
  const { title, snippet, sourceType, sourceUrl } = source;
  const href = parseWebAddress(sourceUrl ?? "");
  const isOwn = href !== undefined && isHere(href);
  const card = isOwn ? passageLink(source, href, leave) : href ? link(href) : element("div");
  const name = element("span.source-title", { dir: "auto" }, title, href && !isOwn && widgetIcon("link"));
  const kindName = isOwn ? words.here : sourceType === "page" ? words.page : words.document;
  const kind = element("span.kind", kindName);
  const text = element("span.snippet", { dir: "auto" }, snippet);
  const about = element("span.source-text", element("span", name, kind), text);
  card.append(element("span.number", { "aria-hidden": "true" }, String(number)), about);
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
  const links = cards.map(({ label, href }) => {
    const address = parseWebAddress(href);
    const text = element("span", { dir: "auto" }, label);
    return address && link(address, { part: "cta", class: "action" }, text, widgetIcon("link"));
  });
  return element("div.actions", ...links);
}

/** One button per suggested question. */
export function questionButtons(questions: string[], title: string, ask: (question: string) => void): HTMLElement {
  const buttons = questions.map((question) =>
    element("button.chip", { part: "suggestion", dir: "auto", click: () => ask(question) }, question),
  );
  return element("div.chips", { role: "group", "aria-label": title }, ...buttons);
}

/** Lessons from the knowledge documents. */
export function drawLessonCards(cards: LessonCard[]): HTMLElement {
  return element("div.lessons", { role: "group", "aria-label": words.lessons }, ...cards.map(lessonCard));
}

function lessonCard(card: LessonCard): HTMLElement {
  return element(
    "article.lesson",
    { part: "lesson-card", dir: "auto" },
    element("p.kind", card.category),
    element("h3", card.title),
    element("p", card.summary),
    lessonList(words.whenToUse, card.whenToUse, "ul"),
    lessonList(words.steps, card.steps, "ol"),
    Boolean(card.tryNow) && element("div.try", element("h4", words.tryNow), element("p", card.tryNow)),
    card.relatedTactics?.length > 0 && element("p.small", `${words.related}: ${card.relatedTactics.join(" · ")}`),
    Boolean(card.sourceDisclosure) && element("p.small", card.sourceDisclosure),
  );
}

function lessonList(title: string, items: string[], tag: "ul" | "ol"): HTMLElement | undefined {
  if (!Array.isArray(items) || items.length === 0) return undefined;
  return element("div", element("h4", title), element(tag, {}, ...items.map((item) => element("li", item))));
}
