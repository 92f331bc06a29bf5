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
  const asked = element("div.question", { part: "question", dir: "auto" }, element("span.unseen", words.you), question);
  const answered = element(
    "div.answer",
    { part: "answer" },
    element("span.unseen", words.assistant),
    text,
    below,
    state,
    offers,
  );
  const draw = drawMarkdown(text);
  let offered: Answer | undefined;
  const parts = new Map<string, { value: unknown; node: HTMLElement }>();
  return {
    node: element("div.turn", asked, answered),
    update(answer) {
      draw(visibleText(answer));
      drawParts(below, parts, belowText(answer, host));
      drawState(state, answer);
      const ended = isOver(answer) ? answer : undefined;
      // A second answer to the same question may finish before a frame has shown it in progress.
      if (ended !== offered) offers.replaceChildren(...(ended ? offersOf(ended, host, text) : []));
      offered = ended;
    },
    settle: () => offers.remove(),
  };
}

/** Name, content, and the function that renders it. */
type Part = [name: string, value: unknown, make: () => HTMLElement];

/** The parts below the text; shown once the text is complete. */
function belowText(answer: Answer, host: AnswerHost): Part[] {
  if (!answer.textEnded) return [];
  const { evidence, degraded, actions, lessons, section } = answer;
  const parts: (Part | false | undefined)[] = [
    evidence.length > 0 && ["sources", evidence, () => drawEvidenceCards(evidence, host.leavePanel)],
    degraded && ["degraded", degraded, () => element("p.small", words.degraded)],
    actions.length > 0 && ["actions", actions, () => actionLinks(actions)],
    lessons.length > 0 && ["lessons", lessons, () => drawLessonCards(lessons)],
    section && ["section", section, () => leadCard(section, host, answer)],
  ];
  return parts.filter((part) => part !== false && part !== undefined);
}

/** Creates new parts and those whose content changed; keeps the others, such as an open card. */
function drawParts(below: HTMLElement, drawn: Map<string, { value: unknown; node: HTMLElement }>, parts: Part[]): void {
  for (const [name, { node }] of drawn) {
    if (parts.some((part) => part[0] === name && part[1] === drawn.get(name)!.value)) continue;
    node.remove();
    drawn.delete(name);
  }
  for (const [name, value, make] of parts) {
    if (drawn.has(name)) continue;
    const node = make();
    drawn.set(name, { value, node });
    below.append(node);
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
  const button = element(
    "button.tool",
    { part: "copy", "aria-label": words.copyAnswer, click: copy },
    widgetIcon("copy"),
    label,
  );
  return button;
}
