import { type Lead, MAX_FIELDS } from "../../schemas/leads.ts";

const textNames = ["name", "firstName", "company", "phone", "service", "message", "source"] as const;

/** What a visitor tells: all of a lead that a repeated capture may change. */
export type LeadContent = Pick<
  Lead,
  (typeof textNames)[number] | "email" | "fields" | "leadContext" | "tracking" | "consent"
>;

/** A lead as it is stored. */
export type StoredLead = Lead & {
  /** What the person confirmed by a code: nobody else changes it. */
  confirmed?: LeadContent | undefined;
  /** The language of the person's page, else of the browser (BCP 47). */
  language?: string | undefined;
  /** What was told since under the same address and waits for a code. */
  unconfirmed?: LeadContent | undefined;
};

/** Content over an earlier one: what is told later wins, and what it leaves out stays. */
export function overlaid(earlier: LeadContent | undefined, later: LeadContent): LeadContent {
  if (earlier === undefined) return contentOf(later);
  const texts = textNames.map((name) => [name, later[name] ?? earlier[name]]);
  return {
    ...Object.fromEntries(texts),
    email: later.email,
    fields: mergedFields(earlier.fields, later.fields),
    leadContext: later.leadContext ?? earlier.leadContext,
    tracking: later.tracking ?? earlier.tracking,
    consent: later.consent ?? earlier.consent,
  };
}

/** The content of something that holds more. */
export function contentOf(held: LeadContent): LeadContent {
  const { email, fields, leadContext, tracking, consent } = held;
  const texts = textNames.map((name) => [name, held[name]]);
  return { ...Object.fromEntries(texts), email, fields, leadContext, tracking, consent };
}

/** What a verification has confirmed of a lead. */
export function confirmedOf(lead: StoredLead): LeadContent | undefined {
  return lead.confirmed ?? (lead.status === "VERIFIED" ? contentOf(lead) : undefined);
}

/** A lead whose person has typed the right code: all that was told is confirmed. */
export function verified(lead: StoredLead, at: string): StoredLead {
  const confirmed = lead.unconfirmed ? overlaid(contentOf(lead), lead.unconfirmed) : contentOf(lead);
  return { ...lead, ...confirmed, status: "VERIFIED", confirmed, unconfirmed: undefined, updatedAt: at };
}

/** A lead as its owner reads it. */
export function presentLead(stored: StoredLead & { version?: number }): Lead {
  const { version: _version, confirmed: _confirmed, unconfirmed: _unconfirmed, language: _language, ...lead } = stored;
  return lead;
}

/** True while the person has not confirmed all that was told under the address. */
export function awaitsCode({ status, unconfirmed }: StoredLead): boolean {
  return status === "UNVERIFIED" || unconfirmed !== undefined;
}

/** Custom fields of one person: what was sent later, before it as much of what was sent earlier as there is room for, the newest of it. */
function mergedFields(earlier: Lead["fields"], later: Lead["fields"]): Lead["fields"] {
  const others = Object.entries(earlier).filter(([name]) => !Object.hasOwn(later, name));
  const room = MAX_FIELDS - Object.keys(later).length;
  return { ...Object.fromEntries(others.slice(Math.max(0, others.length - room))), ...later };
}
