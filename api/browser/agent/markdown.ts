import { parseWebAddress } from "./address.ts";
import { element } from "./element.ts";

/** Maximum nesting of lists, quotes and emphasis; deeper markup is shown as source text. */
const deepest = 5;
/** Maximum distance to the end of an emphasis or a link, in UTF-16 units, so that rendering is linear in the length. */
const farthest = 1500;

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
  if (title !== undefined) return inlined(element("p", { class: "heading", dir: "auto" }), title);
  if (quote.test(first) && depth < deepest)
    return drawInside(
      element("blockquote"),
      lines.map((line) => line.replace(quote, "")),
      depth,
    );
  if (bullet.test(first) && depth < deepest) return drawList(lines, depth);
  return inlined(element("p", { dir: "auto" }), source);
}

function drawCode(lines: string[]): HTMLElement {
  const closed = lines.length > 1 && fence.test(lines.at(-1)!);
  const code = element("code", {}, lines.slice(1, closed ? -1 : undefined).join("\n"));
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
  drawInline(parent, text, { depth: 0, links: true });
  return parent;
}

interface Position {
  depth: number;
  links: boolean;
}

const special = /[\\`*_[!]|https?:\/\//g;

function drawInline(parent: HTMLElement, text: string, place: Position): void {
  let written = 0;
  let at = 0;
  while (place.depth < deepest) {
    special.lastIndex = at;
    const found = special.exec(text);
    if (!found) break;
    const piece = readPiece(text, found.index, place);
    at = piece ? piece.end : found.index + runLength(text, found.index);
    if (!piece) continue;
    parent.append(text.slice(written, found.index), piece.node);
    written = at;
  }
  parent.append(text.slice(written));
}

interface Piece {
  node: Node | string;
  end: number;
}

function readPiece(text: string, at: number, place: Position): Piece | undefined {
  const mark = text[at]!;
  if (mark === "\\") return readEscape(text[at + 1] ?? "", at);
  if (mark === "`") return readCode(text, at);
  if (mark === "[") return readLink(text, at, place);
  // An image is replaced by its description.
  if (mark === "!") return text[at + 1] === "[" ? readLink(text, at + 1, { ...place, links: false }) : undefined;
  return mark === "h" ? readAddress(text, at, place) : readEmphasis(text, at, place);
}

/** An escaped mark, or a line break. */
function readEscape(letter: string, at: number): Piece | undefined {
  if (letter === "\n") return { node: element("br"), end: at + 2 };
  return /[!-/:-@[-`{-~]/.test(letter) ? { node: letter, end: at + 2 } : undefined;
}

function readCode(text: string, at: number): Piece | undefined {
  const marks = text.slice(at, at + runLength(text, at));
  const close = near(text, at + marks.length).indexOf(marks);
  if (close < 0) return undefined;
  const start = at + marks.length;
  return {
    node: element("code", {}, text.slice(start, start + close).replace(/^ (.*) $/, "$1")),
    end: start + close + marks.length,
  };
}

function readEmphasis(text: string, at: number, place: Position): Piece | undefined {
  const sign = text[at]!;
  const marks = sign.repeat(Math.min(2, runLength(text, at)));
  const start = at + marks.length;
  if (/^\s?$/.test(text[start] ?? "") || (sign === "_" && isWord(text[at - 1]))) return undefined;
  const close = closing(text, start, marks);
  if (close < 0) return undefined;
  const node = element(marks.length === 2 ? "strong" : "em");
  drawInline(node, text.slice(start, close), { ...place, depth: place.depth + 1 });
  return { node, end: close + marks.length };
}

/** The end of an emphasis: its marks after a character other than white space, not inside longer marks or a word. */
function closing(text: string, start: number, marks: string): number {
  const end = Math.min(text.length, start + farthest);
  for (let at = text.indexOf(marks, start + 1); at >= 0 && at < end; at = text.indexOf(marks, at)) {
    const length = runLength(text, at);
    const fits = length === marks.length || length === 3;
    if (fits && !/\s/.test(text[at - 1]!) && !(marks[0] === "_" && isWord(text[at + length])))
      return at + length - marks.length;
    at += length;
  }
  return -1;
}

function readLink(text: string, at: number, place: Position): Piece | undefined {
  const [all, label = "", address = ""] =
    /^\[((?:[^[\]\\]|\\.)*)\]\(\s*<?([^\s<>()]*(?:\([^\s<>()]*\)[^\s<>()]*)*)>?(?:\s+"[^"]*")?\s*\)/.exec(
      near(text, at),
    ) ?? [];
  if (all === undefined) return undefined;
  const href = place.links ? parseWebAddress(address) : undefined;
  const node = href ? link(href) : element("span");
  drawInline(node, label, { depth: place.depth + 1, links: false });
  return { node, end: at + all.length };
}

function readAddress(text: string, at: number, place: Position): Piece | undefined {
  const [found = ""] = /^[^\s<>"'`*]+/.exec(near(text, at)) ?? [];
  const bare = found.replace(/[.,;:!?)\]}]+$/, "");
  const href = place.links && !isWord(text[at - 1]) ? parseWebAddress(bare) : undefined;
  if (!href) return undefined;
  const node = link(href);
  node.append(bare);
  return { node, end: at + bare.length };
}

/** A link in a new tab, since leaving the page would end the conversation. */
export function link(href: string): HTMLAnchorElement {
  return element("a", { href, target: "_blank", rel: "noopener nofollow" });
}

function near(text: string, at: number): string {
  return text.slice(at, at + farthest);
}

/** How often the character at a position is repeated. */
function runLength(text: string, at: number): number {
  let end = at + 1;
  while (/[*_`]/.test(text[at]!) && text[end] === text[at]) end++;
  return end - at;
}

function isWord(letter: string | undefined): boolean {
  return letter !== undefined && /[\p{L}\p{N}]/u.test(letter);
}
