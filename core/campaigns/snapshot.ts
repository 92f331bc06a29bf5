import { snapshotNames } from "../../schemas/campaigns.ts";
import type { Lead } from "../../schemas/leads.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { readRecord } from "../store/records.ts";

/** The lead that a rule writes to; undefined after an erasure. It is read by its key, since leads are above campaigns. */
export function leadOf({ redis }: Pick<Runtime, "redis">, handle: string, leadId: string): Promise<Lead | undefined> {
  return readRecord<Lead>(redis, keys.lead(handle, leadId));
}

/**
 * The variables of a campaign mail: the lead's snapshot, `firstName` as given or the first word of `name`, and the mapped variables. A
 * mapping names a field of the snapshot or the lead, or `fields.<name>`; it never refers to another mapping. Missing values are empty.
 */
export function snapshot(lead: Lead, mappings: Record<string, string>): Record<string, string> {
  const firstName = lead.firstName || ((lead.name ?? "").trim().split(/\s+/)[0] ?? "");
  const fields = { ...lead, firstName };
  const own = snapshotNames.map((name) => [name, textIn(fields, name)]);
  const mapped = Object.entries(mappings).map(([variable, field]) => [variable, mappedValue(fields, field)]);
  return Object.fromEntries([...own, ...mapped]);
}

function mappedValue(lead: Lead, field: string): string {
  return field.startsWith("fields.") ? textIn(lead.fields, field.slice("fields.".length)) : textIn(lead, field);
}

function textIn(record: object, name: string): string {
  const value: unknown = Object.hasOwn(record, name) ? record[name as keyof object] : undefined;
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? String(value) : "";
}
