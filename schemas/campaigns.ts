import { fieldName } from "./leads.ts";
import * as s from "./schema.ts";

export const newCampaign = s.object({
  campaignId: s.optional(s.id),
  name: s.line(200),
  live: s.optional(s.boolean),
  verifyLeads: s.optional(s.boolean),
  ...s.ignored("version", "createdAt", "updatedAt"),
});

export const campaign = s.component("Campaign", {
  handle: s.handle,
  campaignId: s.id,
  name: s.string(),
  live: s.boolean,
  verifyLeads: s.boolean,
  ...s.stamps,
});

/** The triggers of rules: the event that fires a rule, whether it waits `delayMinutes`, and whether visitors cause it, so that limits apply. */
export const triggers = {
  LEAD_CAPTURED: { event: "LEAD_CAPTURED", isDelayed: false, byVisitor: true },
  LEAD_CAPTURED_DELAYED: { event: "LEAD_CAPTURED", isDelayed: true, byVisitor: true },
  CONVERSION: { event: "CONVERSION", isDelayed: false, byVisitor: false },
} as const;
export const triggerNames = Object.keys(triggers) as (keyof typeof triggers)[];
export const triggerEvents = [...new Set(Object.values(triggers).map(({ event }) => event))];

/** Bounds of a delay in minutes. */
export const MIN_DELAY_MINUTES = 15;
export const MAX_DELAY_MINUTES = 43_200;

/** Names of a lead's snapshot, which every campaign mail may use (docs/reference.md, "Email rules"). */
export const snapshotNames = [
  "leadId",
  "email",
  "name",
  "firstName",
  "phone",
  "company",
  "service",
  "message",
  "source",
] as const;
/** Further fields of a lead with one value. */
const scalarFields = ["pageSlug", "campaignId", "status", "createdAt", "updatedAt"] as const;

/** The name of a variable, and the source of its value: a native or custom field of the lead. */
const variableName = s.formed("^[A-Za-z0-9_.-]{1,64}$", "must have names of 1 to 64 letters, digits, _, . and -");
const leadField = s.formed(
  `^(?:${[...snapshotNames, ...scalarFields].join("|")}|fields\\.${fieldName})$`,
  `must be one of ${[...snapshotNames, ...scalarFields].join(", ")}, fields.<name>`,
);

const body = {
  trigger: s.withCode(s.oneOf(...triggerNames), "invalid_trigger"),
  delayMinutes: s.unchecked(s.optional(s.nullable(s.integer(MIN_DELAY_MINUTES, MAX_DELAY_MINUTES)))),
  templateId: s.id,
  senderId: s.withCode(s.formed("^sender_", "must begin with sender_", { maxLength: 128 }), "invalid_sender_id"),
  variableMappings: s.withDefault(s.map(leadField, { propertyNames: variableName, maxProperties: 64 }), {}),
  enabled: s.withDefault(s.boolean, true),
};

const derived = s.ignored("ruleId", "version", "createdAt", "updatedAt", "counts");

/** `POST …/email-rules`. `delayMinutes` is checked by the function, for its own error codes. */
export const newRule = s.object({ ...body, ...derived });
export const ruleChange = s.object({ ...derived, ...s.expected, ...s.partial(body) });
export const rulePreview = s.object({ leadId: s.id });

/** A campaign email rule (docs/reference.md, "Email rules"). */
export const rule = s.component("EmailRule", {
  ruleId: s.string(),
  handle: s.handle,
  campaignId: s.string(),
  trigger: s.oneOf(...triggerNames),
  delayMinutes: s.nullable(s.integer(MIN_DELAY_MINUTES, MAX_DELAY_MINUTES)),
  templateId: s.string(),
  senderId: s.string(),
  variableMappings: s.map(s.string()),
  enabled: s.boolean,
  ...s.stamps,
  counts: s.optional(s.object({ waiting: s.integer(0), sent: s.integer(0), denied: s.integer(0) })),
});
export type Rule = s.Infer<typeof rule>;

export const newConversion = s.object({
  leadId: s.id,
  campaignId: s.id,
  value: s.optional(s.nullable(s.number)),
  currency: s.optional(s.nullable(s.currency)),
  occurredAt: s.optional(s.nullable(s.instant)),
  ...s.ignored("conversionId", "createdAt"),
});

export const conversion = s.component("Conversion", {
  conversionId: s.string(),
  leadId: s.string(),
  campaignId: s.string(),
  value: s.nullable(s.number),
  currency: s.nullable(s.string()),
  occurredAt: s.instant,
  createdAt: s.instant,
});
export type Conversion = s.Infer<typeof conversion>;
