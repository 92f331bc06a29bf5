import { element, type Part } from "./element.ts";

/** The normalised URL if the text is an absolute http or https URL; otherwise undefined. */
export function parseWebAddress(text: string): string | undefined {
  try {
    const { protocol, href } = new URL(text);
    return protocol === "https:" || protocol === "http:" ? href : undefined;
  } catch {
    // Not a URL.
    return undefined;
  }
}

/** A link in a new tab, since leaving the page would end the conversation or lose entries. */
export function link(href: string, ...parts: Part[]): HTMLAnchorElement {
  return element("a", { href, target: "_blank", rel: "noopener nofollow" }, ...parts);
}
