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

/** Leads as CSV (RFC 4180), streamed by the batch; cells that a spreadsheet would run as formulas are defused. */
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
  return columns.map((column) => String(values[column] ?? ""));
}

function lines(rows: string[][]): string {
  return stringify(rows, { escape_formulas: true, record_delimiter: "\r\n" });
}
