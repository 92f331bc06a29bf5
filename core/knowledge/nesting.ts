import { MAX_NESTING } from "../platform/html.ts";

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
/** A marker of a quote or a list item at the current position of a line (CommonMark 0.31, sections 5.1 and 5.2). */
const MARKER = /([ \t]*)(?:(>)|(?:[-*+]|\d{1,9}[.)])(?=[ \t]|$))/y;

/** Offset of the first quote or list item nested more than 100 deep in a Markdown text; undefined if there is none. */
export function tooDeepAt(markdown: string): number | undefined {
  let items: number[] = [];
  let fence = "";
  for (const { 0: line, index } of markdown.matchAll(/[^\n]+/g)) {
    const [, marks = ""] = FENCE.exec(line) ?? [];
    if (fence === "" ? marks !== "" : marks.startsWith(fence)) fence = fence === "" ? marks : "";
    if (fence !== "" || line.trim() === "") continue;
    const indent = line.search(/\S/);
    const opened = openedBy(line);
    items = [...items.filter((column) => column <= indent), ...opened.items];
    if (items.length + opened.quotes > MAX_NESTING) return index + opened.end - 1;
  }
  return undefined;
}

/** The quotes of a line, the columns at which the text of its list items begins, and the end of its markers. */
function openedBy(line: string): { quotes: number; items: number[]; end: number } {
  let quotes = 0;
  let end = 0;
  const items: number[] = [];
  for (;;) {
    MARKER.lastIndex = end;
    const [marker, , quote] = MARKER.exec(line) ?? [];
    if (marker === undefined || quotes + items.length > MAX_NESTING) return { quotes, items, end };
    end += marker.length;
    if (quote) quotes += 1;
    else items.push(end + 1);
  }
}
