import {
  array,
  boolean,
  handle,
  type Infer,
  id,
  ignored,
  instant,
  integer,
  language,
  line,
  listing,
  merge,
  nullable,
  object,
  oneOf,
  optional,
  partial,
  slug,
  string,
  text,
  withDefault,
} from "./schema.ts";

/** Most bytes of a page's content (docs/reference.md, "Page content"). */
export const MAX_CONTENT_BYTES = 262_144;

/** The initial contents of a page's assistant. */
export const pageAssistant = object({
  title: optional(text(120)),
  intro: optional(text(500)),
  suggestedQuestions: optional(array(line(200), { maxItems: 3 })),
});

/** The price of a paid page, in minor units of an ISO 4217 currency. */
export const pagePrice = object({
  amountMinor: integer(1, 99_999_999),
  currency: string({ pattern: "^[A-Za-z]{3}$" }),
});

const derived = ignored("url", "version", "createdAt", "updatedAt", "publishedAt");

const body = {
  title: line(200),
  description: withDefault(text(1000), ""),
  template: withDefault(oneOf("html_render"), "html_render"),
  accessMode: withDefault(oneOf("PUBLIC", "PAID"), "PUBLIC"),
  status: withDefault(oneOf("DRAFT", "PUBLISHED"), "DRAFT"),
  content: withDefault(string({ maxLength: MAX_CONTENT_BYTES }), ""),
  teaser: withDefault(string({ maxLength: 65_536 }), ""),
  language: optional(nullable(language)),
  campaignId: optional(nullable(id)),
  verifyLeads: optional(boolean),
  assistant: optional(nullable(pageAssistant)),
  price: optional(nullable(pagePrice)),
};

/** `POST …/pages`. */
export const newPage = object({ handle, pageSlug: slug, ...body, ...derived });

/** `PUT …/pages/{pageSlug}`: absent fields keep their value. */
export const pageChange = merge(
  object({ handle, pageSlug: string(), ...derived, expectedVersion: optional(integer(0)) }),
  partial(object(body)),
);

/** The path of one page. */
export const pagePath = object({ handle: string(), pageSlug: string() });

/** A crawler's request for the pages of a host. */
export const publishedPages = object({ handle: string(), host: optional(string()) });

/** `GET …/pages`. */
export const pageListing = object({ handle, ...listing });

/** A visitor's page request. */
export const pageVisit = object({
  handle: string(),
  pageSlug: string(),
  cookie: optional(string()),
  method: optional(string()),
  access: optional(string({ maxLength: 200 })),
});

/** A reader's request for a code that opens the page in another browser. */
export const pageSharing = object({
  handle: string(),
  pageSlug: string(),
  cookie: optional(string()),
  host: optional(string()),
});

/** A page as its owner reads it. */
export const page = object({
  handle,
  pageSlug: slug,
  ...body,
  url: string({ format: "uri" }),
  version: integer(1),
  createdAt: instant,
  updatedAt: instant,
  publishedAt: nullable(instant),
});
export type Page = Infer<typeof page>;
/** A page as it is stored. */
export type StoredPage = Omit<Page, "handle" | "url" | "version">;

/** A browser's access to a page. */
export const accessAnswer = object({ accessMode: oneOf("PUBLIC", "PAID"), hasAccess: boolean });
export const pageAnswer = object({ page });
export const pageList = object({ pages: array(page), nextCursor: nullable(string()) });
