import { element } from "./element.ts";

/** Copies a text. If the browser denies the clipboard API, it copies a selection next to `neighbour`. */
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
