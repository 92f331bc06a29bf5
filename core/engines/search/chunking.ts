import { cutPoint } from "../../platform/characters.ts";
import { type MarkdownBlock, markdownBlocks, plainText } from "../../platform/markdown.ts";
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

/** A part of a document that may share a chunk with its neighbours of the same section, unless it is `alone`. */
interface Part extends Range {
  section: number;
  heading: string;
  isAlone: boolean;
  /** True for a comment, which is not cut: its second part would be read as text. */
  isWhole: boolean;
  /** True for code and tables, which are cut between lines, false for prose, which is cut between sentences. */
  hasLines: boolean;
}

/** Sizes count words: those between spaces, and half a word per character of a script without spaces. */
const PIECE_SIZE = 200;
const USUAL_SIZE = 160;
/** The average word is never longer; text that exceeds it is numbers, URLs or one endless word. */
const MAX_AVERAGE_WORD_LENGTH = 12;
/** A paragraph up to this size is not split into sentences. */
const SMALL_PARAGRAPH = 60;
/** Text without a sentence end for this long isn't prose; it is cut between words, or inside an endless word. */
const SENTENCE_SIZE = 400;
const SENTENCE_LENGTH = 4000;
const CUT_LENGTH = 1000;
/** More chunks than this come from thousands of tiny sections; neighbours are then joined to at least `JOINED_LENGTH`. */
const MAX_PIECES = 1000;
const JOINED_LENGTH = 1000;
const CARD_LENGTH = 64_000;

/** A comment that begins its line. */
const COMMENT = /^[ \t]*<!--(?:(?!<!--)[\s\S])*?-->/gm;
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]/gu;

/**
 * Cuts a document into chunks of about 120 to 200 words: Markdown at its headings, both kinds only between blocks, and long ones between
 * sentences. Each lesson card is one chunk. The chunks are in order and don't overlap; there are at most about a thousand, and the time is
 * linear in the length, whatever the content is.
 */
export function chunk(document: Chunkable): ChunkPiece[] {
  const { content } = document;
  const pieces = sections(partsOf(document)).flatMap((section) => pack(content, section));
  return (pieces.length > MAX_PIECES ? join(pieces) : pieces)
    .map(({ start, end, heading }) => ({ heading, text: content.slice(start, end).trim() }))
    .filter((piece) => piece.text !== "");
}

function partsOf({ title, content, contentType }: Chunkable): Part[] {
  const cards = cardRanges(content);
  const name = plainText(title).toLowerCase();
  const hasCard = ({ start, end }: Range) => cards.some((card) => card.start >= start && card.start < end);
  const isShortCode = ({ kind, start, end }: MarkdownBlock) => kind === "code" && end - start <= CARD_LENGTH;
  const whole = [...cards, ...commentsOf(content)].sort((one, other) => one.start - other.start);
  return markdownBlocks(content, { hasHeadings: contentType === "text/markdown", cards: whole }).map((block) => ({
    start: block.start,
    end: block.end,
    section: block.section,
    heading: block.headings.filter((heading) => heading.toLowerCase() !== name).join(" › "),
    isAlone: (block.kind === "card" || isShortCode(block)) && hasCard(block),
    isWhole: block.kind === "card",
    hasLines: block.kind === "code" || block.kind === "table",
  }));
}

function commentsOf(content: string): Range[] {
  const found = Array.from(content.matchAll(COMMENT), ({ 0: text, index }) => ({
    start: index,
    end: index + text.length,
  }));
  return found.filter(({ start, end }) => end - start <= CARD_LENGTH);
}

function sections(parts: Part[]): Part[][] {
  const found: Part[][] = [];
  for (const part of parts) {
    const last = found.at(-1)?.[0];
    const isSame = last && last.section === part.section && !last.isAlone && !part.isAlone;
    if (isSame) found.at(-1)!.push(part);
    else found.push([part]);
  }
  return found;
}

/** Joins the units of one section into chunks of similar size. */
function pack(content: string, section: Part[]): Part[] {
  const units = section.flatMap((part) => cut(content, part)).map((unit) => ({ ...unit, size: size(content, unit) }));
  let left = units.reduce((sum, unit) => sum + unit.size, 0);
  let room = 0;
  let most = 0;
  const pieces: Part[] = [];
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

function cut(content: string, part: Part): Range[] {
  if (part.isAlone || part.isWhole) return [part];
  const limit = part.hasLines ? PIECE_SIZE : SMALL_PARAGRAPH;
  if (size(content, part) <= limit && fits(part)) return [part];
  const text = content.slice(part.start, part.end);
  const ranges = part.hasLines ? lines(text) : sentenceRanges(text);
  return ranges
    .map(({ start, end }) => ({ start: part.start + start, end: part.start + end }))
    .flatMap((range) => (fits(range) && size(content, range) <= SENTENCE_SIZE ? [range] : cutAnywhere(content, range)));
}

function fits(range: Range): boolean {
  return range.end - range.start <= SENTENCE_LENGTH;
}

function lines(text: string): Range[] {
  const found = text.matchAll(/[^\n]*\n|[^\n]+$/g);
  return Array.from(found, ({ 0: line, index }) => ({ start: index, end: index + line.length }));
}

function cutAnywhere(content: string, { start, end }: Range): Range[] {
  const found: Range[] = [];
  for (let from = start; from < end; from = found.at(-1)!.end) {
    const rest = content.slice(from, end);
    found.push({ start: from, end: rest.length <= CUT_LENGTH ? end : from + cutPoint(rest, CUT_LENGTH) });
  }
  return found;
}

function size(content: string, { start, end }: Range): number {
  const text = content.slice(start, end);
  const words = (text.match(/\S+/g)?.length ?? 0) + (text.match(UNSPACED)?.length ?? 0) / 2;
  return Math.max(words, text.length / MAX_AVERAGE_WORD_LENGTH);
}

function join(pieces: Part[]): Part[] {
  const joined: Part[] = [];
  for (const piece of pieces) {
    const last = joined.at(-1);
    const full = !last || last.isAlone || piece.isAlone || last.end - last.start >= JOINED_LENGTH;
    if (full) joined.push({ ...piece });
    else last.end = piece.end;
  }
  return joined;
}
