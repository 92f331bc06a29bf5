import { visibleCharacters } from "../../platform/characters.ts";
import { firstEnd } from "../../platform/sentences.ts";
import { type Link, labelWithContact, OTHER_LINK } from "./blocks.ts";
import { ClaimChecker } from "./claims.ts";
import { bareAddress } from "./figures.ts";
import { Held } from "./held.ts";
import type { Library } from "./library.ts";
import type { Section, Unit } from "./sections.ts";

/** A passage as a prompt numbers it, from 1. */
export interface Passage {
  section: Section;
  /** Its text as Markdown, with its links. */
  text: string;
}

interface Options {
  /** The language of the question. */
  language: string;
  /** Strings that no visitor may see, such as the marks around the passages; a sentence with one is removed. */
  never: readonly string[];
  /** Public links besides those in the passages. */
  links: readonly Link[];
}

/** A longer sentence is cut between words and checked in parts, and an endless word is removed. In UTF-16 units. */
const MAX_SENTENCE_LENGTH = 1200;
const MAX_LINK_LENGTH = 500;

const LINE_MARKS = /^[ \t]*(?:(?:[-*+]|\d{1,3}[.)]|#{1,6}|>)[ \t]+)*/;
const FENCE = /^[ \t]*(?:`{3}|~{3})/;
const TABLE_RULE = /^[\s|:-]+$/;
/** The end of an introduction. */
const OPENING = /[:：][*_]*$/;
const ONLY_PUNCTUATION = /^[\p{P}\s]*$/u;
/** A figure, address or link, which says something without a unit too. */
const SAYS = /[\d@]|\]\(/;
const REFERENCE = /^[ \t]*\[[^\]]*\]:/;
const HIDDEN_ELEMENT = /<(script|style)\b[\s\S]*?<\/\1\s*>/gi;
const COMMENT = /<!--[\s\S]*?-->/g;
const TAG = /<[/!?]?[a-z][^<>]*>/gi;
const TAG_START = /<(?=[a-z/!?])/gi;
const IMAGE = /!\[[^\]]*\](?:\([^)]*\)|\[[^\]]*\])?/g;
const AUTOLINK = /<((?:https?:\/\/|mailto:)[^\s<>]+)>/gi;
const LINK = /\[([^\][]*)\]\(\s*<?([^\s)<>]*)>?(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)/g;
/** The numbers of passages as the prompt requests them; a link's label is no citation. */
const CITATION = /\s*[[【](?:\p{L}+ )?\^?(\d{1,3}(?:\s*[,;&–-]\s*\d{1,3})*)[\]】](?!\()/gu;
const CITATIONS_AFTER = /^(?:\s*[[【](?:\p{L}+ )?\^?\d{1,3}(?:\s*[,;&–-]\s*\d{1,3})*[\]】](?!\())+[.!?]?/u;
const OPEN_CITATION = /^\s*(?:[[【][^\]】\n]{0,24})$/;

/**
 * Filters a model's Markdown sentence by sentence. A sentence passes if the passages that it cites support it; without citations, any passage
 * may. Citations, images and raw HTML are removed. The result doesn't depend on how the text was cut into deltas.
 */
export class Grounding {
  /** Numbers of removed and of kept sentences; if none is kept, the caller answers by itself. */
  dropped = 0;
  kept = 0;
  /** The evidence of the kept sentences in their order; empty for small talk. */
  readonly used: Unit[] = [];
  readonly #passages: readonly Passage[];
  readonly #options: Options;
  readonly #checker: ClaimChecker;
  #waiting = "";
  /** List or heading marks of the line, until a sentence of it passes. */
  #marks = "";
  #isLineStart = true;
  #hasWritten = false;
  /** Line breaks since the last sentence that passed; written before the next one. */
  #breaks = 0;
  /** The line before is a row of a table. */
  #wasRow = false;
  readonly #held = new Held();

  constructor(library: Library, passages: readonly Passage[], options: Options) {
    this.#passages = passages;
    this.#options = options;
    const pages = passages.flatMap(({ section }) => section.source.url ?? []);
    this.#checker = new ClaimChecker(library, [...pages, ...options.links.map(({ href }) => href)].map(knownAddress));
  }

  /** The supported sentences that are complete; often empty. */
  push(delta: string): string {
    this.#waiting += delta;
    let passed = "";
    for (let end = sentenceEnd(this.#waiting); end > 0; end = sentenceEnd(this.#waiting)) {
      passed += this.#pass(this.#waiting.slice(0, end));
      this.#waiting = this.#waiting.slice(end);
    }
    return passed;
  }

  /** The rest of the text. */
  end(): string {
    return (this.push("\n") + this.#held.end(this.dropped > 0)).trimEnd();
  }

  /** Filters one sentence or line with the white space after it. */
  #pass(sentence: string): string {
    const body = sentence.trimEnd();
    const space = sentence.slice(body.length);
    const marks = this.#isLineStart ? LINE_MARKS.exec(`${body} `)![0] : "";
    if (marks !== "") this.#marks = body.length < marks.length ? `${body} ` : marks;
    const plain = body.slice(marks.length);
    const text = FENCE.test(body) || REFERENCE.test(body) ? "" : harmless(plain.replace(CITATION, ""));
    const words = ONLY_PUNCTUATION.test(text) ? "" : text;
    const isHeading = this.#marks.includes("#");
    const isRead = words !== "" && body.length < MAX_SENTENCE_LENGTH;
    const units = isRead ? this.#supportOf(words, plain, isHeading) : undefined;
    const isRow = plain.startsWith("|");
    const isOpening = isHeading || OPENING.test(words) || TABLE_RULE.test(words) || (isRow && !this.#wasRow);
    const isTalk = units?.length === 0 && !SAYS.test(words);
    const role = isOpening ? "opening" : isTalk ? "talk" : "fact";
    const isItem = isRow || /^\s*(?:[-*+]|\d)/.test(this.#marks);
    this.#wasRow = isRow;
    if (units && !TABLE_RULE.test(words)) this.kept++;
    else if (words !== "" && !units) this.#drop();
    return this.#held.pass(this.#write(units ? words : "", { space, isEmpty: body === "" }), { role, isItem });
  }

  #drop(): void {
    this.dropped++;
    this.#held.drop();
  }

  #write(words: string, { space, isEmpty }: { space: string; isEmpty: boolean }): string {
    const ends = space.split("\n").length - 1;
    const before = this.#hasWritten ? "\n".repeat(Math.min(2, this.#breaks)) : "";
    const passed = words === "" ? "" : before + this.#marks + words + (ends > 0 ? "" : space);
    if (words !== "") this.#marks = "";
    if (words !== "") this.#hasWritten = true;
    if (words !== "") this.#breaks = ends;
    else this.#breaks = isEmpty ? this.#breaks + ends : Math.max(this.#breaks, ends);
    this.#isLineStart = ends > 0 || (isEmpty && this.#isLineStart);
    if (ends > 0) this.#marks = "";
    return passed;
  }

  /** The units that support a sentence, none for talk and the rule of a table; undefined if it may not be shown. */
  #supportOf(words: string, plain: string, isHeading: boolean): Unit[] | undefined {
    const { never, language } = this.#options;
    const lower = words.toLowerCase();
    if (never.some((word) => lower.includes(word.toLowerCase())) || words.search(OTHER_LINK) >= 0) return undefined;
    if (TABLE_RULE.test(words)) return [];
    const cited = citedIn(plain).flatMap((number) => this.#passages[number - 1]?.section ?? []);
    const sections = cited.length > 0 ? cited : this.#passages.map(({ section }) => section);
    const units = this.#checker.check(words, { language, isHeading }, [...new Set(sections)]);
    this.used.push(...(units ?? []).filter((unit) => !this.used.includes(unit)));
    return units;
  }
}

/** The numbers that a sentence cites; ranges are expanded. */
function citedIn(text: string): number[] {
  return [...text.matchAll(CITATION)].flatMap(([, numbers = ""]) => (numbers.match(/\d+/g) ?? []).map(Number));
}

function knownAddress(href: string): string {
  const [, scheme = "", rest = ""] = /^(mailto|tel):(.*)$/i.exec(href) ?? [];
  if (scheme === "") return `link ${bareAddress(href)}`;
  return scheme.toLowerCase() === "tel"
    ? `phone ${rest.replace(/\D/g, "")}`
    : `mail ${rest.toLowerCase().split("?")[0]}`;
}

/** The end of the first complete sentence or line, or where it is cut; 0 if there is none yet. Only as much text is read as the longest sentence has. */
function sentenceEnd(text: string): number {
  const end = endWithin(text.slice(0, MAX_SENTENCE_LENGTH + 1));
  if (end > 0 || text.length <= MAX_SENTENCE_LENGTH) return end;
  return text.slice(0, MAX_SENTENCE_LENGTH).search(/\s\S*$/) + 1 || MAX_SENTENCE_LENGTH;
}

/** The end of the first complete sentence or line, with its citations and the white space after it; 0 while there is none. */
function endWithin(text: string): number {
  const lineBreak = text.indexOf("\n");
  const line = lineBreak < 0 ? text : text.slice(0, lineBreak);
  const isWhole = /^[ \t]*\||^[ \t]*(?:`{3}|~{3})/.test(line);
  for (let from = 0; !isWhole; ) {
    // The end of a line needs no word after it.
    const end = firstEnd(lineBreak < 0 ? line.slice(from) : `${line.slice(from)} . `);
    if (end < 0) break;
    from += end;
    const rest = line.slice(from);
    if (lineBreak < 0 && OPEN_CITATION.test(rest)) return 0;
    const cited = CITATIONS_AFTER.exec(rest)?.[0].length ?? 0;
    if (lineBreak < 0 && cited > 0 && (OPEN_CITATION.test(rest.slice(cited)) || rest.slice(cited).trim() === ""))
      return 0;
    from += cited;
    if (!isOpen(line.slice(0, from)) && from < line.trimEnd().length)
      return from + /^\s*/.exec(line.slice(from))![0].length;
  }
  return lineBreak + 1;
}

/** Inside a link. */
function isOpen(text: string): boolean {
  if (text.length > MAX_LINK_LENGTH) return false;
  const bracket = text.lastIndexOf("[");
  const closed = text.indexOf("]", bracket);
  if (bracket < 0) return false;
  return closed < 0 || (text[closed + 1] === "(" && text.indexOf(")", closed) < 0);
}

/** Markdown without images and raw HTML; emphasis and code that begin here end here. */
function harmless(body: string): string {
  let text = visibleCharacters(body).replace(AUTOLINK, (_, address: string) => address.replace(/^mailto:/i, ""));
  for (let before = ""; before !== text; ) {
    before = text;
    text = text.replace(COMMENT, "").replace(HIDDEN_ELEMENT, "").replace(TAG, "").replace(IMAGE, "");
  }
  text = text
    .replace(TAG_START, "")
    .replace(/!(?=\[)/g, "! ")
    .replace(LINK, reachableAsText);
  for (const mark of ["**", "__", "`"]) if (text.split(mark).length % 2 === 0) text = text.replaceAll(mark, "");
  return text.trim();
}

/** Shows mail addresses and telephone numbers as text, since the widget opens web addresses only. */
function reachableAsText(link: string, label: string, address: string): string {
  return /^(?:mailto|tel):[^?]/i.test(address) ? labelWithContact({ label, href: address }) : link;
}
