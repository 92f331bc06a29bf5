import { Buffer } from "node:buffer";
import type { JobData } from "../../schemas/jobs.ts";
import { spokenLanguage, wordsOf } from "../../schemas/languages.ts";
import type { Booking, BookingStatus, MailKind } from "../../schemas/scheduling.ts";
import { ownerAddresses, settingsOf } from "../account/face.ts";
import {
  acceptOnce,
  decideNotice,
  digestTexts,
  findSender,
  mailsByService,
  readDigest,
  sendForHandle,
} from "../email/face.ts";
import { type CalendarFile, calendarFile, type Organizer } from "../engines/calendars/calendars.ts";
import { type Fact, factLabel, layOut, type MailLayout, type MimeFile } from "../engines/mail/mail.ts";
import { canonicalAddress, distinctAddresses, isAddress } from "../platform/address.ts";
import { visibleCharacters } from "../platform/characters.ts";
import { sha256 } from "../platform/digest.ts";
import { fillPlaceholders } from "../platform/placeholders.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { job } from "../store/outbox.ts";
import { bookingLayout, peopleFacts, presentableName, type Recipient, withPresentableNames } from "./booking-texts.ts";
import { eventTypeRecords } from "./catalog.ts";
import { manageUrl } from "./event-types.ts";
import { type BookingRecord, findBooking, statusAt, toBooking } from "./ledger.ts";
import { ownerLink } from "./owner-links.ts";
import { awaitsLink } from "./selections.ts";

/** How often a mail waits for its meeting link, and for how many ms each time. */
const MAX_LINK_WAITS = 8;
const LINK_WAIT_MS = 1500;

/**
 * Mails attendee, guests and owners once each, in their language, through the handle's CALENDAR sender. Without a usable one only owners
 * are mailed, by another sender or by the service, which sends further mails of an hour in one digest. Does nothing without a mail server,
 * and if the booking has changed since, because the later change has its own mail. A confirmation or a new time waits some seconds for the
 * meeting link; if it goes without, another mail follows with the link. A failed refund is told to owners alone.
 */
export async function sendMails(runtime: Runtime, data: JobData<"scheduling.mail">): Promise<void> {
  const { handle, bookingUid, kind, sequence, by } = data;
  if (runtime.env.SMTP_URL === undefined) return;
  const senderId = (await findSender(runtime, handle, "CALENDAR"))?.senderId;
  const stored = await readDue(runtime, data);
  if (stored === undefined || (senderId === undefined && (await leaveToDigest(runtime, data)))) return;
  const event = await eventTypeRecords.find(runtime, handle, stored.eventTypeId);
  const isUntold = senderId === undefined && kind !== "unrefunded";
  const recipients = await recipientsOf(runtime, handle, { stored, kind });
  for (const recipient of recipients.filter(({ isOwner }) => senderId || isOwner)) {
    const mail = {
      handle,
      // An owner answers the attendee, not the sender of the calendar.
      content: {
        ...layOut(bookingLayout({ stored, kind, recipient, by, questions: event?.bookingFields, isUntold })),
        ...(recipient.as === "owner" && { replyTo: stored.attendee.email }),
      },
      attachments: await attachmentsOf(runtime, handle, { stored, recipient }),
      caps: by === "owner" || recipient.isOwner ? [] : ["visitor" as const],
      key: `booking ${bookingUid} ${kind} ${sequence} ${canonicalAddress(recipient.email)}${kind === "link" ? ` ${stored.meetingUrl}` : ""}`,
    };
    if (senderId) await acceptOnce(runtime, { ...mail, senderId, to: [recipient.email], purpose: "CALENDAR" });
    else await sendForHandle(runtime, { ...mail, to: recipient.email });
  }
}

/**
 * Leaves a mail to the digest of the hour once there were too many; true if it did, or if the booking is gone. Strangers could make the
 * service mail an owner from its own address without end. A reminder never waits: it could come after the start, and each time of the
 * calendar has one at most.
 */
async function leaveToDigest(runtime: Runtime, data: JobData<"scheduling.mail">): Promise<boolean> {
  const { handle, bookingUid, kind, sequence, by } = data;
  if (by === "owner" || kind === "reminder" || !(await mailsByService(runtime, handle))) return false;
  const decision = await decideNotice(runtime, handle, {
    record: keys.booking(handle, bookingUid),
    notices: keys.bookingNotices(handle),
    digests: keys.bookingDigest(handle, ""),
    field: `notice ${kind} ${sequence}`,
    item: JSON.stringify(data),
    job: { name: "scheduling.digest", id: "booking-digest" },
  });
  return decision !== "mail";
}

/** Mails the owners of a handle once what the further mails of an hour would have told them, with the links to decide and to open. */
export async function sendBookingDigest(
  runtime: Runtime,
  { handle, round }: JobData<"scheduling.digest">,
): Promise<void> {
  const list = keys.bookingDigest(handle, round);
  const { found, others } = await readDigest(runtime.redis, list, (item) => newsOf(runtime, JSON.parse(item)));
  const news = found.flat();
  for (const to of distinctAddresses(news.map(({ owner }) => owner))) {
    const owner = canonicalAddress(to);
    const layouts = news.flatMap((one) => (canonicalAddress(one.owner) === owner ? one.layout : []));
    const content = layOut(digestLayout(layouts, others));
    await sendForHandle(runtime, { handle, to, content, key: `booking digest ${round} ${owner}` });
  }
}

/** What a mail would have told the owners. Obsolete mails have no news: the later change has its own. */
async function newsOf(runtime: Runtime, data: JobData<"scheduling.mail">) {
  const { handle, kind } = data;
  const stored = await readDue(runtime, data);
  if (stored === undefined) return undefined;
  const questions = (await eventTypeRecords.find(runtime, handle, stored.eventTypeId))?.bookingFields;
  const owners = (await recipientsOf(runtime, handle, { stored, kind })).filter(({ isOwner }) => isOwner);
  return owners.map((recipient) => ({
    owner: recipient.email,
    layout: bookingLayout({ stored, kind, recipient, questions, isUntold: true }),
  }));
}

function digestLayout(layouts: MailLayout[], others: number): MailLayout {
  const [common] = layouts as [MailLayout];
  const texts = digestTexts(wordsOf(common.language).mails.booking, layouts.length, others);
  // The links to confirm and decline a request, else to open the booking.
  const linksOf = ({ subject, actions = [] }: MailLayout): Fact[] =>
    actions.slice(0, 2).map(([words, address]): Fact => [words, subject, address]);
  return { ...common, ...texts, facts: layouts.flatMap(linksOf), actions: [] };
}

/** True if the visitors of a handle are mailed about their bookings. */
export async function mailsVisitors(runtime: Runtime, handle: string): Promise<boolean> {
  return runtime.env.SMTP_URL !== undefined && (await findSender(runtime, handle, "CALENDAR")) !== undefined;
}

/** The title and the facts of a booking for its owner's calendar. Guests see the title of a meeting too. */
export async function aboutBooking(
  runtime: Runtime,
  handle: string,
  stored: BookingRecord,
): Promise<Record<"title" | "description", string>> {
  const event = await eventTypeRecords.find(runtime, handle, stored.eventTypeId);
  const language = spokenLanguage((await settingsOf(runtime.redis, handle)).language);
  const { title, attendee } = stored;
  const who = attendee.name;
  const facts = peopleFacts(stored, { who, questions: event?.bookingFields, language });
  const names = { title, name: presentableName(who) ?? attendee.email };
  return {
    title: fillPlaceholders(wordsOf(language).mails.booking.calendarTitle, names),
    description: visibleCharacters(facts.map(([name, value]) => `${factLabel(name)} ${value}`).join("\n")),
  };
}

/**
 * A booking as a calendar file. Only the visitor's file has the visitor's link, and a guest's file hides the uid, which is as good as that
 * link. An owner's file names the visitor in its title, and the owner as an accepted attendee, so that the owner's calendar imports it.
 */
export async function fileFor(
  runtime: Runtime,
  handle: string,
  { stored, recipient }: { stored: BookingRecord; recipient: Recipient | "visitor" },
): Promise<CalendarFile> {
  const booking = withPresentableNames(toBooking(handle, stored, runtime.now()));
  const { description = "" } = (await eventTypeRecords.find(runtime, handle, stored.eventTypeId)) ?? {};
  const organizer = await organizerOf(runtime, handle);
  if (recipient === "visitor" || recipient.as === "attendee") {
    const link = await manageLine(runtime, handle, booking);
    return calendarFile(booking, organizer, { description: [description, link].filter(Boolean).join("\n\n") });
  }
  if (recipient.as === "guest")
    return calendarFile(booking, organizer, { description, ...(!recipient.isOwner && { uid: guestUid(booking) }) });
  const { title } = await aboutBooking(runtime, handle, stored);
  const owner = { email: recipient.email, name: recipient.host };
  return calendarFile({ ...booking, title }, organizer, { description, owner });
}

async function manageLine(runtime: Runtime, handle: string, booking: Booking): Promise<string> {
  const { language } = await settingsOf(runtime.redis, handle);
  const { manage } = wordsOf(spokenLanguage(booking.language, language)).mails.booking.actions;
  return `${manage}: ${manageUrl(runtime, handle, booking)}`;
}

/** A constant name of a booking that does not give its uid away. */
function guestUid({ bookingUid }: Booking): string {
  return sha256(`guest ${bookingUid}`).toString("hex").slice(0, 32);
}

/** The organiser of the handle's bookings: its calendar address. */
async function organizerOf(runtime: Runtime, handle: string): Promise<Organizer> {
  const sender = await findSender(runtime, handle, "CALENDAR");
  const { displayName } = await settingsOf(runtime.redis, handle);
  const host = new URL(runtime.env.BASE_URL).hostname;
  const email = sender ? `${sender.localPart}@${sender.domain}` : `calendar@${host}`;
  return { name: (displayName ?? sender?.displayName) || handle, email, host };
}

/** The booking of a mail; undefined if the mail is obsolete or must wait. */
async function readDue(runtime: Runtime, data: JobData<"scheduling.mail">): Promise<BookingRecord | undefined> {
  const { handle, bookingUid, kind, sequence } = data;
  const read = async (): Promise<BookingRecord | undefined> => {
    const stored = await findBooking(runtime.redis, handle, bookingUid);
    return stored?.sequence === sequence && isDue(stored, kind, runtime.now()) ? stored : undefined;
  };
  const stored = await read();
  const key = keys.booking(handle, bookingUid);
  if (kind === "link") return (await runtime.redis.hexists(key, "linkless")) ? stored : undefined;
  const mayWait = kind === "confirmed" || kind === "rescheduled";
  if (stored === undefined || !mayWait || !(await awaitsLink(runtime, handle, stored))) return stored;
  const { waited = 0 } = data;
  if (waited < MAX_LINK_WAITS && stored.syncStatus === "OK") {
    const id = `mail-${bookingUid}-${kind}-${sequence}-waited-${waited + 1}`;
    await runtime.queues.later(job("scheduling.mail", id, { ...data, waited: waited + 1 }, { delay: LINK_WAIT_MS }));
    return undefined;
  }
  // Marked before the last read: if that finds no link, the later mail with the link sees the mark.
  await runtime.redis.hset(key, "linkless", 1);
  return read();
}

/** The statuses in which each mail is sent; obsolete mails are not. */
const statusesOf: Record<MailKind, BookingStatus[]> = {
  requested: ["PENDING"],
  confirmed: ["ACCEPTED"],
  reminder: ["ACCEPTED"],
  link: ["ACCEPTED"],
  rescheduled: ["ACCEPTED", "PENDING"],
  declined: ["REJECTED"],
  cancelled: ["CANCELLED"],
  refunded: ["CANCELLED", "REJECTED"],
  unrefunded: ["CANCELLED", "REJECTED"],
};

function isDue(stored: BookingRecord, kind: MailKind, now: number): boolean {
  if (!statusesOf[kind].includes(statusAt(stored, now))) return false;
  if (kind === "unrefunded") return stored.payment?.status === "REFUND_DUE";
  return kind !== "reminder" || Date.parse(stored.start) > now;
}

/** True for a booking that was ever confirmed, so that calendars contain it. */
function wasConfirmed({ confirmedAt, everConfirmed = false }: BookingRecord): boolean {
  return confirmedAt !== null || everConfirmed;
}

/** Guests are informed only once a booking is confirmed. */
async function recipientsOf(
  runtime: Runtime,
  handle: string,
  { stored, kind }: { stored: BookingRecord; kind: MailKind },
): Promise<Recipient[]> {
  const { redis } = runtime;
  const [owners, settings] = await Promise.all([ownerAddresses(redis, handle), settingsOf(redis, handle)]);
  const visitorLanguage = spokenLanguage(stored.language, settings.language);
  const recipient = (as: Recipient["as"], email: string): Recipient => ({
    email,
    as,
    isOwner: owners.some((one) => canonicalAddress(one) === canonicalAddress(email)),
    language: as === "owner" ? spokenLanguage(settings.language) : visitorLanguage,
    host: settings.displayName ?? handle,
    links: linksOf(runtime, handle, { stored, as, email }),
  });
  const guests = wasConfirmed(stored) && kind !== "unrefunded" ? stored.guests : [];
  const list = [
    ...(kind === "unrefunded" ? [] : [recipient("attendee", stored.attendee.email)]),
    ...guests.map(({ email }) => recipient("guest", email)),
    ...owners.map((email) => recipient("owner", email)),
  ];
  const isFirst = ({ email }: Recipient, at: number) =>
    list.findIndex((one) => canonicalAddress(one.email) === canonicalAddress(email)) === at;
  return list.filter((one, at) => isAddress(one.email) && isFirst(one, at));
}

/** A recipient's links: the visitor manages the booking, owners view it and decide a request, guests have none. */
function linksOf(
  runtime: Runtime,
  handle: string,
  { stored, as, email }: { stored: BookingRecord; as: Recipient["as"]; email: string },
): Recipient["links"] {
  if (as === "guest") return [];
  if (as === "attendee") return [["manage", manageUrl(runtime, handle, stored)]];
  const { bookingUid, sequence, status } = stored;
  const purposes = status === "PENDING" ? (["confirm", "decline", "open"] as const) : (["open"] as const);
  return purposes.map((purpose) => [purpose, ownerLink(runtime.env, { handle, bookingUid, sequence, purpose, email })]);
}

async function attachmentsOf(
  runtime: Runtime,
  handle: string,
  file: { stored: BookingRecord; recipient: Recipient },
): Promise<MimeFile[]> {
  // Calendars get a booking with its confirmation; before that there is nothing to withdraw from them.
  if (!wasConfirmed(file.stored)) return [];
  const { method, text } = await fileFor(runtime, handle, file);
  const contentType = `text/calendar; charset=utf-8; method=${method}`;
  return [{ filename: "invite.ics", contentType, content: Buffer.from(text).toString("base64") }];
}
