import { link, parseWebAddress } from "../agent/address.ts";

/** A text whose http and https URLs are links; everything else stays text. */
export function linked(text: string): (HTMLElement | string)[] {
  const pieces: (HTMLElement | string)[] = [];
  let written = 0;
  for (const { 0: found, index } of text.matchAll(/https?:\/\/[^\s<>"']+/gi)) {
    const address = withoutEnd(found);
    const href = parseWebAddress(address);
    if (!href) continue;
    pieces.push(text.slice(written, index), link(href, address));
    written = index + address.length;
  }
  return [...pieces, text.slice(written)];
}

/** The URL without trailing punctuation and without a closing bracket whose opening one precedes the URL. */
function withoutEnd(address: string): string {
  const bare = address.replace(/[.,;:!?\]}»”’]+$/, "");
  return bare.endsWith(")") && !bare.includes("(") ? withoutEnd(bare.slice(0, -1)) : bare;
}
