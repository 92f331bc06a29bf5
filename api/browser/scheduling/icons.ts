import { drawIcon } from "../agent/element.ts";

/** Paths in a box of 24 by 24 units. */
const icons = {
  before: "M15 5l-7 7 7 7",
  after: "M9 5l7 7-7 7",
  time: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M12 7v5l3.5 2",
  place: "M12 21s7-6.2 7-11.5A7 7 0 0 0 5 9.5C5 14.8 12 21 12 21M12 12a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5",
  price: "M3.5 6.5h17v11h-17zM3.5 10.5h17M7 14.5h3",
  tick: "M5 12.5l4.5 4.5L19 7.5",
  calendar: "M4 6h16v14H4zM4 10.5h16M8 3.5V8M16 3.5V8",
  close: "M6 6l12 12M18 6L6 18",
  add: "M12 5v14M5 12h14",
  wait: "M7 3.5h10M7 20.5h10M8 3.5c0 5 8 7.5 8 17M16 3.5c0 5-8 7.5-8 17",
};
export type Icon = keyof typeof icons;

/** An icon, hidden from assistive technology. */
export function pageIcon(name: Icon): SVGElement {
  return drawIcon(icons[name], `icon ${name}`);
}
