import * as s from "./schema.ts";

/** Most bytes of a page's content (docs/reference.md, "Page content"). */
export const MAX_CONTENT_BYTES = 262_144;

/** The initial contents of a page's assistant. */
const pageAssistant = s.component("PageAssistant", {
  title: s.optional(s.text(120)),
  intro: s.optional(s.text(500)),
  suggestedQuestions: s.optional(s.array(s.line(200), { maxItems: 3 })),
});

/** The price of a paid page, in minor units of an ISO 4217 currency. */
const pagePrice = s.component("Price", {
  amountMinor: s.integer(1, 99_999_999),
  currency: s.currency,
});

const derived = s.ignored("url", "version", "createdAt", "updatedAt", "publishedAt");

const body = {
  title: s.line(200),
  description: s.withDefault(s.text(1000), ""),
  template: s.withDefault(s.oneOf("html_render"), "html_render"),
  accessMode: s.withDefault(s.oneOf("PUBLIC", "PAID"), "PUBLIC"),
  status: s.withDefault(s.oneOf("DRAFT", "PUBLISHED"), "DRAFT"),
  content: s.withDefault(s.string({ maxLength: MAX_CONTENT_BYTES }), ""),
  teaser: s.withDefault(s.string({ maxLength: 65_536 }), ""),
  language: s.optional(s.nullable(s.language)),
  campaignId: s.optional(s.nullable(s.id)),
  verifyLeads: s.optional(s.boolean),
  assistant: s.optional(s.nullable(pageAssistant)),
  price: s.optional(s.nullable(pagePrice)),
};

export const newPage = s.object({ pageSlug: s.slug, ...body, ...derived });

/** `PUT …/pages/{pageSlug}`: absent fields keep their value. */
export const pageChange = s.object({ ...derived, ...s.expected, ...s.partial(body) });

export const publishedPages = s.object({ host: s.optional(s.string()) });

export const pageVisit = s.object({
  cookie: s.optional(s.string()),
  method: s.optional(s.string()),
  access: s.optional(s.string({ maxLength: 200 })),
});

export const page = s.component("Page", {
  handle: s.handle,
  pageSlug: s.slug,
  ...body,
  url: s.string({ format: "uri" }),
  ...s.stamps,
  publishedAt: s.nullable(s.instant),
});
export type Page = s.Infer<typeof page>;
export type StoredPage = Omit<Page, "handle" | "url" | "version">;

export const accessAnswer = s.object({ accessMode: s.oneOf("PUBLIC", "PAID"), hasAccess: s.boolean });
