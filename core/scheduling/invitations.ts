import { Buffer } from "node:buffer";
import type { JobData } from "../../schemas/jobs.ts";
import type { Booking, MailKind, StoredBooking, StoredEventType } from "../../schemas/scheduling.ts";
import { ownerAddresses } from "../account/face.ts";
import { delayUntil } from "../platform/clock.ts";
import { acceptMessage, type Attachment, findSender } from "../email/face.ts";
import { isAddress, sameAddress } from "../platform/address.ts";
import type { Job, Runtime } from "../platform/runtime.ts";
import { job } from "../store/outbox.ts";
import { readRecord } from "../store/records.ts";
import { keys } from "../store/keys.ts";
import { type CalendarFile, calendarFile, type Organizer } from "../engines/calendars/calendars.ts";
import { manageUrl } from "./event-types.ts";
import { type Kept, readKept, shown, statusAt } from "./ledger.ts";
import { awaitsLink } from "./meetings.ts";
import { presentableName, withPresentableNames } from "./names.ts";
import { minute } from "../platform/zones.ts";

/** How often a mail waits for the link of its meeting, and for how many ms each time. */
const mostWaits = 8;
const waitsFor = 1500;

/** One mail about a booking: who reads it and as what. */
interface Reader {
  email: string;
  as: "attendee" | "guest" | "owner";
  /** True for an owner's address, also where it is the attendee's or a guest's. */
  isOwner: boolean;
}

/** What a mail says, before it is laid out: paragraphs, named facts, and addresses with their words. */
interface Letter {
  subject: string;
  greeting: string;
  paragraphs: string[];
  facts: [name: string, value: string][];
  links: [words: string, address: string][];
}

/** The job that tells everyone what a visitor made of a booking. */
export function mailJob(handle: string, { bookingUid, sequence }: StoredBooking, kind: MailKind): Job {
  return job("scheduling.mail", `mail-${bookingUid}-${kind}-${sequence}`, { handle, bookingUid, kind, sequence });
}

/** The same of what its owner made of it: such mails don't count as caused by a visitor. */
export function ownerMailJob(handle: string, { bookingUid, sequence }: StoredBooking, kind: MailKind): Job {
  const data = { handle, bookingUid, kind, sequence, by: "owner" as const };
  return job("scheduling.mail", `mail-${bookingUid}-${kind}-${sequence}`, data);
}

/** The job that reminds of an accepted booking, where its event type asks for it and there is time left. */
export function reminderJobs(runtime: Runtime, handle: string, booking: StoredBooking): Job[] {
  const { bookingUid, sequence, reminderMinutes, start, status } = booking;
  if (reminderMinutes === null || status !== "ACCEPTED") return [];
  const due = Date.parse(start) - reminderMinutes * minute;
  if (due <= runtime.now()) return [];
  const data = { handle, bookingUid, kind: "reminder" as const, sequence };
  return [job("scheduling.mail", `mail-${bookingUid}-reminder-${sequence}`, data, { delay: delayUntil(runtime, due) })];
}

/**
 * Tells attendee, guests and owners, each once, through the handle's CALENDAR sender. Ends without a word where there is no mail
 * server or no sender that may send, and where the booking has moved on: the later change has a mail of its own. A confirmation waits
 * some seconds for the link of its meeting; where it went without, a mail with the link follows.
 */
export async function sendMails(runtime: Runtime, data: JobData<"scheduling.mail">): Promise<void> {
  const { handle, bookingUid, kind, sequence, by } = data;
  const sender = runtime.env.SMTP_URL && (await findSender(runtime, handle, "CALENDAR"));
  if (!sender) return;
  const kept = await readDue(runtime, data);
  if (kept === undefined) return;
  const labels = await labelsOf(runtime, handle, kept);
  for (const reader of await readersOf(runtime, handle, { kept, kind }))
    await acceptMessage(runtime, {
      handle,
      senderId: sender.senderId,
      to: [reader.email],
      purpose: "CALENDAR",
      origin: "scheduling",
      content: laidOut(letterOf(runtime, handle, { kept, kind, reader, labels })),
      attachments: await attachmentsOf(runtime, handle, { kept, kind }),
      caps: by === "owner" || reader.isOwner ? [] : ["visitor"],
      key: `booking ${bookingUid} ${kind} ${sequence} ${sameAddress(reader.email)}${kind === "link" ? ` ${kept.meetingUrl}` : ""}`,
    });
}

/** What is known of a booking, as lines of text for its owner's calendar. */
export async function aboutBooking(runtime: Runtime, handle: string, kept: Kept): Promise<string> {
  const labels = await labelsOf(runtime, handle, kept);
  return peopleFacts(kept, { who: kept.attendee.name, labels })
    .map(([name, value]) => `${name}: ${value}`)
    .join("\n");
}

/** The booking as a calendar file, with the handle's calendar address as organiser. */
export async function fileOf(runtime: Runtime, handle: string, booking: Booking): Promise<CalendarFile> {
  return calendarFile(withPresentableNames(booking), await organizerOf(runtime, handle));
}

/** The booking that a mail tells of; undefined where it is not to be sent, or not yet. */
async function readDue(runtime: Runtime, data: JobData<"scheduling.mail">): Promise<Kept | undefined> {
  const { handle, bookingUid, kind, sequence } = data;
  const read = async (): Promise<Kept | undefined> => {
    const kept = await readKept(runtime.redis, handle, bookingUid);
    return kept?.sequence === sequence && isDue(kept, kind, runtime.now()) ? kept : undefined;
  };
  const kept = await read();
  if (kept === undefined || kind !== "confirmed" || !(await awaitsLink(runtime, handle, kept))) return kept;
  const { waited = 0 } = data;
  if (waited < mostWaits && kept.syncStatus === "OK") {
    const id = `mail-${bookingUid}-${kind}-${sequence}-waited-${waited + 1}`;
    await runtime.queues.later(job("scheduling.mail", id, { ...data, waited: waited + 1 }, { delay: waitsFor }));
    return undefined;
  }
  // Marked before the last look, so that whoever brings the link after it knows.
  await runtime.redis.hset(keys.booking(handle, bookingUid), "linkless", 1);
  return read();
}

/** Mails that no longer say what is true are not sent. */
function isDue(kept: Kept, kind: MailKind, now: number): boolean {
  const status = statusAt(kept, now);
  if (kind === "requested") return status === "PENDING";
  if (kind === "declined") return status === "REJECTED";
  if (kind === "cancelled") return status === "CANCELLED";
  if (kind === "rescheduled") return status === "ACCEPTED" || status === "PENDING";
  if (kind === "refunded") return kept.payment?.status === "REFUND_DUE";
  if (kind === "link") return status === "ACCEPTED" && kept.meetingUrl !== null;
  return status === "ACCEPTED" && (kind === "confirmed" || Date.parse(kept.start) > now);
}

/** Mails of what is in nobody's calendar: a request, and the end of one that was never confirmed. */
function isWithoutFile(kept: Kept, kind: MailKind): boolean {
  return kind === "requested" || kind === "refunded" || (kind === "declined" && !wasConfirmed(kept));
}

/** True for a booking that was confirmed at some time, so that it stands in calendars. */
function wasConfirmed({ confirmedAt, everConfirmed = false }: Kept): boolean {
  return confirmedAt !== null || everConfirmed;
}

/** Guests hear of a booking once it was confirmed. */
async function readersOf(
  { redis }: Runtime,
  handle: string,
  { kept, kind }: { kept: Kept; kind: MailKind },
): Promise<Reader[]> {
  const tellsGuests = wasConfirmed(kept) && kind !== "refunded";
  const owners = await ownerAddresses(redis, handle);
  const isOwner = (email: string) => owners.some((one) => sameAddress(one) === sameAddress(email));
  const reader = (as: Reader["as"]) => (email: string) => ({ email, as, isOwner: isOwner(email) });
  const list: Reader[] = [
    reader("attendee")(kept.attendee.email),
    ...(tellsGuests ? kept.guests.map(({ email }) => reader("guest")(email)) : []),
    ...owners.map(reader("owner")),
  ];
  const isFirst = ({ email }: Reader, at: number) =>
    list.findIndex((one) => sameAddress(one.email) === sameAddress(email)) === at;
  return list.filter((one, at) => isAddress(one.email) && isFirst(one, at));
}

async function attachmentsOf(
  runtime: Runtime,
  handle: string,
  { kept, kind }: { kept: Kept; kind: MailKind },
): Promise<Attachment[]> {
  if (isWithoutFile(kept, kind)) return [];
  const { method, text } = await fileOf(runtime, handle, shown(handle, kept, runtime.now()));
  const contentType = `text/calendar; charset=utf-8; method=${method}`;
  return [{ filename: "invite.ics", contentType, content: Buffer.from(text) }];
}

/** Who invites to the bookings of a handle: its calendar address. */
export async function organizerOf(runtime: Runtime, handle: string): Promise<Organizer> {
  const sender = await findSender(runtime, handle, "CALENDAR");
  const host = new URL(runtime.env.BASE_URL).hostname;
  if (sender === undefined) return { name: handle, email: `calendar@${host}`, host };
  return { name: sender.displayName || handle, email: `${sender.localPart}@${sender.domain}`, host };
}

async function labelsOf({ redis }: Runtime, handle: string, { eventTypeId }: Kept): Promise<Map<string, string>> {
  const stored = await readRecord<StoredEventType>(redis, keys.eventType(handle, eventTypeId));
  return new Map(stored?.bookingFields.map(({ id, label }) => [id, label]));
}

interface Told {
  kept: Kept;
  kind: MailKind;
  reader: Reader;
  labels: Map<string, string>;
}

/** What a mail says: that of its kind, or that a new time waits for its confirmation. */
type Wording = MailKind | "move-requested";

const subjects: Record<Wording, [visitor: string, owner: string]> = {
  confirmed: ["Confirmed", "New booking"],
  requested: ["Request received", "Please confirm"],
  declined: ["Declined", "Declined"],
  rescheduled: ["New time", "Moved"],
  "move-requested": ["New time requested", "Please confirm the new time"],
  cancelled: ["Cancelled", "Cancelled"],
  reminder: ["Reminder", "Reminder"],
  link: ["Link to your meeting", "Link to the meeting"],
  refunded: ["Payment returned", "Payment returned"],
};

const openings: Record<Wording, [visitor: string, owner: string]> = {
  confirmed: ["Your booking is confirmed.", "Somebody has booked a time with you."],
  requested: [
    "Your request has arrived. You will hear from us as soon as it is confirmed.",
    "Somebody asks for a time. It is held until you confirm or decline.",
  ],
  declined: [
    "Unfortunately your request could not be accepted.",
    "The request was declined and its time is free again.",
  ],
  rescheduled: ["Your booking has a new time.", "A booking has a new time."],
  "move-requested": [
    "A new time was requested. It is held, and you will hear from us as soon as it is confirmed.",
    "Somebody asks to move a booking. The new time is held until you confirm or decline.",
  ],
  cancelled: ["Your booking was cancelled.", "A booking was cancelled and its time is free again."],
  reminder: ["This is a reminder of your booking.", "This is a reminder of a booking."],
  link: ["Your meeting has its link now.", "A meeting has its link now."],
  refunded: [
    "Your payment arrived when this time could no longer be kept for you. You are not booked, and the money goes back the way it came.",
    "A payment arrived when its time could no longer be kept. Nobody is booked, and the money goes back to the payer.",
  ],
};

function letterOf(runtime: Runtime, handle: string, { kept, kind, reader, labels }: Told): Letter {
  const side = reader.as === "owner" ? 1 : 0;
  const zone = reader.as === "owner" ? kept.timeZone : kept.attendee.timeZone;
  const isOver = kind === "cancelled" || kind === "declined" || kind === "refunded";
  const who = side === 1 ? ` with ${kept.attendee.name}` : "";
  const wording = kind === "rescheduled" && kept.status === "PENDING" ? "move-requested" : kind;
  const name = presentableName(kept.attendee.name);
  const manage: Letter["links"] = [["Change or cancel this booking", manageUrl(runtime, handle, kept)]];
  return {
    subject: `${subjects[wording][side]}: ${kept.title}${who}, ${when(kept.start, zone, "short")}`.replace(
      /\p{Cc}+/gu,
      " ",
    ),
    greeting: reader.as === "attendee" && name ? `Hello ${name},` : "Hello,",
    paragraphs: [openings[wording][side], ...reasonOf(kept, kind, reader)],
    facts: factsOf(kept, { reader, zone, labels }),
    links: isOver || reader.as !== "attendee" ? [] : manage,
  };
}

/** What a visitor wrote reaches the owner and the attendee, never guests: a booking is no way to write to strangers. */
function reasonOf(kept: Kept, kind: MailKind, reader: Reader): string[] {
  const isMove = kind === "rescheduled";
  const reason = isMove ? kept.reschedulingReason : kept.cancellationReason;
  const isTold = reader.as !== "guest" || (!isMove && kept.cancelledBy === "owner");
  const tells = isMove || kind === "cancelled" || kind === "declined";
  return tells && isTold && reason ? [`Reason: ${reason}`] : [];
}

function factsOf(
  kept: Kept,
  { reader, zone, labels }: { reader: Reader; zone: string; labels: Map<string, string> },
): Letter["facts"] {
  const { title, start, durationMinutes, rescheduledFrom, location, meetingUrl } = kept;
  const facts: Letter["facts"] = [
    ["What", title],
    ["When", `${when(start, zone, "long")}, ${durationMinutes} minutes`],
  ];
  if (rescheduledFrom) facts.push(["Before", when(rescheduledFrom.start, zone, "long")]);
  if (meetingUrl || location) facts.push(["Where", meetingUrl ?? (location?.label || (location?.type as string))]);
  if (reader.as === "guest") return facts;
  const { attendee } = kept;
  const who = reader.as === "owner" ? attendee.name : presentableName(attendee.name);
  return [...facts, ...peopleFacts(kept, { who, labels })];
}

function peopleFacts(
  { attendee, guests, answers }: Kept,
  { who, labels }: { who: string | undefined; labels: Map<string, string> },
): Letter["facts"] {
  const { email } = attendee;
  const facts: Letter["facts"] = [["Who", who === undefined ? email : `${who} <${email}>`]];
  if (guests.length > 0) facts.push(["Guests", guests.map(({ email }) => email).join(", ")]);
  return [...facts, ...Object.entries(answers).map(([id, answer]): [string, string] => [labels.get(id) ?? id, answer])];
}

/** A time as people read it, in a zone and with its name. */
function when(instant: string, timeZone: string, length: "short" | "long"): string {
  const date =
    length === "short"
      ? ({ day: "numeric", month: "short" } as const)
      : ({ weekday: "long", day: "numeric", month: "long", year: "numeric" } as const);
  const format = new Intl.DateTimeFormat("en-GB", {
    ...date,
    hour: "2-digit",
    minute: "2-digit",
    timeZone,
    timeZoneName: "short",
  });
  const zone = length === "short" ? "" : `, ${timeZone}`;
  return `${format.format(new Date(instant))}${zone}`;
}

/** The same content as text and as plain HTML. */
function laidOut({ subject, greeting, paragraphs, facts, links }: Letter): {
  subject: string;
  text: string;
  html: string;
} {
  const named = facts.map(([name, value]) => `${name}: ${value}`).join("\n");
  const linked = links.map(([words, address]) => `${words}:\n${address}`).join("\n\n");
  const text = [greeting, ...paragraphs, named, linked].filter((part) => part !== "").join("\n\n");
  const rows = facts.map(
    ([name, value]) => `<tr><th align="left" valign="top">${escaped(name)}</th><td>${escaped(value)}</td></tr>`,
  );
  const anchors = links.map(([words, address]) => `<p><a href="${escaped(address)}">${escaped(words)}</a></p>`);
  const said = [greeting, ...paragraphs].map((paragraph) => `<p>${escaped(paragraph)}</p>`);
  const html = `<!doctype html><html><body>${said.join("")}<table cellpadding="4">${rows.join("")}</table>${anchors.join("")}</body></html>`;
  return { subject, text: `${text}\n`, html };
}

function escaped(text: string): string {
  const signs: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  return text.replace(/[&<>"']/g, (sign) => signs[sign] as string).replace(/\n/g, "<br>");
}
