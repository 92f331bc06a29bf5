import type { Lead } from "../../schemas/leads.ts";

/** Names of a lead's snapshot that every campaign mail may use (specification "Lead snapshot variables"). */
const names = ["leadId", "email", "name", "phone", "company", "service", "message", "source"] as const;

/**
 * The variables of a campaign mail: the lead's snapshot, `firstName` as given or else the first word of `name`, and the mapped ones.
 * A mapping names a top-level field or `fields.<name>`; what has no value is empty.
 */
export function snapshot(lead: Lead, mappings: Record<string, string>): Record<string, string> {
  const variables = Object.fromEntries(names.map((name) => [name, lead[name] ?? ""]));
  variables.firstName = lead.firstName || ((lead.name ?? "").trim().split(/\s+/)[0] ?? "");
  for (const [variable, field] of Object.entries(mappings)) variables[variable] = mapped(lead, variables, field);
  return variables;
}

function mapped(lead: Lead, variables: Record<string, string>, field: string): string {
  if (field.startsWith("fields.")) return own(lead.fields, field.slice("fields.".length));
  const value = own(variables, field) || own(lead as unknown as Record<string, unknown>, field);
  return value;
}

function own(record: Record<string, unknown>, name: string): string {
  const value = Object.hasOwn(record, name) ? record[name] : undefined;
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? String(value) : "";
}
