type Attributes = Record<string, string | boolean | ((event: never) => void) | undefined>;
type Child = Node | string | false | undefined;

/** Creates an element with attributes (`true` is an empty one; a function listens to the event of that name) and children (text or nodes). */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value as EventListener);
    else if (value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== undefined && child !== false));
  return made;
}

/** Paths in a box of 24 by 24 units. */
const icons = {
  ask: "M4 5h16v11H9l-5 4z",
  close: "M6 6l12 12M18 6L6 18",
  renew: "M12 5v14M5 12h14",
  send: "M12 20V5m-6 6l6-6 6 6",
  stop: "M7 7h10v10H7z",
  copy: "M9 9h10v11H9zM5 15V4h10",
  retry: "M19 12a7 7 0 1 1-2-5l2 2m0-5v5h-5",
  open: "M7 10l5 5 5-5",
  link: "M9 6h9v9M18 6L7 17",
  tick: "M5 13l4 4L19 7",
};
const svg = "http://www.w3.org/2000/svg";

/** An icon, hidden from assistive technology. */
export function widgetIcon(name: keyof typeof icons): SVGElement {
  return drawIcon(icons[name], name);
}

/** A path in a box of 24 by 24 units, hidden from assistive technology. */
export function drawIcon(line: string, look: string): SVGElement {
  const drawing = document.createElementNS(svg, "svg");
  drawing.setAttribute("viewBox", "0 0 24 24");
  drawing.setAttribute("aria-hidden", "true");
  drawing.setAttribute("class", look);
  const path = document.createElementNS(svg, "path");
  path.setAttribute("d", line);
  drawing.append(path);
  return drawing;
}

/** 128 random bits as text. */
export function randomId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
