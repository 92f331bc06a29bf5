import { type Options, stringify } from "csv-stringify/sync";
import { type Lead, leadTexts } from "../schemas/leads.ts";
import type { View } from "./route.ts";

const columns: (keyof Lead)[] = [
  ...(["leadId", "createdAt", "updatedAt", "email", ...leadTexts] as const),
  ...(["pageSlug", "campaignId", "status", "fields"] as const),
];

/** Leads as CSV (RFC 4180), streamed in batches. Cells that a spreadsheet would run as formulas are escaped. */
export function leadsCsv(batches: AsyncIterable<Lead[]>): View {
  const headers = { "Content-Disposition": 'attachment; filename="leads.csv"', "Cache-Control": "no-store" };
  return { type: "text/csv; charset=utf-8", body: text(batches), headers };
}

async function* text(batches: AsyncIterable<Lead[]>): AsyncGenerator<string> {
  yield stringify([], { ...format, header: true });
  for await (const leads of batches) yield stringify(leads, format);
}

/** Every line break that some reader recognises (Unicode Standard, section 5.8, and Python's `splitlines`). */
// biome-ignore lint/suspicious/noControlCharactersInRegex: three of them end lines
const lineBreak = /[\n\v\f\r\u001c-\u001e\u0085\u2028\u2029]/;

/** Where spreadsheets split a line into further cells: in languages with a decimal comma at semicolons. */
const separator = "[;\\t]";
/** What may precede a formula in its cell: invisible characters and quotes. The formula itself may begin in full-width letters. */
const sign = `(?:(?!${separator}|${lineBreak.source})[\\p{Zs}\\p{C}"])*[=+\\-@\uff1d\uff0b\uff0d\uff20]`;
const formula = new RegExp(`(?<=^|${lineBreak.source})(?=\\t|${sign})|(?<=${separator})(?=${sign})`, "gu");
/** A phone or other number: it starts like a formula, but its digits can't call or look up anything. */
const number = /^(?:\+[ ()./-]*\d[\d ()./-]*|-\d+(?:[.,]\d+)?)$/;

/** Puts an apostrophe before each part of a cell that could be a formula. */
function escapeFormulas(cell: string): string {
  return number.test(cell) ? cell : cell.replace(formula, "'");
}

const format: Options = {
  columns,
  cast: { string: escapeFormulas, object: (value) => escapeFormulas(JSON.stringify(value)) },
  quoted_match: lineBreak,
  record_delimiter: "\r\n",
};
