import * as s from "./schema.ts";

/** Most custom fields of a lead (docs/reference.md, "Leads"). */
export const MAX_FIELDS = 20;
/** The pattern of a custom field's name (docs/reference.md, "Leads"): a letter is one of any script. */
export const fieldName = "[\\p{L}\\p{M}\\p{N}_.-]{1,64}";
/** Longest value of a custom field in characters. */
export const MAX_VALUE_LENGTH = 5000;

const texts = {
  name: s.optional(s.asText(s.text(200))),
  firstName: s.optional(s.asText(s.text(200))),
  company: s.optional(s.asText(s.text(200))),
  phone: s.optional(s.asText(s.text(60))),
  service: s.optional(s.asText(s.text(200))),
  message: s.optional(s.asText(s.text(5000))),
  source: s.optional(s.decoration(s.text(200))),
};

/** Names of a lead's own texts, in the order of the export; the address and custom fields are apart. */
export const leadTexts = Object.keys(texts) as (keyof typeof texts)[];

/** The conversation behind a lead, as the visitor disclosed it (docs/reference.md, "Leads"). */
export const leadContext = s.component("LeadContext", {
  pageSlug: s.optional(s.text(96)),
  visitorQuestion: s.optional(s.text(500)),
  visibleAnswerText: s.optional(s.text(10_000)),
  evidenceTitles: s.optional(s.array(s.text(300), { maxItems: 20 })),
  retrievalMode: s.optional(s.text(100)),
});

/**
 * `POST /v2/public/handles/{handle}/leads`, as JSON or as a form. Other scalar keys become custom fields. A form sends everything as text,
 * so nested parts may be JSON in a string.
 */
export const newLead = s.object(
  {
    // The function checks it after the honeypot: bots need not send an address.
    email: s.unchecked(s.email),
    ...texts,
    fields: s.unchecked(s.optional(s.map(s.text(MAX_VALUE_LENGTH), { maxProperties: MAX_FIELDS }))),
    pageSlug: s.optional(s.decoration(s.text(96))),
    campaignId: s.optional(s.asText(s.text(128))),
    leadContext: s.unchecked(s.optional(leadContext)),
    tracking: s.unchecked(s.optional(s.map(s.string()))),
    consent: s.optional(s.anything),
    website: s.unchecked(s.optional(s.string())),
    visitorLanguage: s.optional(s.string()),
  },
  { additionalProperties: true },
);

export const lead = s.component("Lead", {
  leadId: s.id,
  status: s.oneOf("ACCEPTED", "UNVERIFIED", "VERIFIED"),
  email: s.string(),
  ...texts,
  fields: s.map(s.string()),
  pageSlug: s.nullable(s.string()),
  campaignId: s.nullable(s.string()),
  leadContext: s.nullable(leadContext),
  tracking: s.nullable(s.map(s.anything)),
  consent: s.anything,
  captures: s.object({ first: s.instant, last: s.instant }),
  createdAt: s.instant,
  updatedAt: s.instant,
});
export type Lead = s.Infer<typeof lead>;

/** `{lead: {leadId, status}}`: all that a visitor learns; UNVERIFIED if a code was mailed to verify the address. */
export const leadAccepted = s.object({ lead: s.object({ leadId: s.id, status: s.oneOf("ACCEPTED", "UNVERIFIED") }) });
export const leadVerified = s.object({ lead: s.object({ leadId: s.id, status: s.oneOf("VERIFIED") }) });
const filters = {
  pageSlug: s.optional(s.text(96)),
  campaignId: s.optional(s.text(128)),
  since: s.optional(s.instantOrDate),
};
export const leadListing = s.object({ ...filters, q: s.optional(s.text(200)), ...s.listing });
export const leadExport = s.object(filters);
export const leadCode = s.object({ code: s.asText(s.string({ minLength: 1, maxLength: 20 })) });
