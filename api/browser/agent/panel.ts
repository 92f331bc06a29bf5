import { openAnnouncer } from "./announcer.ts";
import { questionButtons } from "./answer-cards.ts";
import { type AnswerHost, drawTurn, type TurnView } from "./answer-view.ts";
import { drawComposer } from "./composer.ts";
import type { Config } from "./config.ts";
import { type ConversationTurn, openConversation } from "./conversation.ts";
import { element, widgetIcon } from "./element.ts";
import { drawLog } from "./log.ts";
import { words } from "./words.ts";

/** The conversation and its controls, inline or in a floating panel. */
export interface Panel {
  nodes: HTMLElement[];
  focus(): void;
}

/** `close` closes a floating panel, `leave` closes it only if it covers the page. */
export function drawPanel(config: Config, { close, leave }: { close?: () => void; leave?: () => void } = {}): Panel {
  const announcer = openAnnouncer();
  const conversation = openConversation(config, oncePerFrame(draw));
  const composer = drawComposer({ ask, stop: conversation.stop, say: announcer.say });
  const log = drawLog(drawWelcome(config, ask));
  const leavePanel = leave ?? (() => undefined);
  const host: AnswerHost = { config, ask, retry, reveal: log.reveal, say: announcer.say, leavePanel };
  const views = new Map<ConversationTurn, TurnView>();

  function ask(question: string): void {
    if (conversation.isBusy()) return void composer.fill(question);
    begin();
    for (const view of views.values()) view.settle();
    conversation.ask(question);
  }

  function retry(): void {
    if (conversation.isBusy()) return;
    begin();
    conversation.retry();
  }

  function renew(): void {
    conversation.renew();
    for (const { node } of views.values()) node.remove();
    views.clear();
    renewer.hidden = true;
    composer.show(false);
    log.drawn(false);
    composer.focus();
  }

  function begin(): void {
    log.begin();
    announcer.begin();
    composer.show(true);
  }

  function draw(turn: ConversationTurn): void {
    if (!conversation.holds(turn)) return;
    renewer.hidden = false;
    let view = views.get(turn);
    if (!view) {
      view = drawTurn(turn.question, host);
      views.set(turn, view);
      log.add(view.node);
    }
    view.update(turn.answer);
    announcer.follow(turn.answer);
    composer.show(conversation.isBusy());
    log.drawn(conversation.isBusy());
  }

  const renewer = headerButton("renew", renew);
  renewer.hidden = true;
  const disclaimer = element("p.disclaimer", { part: "disclaimer" }, words.disclaimer);
  const nodes = [
    drawHeader(config, renewer, close && headerButton("close", close)),
    log.node,
    offlineNote(),
    composer.node,
    disclaimer,
    announcer.region,
  ];
  return { nodes, focus: composer.focus };
}

/** Renders at most once a frame, however many chunks arrive. Only the latest turn ever changes. */
function oncePerFrame(draw: (turn: ConversationTurn) => void): (turn: ConversationTurn) => void {
  let waiting: ConversationTurn | undefined;
  return (turn) => {
    if (!waiting) {
      requestAnimationFrame(() => {
        const latest = waiting!;
        waiting = undefined;
        draw(latest);
      });
    }
    waiting = turn;
  };
}

function drawHeader({ assistant }: Config, ...buttons: (HTMLElement | undefined)[]): HTMLElement {
  const title = element("h2", { id: "title", dir: "auto" }, assistant.title ?? words.title);
  return element("div.header", { part: "header" }, title, ...buttons);
}

function headerButton(name: "renew" | "close", click: () => void): HTMLElement {
  const label = words[name];
  return element("button", { class: name, part: name, "aria-label": label, title: label, click }, widgetIcon(name));
}

function drawWelcome({ assistant }: Config, ask: (question: string) => void): HTMLElement {
  const { intro = words.intro, suggestedQuestions = [] } = assistant;
  const chips = suggestedQuestions.length > 0 && questionButtons(suggestedQuestions, words.suggestions, ask);
  return element("div.welcome", element("p", { part: "intro", dir: "auto" }, intro), chips);
}

function offlineNote(): HTMLElement {
  const note = element("p.offline", { role: "status" });
  const tell = (): void => {
    note.textContent = navigator.onLine ? "" : words.offline;
  };
  addEventListener("online", tell);
  addEventListener("offline", tell);
  tell();
  return note;
}
