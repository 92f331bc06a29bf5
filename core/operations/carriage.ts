/**
 * How a kind of key is transferred when a handle moves to another installation or name: unchanged, sealed again with the importing
 * installation's key, made again by the import, or left behind.
 */
export type Carriage = "as is" | "sealed again" | "made again" | "left behind";

/** Every kind of key that a handle has, in the order of the key table; a test compares the two. */
export const carriage: Readonly<Record<string, Carriage>> = {
  outbox: "left behind",
  bucket: "left behind",
  handle: "made again",
  audit: "as is",

  page: "as is",
  pages: "as is",

  document: "as is",
  documents: "as is",
  chunk: "made again",
  knowledge: "made again",
  "strategy-context": "left behind",

  lead: "as is",
  leads: "as is",
  "lead-recent": "as is",
  conversions: "as is",
  "lead-code": "left behind",
  "lead-notices": "left behind",
  "lead-digest": "left behind",
  person: "as is",

  campaign: "as is",
  campaigns: "as is",
  rule: "as is",
  rules: "as is",
  "rules-version": "as is",
  "rule-sends": "as is",
  "rule-counts": "as is",
  "far-sends": "left behind",
  "campaigns-version": "as is",

  sender: "as is",
  senders: "as is",
  "senders-version": "as is",
  template: "as is",
  templates: "as is",
  "templates-version": "as is",
  "template-content": "as is",
  message: "as is",
  messages: "as is",
  "message-events": "as is",
  "email-events": "as is",
  "email-stamp": "as is",
  "email-queue": "left behind",
  "email-leases": "left behind",
  "email-quota": "left behind",
  "mail-caps": "left behind",
  "email-once": "as is",
  suppressed: "as is",
  suppressions: "as is",
  idempotent: "left behind",

  schedule: "as is",
  schedules: "as is",
  "event-type": "as is",
  "event-types": "as is",
  "event-type-slugs": "as is",
  "catalog-version": "as is",
  booking: "as is",
  "sync-lock": "left behind",
  unsynced: "as is",
  bookings: "as is",
  "network-bucket": "left behind",
  "attendee-bookings": "as is",
  "calendar-feed": "as is",
  blocks: "as is",
  busy: "as is",
  "busy-draft": "left behind",
  "busy-state": "made again",
  "times-version": "as is",
  "webhook-event": "left behind",

  credential: "sealed again",
  credentials: "as is",
  "credentials-version": "as is",
  "refresh-lock": "left behind",
  "provider-pause": "left behind",
  "calendar-pause": "left behind",
  "selected-calendars": "as is",
  "calendar-draft": "left behind",
  "calendar-objects": "made again",
  "page-purchase": "as is",
  "page-purchases": "as is",
  "page-buyer": "as is",
  "page-refund": "as is",

  webhook: "sealed again",
  webhooks: "as is",
  "webhooks-version": "as is",
  "webhook-queue": "left behind",
  "webhook-awake": "left behind",
  "webhook-failing": "left behind",
  "person-events": "left behind",
  "webhook-delivery": "left behind",
  "webhook-deliveries": "left behind",

  chat: "left behind",
  "chat-section": "left behind",
  "lead-section": "left behind",
};

/** The kind of a key: its first word. */
export function kindOf(key: string): string {
  return key.slice(0, key.indexOf(":"));
}

/** True for a key that an export contains and an import writes; all others are made again or left behind. */
export function isCarried(key: string): boolean {
  return carriage[kindOf(key)] === "as is" || carriage[kindOf(key)] === "sealed again";
}
