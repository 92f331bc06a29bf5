import { spokenLanguage } from "../../schemas/languages.ts";
import type { ownerDecision, ownerVisit } from "../../schemas/scheduling.ts";
import type { Input } from "../../schemas/schema.ts";
import { findHandle, ownersOf, settingsOf } from "../account/face.ts";
import type { Fact } from "../engines/mail/mail.ts";
import { addressDigest } from "../platform/address.ts";
import { insteadOf } from "../platform/errors.ts";
import type { Runtime } from "../platform/runtime.ts";
import { mailsVisitors } from "./booking-mails.ts";
import { bookingFacts } from "./booking-texts.ts";
import { confirmBooking, declineBooking } from "./bookings.ts";
import { eventTypeRecords } from "./catalog.ts";
import { type BookingRecord, findBooking, statusAt } from "./ledger.ts";
import { type OwnerLink, readOwnerLink } from "./owner-links.ts";

type LinkInput = Input<"handle" | "bookingUid" | "purpose" | "token", typeof ownerVisit>;

/**
 * The state of a booking for an owner who has opened a link. `confirm` and `decline` ask; `confirmed`, `refused` and `untold` were done now,
 * the last one without a mail to the visitor.
 */
export type OwnerState =
  | ("confirm" | "decline" | "confirmed" | "refused" | "untold")
  | ("accepted" | "pending" | "declined" | "cancelled" | "changed")
  | ("expired" | "over" | "invalid");

/** The contents of the page behind an owner's link. */
export interface OwnerVisit {
  state: OwnerState;
  /** BCP 47. */
  language: string;
  /** The name of the handle; "" for an invalid link. */
  host: string;
  /** The facts of the booking; empty for an invalid or expired link. */
  facts: Fact[];
  /** The owner who has decided by this request, and the handle. */
  decidedBy?: { userId: string; handle: string };
}

/** The current state behind a link. Opening it changes nothing, since mail scanners open links too. */
export async function visitOwnerLink(runtime: Runtime, input: LinkInput): Promise<OwnerVisit> {
  const found = await findLinked(runtime, input);
  if (found === undefined)
    return { state: "invalid", language: spokenLanguage(input.visitorLanguage), host: "", facts: [] };
  return visitOf(runtime, input, { ...found, state: stateOf(found, runtime.now()) });
}

/** Confirms or declines, as the link says, if the booking still awaits that; else returns its state. */
export async function decideByLink(
  runtime: Runtime,
  input: Input<"handle" | "bookingUid" | "purpose" | "token", typeof ownerDecision>,
): Promise<OwnerVisit> {
  const found = await findLinked(runtime, input);
  const asked = found && stateOf(found, runtime.now());
  if (!found || (asked !== "confirm" && asked !== "decline")) return visitOwnerLink(runtime, input);
  const { handle, bookingUid, sequence } = found.link;
  const request = { handle, bookingUid, sequence, reason: input.reason || null };
  const deciding = asked === "confirm" ? confirmBooking(runtime, request) : declineBooking(runtime, request);
  // Else it was decided, moved or cancelled a moment ago.
  if (!(await deciding.catch(insteadOf("booking_not_pending", false)))) return visitOwnerLink(runtime, input);
  const done = asked === "confirm" ? "confirmed" : "refused";
  const state = (await mailsVisitors(runtime, handle)) ? done : "untold";
  return { ...(await visitOf(runtime, input, { ...found, state })), decidedBy: { userId: found.userId, handle } };
}

interface LinkedBooking {
  link: OwnerLink;
  /** The owner whose link it is. */
  userId: string;
  stored: BookingRecord;
}

/** The booking of a valid link, while the handle is active and has that owner. */
async function findLinked(runtime: Runtime, input: LinkInput): Promise<LinkedBooking | undefined> {
  const link = readOwnerLink(runtime.env, input);
  if (link === undefined) return undefined;
  const [handle, owners, stored] = await Promise.all([
    findHandle(runtime.redis, link.handle),
    ownersOf(runtime.redis, link.handle),
    findBooking(runtime.redis, link.handle, link.bookingUid),
  ]);
  const owner = owners.find(({ email }) => addressDigest(email) === link.owner);
  return handle?.active && owner && stored ? { link, stored, userId: owner.userId } : undefined;
}

function stateOf({ link, stored }: LinkedBooking, now: number): OwnerState {
  const { purpose, sequence } = link;
  if (purpose === "open" && Date.parse(stored.end) <= now) return "over";
  if (purpose !== "open" && Date.parse(stored.start) <= now) return "expired";
  const status = statusAt(stored, now);
  // A booking that awaits its payment has no mails, and so no links.
  if (status !== "PENDING") return decided[status as keyof typeof decided];
  if (purpose === "open") return "pending";
  // A mail is about one time: its link can't confirm another one.
  return sequence === stored.sequence ? purpose : "changed";
}

const decided = { ACCEPTED: "accepted", REJECTED: "declined", CANCELLED: "cancelled" } as const;

async function visitOf(
  runtime: Runtime,
  { visitorLanguage }: LinkInput,
  { link, stored, state }: LinkedBooking & { state: OwnerState },
): Promise<OwnerVisit> {
  const { handle } = link;
  const [settings, event] = await Promise.all([
    settingsOf(runtime.redis, handle),
    eventTypeRecords.find(runtime, handle, stored.eventTypeId),
  ]);
  const language = spokenLanguage(visitorLanguage, settings.language);
  const isShown = state !== "expired" && state !== "over";
  const view = { stored, recipient: { as: "owner", language }, questions: event?.bookingFields } as const;
  return { state, language, host: settings.displayName ?? handle, facts: isShown ? bookingFacts(view) : [] };
}
