import { element, widgetIcon } from "./element.ts";
import { words } from "./words.ts";

/** Distance to the end in px below which no button leads there. */
const NEAR_END_PX = 48;
/** Px that stay free above an element that is scrolled to the top. */
const MARGIN_PX = 12;

/** The scrolling list of turns. */
export interface TurnLog {
  node: HTMLElement;
  /** A question was asked: follows the end until the visitor scrolls. */
  begin(): void;
  add(turn: HTMLElement): void;
  /** Something was rendered. */
  drawn(isBusy: boolean): void;
  reveal(node: HTMLElement): void;
}

/** The list of turns, which follows a growing answer, and its button to the end. */
export function drawLog(welcome: HTMLElement): TurnLog {
  let isFollowing = true;
  let scrolledTo = 0;
  const log = element(
    "div.log",
    { part: "log", role: "log", "aria-live": "off", "aria-label": words.conversation, tabindex: "0" },
    welcome,
  );
  const toLatest = (): void => {
    log.scrollTop = log.scrollHeight;
    focusLog();
  };
  const attributes = { "aria-label": words.latest, hidden: true, click: toLatest };
  const latest = element("button.latest", attributes, widgetIcon("open"));
  const showLatest = (): void => {
    latest.hidden = log.scrollHeight - log.scrollTop - log.clientHeight < NEAR_END_PX;
  };
  const reveal = (node: HTMLElement): void => {
    log.scrollTop = node.offsetTop - MARGIN_PX;
  };
  /** Follows the end until the question has reached the top; then the answer keeps still for reading. */
  const follow = (): void => {
    reveal(log.lastElementChild as HTMLElement);
    scrolledTo = log.scrollTop;
  };
  const focusLog = (): void => log.focus({ preventScroll: true });
  log.addEventListener("scroll", () => {
    if (Math.abs(log.scrollTop - scrolledTo) > 2) isFollowing = false;
    showLatest();
  });
  return {
    node: element("div.middle", log, latest),
    begin() {
      isFollowing = true;
      // The log shrinks by the offers of the last answer, and so scrolls by itself until the question is rendered.
      scrolledTo = Number.NaN;
      log.setAttribute("aria-busy", "true");
      // A suggestion button disappears with its card; the focus must stay in the log.
      if ((log.getRootNode() as ShadowRoot).activeElement?.tagName === "BUTTON") focusLog();
    },
    add: (turn) => log.append(turn),
    drawn(isBusy) {
      log.setAttribute("aria-busy", String(isBusy));
      if (isFollowing) follow();
      showLatest();
    },
    reveal,
  };
}
