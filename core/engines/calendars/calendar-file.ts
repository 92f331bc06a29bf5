import ICAL from "ical.js";
import type { Booking } from "../../../schemas/scheduling.ts";
import { asciiAddress } from "../../platform/address.ts";
import { day } from "../../platform/clock.ts";
import { storedZone, type Zone, zoneOver } from "../../platform/zones.ts";
import { type Component, componentsOf, type Property, parseObject, textOf } from "./jcal.ts";
import type { CalendarEvent } from "./providers/provider.ts";
import { addressIn } from "./recurrence.ts";

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

/** The octets of a line (RFC 5545, section 3.1) without the space before a continued one, which ical.js doesn't count. */
ICAL.foldLength = 74;

/** Ms around a booking for which the file includes the zone's rules. */
const RULES_MARGIN_MS = 400 * day;

/**
 * A booking as iCalendar (RFC 5545, RFC 5546): a constant UID, a SEQUENCE that grows with each move or cancellation, and times in the event
 * type's zone with the zone's rules, or in UTC around an hour that occurs twice.
 */
export function calendarFile(booking: Booking, organizer: Organizer, notes: FileNotes = {}): CalendarFile {
  const isOver = booking.status === "CANCELLED" || booking.status === "REJECTED";
  const method = isOver ? "CANCEL" : "REQUEST";
  const { meetingUrl, location } = booking;
  const event = {
    ...booking,
    uid: `${notes.uid ?? booking.bookingUid}@${organizer.host}`,
    sequence: booking.sequence + (isOver ? 1 : 0),
    description: notes.description ?? "",
    location: meetingUrl ?? (location?.label || null),
    timeZone: storedZone(booking.timeZone),
  };
  const status = isOver ? "CANCELLED" : booking.status === "ACCEPTED" ? "CONFIRMED" : "TENTATIVE";
  const accepted = [...(notes.owner ? [notes.owner] : []), booking.attendee];
  const people: Property[] = [
    ["organizer", { cn: plain(organizer.name) }, "cal-address", uriOf(organizer.email)],
    ...accepted.map((person) => attendee(person, true)),
    ...booking.guests.map((person) => attendee(person, false)),
  ];
  const components = [...zonesOf(event), component(event, status, people)];
  return { method, text: calendarText([text("method", method)], components) };
}

/** Longest object of a server that is parsed on the event loop, in characters. */
const MAX_PARSED_LENGTH = 65_536;

/**
 * An event as a calendar object (RFC 4791, section 4.1), without a method. It deliberately has no organizer and no attendees, since many
 * servers would mail them (RFC 6638); the description names them. The owner's additions to the last state stay, such as alarms (`owners` are
 * the owner's addresses), but a last state that is too long or malformed is replaced whole.
 */
export function calendarObject(event: CalendarEvent, last?: { object: string; owners: string[] }): string {
  try {
    return objectText(event, last && last.object.length <= MAX_PARSED_LENGTH ? additionsIn(last) : undefined);
  } catch {
    return objectText(event);
  }
}

/** The booking's sequence that this service wrote into an object; -1 if it wrote none. Other programs raise SEQUENCE too. */
export function writtenSequence(object: string): number {
  return Number(/^X-BOOKING-SEQUENCE(?:;[^:\r\n]{0,200})?:(\d+)/im.exec(object)?.[1] ?? -1);
}

/** What an object keeps of its last state; its SEQUENCE doesn't fall (RFC 5545, section 3.8.7.4). */
interface Additions {
  properties: Property[];
  alarms: Component[];
  sequence: number;
}

function objectText(event: CalendarEvent, last: Additions = { properties: [], alarms: [], sequence: 0 }): string {
  const [name, own] = component({ ...event, sequence: Math.max(event.sequence, last.sequence) }, "CONFIRMED");
  const written = plainText("x-booking-sequence", String(event.sequence));
  return calendarText([], [...zonesOf(event), [name, [...own, written, ...last.properties], last.alarms]]);
}

/** Properties and alarms that the owner has added. An organizer other than the owner, with the attendees, is that of our own invitation. */
function additionsIn({ object, owners }: { object: string; owners: string[] }): Additions {
  const event = componentsOf(parseObject(object), "vevent")[0] ?? ["vevent", [], []];
  const isOrganizer = owners.includes(addressIn(textOf(event, "organizer")));
  const dropped = [...OWN_PROPERTIES, ...(isOrganizer ? [] : ["organizer", "attendee"])];
  const alarms = componentsOf(event, "valarm").map(([name, its]): Component => [name, its, []]);
  const sequence = Number(textOf(event, "sequence")) || 0;
  return { properties: event[1].filter(([name]) => !dropped.includes(name)), alarms, sequence };
}

/** Many events as one calendar feed, with times in UTC. Tentative events await a confirmation. */
export function calendarOf(name: string, entries: { event: CalendarEvent; isTentative: boolean }[]): string {
  const refresh: Property[] = [
    ["refresh-interval", {}, "duration", "PT15M"],
    ["x-published-ttl", {}, "unknown", "PT15M"],
  ];
  const components = entries.map(({ event, isTentative }) =>
    component({ ...event, timeZone: "UTC" }, isTentative ? "TENTATIVE" : "CONFIRMED"),
  );
  return calendarText([plainText("name", name), plainText("x-wr-calname", name), ...refresh], components);
}

/** The component of a calendar without events, since there must be one (RFC 5545, section 3.6). */
function utcZone(): Component {
  return ["vtimezone", [text("tzid", "UTC")], [observance(zoneOver("UTC", 0, 0), 0)]];
}

function calendarText(properties: Property[], components: Component[]): string {
  const own = [text("version", "2.0"), text("prodid", "-//Handle Platform//Scheduling//EN")];
  return ICAL.stringify(["vcalendar", [...own, ...properties], components.length === 0 ? [utcZone()] : components]);
}

type EventContent = Omit<CalendarEvent, "bookingUid" | "meeting">;

/** The properties of `component`, and those that would change its times. */
const OWN_PROPERTIES = [
  ...["uid", "sequence", "dtstamp", "dtstart", "dtend", "summary", "status", "description", "location", "url"],
  ...["duration", "rrule", "rdate", "exdate", "recurrence-id", "x-booking-sequence"],
];

function component(event: EventContent, status: string, people: Property[] = []): Component {
  const { description, location } = event;
  const timeZone = writtenZone(event);
  const properties: Property[] = [
    text("uid", event.uid),
    ["sequence", {}, "integer", event.sequence],
    timeOf("dtstamp", event.updatedAt, "UTC"),
    timeOf("dtstart", event.start, timeZone),
    timeOf("dtend", event.end, timeZone),
    text("summary", event.title),
    text("status", status),
    ...(description ? [text("description", description)] : []),
    ...(location === null ? [] : [text("location", location)]),
  ];
  // "Room: 5" is a URL too, to the parser.
  if (/^https?:\S+$/i.test(location ?? "")) properties.push(["url", {}, "uri", location]);
  return ["vevent", [...properties, ...people], []];
}

function text(name: string, value: string): Property {
  return [name, {}, "text", xmlCharacters(value.replace(/\r\n?/g, "\n"))];
}

/** Without characters that XML forbids (XML 1.0, section 2.2): one of them makes a whole calendar unreadable to CalDAV clients. */
function xmlCharacters(value: string): string {
  return value.replace(/[^\t\n\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "");
}

/** A text of a property that ical.js doesn't know: without the parameter VALUE, which many programs don't expect there. */
function plainText(name: string, value: string): Property {
  return [name, {}, "unknown", xmlCharacters(value.replace(/[\\;,]/g, "\\$&").replace(/\r\n?|\n/g, "\\n"))];
}

function timeOf(name: string, instant: string, timeZone: string): Property {
  const ms = Date.parse(instant);
  if (isUtc(timeZone)) return [name, {}, "date-time", `${localTime(ms)}Z`];
  return [name, { tzid: timeZone }, "date-time", localTime(ms + zoneOver(timeZone, ms, ms).offsetAt(ms))];
}

function attendee({ email, name }: { email: string; name?: string | undefined }, hasAccepted: boolean): Property {
  const partstat = hasAccepted ? "ACCEPTED" : "NEEDS-ACTION";
  const parameters = { role: "REQ-PARTICIPANT", partstat, rsvp: hasAccepted ? "FALSE" : "TRUE" };
  return ["attendee", { ...parameters, ...(name ? { cn: plain(name) } : {}) }, "cal-address", uriOf(email)];
}

/** The URI of an address, whose domain may be in another script (RFC 5545, section 3.3.3). */
function uriOf(email: string): string {
  return `mailto:${asciiAddress(email) ?? email}`;
}

/** Many programs know neither quotes nor line breaks in parameters (RFC 6868). */
function plain(value: string): string {
  return xmlCharacters(value.replace(/["\\]/g, "'").replace(/\s+/g, " "));
}

/** The event's zone; UTC if clocks go back around it: a local time that occurs twice is the first to some programs, the second to others. */
function writtenZone({ timeZone, start, end }: EventContent): string {
  const [from, to] = [Date.parse(start), Date.parse(end)];
  const zone = zoneOver(timeZone, from, to);
  return zone.isRepeated(from) || zone.isRepeated(to) ? "UTC" : timeZone;
}

function isUtc(timeZone: string): boolean {
  return /^(etc\/)?(utc|uct|gmt|zulu|universal)$/i.test(timeZone);
}

/** The rules of an event's zone around the event, with one component per change of the offset; none for UTC, which has no rules. */
function zonesOf(event: EventContent): Component[] {
  const [timeZone, start] = [writtenZone(event), event.start];
  if (isUtc(timeZone)) return [];
  const [from, to] = [Date.parse(start) - RULES_MARGIN_MS, Date.parse(start) + RULES_MARGIN_MS];
  const zone = zoneOver(timeZone, from, to);
  const rules = [observance(zone, from)];
  for (let at = zone.changeAfter(from); at < to; at = zone.changeAfter(at)) rules.push(observance(zone, at));
  return [["vtimezone", [text("tzid", timeZone)], rules]];
}

function observance(zone: Zone, at: number): Component {
  const [before, after] = [zone.offsetAt(at - 1), zone.offsetAt(at)];
  const properties: Property[] = [
    ["dtstart", {}, "date-time", localTime(at + before)],
    ["tzoffsetfrom", {}, "utc-offset", offsetText(before)],
    ["tzoffsetto", {}, "utc-offset", offsetText(after)],
  ];
  return [after > before ? "daylight" : "standard", properties, []];
}

/** Ms of local time as jCal writes it. */
function localTime(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19);
}

function offsetText(offset: number): string {
  return `${offset < 0 ? "-" : "+"}${localTime(Math.abs(offset)).slice(11, 16)}`;
}
