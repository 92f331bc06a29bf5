import { fillPlaceholders } from "../../../core/platform/placeholders.ts";
import { element } from "../agent/element.ts";
import { datesOf, dayText, firstWeekday, inMonth, plusDays, weekdayOf } from "./times.ts";
import { words } from "./visit.ts";

/** A month as the grid shows it. */
export interface Month {
  /** `2026-10` */
  month: string;
  today: string;
  /** The date whose times are shown. */
  chosen: string | undefined;
  /** The date that Tab moves to. */
  entry: string;
  /** Free times by date. */
  days: Map<string, unknown[]> | undefined;
  isLoading: boolean;
  choose(date: string): void;
  /** The arrow keys move to a date, perhaps of another month. */
  go(date: string): void;
}

/** The days of a month as a grid with arrow key navigation (ARIA practices, date picker). */
export function monthGrid(shown: Month, labelId: string): HTMLElement {
  const { month, isLoading } = shown;
  const first = `${month}-01`;
  const gap = daysIntoWeek(first);
  const rows = Math.ceil((gap + datesOf(month).length) / 7);
  const week = (row: number): string[] => Array.from({ length: 7 }, (_, at) => plusDays(first, row * 7 + at - gap));
  const weeks = Array.from({ length: rows }, (_, row) =>
    element("tr", ...week(row).map((date) => dayCell(date, shown))),
  );
  const attributes = { role: "grid", "aria-labelledby": labelId, "aria-busy": String(isLoading) };
  return element(
    isLoading ? "table.month.loading" : "table.month",
    { ...attributes, keydown: (event: KeyboardEvent) => onKey(event, shown) },
    element("thead", element("tr", ...week(0).map((date) => weekday(date)))),
    element("tbody", ...weeks),
  );
}

/** The button of a date. */
export function dayButton(grid: ParentNode, date: string): HTMLButtonElement | null {
  return grid.querySelector(`button[data-date="${date}"]`);
}

/** How many free times there are. */
export function countText(count: number): string {
  if (count === 0) return words.noTimes;
  return count === 1 ? words.oneTime : fillPlaceholders(words.manyTimes, { count });
}

function weekday(date: string): HTMLElement {
  const abbr = dayText(date, { weekday: "long" });
  return element("th", { scope: "col", abbr }, dayText(date, { weekday: "short" }));
}

function dayCell(date: string, shown: Month): HTMLElement {
  const { month, today, chosen, entry, days, choose } = shown;
  if (!date.startsWith(month)) return element("td");
  const count = days?.get(date)?.length ?? 0;
  const attributes = {
    "data-date": date,
    tabindex: date === entry ? "0" : "-1",
    "aria-disabled": count === 0 ? "true" : undefined,
    "aria-current": date === today ? "date" : undefined,
    "aria-label": dayLabel(date, count, shown),
    click: () => count > 0 && choose(date),
  };
  const selected = { "aria-selected": String(date === chosen) };
  return element("td", selected, element("button", attributes, String(Number(date.slice(8)))));
}

function dayLabel(date: string, count: number, { isLoading, today }: Month): string {
  const day = dayText(date, { dateStyle: "full" });
  return [day, date === today && words.today, !isLoading && countText(count)].filter(Boolean).join(", ");
}

function onKey(event: KeyboardEvent, { today, go }: Month): void {
  const { date } = (event.target as HTMLElement).dataset;
  const to = date && !event.altKey && !event.ctrlKey && !event.metaKey && dateByKey(event, date);
  if (!to) return;
  event.preventDefault();
  if (to.slice(0, 7) >= today.slice(0, 7)) go(to);
}

/** The date to which a key moves from a date (ARIA practices, date picker); undefined for other keys. */
function dateByKey(event: KeyboardEvent, date: string): string | undefined {
  const forward = getComputedStyle(event.target as HTMLElement).direction === "rtl" ? -1 : 1;
  const weekStart = plusDays(date, -daysIntoWeek(date));
  const months = event.shiftKey ? 12 : 1;
  const dates: Record<string, string> = {
    ArrowLeft: plusDays(date, -forward),
    ArrowRight: plusDays(date, forward),
    ArrowUp: plusDays(date, -7),
    ArrowDown: plusDays(date, 7),
    Home: weekStart,
    End: plusDays(weekStart, 6),
    PageUp: inMonth(date, -months),
    PageDown: inMonth(date, months),
  };
  return dates[event.key];
}

function daysIntoWeek(date: string): number {
  return (weekdayOf(date) - firstWeekday() + 7) % 7;
}
