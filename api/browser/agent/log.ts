import { element, icon } from "./element.ts";
import { words } from "./words.ts";

/** Pixels that may be out of sight below without a button that leads there. */
const closeToEnd = 48;
/** Pixels above what is brought to the top. */
const margin = 12;

/** Where the turns of a conversation stand, below each other. */
export interface Log {
  node: HTMLElement;
  /** A question is asked: what follows is kept in view until the visitor scrolls. */
  begin(): void;
  add(turn: HTMLElement): void;
  /** Something was drawn. */
  drawn(isBusy: boolean): void;
  reveal(node: HTMLElement): void;
}

export function drawLog(welcome: HTMLElement): Log {
  let isFollowing = true;
  let scrolledTo = 0;
  const log = element(
    "div",
    { class: "log", part: "log", role: "log", "aria-live": "off", "aria-label": words.conversation, tabindex: "0" },
    welcome,
  );
  const latest = element(
    "button",
    { type: "button", class: "latest", "aria-label": words.latest, hidden: true },
    icon("open"),
  );
  const showLatest = (): void => {
    latest.hidden = log.scrollHeight - log.scrollTop - log.clientHeight < closeToEnd;
  };
  const reveal = (node: HTMLElement): void => {
    log.scrollTop = node.offsetTop - margin;
  };
  /** Keeps the end in view until the question has reached the top: then the answer stands still, to be read. */
  const follow = (): void => {
    reveal(log.lastElementChild as HTMLElement);
    scrolledTo = log.scrollTop;
  };
  const rest = (): void => log.focus({ preventScroll: true });
  log.addEventListener("scroll", () => {
    if (Math.abs(log.scrollTop - scrolledTo) > 2) isFollowing = false;
    showLatest();
  });
  latest.addEventListener("click", () => {
    log.scrollTop = log.scrollHeight;
    rest();
  });
  return {
    node: element("div", { class: "middle" }, log, latest),
    begin() {
      isFollowing = true;
      log.setAttribute("aria-busy", "true");
      // A button that asks goes away with what it belongs to; the focus must not go with it.
      if ((log.getRootNode() as ShadowRoot).activeElement?.tagName === "BUTTON") rest();
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
