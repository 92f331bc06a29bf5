import { wordsOf } from "../../../schemas/languages.ts";
import { clip, oneLine } from "../../platform/characters.ts";
import { FOOTNOTE_MARK, withoutTags } from "../../platform/markdown.ts";
import { type Block, labelWithContact, OTHER_LINK, saysMore } from "./blocks.ts";
import { columnQuote } from "./columns.ts";
import { confidenceIn } from "./confidence.ts";
import type { Hit, Library, QuestionContext } from "./library.ts";
import type { Question } from "./question.ts";
import { isContinued, type Section, type Source, type Unit, unitsOf } from "./sections.ts";

/** An answer of exact public text, and the units that it shows, of each section the best one first. */
export interface Quote {
  outcome: "answer" | "closest" | "none";
  confidence: number;
  markdown: string;
  units: Unit[];
}

/** Most characters of a quote, headings included. */
const MAX_QUOTE_LENGTH = 600;
/** Most characters of the best section while others follow, and of each of those. */
const MAX_FIRST_LENGTH = 350;
const MAX_FURTHER_LENGTH = 250;
/** The least confidence of an answer, and the least share of the question of what is shown as closest. */
const ANSWERS = 0.57;
const COMES_CLOSEST = 0.25;
/** The least score of a further section, relative to the best one, and the most sections of a quote. */
const NEARLY_BEST = 0.5;
const MAX_SECTIONS = 4;
const MAX_HEADINGS = 8;

const NOTHING: Quote = { outcome: "none", confidence: -1, markdown: "", units: [] };

/** With the backslashes before it: after an escaped one it would be live. */
const RAW = /(?<!\\)\\*<(?=[a-z/!?])/gi;
/** An address between angle brackets, as Markdown marks one. */
const ADDRESS = /<(?:mailto:)?((?:https?:\/\/|[^\s<>@/]{1,64}@)[^\s<>]{1,2000})>/gi;
const IMAGE = /(?<!\\)\\*!(?=\[)/g;
const LINK = /\[([^[\]]*)\]\(\s*<?([^\s()<>]*)>?(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)/g;
/** What refers to a note, and begins it: "*", "†", "²" or "[^2]". */
const MARK = new RegExp(`\\*+|[†‡§]|[⁰¹²³⁴-⁹]+|${FOOTNOTE_MARK}`, "g");
const NOTE = new RegExp(`^\\\\?(${MARK.source})`);
const BLOCK_MARK = /^(?:#{1,6}(?=\s)|>|[-+*](?=\s)|\d{1,9}(?=[.)]\s))/;

/** The best public text for a question: an answer, what comes closest, or nothing, by evidence alone. */
export function quoteFor(library: Library, { alone, ...question }: Question, context: QuestionContext): Quote {
  const whole = quoteOf(library, question, context);
  if (whole.outcome === "answer" || !alone) return whole;
  const own = quoteOf(library, alone, context);
  return own.confidence > whole.confidence ? own : whole;
}

function quoteOf(library: Library, question: Question, context: QuestionContext): Quote {
  const { said = "" } = question;
  const hits = library.hits(question, context).filter(({ unit }) => !said.includes(markOf(unit)));
  const best = hits[0];
  if (best === undefined || best.share < COMES_CLOSEST) return NOTHING;
  const confidence = confidenceIn(hits, question, context);
  const outcome = confidence >= ANSWERS ? "answer" : "closest";
  // A reader of one language is not shown the same in another.
  const spoken = [question.language, best.unit.section.language];
  const readable = hits.filter(({ unit }) => spoken.includes(unit.section.language));
  return { outcome, confidence, ...shownOf(readable, fittingColumn(library, question, best.unit)) };
}

function fittingColumn(library: Library, question: Question, best: Unit): Unit[] | undefined {
  const rows = columnQuote(library, question, best);
  const column = rows && withNotes(rows, unitsOf(best.section));
  return column && quoteMarkdown(column).length <= MAX_QUOTE_LENGTH ? column : undefined;
}

/** The text that tells whether an answer has shown a unit; the name of a row, since an answer may show one of its columns only. */
function markOf({ block: { cells }, text }: Unit): string {
  return sentenceMarkdown(cells?.[0] || text);
}

/** The column or the best section, the sections after it that fit, and then as much more of the best one as fits. */
function shownOf(hits: readonly Hit[], column: Unit[] | undefined): Pick<Quote, "markdown" | "units"> {
  const { unit } = hits[0]!;
  const first = column ?? around(unit, MAX_FIRST_LENGTH);
  const chosen = [first, ...sectionsAfter(first, hits)];
  if (!column) chosen[0] = around(unit, quoteMarkdown(first).length + roomBeside(chosen));
  return {
    markdown: chosen.map(partMarkdown).join("\n\n"),
    units: chosen.flatMap((units) => bestFirst(units, hits)),
  };
}

function sectionsAfter(first: Unit[], hits: readonly Hit[]): Unit[][] {
  const chosen = [first];
  for (const { unit, score } of hits) {
    if (score < hits[0]!.score * NEARLY_BEST || chosen.length === MAX_SECTIONS) break;
    if (chosen.some((units) => units.some((one) => one.section === unit.section || one.text === unit.text))) continue;
    const room = roomBeside(chosen);
    const more = around(unit, Math.min(room, MAX_FURTHER_LENGTH));
    const isWhole = !isLeft(more.at(-1)!, unitsOf(unit.section)[more.at(-1)!.at + 1]);
    if (isWhole && partMarkdown(more, chosen.length).length <= room) chosen.push(more);
  }
  return chosen.slice(1);
}

/** Characters that a quote has left. */
function roomBeside(chosen: readonly Unit[][]): number {
  return chosen.reduce((room, units, at) => room - partMarkdown(units, at).length - 2, MAX_QUOTE_LENGTH);
}

/** A section of a quote. After the first one, the title of the source tells one without a heading from the section before. */
function partMarkdown(units: readonly Unit[], at: number): string {
  return quoteMarkdown(units, at === 0 ? "" : units[0]!.section.source.title);
}

/** The unit that was found, and then those around it. */
function bestFirst(units: readonly Unit[], hits: readonly Hit[]): Unit[] {
  const isHit = ({ section, at }: Unit) => hits.find(({ unit }) => unit.section === section)?.unit.at === at;
  return [...units.filter(isHit), ...units.filter((unit) => !isHit(unit))];
}

/** The opening of a page and the headings that follow. */
export function openingOf(library: Library, source: Source): Quote {
  const own = library.sections.filter((section) => section.source === source);
  const isProse = (block: Block) => block.kind === "text" && saysMore(block);
  const first = own.find(({ blocks }) => blocks.some(isProse)) ?? own[0];
  if (first === undefined) return NOTHING;
  const units = unitsOf(first);
  const shown = around(units.find(({ block }) => saysMore(block)) ?? units[0]!, MAX_QUOTE_LENGTH / 2);
  const above = ({ blocks }: Section) => blocks[0]!.headings.at(-1) ?? [];
  const headings = [...new Set(own.flatMap(above))].slice(0, MAX_HEADINGS);
  const list = headings.filter((heading) => heading !== above(first)).map((heading) => `- ${nameMarkdown(heading)}`);
  const opening = quoteMarkdown(shown);
  const lines = list.filter((_, at) => opening.length + list.slice(0, at + 1).join("\n").length < MAX_QUOTE_LENGTH);
  const markdown = [opening, lines.join("\n")].filter((part) => part !== "").join("\n\n");
  return { outcome: "answer", confidence: 1, markdown, units: shown };
}

/** A line that names the sources of units, a page with its address; empty without any. */
export function sourcesLine(units: readonly Unit[], language: string): string {
  const { source, sources } = wordsOf(language).answers.phrases;
  const names = [...new Set(units.map(({ section }) => linkMarkdown(section.source.title, section.source.url)))];
  return names.length === 0 ? "" : `${names.length > 1 ? sources : source}: ${names.join(", ")}`;
}

/** The unit with as much of its section as fits: its list as a whole if possible, then what comes after it, then what comes before. */
function around(unit: Unit, maxLength: number): Unit[] {
  const units = unitsOf(unit.section);
  const shown = (from: number, to: number) => withNotes(units.slice(from, to + 1), units);
  // Each unit takes a character at least, so a list of thousands is not rendered.
  const fits = (from: number, to: number) =>
    to - from < maxLength && quoteMarkdown(shown(from, to)).length <= maxLength;
  if (!fits(unit.at, unit.at)) return [unit];
  const isWhole = fits(...bounds(units, unit.at, isOfList));
  const part = (at: number) => bounds(units, at, isWhole ? isOfList : isOfItem);
  let [first, last] = fits(...part(unit.at)) ? part(unit.at) : [unit.at, unit.at];
  while (last + 1 < units.length && fits(first, part(last + 1)[1])) last = part(last + 1)[1];
  while (first > 0 && fits(part(first - 1)[0], last)) first = part(first - 1)[0];
  if (last > unit.at && isLeft(units[last]!, units[last + 1])) last--;
  return shown(first, last);
}

/** Units with the notes that their marks refer to, such as "† only with a room" below "Kitchen†". `all` are the units of their section. */
function withNotes(units: Unit[], all: readonly Unit[]): Unit[] {
  const blocks = new Set(units.map(({ block }) => block));
  const marks = new Set([...blocks].flatMap(({ text }) => text.match(MARK) ?? []));
  const isMissing = ({ block }: Unit) => !blocks.has(block) && marks.has(noteMark(block));
  return marks.size === 0 ? units : [...units, ...all.filter(isMissing)];
}

/** The mark before a note; empty before other text, such as one that begins with emphasis. */
function noteMark({ kind, text }: Block): string {
  const mark = kind === "text" ? NOTE.exec(text)?.[1] : undefined;
  return mark === undefined || (mark.startsWith("*") && text.lastIndexOf("*") >= text.indexOf(mark) + mark.length)
    ? ""
    : mark;
}

/** An introduction says nothing without what it introduces, nor a question without the sentence that answers it. */
function isLeft({ block, text }: Unit, next: Unit | undefined): boolean {
  return next?.introductions.at(-1) === block || (next?.block === block && /[?？]$/.test(text));
}

/** The first and the last unit of what is shown together. */
function bounds(
  units: readonly Unit[],
  at: number,
  continues: (unit: Unit, before: Unit) => boolean,
): [number, number] {
  let [first, last] = [at, at];
  while (units[first - 1] && continues(units[first]!, units[first - 1]!)) first--;
  while (units[last + 1] && continues(units[last + 1]!, units[last]!)) last++;
  return [first, last];
}

/** The later sentences of an item often don't say what they are about. */
function isOfItem({ block }: Unit, before: Unit): boolean {
  return block.kind === "item" && block === before.block;
}

/** A part of a list would say too little: "Included:" and the first item. */
function isOfList({ block, introductions }: Unit, { block: before }: Unit): boolean {
  return block.kind === "item" && (isContinued(before, block) || introductions.includes(before));
}

/** The text of a unit as people see it; Markdown of a document may contain tags. */
function seen({ source }: Section, text: string): string {
  return source.kind === "page" ? text : withoutTags(text);
}

/** Renders the heading, prose as paragraphs, and items and rows as a list below its introduction and the items around it. */
function quoteMarkdown(units: readonly Unit[], title = ""): string {
  const heading = (units[0] && headingOf(units[0])) || title;
  let text = heading ? `**${nameMarkdown(heading)}**\n\n` : "";
  for (const above of units[0]?.introductions ?? [])
    text += blockMarkdown(above, seen(units[0]!.section, above.text)) + (above.kind === "text" ? "\n\n" : "\n");
  for (const [at, unit] of units.entries()) {
    const last = units[at - 1];
    const isSame = last?.block === unit.block;
    const isListed = unit.block.kind !== "text" && last?.block.kind !== "text";
    if (last) text += isSame ? " " : isListed ? "\n" : "\n\n";
    const said = seen(unit.section, unit.text);
    text += isSame ? sentenceMarkdown(said) : blockMarkdown(unit.block, said);
  }
  return text;
}

/** The heading of a unit, and the one above it if its source has the same elsewhere: "Opening hours" of several shops. */
function headingOf({ block: { headings }, section: { source } }: Unit): string {
  const shared = sharedHeadings.get(source) ?? sharedIn(source.blocks);
  sharedHeadings.set(source, shared);
  return headings.slice(shared.has(headings.at(-1)!) ? -2 : -1).join(" › ");
}

const sharedHeadings = new WeakMap<Source, ReadonlySet<string>>();

/** The headings that are below several others. */
function sharedIn(blocks: readonly Block[]): ReadonlySet<string> {
  const paths = new Set(blocks.map(({ headings }) => headings.slice(-2).join("\n")));
  const names = [...paths].map((path) => path.split("\n").at(-1)!);
  const last = new Map(names.map((name, at) => [name, at]));
  return new Set(names.filter((name, at) => last.get(name) !== at));
}

/** A section as a passage of a prompt: its blocks with their links. */
export function passageMarkdown(section: Section): string {
  return section.blocks.map((block) => withLinks(blockMarkdown(block, seen(section, block.text)), block)).join("\n");
}

/** Links in the order of the text, so that of two with one label each gets its own. One whose label isn't there comes at the end. */
function withLinks(text: string, { links }: Block): string {
  let [done, rest, others] = ["", text, ""];
  for (const { label, href } of links) {
    if (`${done}${rest}${others}`.includes(`](${href})`) || href.replace(/^(?:mailto|tel):/i, "") === label) continue;
    const said = labelWithContact({ label, href });
    const shown = rest.includes(said) ? said : label;
    const [at, link] = [rest.indexOf(shown), `[${label}](${href})`];
    if (at < 0) others += ` ${link}`;
    else [done, rest] = [done + rest.slice(0, at) + link, rest.slice(at + shown.length)];
  }
  return done + rest + others;
}

function blockMarkdown(block: Block, text: string): string {
  if (block.cells) return `- ${rowMarkdown(block)}`;
  return block.kind === "item" ? `${"  ".repeat(block.depth ?? 0)}- ${sentenceMarkdown(text)}` : sentenceMarkdown(text);
}

/** Renders a row as its first cell and the others with the names of their columns, without empty cells; equal cells once, if nothing tells them apart. */
function rowMarkdown({ cells = [], columns }: Block): string {
  const [first = "", ...others] = cells.map(sentenceMarkdown);
  const isSpanned = columns !== undefined || new Set(others).size === 1;
  const spans: { cell: string; names: Set<string> }[] = [];
  for (const [at, cell] of others.entries()) {
    if (cell !== others[at - 1] || !isSpanned) spans.push({ cell, names: new Set() });
    const name = sentenceMarkdown(columns?.[at + 1] ?? "");
    if (name !== "") spans.at(-1)!.names.add(name);
  }
  const named = spans
    .filter(({ cell }) => cell !== "")
    .map(({ cell, names }) => (names.size > 0 ? `${[...names].join(" / ")}: ${cell}` : cell));
  if (first === "") return named.join(", ");
  return named.length === 0 ? first : `**${first}** ${named.join(", ")}`;
}

/** A sentence of public text as one line of Markdown: raw HTML and images are made inert, links keep web addresses only. */
function sentenceMarkdown(text: string): string {
  const inert = oneLine(text)
    .replace(ADDRESS, "$1")
    .replace(RAW, "\\<")
    .replace(IMAGE, "\\!")
    .replace(LINK, keepWebLink)
    .replace(OTHER_LINK, "]\\");
  return inert.replace(BLOCK_MARK, (mark) => (/^\d/.test(mark) ? mark : `\\${mark}`));
}

/** A name (title, heading) as Markdown text without any markup of its own. */
function nameMarkdown(name: string): string {
  return oneLine(name).replace(/[\\`*_[\]<>]/g, (mark) => `\\${mark}`);
}

function linkMarkdown(name: string, url: string | null): string {
  const address = (url ?? "").replace(/[()<>\s\\]/g, (mark) =>
    encodeURIComponent(mark).replace("(", "%28").replace(")", "%29"),
  );
  return /^https?:\/\//i.test(address) ? `[${nameMarkdown(name)}](${address})` : nameMarkdown(name);
}

function keepWebLink(link: string, label: string, address: string): string {
  return /^https?:\/\//i.test(address) ? link : labelWithContact({ label, href: address });
}

/**
 * The text of the first unit and of those after it in its block as one exact piece, cut between words. Of a document, tags within lines
 * are left out.
 */
export function exactPiece(units: readonly Unit[], most: number): string {
  const [first] = units;
  if (first === undefined) return "";
  const { block, section } = first;
  const end = Math.max(...units.map((unit) => (unit.block === block ? unit.start + unit.text.length : 0)));
  const piece = block.kind === "row" ? first.text : block.text.slice(first.start - block.start, end - block.start);
  return clip(section.source.kind === "page" ? oneLine(piece) : withoutTags(piece), most).trimEnd();
}
