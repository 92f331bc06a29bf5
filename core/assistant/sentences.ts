/** A sentence, list item, table row or heading: `text` is `whole.slice(start, start + text.length)`. */
export interface Sentence {
  text: string;
  start: number;
  kind: "prose" | "item" | "row" | "heading";
}

/** What is longer is not prose; it is cut between words. UTF-16 units. */
const SENTENCE_LENGTH = 400;
const ITEM_LENGTH = 300;
const TEXT_LENGTH = 300_000;
const MAXIMUM_SENTENCES = 5000;
/** A line at least this long that ends without a full stop was wrapped, not ended. */
const WRAPPED_LENGTH = 48;

const FENCE = /^ {0,3}(?:`{3}|~{3})/;
const HEADING = /^ {0,3}#{1,6}[ \t]+/;
const BULLET = /^[ \t]*(?:[-*+•–‣▪◦·][ \t]+|\d{1,3}[.)][ \t]+(?=\D))/;
const ROW = /^[ \t]*\||\t/;
const RULE = /^[\s|:=_*-]+$/;
const ENDS = /(?:[.!?…]+|[。！？｡।॥؟۔։።]+)["'”’»)\]*_]*/g;
const UNSPACED_END = /^[。！？｡]/;
const MONTH =
  /^(?:jan|feb|mär|maer|mar|apr|mai|may|maj|jun|juin|juil|jul|aug|août|aout|ago|sep|set|okt|oct|out|nov|dez|dec|déc|dic|gen|lug|giu|ene|abr|avr|mei|maa|fév|fev)\p{L}*/iu;
const ORDINAL_NOUN =
  /^(?:stock|og|ug|etage|obergeschoss|untergeschoss|platz|tag|woche|klasse|jahrhundert|auflage|kapitel)\b/iu;
/** Abbreviations that a sentence does not end with. */
const ABBREVIATIONS = new Set(
  (
    "mr mrs ms dr prof st mt rev gen sen capt lt col hon vs eg e.g ie i.e cf approx appt dept est fig nr no nos vol pp " +
    "ca bzw z.b d.h u.a o.ä u.ä i.d.r s.o s.u v.a ggf evtl inkl exkl zzgl bspw sog mind max min str tel fax abs art hr fr frl dipl ing " +
    "mme mlle mm av bd env p.ex sra srta sr ud uds pág p.ej núm tfno sig sigg dott avv ing geom es pag " +
    "dhr mevr bijv o.a m.b.t t.a.v i.v.m incl excl exmo exma dra núm pg u.s"
  ).split(" "),
);
/** Abbreviations that may end a sentence: they do where a capital follows. */
const MAY_END = /^(?:etc|usw|ecc|enz|inc|ltd|co|corp|a\.m|p\.m)$/;

/**
 * Splits a text (plain, Markdown, or one line a block) into exact pieces of it, without list marks, heading marks and
 * white space around them. Any script; linear in the length, at most 5,000 pieces of the first 300,000 characters.
 */
export function sentences(text: string): Sentence[] {
  const found: Sentence[] = [];
  for (const block of blocks(text.slice(0, TEXT_LENGTH))) {
    addBlock(found, block);
    if (found.length >= MAXIMUM_SENTENCES) return found.slice(0, MAXIMUM_SENTENCES);
  }
  return found;
}

/**
 * Where the first sentence of a growing text ends, after its marks and before the white space that follows; -1 while that
 * can't be told yet. What follows the white space is needed, since "approx. 5" is no end.
 */
export function firstEnd(text: string): number {
  for (const match of text.matchAll(ENDS)) {
    const end = match.index + match[0].length;
    if (UNSPACED_END.test(match[0])) return end;
    if (!/\s\S/.test(text.slice(end))) return -1;
    if (isEnd(text, match.index, end)) return end;
  }
  return -1;
}

function addBlock(found: Sentence[], block: Sentence): void {
  if (block.kind !== "prose" && block.text.length <= ITEM_LENGTH) {
    addTrimmed(found, block);
    return;
  }
  let from = 0;
  for (const end of [...ends(block.text), block.text.length]) {
    addCut(found, { ...block, text: block.text.slice(from, end), start: block.start + from });
    from = end;
  }
}

/** Cuts what has no end for too long. */
function addCut(found: Sentence[], sentence: Sentence): void {
  let { text, start } = sentence;
  while (text.length > SENTENCE_LENGTH) {
    const end = cutPoint(text);
    addTrimmed(found, { ...sentence, text: text.slice(0, end), start });
    text = text.slice(end);
    start += end;
  }
  addTrimmed(found, { ...sentence, text, start });
}

function addTrimmed(found: Sentence[], { text, start, kind }: Sentence): void {
  const trimmed = text.trim();
  if (trimmed !== "") found.push({ text: trimmed, start: start + text.length - text.trimStart().length, kind });
}

/** After the last space within reach, else between two code points. */
function cutPoint(text: string): number {
  for (let at = SENTENCE_LENGTH; at > SENTENCE_LENGTH / 2; at--) if (/\s/.test(text[at]!)) return at + 1;
  return /[\ud800-\udbff]/.test(text[SENTENCE_LENGTH - 1]!) ? SENTENCE_LENGTH - 1 : SENTENCE_LENGTH;
}

/** Paragraphs (lines that were wrapped are one), items, rows and headings, with marks taken off. */
function blocks(text: string): Sentence[] {
  const found: Sentence[] = [];
  let open = false;
  for (let start = 0; start < text.length; ) {
    const end = lineEnd(text, start);
    const line = text.slice(start, end);
    const last = found.at(-1);
    const empty = line.trim() === "" || FENCE.test(line) || (RULE.test(line) && !/\p{L}|\p{N}/u.test(line));
    if (!empty && open && last && continues(last, line)) last.text = text.slice(last.start, end);
    else if (!empty) found.push(block(line, start));
    open = !empty;
    start = end + 1;
  }
  return found;
}

function lineEnd(text: string, start: number): number {
  const end = text.indexOf("\n", start);
  return end < 0 ? text.length : end;
}

function block(line: string, start: number): Sentence {
  const heading = HEADING.exec(line);
  if (heading) return marked(line, start, { marks: heading[0], kind: "heading" });
  const bullet = BULLET.exec(line);
  if (bullet && !MONTH.test(line.slice(bullet[0].length)))
    return marked(line, start, { marks: bullet[0], kind: "item" });
  return { text: line, start, kind: ROW.test(line) ? "row" : "prose" };
}

function marked(line: string, start: number, { marks, kind }: { marks: string; kind: Sentence["kind"] }): Sentence {
  return { text: line.slice(marks.length), start: start + marks.length, kind };
}

function continues(last: Sentence, line: string): boolean {
  if (last.kind === "heading" || last.kind === "row" || HEADING.test(line) || BULLET.test(line) || ROW.test(line))
    return false;
  if (last.kind === "item") return /^(?: {2}|\t)/.test(line);
  const before = last.text.slice(last.text.lastIndexOf("\n") + 1).trimEnd();
  return before.length >= WRAPPED_LENGTH && !/[.!?:;…。！？]["'”’»)\]]*$/.test(before);
}

/** Where sentences end inside a paragraph, each after its white space. */
function ends(text: string): number[] {
  const found: number[] = [];
  for (const match of text.matchAll(ENDS)) {
    const end = match.index + match[0].length;
    if (end < text.length && isEnd(text, match.index, end)) found.push(end);
  }
  return found;
}

function isEnd(text: string, mark: number, end: number): boolean {
  if (UNSPACED_END.test(text.slice(mark, mark + 1))) return true;
  if (!/\s/.test(text[end]!)) return false;
  if (!/^\.[^.]*$/.test(text.slice(mark, end))) return true;
  const next = text.slice(end, end + 24).trimStart();
  if (/^\p{Ll}/u.test(next)) return false;
  return !isAbbreviation(wordBefore(text, mark), next);
}

function wordBefore(text: string, end: number): string {
  const before = text.slice(Math.max(0, end - 24), end);
  return before.slice(before.search(/[^\s("'„“«[]*$/));
}

function isAbbreviation(word: string, next: string): boolean {
  const lower = word.toLowerCase();
  if (MAY_END.test(lower)) return false;
  if (/^\d{1,2}$/.test(word)) return MONTH.test(next) || ORDINAL_NOUN.test(next);
  return /^\p{Lu}$/u.test(word) || ABBREVIATIONS.has(lower);
}
