import { maxNesting } from "../platform/html.ts";

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
/** What opens a quote or an item of a list at the place where a line is read (CommonMark 0.31, 5.1 and 5.2). */
const MARKER = /([ \t]*)(?:(>)|(?:[-*+]|\d{1,9}[.)])(?=[ \t]|$))/y;

/** Offset of the first quote or list item of a Markdown text that has more than 100 around it; undefined without one. */
export function placeTooDeep(markdown: string): number | undefined {
  let items: number[] = [];
  let fence = "";
  for (const { 0: line, index } of markdown.matchAll(/[^\n]+/g)) {
    const [, marks = ""] = FENCE.exec(line) ?? [];
    if (fence === "" ? marks !== "" : marks.startsWith(fence)) fence = fence === "" ? marks : "";
    if (fence !== "" || line.trim() === "") continue;
    const indent = line.search(/\S/);
    const opened = openedBy(line);
    items = [...items.filter((column) => column <= indent), ...opened.items];
    if (items.length + opened.quotes > maxNesting) return index + opened.end - 1;
  }
  return undefined;
}

/** The quotes that a line stands in, the columns at which the text of its list items begins, and where its markers end. */
function openedBy(line: string): { quotes: number; items: number[]; end: number } {
  let quotes = 0;
  let end = 0;
  const items: number[] = [];
  for (;;) {
    MARKER.lastIndex = end;
    const [marker, , quote] = MARKER.exec(line) ?? [];
    if (marker === undefined || quotes + items.length > maxNesting) return { quotes, items, end };
    end += marker.length;
    if (quote) quotes += 1;
    else items.push(end + 1);
  }
}
