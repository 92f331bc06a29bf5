import type { LessonCard } from "../../schemas/assistant.ts";
import { oneLine } from "../platform/characters.ts";

/** Most cards of one answer (contract 5). */
const MAXIMUM_CARDS = 3;
const NAME = "productivity_lesson_card";
/** A longer block is no card. */
const BLOCK_LENGTH = 64_000;
const BLOCKS_TRIED = 100;
const TEXT_LENGTH = 2000;
const LIST_LENGTH = 20;

const FENCE = new RegExp(`^ {0,3}(\`{3,}|~{3,})[ \\t]*${NAME}[ \\t]*$`, "gm");
const KEY = new RegExp(`"?${NAME}"?\\s*:\\s*(?=\\{)`, "g");
const LINES = ["lessonId", "title", "category", "summary", "tryNow", "sourceDisclosure"] as const;
const LISTS = ["whenToUse", "steps", "relatedTactics"] as const;

/** A card and the part of the text that it was read from. */
interface Found {
  card: LessonCard;
  start: number;
  end: number;
}

/**
 * The lesson cards in knowledge texts, at most three, each `lessonId` once (contract 4): a fenced block of that name, the
 * name followed by a JSON object, or JSON with that key. What doesn't have all fields is text and no card.
 */
export function lessonCards(texts: string[]): LessonCard[] {
  const cards = new Map<string, LessonCard>();
  for (const { card } of texts.flatMap(readCards)) if (!cards.has(card.lessonId)) cards.set(card.lessonId, card);
  return [...cards.values()].slice(0, MAXIMUM_CARDS);
}

/** The text for retrieval: a card stands there as its words, without JSON; everything else stays as it is. */
export function withoutLessonCards(text: string): string {
  let rest = "";
  let from = 0;
  for (const { card, start, end } of readCards(text)) {
    rest += `${text.slice(from, start)}\n${words(card)}\n`;
    from = end;
  }
  return from === 0 ? text : (rest + text.slice(from)).trim();
}

function readCards(text: string): Found[] {
  if (!text.includes(NAME)) return [];
  const found: Found[] = [];
  for (const one of [...fenced(text), ...keyed(text)].sort((a, b) => a.start - b.start)) {
    if (one.start >= (found.at(-1)?.end ?? 0)) found.push(one);
  }
  return found;
}

function fenced(text: string): Found[] {
  return [...text.matchAll(FENCE)].slice(0, BLOCKS_TRIED).flatMap(({ 0: line, 1: marks, index }) => {
    const start = index + line.length;
    const close = text.slice(start, start + BLOCK_LENGTH).search(new RegExp(`^ {0,3}${marks}`, "m"));
    const card = close < 0 ? undefined : readCard(parse(text.slice(start, start + close)));
    if (!card) return [];
    return [{ card, start: index, end: lineEnd(text, start + close) }];
  });
}

function keyed(text: string): Found[] {
  return [...text.matchAll(KEY)].slice(0, BLOCKS_TRIED).flatMap(({ 0: key, index }) => {
    const open = index + key.length;
    const end = objectEnd(text, open);
    const card = end === 0 ? undefined : readCard(parse(text.slice(open, end)));
    return card ? [{ card, ...withBraces(text, index, end) }] : [];
  });
}

/** The braces and the fence around a key that stands alone in them belong to the card. */
function withBraces(text: string, start: number, end: number): { start: number; end: number } {
  const before = /(?:^ {0,3}(?:`{3,}|~{3,})[ \t]*\w*[ \t]*\n\s*)?\{\s*$/m.exec(
    text.slice(Math.max(0, start - 200), start),
  );
  const after = /^\s*\}(?:[ \t]*\n {0,3}(?:`{3,}|~{3,}))?/.exec(text.slice(end, end + 200));
  return before && after ? { start: start - before[0].length, end: end + after[0].length } : { start, end };
}

function parse(json: string): unknown {
  try {
    const value: unknown = JSON.parse(json);
    return isRecord(value) && NAME in value ? value[NAME] : value;
  } catch {
    // Text that merely looks like a card stays text.
    return undefined;
  }
}

function readCard(value: unknown): LessonCard | undefined {
  if (!isRecord(value)) return undefined;
  const lines = LINES.map((name) => [name, readLine(value[name])] as const);
  const lists = LISTS.map((name) => [name, readList(value[name])] as const);
  const fields = [...lines, ...lists];
  return fields.every(([, field]) => field !== undefined) ? (Object.fromEntries(fields) as LessonCard) : undefined;
}

function readLine(value: unknown): string | undefined {
  const line = typeof value === "string" && value.length <= TEXT_LENGTH ? oneLine(value) : "";
  return line === "" ? undefined : line;
}

function readList(value: unknown): string[] | undefined {
  if (!Array.isArray(value) || value.length > LIST_LENGTH) return undefined;
  const lines = value.map(readLine);
  return lines.every((line) => line !== undefined) ? lines : undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function words({ title, summary, whenToUse, steps, tryNow, relatedTactics, sourceDisclosure }: LessonCard): string {
  const lists = [...whenToUse, ...steps, ...relatedTactics].map((item) => `- ${item}`);
  return [`## ${title}`, summary, ...lists, tryNow, sourceDisclosure].join("\n");
}

function lineEnd(text: string, from: number): number {
  const end = text.indexOf("\n", from);
  return end < 0 ? text.length : end;
}

/** Where the JSON object that opens at `open` ends; 0 when it doesn't. */
function objectEnd(text: string, open: number): number {
  const limit = Math.min(text.length, open + BLOCK_LENGTH);
  let depth = 0;
  let quoted = false;
  for (let at = open; at < limit; at++) {
    const letter = text[at];
    if (quoted && letter === "\\") at++;
    else if (letter === '"') quoted = !quoted;
    else if (!quoted && letter === "{") depth++;
    else if (!quoted && letter === "}" && --depth === 0) return at + 1;
  }
  return 0;
}
