import { element } from "./element.ts";

/** Copies a text; without the clipboard API, by a selection next to `neighbour`. */
export async function copyText(text: string, neighbour: HTMLElement): Promise<void> {
  try {
    return await navigator.clipboard.writeText(text);
  } catch {
    // Insecure pages lack the API, and a frame or a visitor may deny it.
  }
  const held = element("textarea.unseen");
  held.value = text;
  neighbour.after(held);
  held.select();
  document.execCommand("copy");
  held.remove();
  neighbour.focus();
}
