import { type Answer, isOver, stateOf } from "./answer.ts";
import { actionLinks, drawEvidenceCards, drawLessonCards, questionButtons } from "./answer-cards.ts";
import { copyText } from "./clipboard.ts";
import { element, widgetIcon } from "./element.ts";
import { type LeadHost, leadCard } from "./lead-card.ts";
import { drawMarkdown } from "./markdown.ts";
import { visibleText } from "./sources.ts";
import { words } from "./words.ts";

/** The parts of the widget that an answer uses. */
export interface AnswerHost extends LeadHost {
  retry(): void;
  /** Closes the panel if it covers the page. */
  leavePanel(): void;
}

/** One rendered turn. */
export interface TurnView {
  node: HTMLElement;
  /** Renders the answer as received so far. */
  update(answer: Answer): void;
  /** A later turn has started: removes the actions that only the latest answer offers. */
  settle(): void;
}

export function drawTurn(question: string, host: AnswerHost): TurnView {
  const text = element("div.text", { part: "answer-text" });
  const state = element("p.state");
  const below = element("div.below");
  const offers = element("div.offers");
  const [you, assistant] = [words.you, words.assistant].map((name) => element("span.unseen", name));
  const asked = element("div.question", { part: "question", dir: "auto" }, you, question);
  const answered = element("div.answer", { part: "answer" }, assistant, text, below, state, offers);
  const draw = drawMarkdown(text);
  const drawn = new Map<unknown, HTMLElement>();
  let offered: Answer | undefined;
  return {
    node: element("div.turn", asked, answered),
    update(answer) {
      draw(visibleText(answer));
      drawParts(below, drawn, belowText(answer, host));
      drawState(state, answer);
      const ended = isOver(answer) ? answer : undefined;
      // A second answer to the same question may finish before a frame has shown it in progress.
      if (ended !== offered) offers.replaceChildren(...(ended ? offersOf(ended, host, text) : []));
      offered = ended;
    },
    settle: () => offers.remove(),
  };
}

/** Functions that render parts of an answer, by the part's content. */
type Parts = Map<unknown, () => HTMLElement>;

/** The parts below the text; shown once the text is complete. */
function belowText(answer: Answer, host: AnswerHost): Parts {
  const { textEnded, evidence, degraded, actions, lessons, section } = answer;
  const parts: Parts = new Map();
  if (!textEnded) return parts;
  if (evidence.length > 0) parts.set(evidence, () => drawEvidenceCards(evidence, host.leavePanel));
  if (degraded) parts.set(degraded, () => element("p.small", words.degraded));
  if (actions.length > 0) parts.set(actions, () => actionLinks(actions));
  if (lessons.length > 0) parts.set(lessons, () => drawLessonCards(lessons));
  if (section) parts.set(section, () => leadCard(section, host, answer));
  return parts;
}

/** Creates new parts and those whose content changed; keeps the others, such as an open card. */
function drawParts(below: HTMLElement, drawn: Map<unknown, HTMLElement>, parts: Parts): void {
  for (const [content, node] of drawn) {
    if (parts.has(content)) continue;
    node.remove();
    drawn.delete(content);
  }
  for (const [content, make] of parts) {
    if (drawn.has(content)) continue;
    drawn.set(content, make());
    below.append(drawn.get(content)!);
  }
}

function drawState(state: HTMLElement, answer: Answer): void {
  const said = stateOf(answer);
  if (state.textContent !== said) state.textContent = said;
  state.className = `state ${answer.status}`;
  state.hidden = said === "";
}

function offersOf(answer: Answer, host: AnswerHost, text: HTMLElement): HTMLElement[] {
  const again =
    answer.status !== "done" &&
    element("button.tool", { part: "retry", click: host.retry }, widgetIcon("retry"), words.retry);
  const tools = element("div.tools", again, answer.text !== "" && copyButton(host, text));
  return answer.followUps.length > 0 ? [tools, questionButtons(answer.followUps, words.followUps, host.ask)] : [tools];
}

function copyButton(host: AnswerHost, text: HTMLElement): HTMLElement {
  const label = element("span", words.copy);
  const copy = async (): Promise<void> => {
    // biome-ignore lint/performance/useDomNodeTextContent: the copy keeps the breaks between blocks that the eye sees.
    await copyText(text.innerText, button);
    label.textContent = words.copied;
    host.say(words.copied);
  };
  const attributes = { part: "copy", "aria-label": words.copyAnswer, click: copy };
  const button = element("button.tool", attributes, widgetIcon("copy"), label);
  return button;
}
