import { visit } from "./visit.ts";

/** The zone of the visitor's device. */
export const ownZone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
/** The locale of dates and money: the visitor's region if its language is the page's, else the language alone. */
export const locale = navigator.languages.find((one) => primary(one) === visit.language) ?? visit.language;
const { hourCycle } = new Intl.DateTimeFormat(locale, { hour: "numeric" }).resolvedOptions();

/** The zone and the hours that the visitor reads times in; at first those of the device. */
export const clock = { zone: ownZone, isTwelveHours: hourCycle === "h12" || hourCycle === "h11" };

const made = new Map<string, Intl.DateTimeFormat>();

function formatter(options: Intl.DateTimeFormatOptions, language = locale): Intl.DateTimeFormat {
  const name = language + JSON.stringify(options);
  const known = made.get(name) ?? new Intl.DateTimeFormat(language, options);
  made.set(name, known);
  return known;
}

/** `de` of `de-CH`. */
function primary(one: string): string | undefined {
  return one.split("-")[0]?.toLowerCase();
}

/** The local date of an instant as `YYYY-MM-DD`. */
export function localDate(instant: string | number): string {
  const options = { timeZone: clock.zone, year: "numeric", month: "2-digit", day: "2-digit" } as const;
  return formatter(options, "sv-SE").format(new Date(instant));
}

/** `9:30 AM` or `09:30`, with more options for a time that occurs twice when clocks change. */
export function timeText(instant: string, more: Intl.DateTimeFormatOptions = {}): string {
  return formatter({ ...hours(), ...more }).format(new Date(instant));
}

function hours(): Intl.DateTimeFormatOptions {
  const timeZone = clock.zone;
  return clock.isTwelveHours
    ? { timeZone, hour: "numeric", minute: "2-digit", hour12: true }
    : { timeZone, hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
}

/** `Monday, 5 October 2026` of an instant. */
export function dateText(instant: string): string {
  return formatter({ timeZone: clock.zone, dateStyle: "full" }).format(new Date(instant));
}

/** `09:30 – 10:00` on the visitor's clock. */
export function rangeText({ start, end }: { start: string; end: string }): string {
  if (localDate(start) !== localDate(end)) return `${timeText(start)} – ${dateText(end)}, ${timeText(end)}`;
  return formatter(hours()).formatRange(new Date(start), new Date(end));
}

/** `Berlin (GMT+2)` at an instant in ms. */
export function zoneText(zone: string, at: number): string {
  const parts = formatter({ timeZone: zone, timeZoneName: "shortOffset" }).formatToParts(at);
  const offset = parts.find(({ type }) => type === "timeZoneName")?.value ?? "";
  const name = zone.split("/").slice(1).reverse().join(", ").replaceAll("_", " ") || zone;
  return name === offset ? name : `${name} (${offset})`;
}

/** A calendar date in words; `YYYY-MM-DD` has no zone. */
export function dayText(date: string, options: Intl.DateTimeFormatOptions): string {
  return formatter({ timeZone: "UTC", ...options }).format(noon(date));
}

/** `October 2026` of `2026-10`. */
export function monthText(month: string): string {
  return dayText(`${month}-01`, { month: "long", year: "numeric" });
}

/** The date some days later. */
export function plusDays(date: string, days: number): string {
  return new Date(noon(date).getTime() + days * 86_400_000).toISOString().slice(0, 10);
}

/** The month some months later, of `2026-10`. */
export function plusMonths(month: string, months: number): string {
  const first = noon(`${month}-01`);
  first.setUTCMonth(first.getUTCMonth() + months);
  return first.toISOString().slice(0, 7);
}

/** The same day some months later, or the last day of a shorter month. */
export function inMonth(date: string, months: number): string {
  const dates = datesOf(plusMonths(date.slice(0, 7), months));
  return dates[Number(date.slice(8)) - 1] ?? dates.at(-1)!;
}

/** The dates of a month. */
export function datesOf(month: string): string[] {
  const first = `${month}-01`;
  return Array.from({ length: 31 }, (_, days) => plusDays(first, days)).filter((date) => date.startsWith(month));
}

/** Instants that enclose a month in every zone, 33 days apart at most. */
export function spanOf(month: string): { start: string; end: string } {
  const around = 15 * 3_600_000;
  const [from, to] = [month, plusMonths(month, 1)].map((one) => Date.parse(`${one}-01T00:00:00Z`)) as [number, number];
  return { start: new Date(from - around).toISOString(), end: new Date(to + around).toISOString() };
}

/** 0 for Sunday to 6. */
export function weekdayOf(date: string): number {
  return noon(date).getUTCDay();
}

/** The first weekday of the locale, 0 for Sunday. */
export function firstWeekday(): number {
  const known = new Intl.Locale(locale) as Intl.Locale & {
    getWeekInfo?: () => { firstDay: number };
    weekInfo?: { firstDay: number };
  };
  const { firstDay } = known.getWeekInfo?.() ?? known.weekInfo ?? { firstDay: /^en(-US|-CA)?$/.test(locale) ? 7 : 1 };
  return firstDay % 7;
}

function noon(date: string): Date {
  return new Date(`${date}T12:00:00Z`);
}
