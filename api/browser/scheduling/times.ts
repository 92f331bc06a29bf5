/** Zone, clock and language that the visitor reads times in. */
export interface Clock {
  locale: string;
  zone: string;
  isTwelveHours: boolean;
}

/** The preferences of the visitor's device. */
export function ownClock(locale: string): Clock {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  const { hourCycle } = new Intl.DateTimeFormat(locale, { hour: "numeric" }).resolvedOptions();
  return { locale, zone: timeZone || "UTC", isTwelveHours: hourCycle === "h12" || hourCycle === "h11" };
}

const made = new Map<string, Intl.DateTimeFormat>();

function formatter(locale: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const name = locale + JSON.stringify(options);
  const known = made.get(name) ?? new Intl.DateTimeFormat(locale, options);
  made.set(name, known);
  return known;
}

/** The local date of an instant as `YYYY-MM-DD`. */
export function localDate(instant: string | number, zone: string): string {
  const options = { timeZone: zone, year: "numeric", month: "2-digit", day: "2-digit" } as const;
  return formatter("sv-SE", options).format(new Date(instant));
}

/** `9:30 AM` or `09:30`, with more options for a time that occurs twice when clocks change. */
export function timeText(instant: string, clock: Clock, more: Intl.DateTimeFormatOptions = {}): string {
  const options = { timeZone: clock.zone, ...more, ...hours(clock.isTwelveHours) };
  return formatter(clock.locale, options).format(new Date(instant));
}

function hours(isTwelveHours: boolean): Intl.DateTimeFormatOptions {
  return isTwelveHours
    ? { hour: "numeric", minute: "2-digit", hour12: true }
    : { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
}

/** `Monday, 5 October 2026` of an instant. */
export function dateText(instant: string, { locale, zone }: Clock): string {
  return formatter(locale, { timeZone: zone, dateStyle: "full" }).format(new Date(instant));
}

/** `09:30 – 10:00` on the visitor's clock. */
export function rangeText({ start, end }: { start: string; end: string }, clock: Clock): string {
  const options = { timeZone: clock.zone, ...hours(clock.isTwelveHours) };
  const isOneDay = localDate(start, clock.zone) === localDate(end, clock.zone);
  if (!isOneDay) return `${timeText(start, clock)} – ${dateText(end, clock)}, ${timeText(end, clock)}`;
  return formatter(clock.locale, options).formatRange(new Date(start), new Date(end));
}

/** `Berlin (GMT+2)` at an instant in ms. */
export function zoneText(zone: string, at: number, locale: string): string {
  const parts = formatter(locale, { timeZone: zone, timeZoneName: "shortOffset" }).formatToParts(at);
  const offset = parts.find(({ type }) => type === "timeZoneName")?.value ?? "";
  const name = zone.split("/").slice(1).reverse().join(", ").replaceAll("_", " ") || zone;
  return name === offset ? name : `${name} (${offset})`;
}

/** A calendar date in words; `YYYY-MM-DD` has no zone. */
export function dayText(date: string, locale: string, options: Intl.DateTimeFormatOptions): string {
  return formatter(locale, { timeZone: "UTC", ...options }).format(noon(date));
}

/** `October 2026` of `2026-10`. */
export function monthText(month: string, locale: string): string {
  return dayText(`${month}-01`, locale, { month: "long", year: "numeric" });
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
export function firstWeekday(locale: string): number {
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
