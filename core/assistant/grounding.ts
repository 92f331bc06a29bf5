import { candidatesOf } from "./candidates.ts";
import { clip, visibleCharacters } from "../platform/characters.ts";
import type { Evidence } from "./evidence.ts";
import { type Facts, factsOf, supports } from "./facts.ts";
import { languageOf } from "./language.ts";
import { readQuestion } from "./question.ts";
import { scoreCandidates } from "./scoring.ts";
import { firstEnd, type Sentence } from "./sentences.ts";

/** Most characters of a snippet (UTF-16 units). */
const SNIPPET_LENGTH = 240;
/** A sentence that hasn't ended by then is judged as far as it came. */
const SENTENCE_LENGTH = 1200;
/** Of sentences that are nearly as good, the first is taken. */
const NEARLY_BEST = 0.02;
const QUESTION_LENGTH = 600;
const LINK_LENGTH = 500;

const LINE_MARKS = /^[ \t]*(?:(?:[-*+]|\d{1,3}[.)]|#{1,6}|>)[ \t]+)*/;
const FENCE = /^[ \t]*(?:`{3}|~{3})/;
const REFERENCE = /^[ \t]*\[[^\]]*\]:/;
const HIDDEN_ELEMENT = /<(script|style)\b[\s\S]*?<\/\1\s*>/gi;
const COMMENT = /<!--[\s\S]*?-->/g;
const TAG = /<[/!?]?[a-z][^<>]*>/gi;
const TAG_START = /<(?=[a-z/!?])/gi;
const IMAGE = /!\[[^\]]*\](?:\([^)]*\)|\[[^\]]*\])?/g;
const AUTOLINK = /<((?:https?:\/\/|mailto:)[^\s<>]+)>/gi;
const LINK = /\[([^\][]*)\]\(\s*<?([^\s)<>]*)>?(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)/g;
const MAIL_LINK = /^mailto:([^?]+)/i;

/**
 * A piece of a text of at most 240 characters, exactly as it stands there (white space inside it included): the sentence that
 * speaks most of the question and what follows it, cut between words, not beyond the end of its line (or of its table).
 */
export function snippetOf(text: string, question: string): string {
  const reading = readQuestion(question.slice(0, QUESTION_LENGTH), [], languageOf(question));
  const whole: Evidence = { kind: "kb_doc", title: "", url: null, related: false, heading: "", text, score: 0 };
  const scored = scoreCandidates(candidatesOf([whole]), reading);
  const highest = Math.max(...scored.map(({ score }) => score || 0));
  const best = scored.find(({ score }) => (score || 0) >= highest - NEARLY_BEST);
  const start = best ? rowsStart(text, best) : text.length - text.trimStart().length;
  const end = lineEnd(text, start + (best?.kind === "row" ? 0 : (best?.text.length ?? 0)));
  return clip(text.slice(start, end), SNIPPET_LENGTH).trimEnd();
}

/** Rows of a table go together as far as there is room; no other line is joined with the next. */
function rowsStart(text: string, { start, kind, text: own }: Sentence): number {
  let first = start;
  while (kind === "row" && first > 0) {
    const before = text.lastIndexOf("\n", first - 2) + 1;
    if (!text.slice(before, first).includes("\t") || start + own.length - before > SNIPPET_LENGTH) break;
    first = before;
  }
  return first;
}

function lineEnd(text: string, from: number): number {
  let end = text.indexOf("\n", from);
  while (end >= 0 && end - from < SNIPPET_LENGTH && text.slice(from, end).includes("\t") && isRow(text, end + 1)) {
    end = text.indexOf("\n", end + 1);
  }
  return end < 0 ? text.length : end;
}

function isRow(text: string, start: number): boolean {
  return /^[^\n]*\t/.test(text.slice(start, start + SNIPPET_LENGTH));
}

/** Lets a model's text through sentence by sentence. */
export interface Grounding {
  /** Sentences that are complete now and hold; often empty. */
  push(delta: string): string;
  /** What is left. */
  end(): string;
  /** Sentences that went, for the log, and that stayed: with none the caller answers by itself. */
  readonly dropped: number;
  readonly kept: number;
}

/**
 * A filter for a model's Markdown: a sentence passes only if its numbers, prices, times, addresses and links occur in the
 * evidence. Images and raw HTML go. `never` holds strings that no visitor may see (say, the marks around the evidence in
 * the prompt); a sentence with one goes.
 */
export function ground(evidence: Evidence[], never: string[] = []): Grounding {
  const known = evidence
    .map(({ title, url, heading, text }) => `${title}\n${url ?? ""}\n${heading}\n${text}`)
    .join("\n");
  return new Filter(factsOf(known), never);
}

class Filter implements Grounding {
  dropped = 0;
  kept = 0;
  private readonly evidence: Facts;
  private readonly never: string[];
  private waiting = "";
  /** List or heading marks of the line, until a sentence of it passes. */
  private marks = "";
  private lineStart = true;
  /** Line breaks since the last sentence that passed; written before the next one. */
  private breaks = 0;

  constructor(evidence: Facts, never: string[]) {
    this.evidence = evidence;
    this.never = never.map((word) => word.toLowerCase());
  }

  push(delta: string): string {
    this.waiting += delta;
    let passed = "";
    for (let end = sentenceEnd(this.waiting); end > 0; end = sentenceEnd(this.waiting)) {
      passed += this.judge(this.waiting.slice(0, end));
      this.waiting = this.waiting.slice(end);
    }
    return passed;
  }

  end(): string {
    const rest = this.waiting;
    this.waiting = "";
    return rest === "" ? "" : this.judge(rest).trimEnd();
  }

  /** One sentence, or what there is of a line, with the white space after it. */
  private judge(sentence: string): string {
    const body = sentence.trimEnd();
    const space = sentence.slice(body.length);
    const marks = this.lineStart ? LINE_MARKS.exec(`${body} `)![0] : "";
    if (marks !== "") this.marks = body.length < marks.length ? `${body} ` : marks;
    const words = FENCE.test(body) || REFERENCE.test(body) ? "" : harmless(body.slice(marks.length));
    const passes = words !== "" && body.length < SENTENCE_LENGTH && this.holds(words);
    if (passes) this.kept++;
    else if (words !== "") this.dropped++;
    return this.write(passes ? words : "", { space, empty: body === "" });
  }

  private write(words: string, { space, empty }: { space: string; empty: boolean }): string {
    const ends = space.split("\n").length - 1;
    const before = this.kept > 1 ? "\n".repeat(Math.min(2, this.breaks)) : "";
    const passed = words === "" ? "" : before + this.marks + words + (ends > 0 ? "" : space);
    if (words !== "") this.marks = "";
    if (words !== "") this.breaks = ends;
    else this.breaks = empty ? this.breaks + ends : Math.max(this.breaks, ends);
    this.lineStart = ends > 0 || (empty && this.lineStart);
    if (ends > 0) this.marks = "";
    return passed;
  }

  private holds(words: string): boolean {
    const lower = words.toLowerCase();
    if (this.never.some((word) => lower.includes(word))) return false;
    return !hasOtherLink(words) && supports(this.evidence, factsOf(words));
  }
}

/** Where the first complete sentence or line ends, with the white space after it; 0 while there is none. */
function sentenceEnd(text: string): number {
  const lineBreak = text.indexOf("\n");
  const line = lineBreak < 0 ? text : text.slice(0, lineBreak);
  const wholeLine = /^[ \t]*\||^[ \t]*(?:`{3}|~{3})/.test(line);
  for (let from = 0; !wholeLine; ) {
    const end = firstEnd(line.slice(from));
    if (end < 0) break;
    from += end;
    if (!isOpen(line.slice(0, from)) && from < line.trimEnd().length)
      return from + /^\s*/.exec(line.slice(from))![0].length;
  }
  if (lineBreak >= 0) return lineBreak + 1;
  return text.length > SENTENCE_LENGTH ? text.slice(0, SENTENCE_LENGTH).search(/\s\S*$/) + 1 || SENTENCE_LENGTH : 0;
}

/** Inside a link. */
function isOpen(text: string): boolean {
  if (text.length > LINK_LENGTH) return false;
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
    .replace(LINK, mailAsText);
  for (const mark of ["**", "__", "`"]) if (text.split(mark).length % 2 === 0) text = text.replaceAll(mark, "");
  return text.trim();
}

function mailAsText(link: string, label: string, address: string): string {
  const mail = MAIL_LINK.exec(address)?.[1];
  if (mail === undefined) return link;
  return label.includes(mail) ? label : `${label} (${mail})`;
}

/** A link to anything but a web address; those are checked against the evidence with the other facts. */
function hasOtherLink(text: string): boolean {
  return [...text.matchAll(LINK)].some(([, , address]) => !/^https?:\/\//i.test(address!));
}
