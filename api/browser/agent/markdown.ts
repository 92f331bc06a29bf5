import { link, parseWebAddress } from "./address.ts";
import { element } from "./element.ts";

/** Maximum nesting of lists, quotes and emphasis; deeper markup is shown as source text. */
const MAX_DEPTH = 5;
/** Maximum distance to the end of an emphasis or a link, in UTF-16 units, so that rendering is linear in the length. */
const MAX_DISTANCE = 1500;

const fence = /^ {0,3}(```+|~~~+)/;
const heading = /^ {0,3}#{1,6}\s+(.*?)\s*#*$/;
const bullet = /^(\s*)(?:[-*+]|(\d{1,9})[.)])\s+(.*)$/;
/** List kinds: bulleted and numbered. */
const lists = ["-", "1"];
const quote = /^ {0,3}>\s?/;

/**
 * Renders growing Markdown: each call takes the whole text so far and replaces only the changed blocks. Blocks are paragraphs, headings,
 * lists, quotes and code. It uses createElement and text nodes only.
 */
export function drawMarkdown(parent: HTMLElement): (text: string) => void {
  let drawn: string[] = [];
  return (text) => {
    const blocks = splitBlocks(text);
    const same = blocks.findIndex((block, at) => block !== drawn[at]);
    const from = same < 0 ? blocks.length : same;
    while (parent.childNodes.length > from) parent.lastChild!.remove();
    parent.append(...blocks.slice(from).map((block) => drawBlock(block, 0)));
    drawn = blocks;
  };
}

/** The text without its markup, for screen readers and plain copies. */
export function withoutMarkup(text: string): string {
  return text
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/^ {0,3}(#+|>|[-*+])\s+|[*`]+|\\(?=[!-/:-@[-`{-~])/gm, "");
}

/** Splits the source into blocks. In a growing text only the last block changes. */
function splitBlocks(text: string): string[] {
  const blocks: string[] = [];
  let open: string[] = [];
  let kind = "";
  const close = (): void => {
    if (open.length > 0) blocks.push(open.join("\n"));
    open = [];
    kind = "";
  };
  for (const line of text.split(/\r?\n/)) {
    const [, mark] = fence.exec(line) ?? [];
    if (kind.length > 2) {
      open.push(line);
      if (mark?.startsWith(kind)) close();
      continue;
    }
    const next = kindOf(line, kind, mark);
    if (next !== kind || kind === "#") close();
    kind = next;
    if (next !== "") open.push(line);
  }
  close();
  return blocks.map((block) => block.trimEnd()).filter((block) => block !== "");
}

/** The kind of block that a line starts or continues, given the open one: a fence's marks, `#`, `>`, `-`, `1`, `p`, or empty. */
function kindOf(line: string, open: string, mark: string | undefined): string {
  if (mark) return mark;
  const isList = lists.includes(open);
  if (line.trim() === "") return isList ? open : "";
  if (heading.test(line)) return "#";
  if (quote.test(line)) return ">";
  if (isList && /^\s{2}/.test(line)) return open;
  const item = bullet.exec(line);
  if (item) return item[2] ? "1" : "-";
  if (isList && /^\s/.test(line)) return open;
  return open === ">" ? open : "p";
}

function drawBlock(source: string, depth: number): HTMLElement {
  const lines = source.split("\n");
  const first = lines[0]!;
  const [, title] = heading.exec(first) ?? [];
  if (fence.test(first)) return drawCode(lines);
  if (title !== undefined) return inlined(element("p.heading", { dir: "auto" }), title);
  if (quote.test(first) && depth < MAX_DEPTH)
    return drawInside(
      element("blockquote"),
      lines.map((line) => line.replace(quote, "")),
      depth,
    );
  if (bullet.test(first) && depth < MAX_DEPTH) return drawList(lines, depth);
  return inlined(element("p", { dir: "auto" }), source);
}

function drawCode(lines: string[]): HTMLElement {
  const closed = lines.length > 1 && fence.test(lines.at(-1)!);
  const code = element("code", lines.slice(1, closed ? -1 : undefined).join("\n"));
  return element("pre", { dir: "ltr", tabindex: "0" }, code);
}

function drawList(lines: string[], depth: number): HTMLElement {
  const [, indent, number] = bullet.exec(lines[0]!)!;
  const list = number ? element("ol", { dir: "auto", start: number }) : element("ul", { dir: "auto" });
  let item: string[] = [];
  const close = (): void => {
    if (item.length > 0) list.append(drawInside(element("li"), item, depth));
  };
  for (const line of lines) {
    const [, before = "", , rest = ""] = bullet.exec(line) ?? [];
    if (bullet.test(line) && before.length <= indent!.length + 1) {
      close();
      item = [rest];
    } else item.push(line.replace(/^\s{1,4}/, ""));
  }
  close();
  return list;
}

/** Nested blocks; a single leading paragraph gets no element. */
function drawInside<E extends HTMLElement>(parent: E, lines: string[], depth: number): E {
  const [first, ...rest] = splitBlocks(lines.join("\n")).map((block) => drawBlock(block, depth + 1));
  if (first) parent.append(...(first.tagName === "P" ? first.childNodes : [first]), ...rest);
  return parent;
}

function inlined<E extends HTMLElement>(parent: E, text: string): E {
  return drawInline(parent, text, { depth: 0, links: true });
}

const tick = String.raw`\x60`;
const letter = String.raw`[\p{L}\p{N}]`;
const some = `[^]{1,${MAX_DISTANCE}}?`;
/** Before the marks that open emphasis, and after those that close it: none of the same kind, and next to `_` no letter. */
const opens = String.raw`(?<!\*(?=\*)|(?:${letter}|_)(?=_))`;
const closes = String.raw`(?!(?<=\*)\*|(?<=_)(?:${letter}|_))`;
const address = String.raw`<?(?<address>[^\s<>()]*(?:\([^\s<>()]*\)[^\s<>()]*)*)>?(?:\s+"[^"]*")?`;

/** Markup inside a block, by the names that `drawPiece` reads. */
const pieces = new RegExp(
  [
    String.raw`\\(?<escaped>[!-\/:-@\[-${tick}\{-~\n])`,
    String.raw`(?<!${tick})(?<ticks>${tick}+)(?!${tick})(?<code>${some})(?<!${tick})\k<ticks>(?!${tick})`,
    String.raw`(?<image>!?)\[(?<label>(?:[^\[\]\\]|\\.)*)\]\(\s*${address}\s*\)`,
    String.raw`(?<!${letter})(?<url>https?:\/\/[^\s<>"'${tick}*]{0,${MAX_DISTANCE}}[^\s<>"'${tick}*.,;:!?\)\]\}])`,
    String.raw`${opens}(?<double>\*\*|__)(?=\S)(?<strong>${some})(?<=\S)\k<double>${closes}`,
    String.raw`${opens}(?<single>[*_])(?!\k<single>|\s)(?<em>${some})(?<!\s|\k<single>)\k<single>${closes}`,
  ].join("|"),
  "gu",
);

interface Position {
  depth: number;
  links: boolean;
}

function drawInline<E extends HTMLElement>(parent: E, text: string, place: Position): E {
  let written = 0;
  for (const { 0: found, index, groups } of place.depth < MAX_DEPTH ? text.matchAll(pieces) : []) {
    parent.append(text.slice(written, index), drawPiece(groups!, place));
    written = index + found.length;
  }
  parent.append(text.slice(written));
  return parent;
}

/** An image becomes its description, and a link to another kind of address its label. */
function drawPiece(piece: Record<string, string | undefined>, { depth, links }: Position): Node | string {
  const { escaped, code, image, label, address = "", url, strong, em } = piece;
  if (escaped) return escaped === "\n" ? element("br") : escaped;
  if (code) return element("code", code.replace(/^ (.*) $/, "$1"));
  const href = links && !image ? parseWebAddress(url ?? address) : undefined;
  if (url) return href ? link(href, url) : url;
  const parent = href ? link(href) : element(strong ? "strong" : em ? "em" : "span");
  const isLabel = label !== undefined;
  return drawInline(parent, label ?? strong ?? em ?? "", { depth: depth + 1, links: links && !isLabel });
}
