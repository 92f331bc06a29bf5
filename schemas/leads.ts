import {
  anything,
  array,
  asText,
  boolean,
  decoration,
  documented,
  email,
  handle,
  type Infer,
  id,
  ignored,
  instant,
  instantOrDate,
  integer,
  listing,
  map,
  nullable,
  object,
  oneOf,
  optional,
  string,
  text,
} from "./schema.ts";

/** Most custom fields of a lead (docs/reference.md, "Leads"). */
export const MAX_FIELDS = 20;
/** The form of a custom field's name (docs/reference.md, "Leads"). */
export const fieldName = /^[A-Za-z0-9_.-]{1,64}$/;
/** Longest value of a custom field in characters. */
export const MAX_VALUE_LENGTH = 5000;

const own = {
  name: optional(asText(text(200))),
  firstName: optional(asText(text(200))),
  company: optional(asText(text(200))),
  phone: optional(asText(text(60))),
  service: optional(asText(text(200))),
  message: optional(asText(text(5000))),
  source: optional(decoration(text(200))),
};

/** The conversation behind a lead, as the visitor disclosed it (docs/reference.md, "Leads"). */
export const leadContext = object({
  pageSlug: optional(text(96)),
  visitorQuestion: optional(text(500)),
  visibleAnswerText: optional(text(10_000)),
  evidenceTitles: optional(array(text(300), { maxItems: 20 })),
  retrievalMode: optional(text(100)),
});

/**
 * `POST /v2/public/handles/{handle}/leads`, as JSON or as a form. Other scalar keys become custom fields. A form sends everything as text,
 * so nested parts may be JSON in a string.
 */
export const newLead = object(
  {
    handle: string(),
    // The function checks it after the honeypot: bots need not send an address.
    email: documented(optional(anything), email),
    ...own,
    fields: documented(optional(anything), optional(map(text(MAX_VALUE_LENGTH), { maxProperties: MAX_FIELDS }))),
    pageSlug: optional(decoration(text(96))),
    campaignId: optional(asText(text(128))),
    leadContext: documented(optional(anything), optional(leadContext)),
    tracking: documented(optional(anything), optional(map(string()))),
    consent: optional(anything),
    website: documented(optional(anything), optional(string())),
    // From the header, never from the body.
    visitorLanguage: optional(string()),
  },
  { additionalProperties: true },
);

/** A lead as its owner reads it. */
export const lead = object({
  leadId: id,
  status: oneOf("ACCEPTED", "UNVERIFIED", "VERIFIED"),
  email: string(),
  ...own,
  fields: map(string()),
  pageSlug: nullable(string()),
  campaignId: nullable(string()),
  leadContext: nullable(leadContext),
  tracking: nullable(map(anything)),
  consent: nullable(anything),
  captures: object({ first: instant, last: instant }),
  createdAt: instant,
  updatedAt: instant,
});
export type Lead = Infer<typeof lead>;

/** `{lead: {leadId, status}}`: all that a visitor learns; UNVERIFIED if a code was mailed to verify the address. */
export const leadAccepted = object({ lead: object({ leadId: id, status: oneOf("ACCEPTED", "UNVERIFIED") }) });
/** `{lead: {leadId, status}}` of a verified address. */
export const leadVerified = object({ lead: object({ leadId: id, status: oneOf("VERIFIED") }) });
/** `GET …/leads`. */
export const leadListing = object({
  handle,
  q: optional(text(200)),
  pageSlug: optional(text(96)),
  campaignId: optional(text(128)),
  since: optional(instantOrDate),
  ...listing,
});
/** `GET …/leads/export`. */
export const leadExport = object({
  handle,
  pageSlug: optional(text(96)),
  campaignId: optional(text(128)),
  since: optional(instantOrDate),
});
/** The path of one lead. */
export const leadPath = object({ handle: string(), leadId: string() });
/** `POST …/leads/{leadId}/verify`. */
export const leadCode = object({ handle: string(), leadId: string(), code: string({ minLength: 1, maxLength: 20 }) });
export const leadAnswer = object({ lead });
export const leadList = object({ leads: array(lead), nextCursor: nullable(string()) });

/** `POST …/campaigns`. */
export const newCampaign = object({
  handle,
  campaignId: optional(id),
  name: text(200, { minLength: 1 }),
  live: optional(boolean),
  verifyLeads: optional(boolean),
  ...ignored("version", "createdAt", "updatedAt"),
});
/** `GET …/campaigns`. */
export const campaignListing = object({ handle, ...listing });

/** A campaign as its owner reads it. */
export const campaign = object({
  handle,
  campaignId: id,
  name: string(),
  live: boolean,
  verifyLeads: boolean,
  version: integer(1),
  createdAt: instant,
  updatedAt: instant,
});
export const campaignAnswer = object({ campaign });
export const campaignList = object({ campaigns: array(campaign), nextCursor: nullable(string()) });
