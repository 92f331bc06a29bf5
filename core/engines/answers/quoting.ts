import { oneLine } from "../../platform/characters.ts";
import type { Block } from "./blocks.ts";
import type { Hit, Library, Section, Unit } from "./library.ts";
import { unitsOf } from "./library.ts";
import type { Question } from "./question.ts";

/** Most characters of what is quoted. */
export const MAX_QUOTE_LENGTH = 600;
export const BARS = { answer: 0.5, closest: 0.3, further: 0.85 };

const RAW = /<(?=[a-z/!?])/gi;
const IMAGE = /!(?=\[)/g;
const LINK = /\[([^[\]]*)\]\(\s*<?([^\s()<>]*)>?(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)/g;
const BLOCK_MARK = /^(?:#{1,6}(?=\s)|>|[-+*](?=\s)|\d{1,9}(?=[.)]\s))/;

/** What the evidence gives for a question: units that belong together, and how good they are. */
export interface Quote {
  outcome: "answer" | "closest" | "none";
  markdown: string;
  /** What is quoted, in its order. */
  units: Unit[];
}

export function quoteFor(library: Library, question: Question, here?: string): Quote {
  const hits = library.hits(question, here);
  const best = hits[0];
  if (best === undefined || best.coverage < BARS.closest) return { outcome: "none", markdown: "", units: [] };
  const outcome = best.coverage >= BARS.answer ? "answer" : "closest";
  const chosen = [quoted(best.unit, hits)];
  let room = MAX_QUOTE_LENGTH - quoteMarkdown(chosen[0]!).length - 2;
  for (const hit of hits) {
    if (hit.score < best.score * BARS.further || chosen.length > 1) break;
    if (chosen.some((units) => units[0]!.section === hit.unit.section)) continue;
    const more = quoted(hit.unit, hits, room);
    if (more.length === 0 || quoteMarkdown(more).length > room) continue;
    chosen.push(more);
    room -= quoteMarkdown(more).length + 2;
  }
  return { outcome, markdown: chosen.map(quoteMarkdown).join("\n\n"), units: chosen.flat() };
}

/** The unit with as much of its section as there is room for: what follows it first, then what stands before. */
function quoted(unit: Unit, hits: readonly Hit[], most = MAX_QUOTE_LENGTH): Unit[] {
  const units = unitsOf(unit.section);
  let [first, last] = [unit.at, unit.at];
  let room = most - rendered(unit).length - (unit.block.headings.at(-1)?.length ?? 0) - 6;
  const fits = (one: Unit | undefined) => one !== undefined && rendered(one).length + 3 <= room;
  for (;;) {
    const [before, after] = [units[first - 1], units[last + 1]];
    const wantsBefore = fits(before) && (first - 0 <= 0 || scoreOf(before!, hits) > scoreOf(after, hits) || !fits(after));
    if (wantsBefore) {
      first--;
      room -= rendered(before!).length + 3;
    } else if (fits(after)) {
      last++;
      room -= rendered(after!).length + 3;
    } else break;
  }
  return units.slice(first, last + 1);
}

function scoreOf(unit: Unit | undefined, hits: readonly Hit[]): number {
  return hits.find((hit) => hit.unit.block === unit?.block && hit.unit.at === unit.at)?.score ?? 0;
}

/** The heading, then prose as a paragraph, items and rows as a list under what leads into them. */
export function quoteMarkdown(units: readonly Unit[]): string {
  const heading = units[0]?.block.headings.at(-1);
  let text = heading ? `**${nameMarkdown(heading)}**\n\n` : "";
  let last: Unit | undefined;
  for (const unit of units) {
    const listed = unit.block.kind !== "text";
    if (last) text += listed && last.block.kind !== "text" ? "\n" : last.block === unit.block ? " " : "\n\n";
    if (listed && !last && unit.block.leadIn) text += `${sentenceMarkdown(unit.block.leadIn)}\n\n`;
    text += rendered(unit);
    last = unit;
  }
  return text;
}

function rendered({ block, text }: Unit): string {
  if (block.kind === "row") return `- ${rowMarkdown(block)}`;
  return block.kind === "item" ? `- ${sentenceMarkdown(text)}` : sentenceMarkdown(text);
}

/** A row as its first cell and the others, each named by its column. */
export function rowMarkdown({ cells = [], columns }: Block): string {
  const [first = "", ...others] = cells.map(sentenceMarkdown);
  const named = others.flatMap((cell, at) => {
    const name = columns?.[at + 1] ?? "";
    return cell === "" ? [] : [name !== "" ? `${sentenceMarkdown(name)}: ${cell}` : cell];
  });
  const label = columns?.[0] && first !== "" ? first : first;
  return named.length === 0 ? label : label === "" ? named.join(", ") : `**${label}** ${named.join(", ")}`;
}

export function sentenceMarkdown(text: string): string {
  const inert = oneLine(text).replace(RAW, "\\<").replace(IMAGE, "\\!").replace(LINK, (link, label: string, address: string) => (/^https?:\/\//i.test(address) ? link : label));
  return inert.replace(BLOCK_MARK, (mark) => (/^\d/.test(mark) ? mark : `\\${mark}`));
}

export function nameMarkdown(name: string): string {
  return oneLine(name).replace(/[\\`*_[\]<>]/g, (mark) => `\\${mark}`);
}
