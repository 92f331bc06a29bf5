import {
  anything,
  array,
  boolean,
  documented,
  handle,
  type Infer,
  id,
  ignored,
  instant,
  integer,
  listing,
  map,
  merge,
  nullable,
  number,
  object,
  oneOf,
  optional,
  partial,
  string,
  withCode,
  withDefault,
} from "./schema.ts";

/** The triggers of rules. */
export const triggers = ["LEAD_CAPTURED", "LEAD_CAPTURED_DELAYED", "CONVERSION"] as const;

/** Bounds of a delay in minutes. */
export const MIN_DELAY_MINUTES = 15;
export const MAX_DELAY_MINUTES = 43_200;

/** Names of a lead's snapshot, which every campaign mail may use (docs/reference.md, "Campaigns"). */
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
const variableName = string({ pattern: "^[A-Za-z0-9_.-]{1,64}$" });
const leadField = string({
  pattern: `^(?:${[...snapshotNames, ...scalarFields].join("|")}|fields\\.[A-Za-z0-9_.-]{1,64})$`,
});

const body = {
  trigger: withCode(oneOf(...triggers), "invalid_trigger"),
  delayMinutes: documented(optional(anything), optional(nullable(integer(MIN_DELAY_MINUTES, MAX_DELAY_MINUTES)))),
  templateId: id,
  senderId: withCode(string({ pattern: "^sender_", maxLength: 128 }), "invalid_sender_id"),
  variableMappings: withDefault(map(leadField, { propertyNames: variableName, maxProperties: 64 }), {}),
  enabled: withDefault(boolean, true),
};

const derived = ignored("ruleId", "version", "createdAt", "updatedAt", "counts");
const path = { handle: string(), campaignId: string() };

/** `POST …/email-rules`. `delayMinutes` is checked by the function, for its own error codes. */
export const newRule = object({ ...path, ...body, ...derived });
/** `PUT …/email-rules/{ruleId}`. */
export const ruleChange = merge(
  object({ ...derived, ...path, ruleId: string(), expectedVersion: optional(integer(0)) }),
  partial(object(body)),
);
/** The path of one rule. */
export const rulePath = object({ ...path, ruleId: string() });
/** `GET …/email-rules/{ruleId}/preview`. */
export const rulePreview = object({ ...path, ruleId: string(), leadId: id });
/** `GET …/email-rules`. */
export const ruleListing = object({ ...path, ...listing });

/** A campaign email rule (docs/reference.md, "Email rules"). */
export const rule = object({
  ruleId: string(),
  handle,
  campaignId: string(),
  trigger: oneOf(...triggers),
  delayMinutes: nullable(integer(MIN_DELAY_MINUTES, MAX_DELAY_MINUTES)),
  templateId: string(),
  senderId: string(),
  variableMappings: map(string()),
  enabled: boolean,
  version: integer(1),
  createdAt: instant,
  updatedAt: instant,
  counts: optional(object({ waiting: integer(0), sent: integer(0), denied: integer(0) })),
});
export type Rule = Infer<typeof rule>;
export const ruleAnswer = object({ rule });
export const ruleList = object({ rules: array(rule), nextCursor: nullable(string()) });

/** `POST …/conversions`. */
export const newConversion = object({
  handle,
  leadId: id,
  campaignId: id,
  value: optional(nullable(number())),
  currency: optional(nullable(string({ pattern: "^[A-Za-z]{3}$" }))),
  occurredAt: optional(string({ format: "instant" })),
  ...ignored("conversionId", "createdAt"),
});

/** A conversion of a lead in a campaign. */
export const conversion = object({
  conversionId: string(),
  leadId: string(),
  campaignId: string(),
  value: nullable(number()),
  currency: nullable(string()),
  occurredAt: instant,
  createdAt: instant,
});
export type Conversion = Infer<typeof conversion>;
export const conversionAnswer = object({ conversion });
