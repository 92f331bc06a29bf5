/**
 * How a kind of key is transferred when a handle moves to another installation or name: unchanged, sealed again with the importing
 * installation's key, made again by the import, or left behind.
 */
type Carriage = "as is" | "sealed again" | "made again" | "left behind";

/** Every kind of key that a handle has, by how it is transferred; a test compares them with the key table. */
const kinds: Readonly<Record<Carriage, string>> = {
  "as is": `
    audit page pages document documents lead leads lead-recent conversions person campaign campaigns rule rules rules-version
    rule-sends rule-counts campaigns-version sender senders senders-version template templates templates-version template-content
    message messages message-events email-events email-stamp email-once suppressed suppressions schedule schedules event-type
    event-types event-type-slugs catalog-version booking unsynced bookings attendee-bookings calendar-feed blocks busy
    times-version credentials credentials-version selected-calendars page-purchase page-purchases page-buyer page-refund webhooks
    webhooks-version`,
  "sealed again": "credential webhook",
  "made again": "handle chunk knowledge busy-state calendar-objects",
  "left behind": `
    outbox bucket strategy-context lead-code lead-notices lead-digest far-sends email-queue email-leases email-quota mail-caps
    idempotent sync-lock network-bucket busy-draft webhook-event refresh-lock provider-pause calendar-pause calendar-draft
    webhook-queue webhook-awake webhook-failing person-events webhook-delivery webhook-deliveries chat chat-section lead-section`,
};

/** How each kind of key is transferred. */
export const carriage: Readonly<Record<string, Carriage>> = Object.fromEntries(
  Object.entries(kinds).flatMap(([how, names]) => (names.match(/\S+/g) ?? []).map((kind) => [kind, how as Carriage])),
);

/** The kind of a key: its first word. */
export function kindOf(key: string): string {
  return key.slice(0, key.indexOf(":"));
}

/** True for a key that an export contains and an import writes; all others are made again or left behind. */
export function isCarried(key: string): boolean {
  return carriage[kindOf(key)] === "as is" || carriage[kindOf(key)] === "sealed again";
}
