type Tag = keyof HTMLElementTagNameMap;
type Made<S extends string> = HTMLElementTagNameMap[S extends `${infer T extends Tag}.${string}` ? T : S & Tag];
type Attributes = Record<string, string | boolean | ((event: never) => void) | undefined>;
export type Part = Node | string | Attributes | false | null | undefined;

/**
 * Creates an element: `p.muted` is `<p class="muted">`. An object contains attributes (`true` is an empty one; a function listens to the
 * event of that name), all else are children. A button with a `click` doesn't submit its form.
 */
export function element<S extends Tag | `${Tag}.${string}`>(selector: S, ...parts: Part[]): Made<S> {
  const [tag = "", ...classes] = selector.split(".");
  const made = document.createElement(tag);
  if (classes.length > 0) made.className = classes.join(" ");
  for (const part of parts) {
    if (typeof part === "string" || part instanceof Node) made.append(part);
    else if (part) setAttributes(made, part);
  }
  return made as Made<S>;
}

function setAttributes(made: HTMLElement, attributes: Attributes): void {
  if (made.tagName === "BUTTON" && attributes.click) made.setAttribute("type", "button");
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value as EventListener);
    else if (value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
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
