import type { LessonCard } from "../../../schemas/assistant.ts";
import { clip, oneLine } from "../../platform/characters.ts";
import { asObject } from "../../platform/json.ts";
import type { Range } from "../../platform/sentences.ts";

/** A block of a knowledge document that is named as a lesson card; without a card if it is malformed. */
interface CardBlock extends Range {
  /** True if its object has an end. */
  isClosed: boolean;
  card?: LessonCard;
}

const NAME = "productivity_lesson_card";
const MAX_BLOCK_LENGTH = 64_000;
const MAX_BLOCKS = 100;
const MAX_LINE_LENGTH = 2000;
const MAX_LIST_LENGTH = 20;
/** Lines between the name and its object that contain only markup. */
const MAX_LINES_BETWEEN = 3;
const MARKUP = /^["'`~>:=*\s\w-]*(?=\{)/;
/** What decides about the end of an object: its braces, and strings, which may contain others. */
const PARTS = /"(?:[^"\\]+|\\.)*"?|[{}]/gs;

/** The lesson cards of a text in order, each `lessonId` once. */
export function lessonCards(text: string): LessonCard[] {
  const cards = new Map<string, LessonCard>();
  for (const { card } of blocksIn(text)) if (card && !cards.has(card.lessonId)) cards.set(card.lessonId, card);
  return [...cards.values()];
}

/** The blocks of a text that are named as lesson cards and have an end, in order. */
export function cardRanges(text: string): Range[] {
  return blocksIn(text).filter(({ isClosed }) => isClosed);
}

/** The text for retrieval: cards are replaced by their title and words; malformed blocks are dropped. */
export function withoutLessonCards(text: string): string {
  let rest = "";
  let from = 0;
  for (const { start, end, card } of blocksIn(text)) {
    rest += `${text.slice(from, start)}\n${card ? words(card) : ""}\n`;
    from = end;
  }
  return from === 0 ? text : (rest + text.slice(from)).trim();
}

function blocksIn(text: string): CardBlock[] {
  const found: CardBlock[] = [];
  for (const { index } of text.matchAll(new RegExp(NAME, "g"))) {
    if (found.length >= MAX_BLOCKS) break;
    if (index >= (found.at(-1)?.end ?? 0)) found.push(blockAt(text, index));
  }
  return found;
}

/** The name, the object after it, and the markup, fence and braces around both. */
function blockAt(text: string, name: number): CardBlock {
  const open = objectAfter(text, name + NAME.length);
  const end = open < 0 ? -1 : objectEnd(text, open);
  const start = blockStart(text, name);
  if (end < 0) return { isClosed: false, start, end: open < 0 ? lineEnd(text, name) : brokenEnd(text, open) };
  const after = /^(?:\s*\})?[ \t]*(?:\n {0,3}(?:`{3,}|~{3,})[ \t]*)?(?:\s*<\/productivity_lesson_card>)?/.exec(
    text.slice(end, end + 200),
  )![0];
  const card = readCard(text.slice(open, end));
  return { isClosed: true, start, end: end + after.trimEnd().length, ...(card ? { card } : {}) };
}

/** The place of the object that follows a name, with only markup between them; -1 if none does. */
function objectAfter(text: string, from: number): number {
  const [between] = MARKUP.exec(text.slice(from, from + 400)) ?? [];
  const isNear = between !== undefined && between.split("\n").length - 1 <= MAX_LINES_BETWEEN;
  return isNear ? from + between.length : -1;
}

/** The start of the name's line, or of the brace and the fence before it. */
function blockStart(text: string, name: number): number {
  const before = /(?:(?:^|\n) {0,3}(?:`{3,}|~{3,})[ \t]*\w*[ \t]*\n\s*)?(?:\{\s*)?["'<#>`~* \t]*(?:json[ \t]+)?$/.exec(
    text.slice(Math.max(0, name - 200), name),
  );
  return name - (before?.[0].length ?? 0);
}

/** A broken object ends with its fence or its paragraph. */
function brokenEnd(text: string, open: number): number {
  const rest = text.slice(open, open + MAX_BLOCK_LENGTH);
  const end = /\n[ \t]*\n|\n {0,3}(?:`{3,}|~{3,})[ \t]*(?=\n|$)/.exec(rest);
  return open + (end ? end.index + end[0].trimEnd().length : rest.length);
}

function readCard(json: string): LessonCard | undefined {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    // Text that only looks like a card.
    return undefined;
  }
  const fields = asObject(value);
  const line = (name: string) => readLine(fields[name]);
  const [title, summary] = [line("title"), line("summary")];
  if (title === "" || summary === "") return undefined;
  return {
    lessonId: line("lessonId") || title,
    title,
    category: line("category"),
    summary,
    whenToUse: readList(fields.whenToUse),
    steps: readList(fields.steps),
    tryNow: line("tryNow"),
    relatedTactics: readList(fields.relatedTactics),
    sourceDisclosure: line("sourceDisclosure"),
  };
}

function readLine(value: unknown): string {
  return typeof value === "string" || typeof value === "number" ? clip(oneLine(String(value)), MAX_LINE_LENGTH) : "";
}

function readList(value: unknown): string[] {
  if (!Array.isArray(value)) return [];
  return value
    .map(readLine)
    .filter((line) => line !== "")
    .slice(0, MAX_LIST_LENGTH);
}

function words({ title, summary, whenToUse, steps, tryNow, relatedTactics, sourceDisclosure }: LessonCard): string {
  const lists = [...whenToUse, ...steps, ...relatedTactics].map((item) => `- ${item}`);
  return [`## ${title}`, summary, ...lists, tryNow, sourceDisclosure].filter((line) => line !== "").join("\n");
}

function lineEnd(text: string, from: number): number {
  const end = text.indexOf("\n", from);
  return end < 0 ? text.length : end;
}

/** The end of the JSON object that opens at `open`; -1 if it doesn't close. */
function objectEnd(text: string, open: number): number {
  let depth = 0;
  for (const { 0: part, index } of text.slice(open, open + MAX_BLOCK_LENGTH).matchAll(PARTS)) {
    if (part === "{") depth++;
    if (part === "}" && --depth === 0) return open + index + 1;
  }
  return -1;
}
