import { element } from "./element.ts";

/** Puts a text on the clipboard; where the browser gives no access to it, by way of a selection beside `neighbour`. */
export async function copyText(text: string, neighbour: HTMLElement): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const held = element("textarea", { class: "unseen" });
  held.value = text;
  neighbour.after(held);
  held.select();
  document.execCommand("copy");
  held.remove();
  neighbour.focus();
}
