import { type Lead, MAX_FIELDS } from "../../schemas/leads.ts";

const contentNames = [
  ...["name", "firstName", "company", "phone", "service", "message", "source"],
  ...["email", "leadContext", "tracking", "consent"],
] as const satisfies (keyof Lead)[];

/** The content of a lead that a repeated capture may change. */
export type LeadContent = Pick<Lead, (typeof contentNames)[number] | "fields">;

/** A stored lead. */
export type StoredLead = Lead & {
  /** Content that the person verified by a code; only another code changes it. */
  confirmed?: LeadContent | undefined;
  /** The language of the page if the service speaks it, else of the browser (BCP 47). */
  language?: string | undefined;
  /** Later content for the same address that awaits a code. */
  unconfirmed?: LeadContent | undefined;
};

/** Overlays content over earlier content: later values win, absent ones stay. Nothing else of either lead is in the result. */
export function overlaid(earlier: LeadContent | undefined, later: LeadContent): LeadContent {
  const values = contentNames.map((name) => [name, later[name] ?? earlier?.[name] ?? later[name]]);
  return { ...Object.fromEntries(values), fields: mergedFields(earlier?.fields ?? {}, later.fields) };
}

/** The verified content of a lead. */
export function confirmedOf(lead: StoredLead): LeadContent | undefined {
  return lead.confirmed ?? (lead.status === "VERIFIED" ? overlaid(undefined, lead) : undefined);
}

/** The lead after the right code: all its content is verified. */
export function verified(lead: StoredLead, at: string): StoredLead {
  const confirmed = overlaid(lead, lead.unconfirmed ?? lead);
  return { ...lead, ...confirmed, status: "VERIFIED", confirmed, unconfirmed: undefined, updatedAt: at };
}

/** A lead as its owner sees it. */
export function presentLead(stored: StoredLead & { version?: number }): Lead {
  const { version: _version, confirmed: _confirmed, unconfirmed: _unconfirmed, language: _language, ...lead } = stored;
  return lead;
}

/** True while some content awaits verification. */
export function awaitsCode({ status, unconfirmed }: StoredLead): boolean {
  return status === "UNVERIFIED" || unconfirmed !== undefined;
}

/** Custom fields of one person: the later ones, and as many of the newest earlier ones as fit. */
function mergedFields(earlier: Lead["fields"], later: Lead["fields"]): Lead["fields"] {
  const others = Object.entries(earlier).filter(([name]) => !Object.hasOwn(later, name));
  const room = MAX_FIELDS - Object.keys(later).length;
  return { ...Object.fromEntries(others.slice(Math.max(0, others.length - room))), ...later };
}
