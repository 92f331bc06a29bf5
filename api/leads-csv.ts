import { stringify } from "csv-stringify/sync";
import type { Lead } from "../schemas/leads.ts";
import type { View } from "./route.ts";

const columns = [
  "leadId",
  "createdAt",
  "updatedAt",
  "email",
  "name",
  "firstName",
  "company",
  "phone",
  "service",
  "message",
  "source",
  "pageSlug",
  "campaignId",
  "status",
  "fields",
] as const;

/** Leads as CSV (RFC 4180), streamed by the batch; lines that a spreadsheet would run as formulas are defused. */
export function leadsCsv(batches: AsyncIterable<Lead[]>): View {
  const headers = { "Content-Disposition": 'attachment; filename="leads.csv"', "Cache-Control": "no-store" };
  return { type: "text/csv; charset=utf-8", body: text(batches), headers };
}

async function* text(batches: AsyncIterable<Lead[]>): AsyncGenerator<string> {
  yield lines([[...columns]]);
  for await (const leads of batches) if (leads.length > 0) yield lines(leads.map(cells));
}

function cells(lead: Lead): string[] {
  const values = { ...lead, fields: JSON.stringify(lead.fields) } as Record<string, unknown>;
  return columns.map((column) => defused(String(values[column] ?? "")));
}

/** What some reader or other takes for the end of a line (Unicode Standard, 5.8, and what Python's `splitlines` adds). */
// biome-ignore lint/suspicious/noControlCharactersInRegex: three of them end lines
const lineBreak = /[\n\v\f\r\u001c-\u001e\u0085\u2028\u2029]/;

/** The start of a line that a spreadsheet may read as a formula, also behind what can't be seen, and in full-width letters. */
const formula = new RegExp(
  `(?<=^|${lineBreak.source})(?=\\t|(?:(?!${lineBreak.source})[\\p{Zs}\\p{C}])*[=+\\-@\uff1d\uff0b\uff0d\uff20])`,
  "gu",
);
/** What looks like one but is a telephone or another number: digits alone, so that nothing can be called or looked up. */
const number = /^(?:\+[ ()./-]*\d[\d ()./-]*|-\d+(?:[.,]\d+)?)$/;

/** A cell of which no line is a formula: such a line has an apostrophe in front. */
function defused(cell: string): string {
  return number.test(cell) ? cell : cell.replace(formula, "'");
}

/** Cells with line breaks are quoted whatever breaks them. */
function lines(rows: string[][]): string {
  return stringify(rows, { quoted_match: lineBreak, record_delimiter: "\r\n" });
}
