import { Temporal } from "@js-temporal/polyfill";
import ical, {
  type ICalAttendeeData,
  ICalAttendeeRole,
  ICalAttendeeStatus,
  type ICalCalendar,
  ICalCalendarMethod,
  type ICalEvent,
  ICalEventStatus,
} from "ical-generator";
import type { Booking } from "../../../schemas/scheduling.ts";
import { day, storedZone, type Zone, zoneOver } from "../../platform/zones.ts";
import type { CalendarEvent } from "./providers/provider.ts";

/** The organizer, and the host that makes UIDs globally unique. */
export interface Organizer {
  name: string;
  email: string;
  host: string;
}

/** Notes in a calendar file besides the booking. */
interface FileNotes {
  description?: string;
  /**
   * The owner whose calendar the file is for, as an accepted attendee: mail programs import what invites their own user (RFC 5546, section
   * 3.2.2).
   */
  owner?: { email: string; name: string };
  /** The local part of the UID; by default the uid of the booking, with which its reader can manage the booking. */
  uid?: string;
}

/** A calendar file and the method that the mail's content type must name. */
export interface CalendarFile {
  method: "REQUEST" | "CANCEL";
  text: string;
}

const prodId = { company: "Handle Platform", product: "Scheduling" };
/** Ms around a booking for which the file includes the zone's rules. */
const RULES_MARGIN_MS = 400 * day;

/**
 * A booking as iCalendar (RFC 5545, RFC 5546): a constant UID, a SEQUENCE that grows with each move or cancellation, and times in the event
 * type's zone with the zone's rules.
 */
export function calendarFile(booking: Booking, organizer: Organizer, notes: FileNotes = {}): CalendarFile {
  const isOver = booking.status === "CANCELLED" || booking.status === "REJECTED";
  const method = isOver ? "CANCEL" : "REQUEST";
  const calendar = ical({ prodId, method: ICalCalendarMethod[method] });
  const zone = addZone(calendar, { ...booking, timeZone: storedZone(booking.timeZone) });
  const { meetingUrl, location } = booking;
  const content = {
    ...booking,
    uid: `${notes.uid ?? booking.bookingUid}@${organizer.host}`,
    sequence: booking.sequence + (isOver ? 1 : 0),
    description: notes.description ?? "",
    location: meetingUrl ?? (location?.label || null),
  };
  const event = addEvent(calendar, content, { zone, status: statusOf(booking) });
  event.organizer({ name: plain(organizer.name), email: organizer.email });
  const accepted = [...(notes.owner ? [notes.owner] : []), booking.attendee];
  for (const person of accepted) event.createAttendee(attendeeOf(person, true));
  for (const guest of booking.guests) event.createAttendee(attendeeOf(guest, false));
  return { method, text: calendar.toString() };
}

/**
 * An event as a calendar object (RFC 4791, section 4.1), without a method. It deliberately has no organizer and no attendees, since many
 * servers would mail them (RFC 6638); the description names them.
 */
export function calendarObject(event: CalendarEvent): string {
  const calendar = ical({ prodId });
  addEvent(calendar, event, { zone: addZone(calendar, event), status: ICalEventStatus.CONFIRMED });
  return calendar.toString();
}

/** Many events as one calendar feed, with times in UTC. Tentative events await a confirmation. */
export function calendarOf(name: string, entries: { event: CalendarEvent; isTentative: boolean }[]): string {
  const calendar = ical({ name, prodId, ttl: 900 });
  for (const { event, isTentative } of entries) {
    const status = isTentative ? ICalEventStatus.TENTATIVE : ICalEventStatus.CONFIRMED;
    addEvent(calendar, event, { zone: "UTC", status });
  }
  return calendar.toString();
}

type EventContent = Pick<
  CalendarEvent,
  "uid" | "sequence" | "start" | "end" | "updatedAt" | "title" | "description" | "location"
>;

function addEvent(
  calendar: ICalCalendar,
  event: EventContent,
  { zone, status }: { zone: string; status: ICalEventStatus },
): ICalEvent {
  const at = (instant: string) => Temporal.Instant.from(instant).toZonedDateTimeISO(zone);
  return calendar.createEvent({
    id: event.uid,
    sequence: event.sequence,
    start: at(event.start),
    end: at(event.end),
    timezone: zone === "UTC" ? null : zone,
    stamp: new Date(event.updatedAt),
    summary: event.title,
    status,
    ...(event.description ? { description: event.description } : {}),
    ...(event.location === null ? {} : { location: event.location }),
    // "Room: 5" is a URL too, to the parser.
    ...(/^https?:\S+$/i.test(event.location ?? "") ? { url: event.location as string } : {}),
  });
}

/** Adds the rules of an event's zone, and returns its name; UTC has no rules. */
function addZone(calendar: ICalCalendar, { timeZone, start }: { timeZone: string; start: string }): string {
  if (/^(etc\/)?(utc|uct|gmt|zulu|universal)$/i.test(timeZone)) return "UTC";
  // With a name, the library would write the stamp in that zone, although it must be UTC, and would write the name after the components.
  calendar.timezone({ name: "", generator: (name) => zoneRules(name, Date.parse(start)) });
  return timeZone;
}

function attendeeOf(
  { email, name }: { email: string; name?: string | undefined },
  hasAccepted: boolean,
): ICalAttendeeData {
  const status = hasAccepted ? ICalAttendeeStatus.ACCEPTED : ICalAttendeeStatus.NEEDSACTION;
  return { email, ...(name ? { name: plain(name) } : {}), role: ICalAttendeeRole.REQ, status, rsvp: !hasAccepted };
}

function statusOf({ status }: Booking): ICalEventStatus {
  if (status === "ACCEPTED") return ICalEventStatus.CONFIRMED;
  return status === "CANCELLED" || status === "REJECTED" ? ICalEventStatus.CANCELLED : ICalEventStatus.TENTATIVE;
}

/** Parameter values must not contain quotes (RFC 5545, section 3.2). */
function plain(text: string): string {
  return text.replace(/["\\]/g, "'");
}

/** The VTIMEZONE of a zone around an instant, with one component per change of the offset. */
function zoneRules(name: string, instant: number): string {
  const [from, to] = [instant - RULES_MARGIN_MS, instant + RULES_MARGIN_MS];
  const zone = zoneOver(name, from, to);
  const rules = [observance(zone, from)];
  for (let at = zone.changeAfter(from); at < to; at = zone.changeAfter(at)) rules.push(observance(zone, at));
  return ["BEGIN:VTIMEZONE", `TZID:${name}`, ...rules.flat(), "END:VTIMEZONE"].join("\r\n");
}

function observance(zone: Zone, at: number): string[] {
  const [before, after] = [zone.offsetAt(at - 1), zone.offsetAt(at)];
  const kind = after > before ? "DAYLIGHT" : "STANDARD";
  const local = new Date(at + before).toISOString().replace(/[-:]|\.\d+Z$/g, "");
  const offsets = [`TZOFFSETFROM:${offsetText(before)}`, `TZOFFSETTO:${offsetText(after)}`];
  return [`BEGIN:${kind}`, `DTSTART:${local}`, ...offsets, `END:${kind}`];
}

function offsetText(offset: number): string {
  const minutes = Math.abs(offset) / 60_000;
  const digits = [Math.floor(minutes / 60), Math.floor(minutes % 60)].map((part) => String(part).padStart(2, "0"));
  return `${offset < 0 ? "-" : "+"}${digits.join("")}`;
}
