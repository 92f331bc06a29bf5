import { sentences } from "../../platform/sentences.ts";
import type { Block } from "./blocks.ts";

/** A page or a document. */
export interface Source {
  kind: "page" | "kb_doc";
  /** Its id within the library. */
  id: string;
  title: string;
  /** Public address of a page; null for a document. */
  url: string | null;
  /** The owner's declaration (BCP 47); detected from the text without one. */
  language?: string | undefined;
  blocks: readonly Block[];
}

/** Consecutive blocks of a source under one heading, within a maximum length. */
export interface Section {
  source: Source;
  language: string;
  /** Index among all sections. */
  at: number;
  blocks: readonly Block[];
}

/** The smallest piece of public text that may answer: a sentence, a list item or a table row. */
export interface Unit {
  section: Section;
  block: Block;
  /** The paragraph or caption that introduces its list or table, and the items that it is within, from the outermost. */
  introductions: readonly Block[];
  /** Exact public text; tabs separate the cells of a row. */
  text: string;
  start: number;
  /** Index within its section. */
  at: number;
}

const MAX_SECTION_LENGTH = 2000;
/** The least length that a block counts with. Otherwise a section could hold a thousand items of one letter, each read with all that stands above it. */
const MIN_BLOCK_LENGTH = 20;
/** The longest introduction of a list or table without a colon, and the longest caption or introduction with one. */
const MAX_LEAD_IN_LENGTH = 80;
const MAX_INTRODUCTION_LENGTH = 400;
/** The longest item that is shown above those within it. */
const MAX_OUTER_ITEM_LENGTH = 160;

/** Groups consecutive blocks under one heading. A table or a list stays with its introduction; a long one repeats it in each of its sections. */
export function sectionsOf(blocks: readonly Block[]): Block[][] {
  const found: Block[][] = [];
  let length = 0;
  for (const [block, introductions] of introduced(blocks.filter(({ buttons }) => !buttons).flatMap(piecesOf))) {
    const isSame = found.at(-1)?.at(0)?.section === block.section;
    const room = MAX_SECTION_LENGTH - (block.kind === "text" ? block.text.length : 0);
    if (isSame && length <= room) found.at(-1)!.push(block);
    else found.push([...introductions, block]);
    length = (isSame && length <= room ? length : 0) + Math.max(MIN_BLOCK_LENGTH, block.text.length);
  }
  return found;
}

/** Splits an endless paragraph between sentences; an endless row of a table is read as one. */
function piecesOf(whole: Block): Block[] {
  if (whole.text.length <= MAX_SECTION_LENGTH) return [whole];
  const { cells: _cells, columns: _columns, table: _table, ...block } = whole;
  if (block.kind === "row") block.kind = "text";
  const found: Block[] = [];
  for (const { text, start } of sentences(block.text)) {
    const last = found.at(-1);
    const from = last ? last.start - block.start : 0;
    if (last && start + text.length - from <= MAX_SECTION_LENGTH)
      last.text = block.text.slice(from, start + text.length);
    else found.push({ ...block, text, start: block.start + start });
  }
  return withOwnLinks(found, block);
}

/** Each piece with its own links. */
function withOwnLinks(pieces: readonly Block[], { start, links }: Block): Block[] {
  const places = links.map(({ end }) => pieces.findLastIndex((piece) => piece.start - start < Math.max(1, end)));
  return pieces.map((piece, at) => ({ ...piece, links: links.filter((_, link) => places[link] === at) }));
}

/** The sentences, items and rows of a section in order. They are kept with it, since each hit of a section looks for its neighbours. */
export function unitsOf(section: Section): readonly Unit[] {
  const units = knownUnits.get(section) ?? unitsIn(section);
  knownUnits.set(section, units);
  return units;
}

const knownUnits = new WeakMap<Section, readonly Unit[]>();

function unitsIn(section: Section): Unit[] {
  const found: Unit[] = [];
  for (const [block, introductions] of introduced(section.blocks)) {
    const add = (text: string, start: number) =>
      found.push({ section, block, introductions, text, start, at: found.length });
    if (block.kind === "row") add(block.text, block.start);
    else for (const { text, start } of sentences(block.text)) add(text, block.start + start);
  }
  return found;
}

/** Blocks in order, each item and row with the paragraph or caption that introduces its list or table, and with the items around it. */
function* introduced(blocks: Iterable<Block>): Generator<[Block, readonly Block[]]> {
  let before: Block | undefined;
  let lead: Block[] = [];
  let items: Block[] = [];
  for (const block of blocks) {
    if (before?.section !== block.section || !isContinued(before, block)) {
      const isLed =
        block.kind !== "text" && before?.section === block.section && before.kind === "text" && leadsIn(before);
      lead = isLed ? [before!] : [];
      items = [];
    }
    const { depth = 0, text } = block;
    items = items.filter((item) => (item.depth ?? 0) < depth);
    yield [block, [...lead, ...items]];
    if (block.kind === "item" && text.length <= MAX_OUTER_ITEM_LENGTH) items.push(block);
    before = block;
  }
}

/** True for items of one list, and for rows of one table. */
export function isContinued({ kind, table, list }: Block, next: Block): boolean {
  return next.kind === kind && next.table === table && next.list === list;
}

/** True for a caption, and for a paragraph that ends with a colon, or is short and no sentence. */
function leadsIn({ text, isCaption }: Block): boolean {
  if (isCaption || /[:：]$/.test(text)) return text.length <= MAX_INTRODUCTION_LENGTH;
  return text.length <= MAX_LEAD_IN_LENGTH && !/[.!?…。！？]["'”’»)]*$/.test(text);
}
