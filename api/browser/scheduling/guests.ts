import { fillPlaceholders } from "../../../core/platform/placeholders.ts";
import { element } from "../agent/element.ts";
import { type Field, fieldOf } from "./fields.ts";
import type { Host } from "./host.ts";
import { pageIcon } from "./icons.ts";
import { words } from "./visit.ts";

/** Maximum number of guests of a booking (docs/reference.md, "Bookings"). */
const MAX_GUESTS = 20;

/** Addresses of guests, one per row. */
export interface Guests {
  node: HTMLElement;
  fields(): Field[];
}

/** No row at first, unless addresses were entered before. */
export function guestList({ say }: Host, entered: string[]): Guests {
  const rows = element("div.guests");
  let fields: Field[] = [];
  const add = element("button.text", { type: "button" }, pageIcon("add"), words.addGuest);
  /** Renders the rows again with these values, to renumber them. */
  const draw = (values: string[]): void => {
    fields = values.map((value, at) => {
      const label = fillPlaceholders(words.guest, { count: at + 1 });
      return fieldOf({ path: `/guests/${at}`, label, type: "email", required: true, value });
    });
    rows.replaceChildren(
      ...fields.map((field, at) =>
        guestRow(field, fillPlaceholders(words.removeGuest, { count: at + 1 }), () => remove(at)),
      ),
    );
    add.hidden = values.length >= MAX_GUESTS;
  };
  const remove = (at: number): void => {
    draw(fields.map((field) => field.read()).filter((_, index) => index !== at));
    (fields[at] ?? fields[at - 1] ?? add).focus();
    say(words.guests);
  };
  add.addEventListener("click", () => {
    draw([...fields.map((field) => field.read()), ""]);
    fields.at(-1)?.focus();
  });
  draw(entered);
  return { node: element("div.field", rows, add), fields: () => fields };
}

function guestRow({ node }: Field, label: string, remove: () => void): HTMLElement {
  const button = element("button.round", { "aria-label": label, click: remove }, pageIcon("close"));
  return element("div.guest", node, button);
}
