import { oneLine } from "../platform/characters.ts";

/** What would start raw HTML, an image or a reference in Markdown. */
const RAW = /<(?=[a-z/!?])/gi;
const IMAGE = /!(?=\[)/g;
const LINK = /\[([^[\]]*)\]\(\s*<?([^\s()<>]*)>?(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)/g;
const BLOCK_MARK = /^(?:#{1,6}(?=\s)|>|[-+*](?=\s)|\d{1,9}(?=[.)]\s))/;

/**
 * A sentence of public text as one line of Markdown: raw HTML and images are made inert by a backslash, links keep http
 * and https addresses only. Letters, numbers and spaces stay as they are.
 */
export function sentenceMarkdown(text: string): string {
  const line = oneLine(text);
  const inert = line.replace(RAW, "\\<").replace(IMAGE, "\\!").replace(LINK, keepWebLink);
  return inert.replace(BLOCK_MARK, (mark) => (/^\d/.test(mark) ? mark : `\\${mark}`));
}

/** A name (title, heading) as Markdown text without any markup of its own. */
export function nameMarkdown(name: string): string {
  return oneLine(name).replace(/[\\`*_[\]<>]/g, (mark) => `\\${mark}`);
}

/** A link in Markdown; the name alone where there is no http(s) address. */
export function linkMarkdown(name: string, url: string | null): string {
  const address =
    url === null
      ? ""
      : url.replace(/[()<>\s\\]/g, (mark) => encodeURIComponent(mark).replace("(", "%28").replace(")", "%29"));
  return /^https?:\/\//i.test(address) ? `[${nameMarkdown(name)}](${address})` : nameMarkdown(name);
}

function keepWebLink(link: string, label: string, address: string): string {
  return /^https?:\/\//i.test(address) ? link : label;
}
