import { type Range, sentenceRanges } from "../../platform/sentences.ts";
import { cardRanges } from "./lesson-cards.ts";

/** A chunk of a document, the unit of retrieval; `text` is an exact part of the content. */
export interface ChunkPiece {
  /** Headings above the text from the outermost, joined by ` › `; empty without any. */
  heading: string;
  text: string;
}

/** The document to cut: title (a heading that repeats it is omitted), content and media type. */
interface Chunkable {
  title: string;
  content: string;
  contentType: "text/plain" | "text/markdown";
}

interface Block extends Range {
  /** Index of the heading above it. */
  section: number;
  heading: string;
  /** `alone` is a chunk by itself, `whole` may share one but is not cut, `text` may be cut between sentences. */
  kind: "text" | "whole" | "alone";
}

/** Sizes count words: those between spaces, and half a word per character of a script without spaces. */
const PIECE_SIZE = 200;
const USUAL_SIZE = 160;
/** The average word is never longer; text that exceeds it is numbers, URLs or one endless word. */
const LETTERS_A_WORD = 12;
/** A paragraph up to this size is not split into sentences. */
const SMALL_PARAGRAPH = 60;
/** Text without a sentence end for this long isn't prose; it is cut between words, or inside an endless word. */
const SENTENCE_SIZE = 400;
const SENTENCE_LENGTH = 4000;
const CUT_LENGTH = 1000;
/** More chunks than this come from thousands of tiny sections; neighbours are then joined to at least `JOINED_LENGTH`. */
const MAXIMUM_PIECES = 1000;
const JOINED_LENGTH = 1000;
const CARD_LENGTH = 64_000;
const HEADING_LENGTH = 200;

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+|$)/;
const UNDERLINE = /^ {0,3}(={3,}|-{3,})\s*$/;
const ITEM = /^\s*(?:[-*+•|]|\d{1,9}[.)])(?:\s|$)/;
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]/gu;

/**
 * Cuts a document into chunks of about 120 to 200 words: Markdown at its headings, plain text at its paragraphs, both only between
 * sentences. Each lesson card is one chunk. The chunks are in order and don't overlap; there are at most about a thousand, and the time is
 * linear in the length, whatever the content is.
 */
export function chunk(document: Chunkable): ChunkPiece[] {
  const { content } = document;
  const pieces = sections(new Scanner(document).blocks()).flatMap((section) => pack(content, section));
  return (pieces.length > MAXIMUM_PIECES ? join(pieces) : pieces)
    .map(({ start, end, heading }) => ({ heading, text: content.slice(start, end).trim() }))
    .filter((piece) => piece.text !== "");
}

/** Scans the lines of a document once and separates headings, paragraphs, list items, fenced blocks and cards. */
class Scanner {
  readonly #content: string;
  readonly #markdown: boolean;
  readonly #title: string;
  readonly #cards: Range[];
  readonly #found: Block[] = [];
  readonly #path: { level: number; name: string; line: Range; used: boolean }[] = [];
  #paragraph: Range | undefined;
  #section = 0;

  constructor({ title, content, contentType }: Chunkable) {
    this.#content = content;
    this.#markdown = contentType === "text/markdown";
    this.#title = plain(title).toLowerCase();
    this.#cards = cardRanges(content);
  }

  blocks(): Block[] {
    for (let at = 0; at < this.#content.length; ) at = this.#readLine(at);
    this.#endParagraph();
    this.#leave(0);
    return this.#found;
  }

  /** Reads the construct at `start` and returns the start of the next one. */
  #readLine(start: number): number {
    const end = lineEnd(this.#content, start);
    const line = this.#content.slice(start, end);
    while (this.#cards[0] && this.#cards[0].start < start) this.#cards.shift();
    const fence = FENCE.exec(line);
    if (fence) return this.#readFence({ start, end }, fence[1]!);
    if (this.#cards[0] && this.#cards[0].start < end) return this.#readCard(start, this.#cards[0]);
    if (line.trim() === "") this.#endParagraph();
    else if (!this.#markdown || !this.#readHeading({ start, end }, line))
      this.#addLine({ start, end }, ITEM.test(line));
    return end;
  }

  #readFence(open: Range, marks: string): number {
    let end = open.end;
    let closed = false;
    while (!closed && end < this.#content.length) {
      const next = lineEnd(this.#content, end);
      closed = isFenceEnd(this.#content.slice(end, next), marks);
      end = next;
    }
    const hasCard = this.#cards[0] !== undefined && this.#cards[0].start < end;
    this.#endParagraph();
    this.#add({ start: open.start, end }, hasCard && closed && end - open.start <= CARD_LENGTH ? "alone" : "whole");
    return end;
  }

  #readCard(start: number, card: Range): number {
    if (card.start > start) this.#addLine({ start, end: card.start }, false);
    this.#endParagraph();
    this.#add(card, "alone");
    return card.end;
  }

  #readHeading(range: Range, line: string): boolean {
    const hashes = HEADING.exec(line);
    if (hashes) this.#enter(hashes[1]!.length, plain(line.slice(hashes[0].length)), afterMarks(range, hashes[0]));
    else if (this.#paragraph && UNDERLINE.test(line) && this.#isOneLine(this.#paragraph)) {
      const title = this.#paragraph;
      this.#paragraph = undefined;
      this.#enter(line.includes("=") ? 1 : 2, plain(this.#content.slice(title.start, title.end)), title);
    } else return false;
    return true;
  }

  #isOneLine(paragraph: Range): boolean {
    return !this.#content.slice(paragraph.start, paragraph.end).trim().includes("\n");
  }

  #enter(level: number, name: string, line: Range): void {
    this.#endParagraph();
    this.#leave(level);
    this.#section++;
    for (const above of this.#path) above.used = true;
    this.#path.push({ level, name, line, used: name === "" });
  }

  /** Closes the sections from `level` inwards. A heading without content becomes the text of its section. */
  #leave(level: number): void {
    while ((this.#path.at(-1)?.level ?? -1) >= level) {
      const { used, line } = this.#path.at(-1)!;
      if (!used) this.#add(line, "text");
      this.#path.pop();
    }
  }

  #addLine(line: Range, begins: boolean): void {
    if (begins) this.#endParagraph();
    this.#paragraph = { start: this.#paragraph?.start ?? line.start, end: line.end };
  }

  #endParagraph(): void {
    const paragraph = this.#paragraph;
    this.#paragraph = undefined;
    if (paragraph) this.#add(paragraph, "text");
  }

  #add({ start, end }: Range, kind: Block["kind"]): void {
    for (const above of this.#path) above.used = true;
    const names = this.#path
      .map(({ name }) => name)
      .filter((name) => name !== "" && name.toLowerCase() !== this.#title);
    this.#found.push({ start, end, section: this.#section, heading: names.join(" › "), kind });
  }
}

function plain(heading: string): string {
  return heading
    .slice(0, HEADING_LENGTH)
    .trim()
    .replace(/(?:^|[ \t])#+$/, "")
    .replace(/[*_`]/g, "")
    .trim();
}

function afterMarks({ start, end }: Range, marks: string): Range {
  return { start: start + marks.length, end };
}

function lineEnd(content: string, start: number): number {
  const end = content.indexOf("\n", start);
  return end < 0 ? content.length : end + 1;
}

function isFenceEnd(line: string, marks: string): boolean {
  const trimmed = line.trim();
  return trimmed.startsWith(marks) && trimmed === trimmed[0]!.repeat(trimmed.length);
}

function sections(blocks: Block[]): Block[][] {
  const found: Block[][] = [];
  for (const block of blocks) {
    const last = found.at(-1)?.[0];
    const same = last && last.section === block.section && last.kind !== "alone" && block.kind !== "alone";
    if (same) found.at(-1)!.push(block);
    else found.push([block]);
  }
  return found;
}

/** Joins the units of one section into chunks of similar size. */
function pack(content: string, section: Block[]): Block[] {
  const units = section
    .flatMap((block) => cutBlock(content, block))
    .map((unit) => ({ ...unit, size: size(content, unit) }));
  let left = units.reduce((sum, unit) => sum + unit.size, 0);
  let room = 0;
  let most = 0;
  const pieces: Block[] = [];
  for (const unit of units) {
    if (pieces.length === 0 || room < unit.size / 2 || most < unit.size) {
      pieces.push({ ...section[0]!, start: unit.start });
      room = left <= PIECE_SIZE ? left : left / Math.ceil(left / USUAL_SIZE);
      most = PIECE_SIZE;
    }
    pieces.at(-1)!.end = unit.end;
    room -= unit.size;
    most -= unit.size;
    left -= unit.size;
  }
  return pieces;
}

function cutBlock(content: string, block: Block): Range[] {
  if (block.kind === "alone") return [block];
  const whole = size(content, block);
  if (whole <= (block.kind === "whole" ? PIECE_SIZE : SMALL_PARAGRAPH) && fits(block)) return [block];
  const text = content.slice(block.start, block.end);
  const ranges = block.kind === "whole" ? lines(text) : sentenceRanges(text);
  return ranges
    .map(({ start, end }) => ({ start: block.start + start, end: block.start + end }))
    .flatMap((range) => (fits(range) && size(content, range) <= SENTENCE_SIZE ? [range] : cutAnywhere(content, range)));
}

function fits(range: Range): boolean {
  return range.end - range.start <= SENTENCE_LENGTH;
}

function lines(text: string): Range[] {
  const found: Range[] = [];
  for (let start = 0; start < text.length; start = found.at(-1)!.end) found.push({ start, end: lineEnd(text, start) });
  return found;
}

function cutAnywhere(content: string, { start, end }: Range): Range[] {
  const found: Range[] = [];
  for (let from = start; from < end; from = found.at(-1)!.end) {
    found.push({ start: from, end: from + CUT_LENGTH >= end ? end : cutPoint(content, from) });
  }
  return found;
}

/** After the last space within reach, else between two code points. */
function cutPoint(content: string, from: number): number {
  const space = content.slice(from, from + CUT_LENGTH).search(/\s\S*$/);
  if (space > 0) return from + space + 1;
  const splitsPair = /[\ud800-\udbff]/.test(content[from + CUT_LENGTH - 1]!);
  return from + CUT_LENGTH - (splitsPair ? 1 : 0);
}

function size(content: string, { start, end }: Range): number {
  const text = content.slice(start, end);
  const words = (text.match(/\S+/g)?.length ?? 0) + (text.match(UNSPACED)?.length ?? 0) / 2;
  return Math.max(words, text.length / LETTERS_A_WORD);
}

function join(pieces: Block[]): Block[] {
  const joined: Block[] = [];
  for (const piece of pieces) {
    const last = joined.at(-1);
    const full = !last || last.kind === "alone" || piece.kind === "alone" || last.end - last.start >= JOINED_LENGTH;
    if (full) joined.push({ ...piece });
    else last.end = piece.end;
  }
  return joined;
}
