import { fillPlaceholders } from "../../../core/platform/words.ts";
import { element } from "../agent/element.ts";
import { datesOf, dayText, firstWeekday, inMonth, plusDays, weekdayOf } from "./times.ts";
import type { PageWords } from "./words.ts";

/** A month as the grid shows it. */
export interface Month {
  /** `2026-10` */
  month: string;
  today: string;
  /** The date whose times are shown. */
  chosen: string | undefined;
  /** The date that Tab moves to. */
  entry: string;
  /** Number of free times by date. */
  counts: Map<string, number>;
  isLoading: boolean;
  locale: string;
  words: PageWords;
  choose(date: string): void;
  /** The arrow keys move to a date, perhaps of another month. */
  go(date: string): void;
}

/** The days of a month as a grid with arrow key navigation (ARIA practices, date picker). */
export function monthGrid(shown: Month, labelId: string): HTMLElement {
  const first = firstWeekday(shown.locale);
  const dates = datesOf(shown.month);
  const gap = (weekdayOf(dates[0]!) - first + 7) % 7;
  const cells = [...Array.from({ length: gap }, () => undefined), ...dates];
  const weeks = Array.from({ length: Math.ceil(cells.length / 7) }, (_, week) => cells.slice(week * 7, week * 7 + 7));
  return element(
    "table",
    {
      role: "grid",
      class: shown.isLoading ? "month loading" : "month",
      "aria-labelledby": labelId,
      "aria-busy": String(shown.isLoading),
      keydown: (event: KeyboardEvent) => onKey(event, shown),
    },
    element("thead", element("tr", ...weekdays(dates[0]!, gap, shown.locale))),
    element("tbody", ...weeks.map((week) => weekRow(week, shown))),
  );
}

/** The button of a date. */
export function dayButton(grid: ParentNode, date: string): HTMLButtonElement | null {
  return grid.querySelector(`button[data-date="${date}"]`);
}

function weekdays(firstDate: string, gap: number, locale: string): HTMLElement[] {
  return Array.from({ length: 7 }, (_, at) => {
    const date = plusDays(firstDate, at - gap);
    const long = dayText(date, locale, { weekday: "long" });
    return element("th", { scope: "col", abbr: long }, dayText(date, locale, { weekday: "short" }));
  });
}

function weekRow(week: (string | undefined)[], shown: Month): HTMLElement {
  const filledWeek = Array.from({ length: 7 }, (_, at) => week[at]);
  return element("tr", ...filledWeek.map((date) => (date ? dayCell(date, shown) : element("td"))));
}

function dayCell(date: string, shown: Month): HTMLElement {
  const count = shown.counts.get(date) ?? 0;
  const isToday = date === shown.today;
  const button = element(
    "button",
    {
      "data-date": date,
      tabindex: date === shown.entry ? "0" : "-1",
      "aria-disabled": count === 0 ? "true" : undefined,
      "aria-current": isToday ? "date" : undefined,
      "aria-label": dayLabel(date, count, shown),
      click: () => count > 0 && shown.choose(date),
    },
    String(Number(date.slice(8))),
  );
  return element("td", { "aria-selected": String(date === shown.chosen) }, button);
}

function dayLabel(date: string, count: number, { locale, words, isLoading, today }: Month): string {
  const times =
    count === 0 ? words.noTimes : count === 1 ? words.oneTime : fillPlaceholders(words.manyTimes, { count });
  const parts = [dayText(date, locale, { dateStyle: "full" }), date === today && words.today, !isLoading && times];
  return parts.filter(Boolean).join(", ");
}

function onKey(event: KeyboardEvent, shown: Month): void {
  const date = (event.target as HTMLElement).dataset.date;
  const to = date && !event.altKey && !event.ctrlKey && !event.metaKey && dateByKey(event, date, shown);
  if (!to) return;
  event.preventDefault();
  const thisMonth = shown.today.slice(0, 7);
  if (to.slice(0, 7) >= thisMonth) shown.go(to);
}

/** The date to which a key moves from a date (ARIA practices, date picker); undefined for other keys. */
function dateByKey(event: KeyboardEvent, date: string, { locale }: Month): string | undefined {
  const isRtl = getComputedStyle(event.target as HTMLElement).direction === "rtl";
  const inWeek = (weekdayOf(date) - firstWeekday(locale) + 7) % 7;
  const days: Record<string, number> = {
    ArrowLeft: isRtl ? 1 : -1,
    ArrowRight: isRtl ? -1 : 1,
    ArrowUp: -7,
    ArrowDown: 7,
    Home: -inWeek,
    End: 6 - inWeek,
  };
  const months: Record<string, number> = { PageUp: -1, PageDown: 1 };
  const [step, pages] = [days[event.key], months[event.key]];
  if (pages !== undefined) return inMonth(date, event.shiftKey ? pages * 12 : pages);
  return step === undefined ? undefined : plusDays(date, step);
}
