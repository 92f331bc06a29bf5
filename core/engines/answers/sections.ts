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
  /** Exact public text; tabs separate the cells of a row. */
  text: string;
  start: number;
  /** Index within its section. */
  at: number;
}

const MAX_SECTION_LENGTH = 2000;
/** The longest introduction of a list without a colon, and with one. */
const MAX_LEAD_IN_LENGTH = 80;
const MAX_INTRODUCTION_LENGTH = 400;

/** Groups consecutive blocks under one heading. A table or a list stays with its introduction; a long one repeats it in each of its sections. */
export function sectionsOf(blocks: readonly Block[]): Block[][] {
  const found: Block[][] = [];
  let [length, introduction]: [number, Block[]] = [0, []];
  for (const block of blocks.filter(({ buttons }) => !buttons).flatMap(piecesOf)) {
    const isSame = found.at(-1)?.at(0)?.section === block.section;
    const room = MAX_SECTION_LENGTH - (block.kind === "text" ? block.text.length : 0);
    if (block.kind === "text" || !isSame) introduction = [];
    if (isSame && length <= room) found.at(-1)!.push(block);
    else found.push([...introduction, block]);
    length = (isSame && length <= room ? length : 0) + block.text.length;
    if (block.kind === "text" && leadsIn(block.text)) introduction = [block];
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
  return found;
}

/** The sentences, items and rows of a section in order. */
export function unitsOf(section: Section): Unit[] {
  const found: Unit[] = [];
  const add = (block: Block, text: string, start: number) =>
    found.push({ section, block, text, start, at: found.length });
  for (const block of section.blocks) {
    if (block.kind === "row") add(block, block.text, block.start);
    else for (const { text, start } of sentences(block.text)) add(block, text, block.start + start);
  }
  return found;
}

/**
 * The paragraph that introduces the list of an item or the table of a row, such as a caption: it ends with a colon, or is short and no
 * sentence. Undefined without one.
 */
export function introductionOf({ section: { blocks }, block }: Pick<Unit, "section" | "block">): Block | undefined {
  if (block.kind === "text") return undefined;
  const isOwn = (one: Block) => one === block || (block.table !== undefined && one.table === block.table);
  const isOther = ({ kind, table }: Block) => kind !== block.kind || table !== block.table;
  const before = blocks.slice(0, blocks.findIndex(isOwn)).findLast(isOther);
  return before?.kind === "text" && leadsIn(before.text) ? before : undefined;
}

function leadsIn(text: string): boolean {
  if (/[:：]$/.test(text)) return text.length <= MAX_INTRODUCTION_LENGTH;
  return text.length <= MAX_LEAD_IN_LENGTH && !/[.!?…。！？]["'”’»)]*$/.test(text);
}
