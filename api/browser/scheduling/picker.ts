import { fillPlaceholders } from "../../../core/platform/words.ts";
import { element, randomId } from "../agent/element.ts";
import type { BookableSlot, Problem } from "./calls.ts";
import type { Host } from "./host.ts";
import { pageIcon } from "./icons.ts";
import { dayButton, monthGrid } from "./month.ts";
import { sentenceOf } from "./problem.ts";
import { dayText, localDate, monthText, plusMonths, spanOf, timeText, timeTextWithZone } from "./times.ts";
import { zoneControls } from "./zones.ts";

type Days = Map<string, BookableSlot[]>;

/** Number of months to search for a free time. */
const farthest = 12;
/** Ms after which free times are reloaded when the visitor returns to the page. */
const freshFor = 30_000;

/** The free times: a month, the times of one day, and the zone in which they are shown. */
export class Picker {
  readonly view: HTMLElement;
  readonly heading: HTMLElement;
  private readonly host: Host;
  private readonly title = element("h3", { id: `month-${randomId()}`, "aria-live": "polite" });
  private readonly grid = element("div.days");
  private readonly times = element("div.times", { role: "group" });
  private readonly status = element("div.status");
  private readonly earlier: HTMLButtonElement;
  private readonly known = new Map<string, Days>();
  private month: string;
  private entry: string;
  private chosen: string | undefined;
  /** Number of the latest load; the result of an earlier one is ignored. */
  private turn = 0;
  private loadedAt = 0;

  constructor(host: Host, notice?: string) {
    this.host = host;
    const { words } = host;
    this.entry = this.today();
    this.month = this.entry.slice(0, 7);
    this.heading = element("h2", { tabindex: "-1" }, host.booking ? words.chooseNew : words.chooseDay);
    this.earlier = this.turnButton("before", words.previousMonth, -1);
    const bar = element("div.bar", this.title, this.earlier, this.turnButton("after", words.nextMonth, 1));
    const calendar = element("div.calendar", bar, this.grid, this.status, zoneControls(host, this.changed));
    this.view = element(
      "div.picker",
      element("div.head", this.heading, host.booking ? element("p.muted", words.unmoved) : undefined),
      notice !== undefined && element("p.alert", { role: "alert" }, notice),
      calendar,
      this.times,
    );
    document.addEventListener("visibilitychange", this.returned);
    addEventListener("online", this.returned);
  }

  /** Shows the first month with free times, this one or the next. */
  async open(): Promise<void> {
    await this.load(this.month);
    if (this.known.get(this.month)?.size === 0) await this.load(plusMonths(this.month, 1), true);
  }

  private today(): string {
    return localDate(this.host.now(), this.host.clock.zone);
  }

  private turnButton(name: "before" | "after", label: string, months: number): HTMLButtonElement {
    const turn = ({ currentTarget }: Event): void => {
      const isEnd = (currentTarget as HTMLElement).getAttribute("aria-disabled") === "true";
      if (!isEnd) void this.load(plusMonths(this.month, months));
    };
    return element("button.round", { "aria-label": label, click: turn }, pageIcon(name));
  }

  private readonly changed = (what: "zone" | "clock"): void => {
    if (what === "clock") {
      this.showTimes();
      return;
    }
    this.known.clear();
    this.entry = this.chosen ?? this.today();
    void this.load(this.month);
  };

  /** Reloads the times when the visitor returns; a removed view stops listening. */
  private readonly returned = (): void => {
    if (!this.view.isConnected) {
      document.removeEventListener("visibilitychange", this.returned);
      removeEventListener("online", this.returned);
      return;
    }
    if (document.hidden || Date.now() - this.loadedAt < freshFor) return;
    this.known.clear();
    void this.load(this.month);
  };

  /** Shows a month; with `isHop` only if it has free times. */
  private async load(month: string, isHop = false): Promise<void> {
    const turn = ++this.turn;
    const before = this.month;
    const held = document.activeElement;
    if (!isHop) this.showMonth(month, !this.known.has(month));
    try {
      const days = this.known.get(month) ?? (await this.fetch(month));
      if (turn !== this.turn) return;
      this.known.set(month, days);
      this.loadedAt = Date.now();
      if (isHop && days.size === 0) return;
      this.chooseFirst(month, days);
      this.showMonth(month, false);
      this.showTimes();
    } catch (error) {
      if (turn !== this.turn) return;
      this.showMonth(isHop ? before : month, false);
      this.showProblem(error as Problem);
    }
    this.keepFocus(held);
  }

  /** Replaces the focused element if it was rendered again or is gone: by the same time, else the retry, else the day. */
  private keepFocus(held: Element | null): void {
    if (!(held instanceof HTMLElement) || held.isConnected || document.activeElement !== document.body) return;
    const { start = "" } = held.dataset;
    const same = this.times.querySelector<HTMLElement>(`[data-start="${start}"]`);
    (same ?? this.status.querySelector("button") ?? dayButton(this.grid, this.entry))?.focus();
  }

  private async fetch(month: string): Promise<Days> {
    const { calls, clock, booking, visit } = this.host;
    const asked = { ...spanOf(month), ...(booking ? { bookingUid: booking.bookingUid } : {}) };
    const { zone } = clock;
    const found = await calls.slots({ ...asked, timeZone: zone }).catch((error: Problem) => {
      // The browser knows this zone and the service doesn't: the grid uses the event's own zone.
      const isZone = error.faults.some(({ path }) => path === "/timeZone");
      return isZone && visit.event ? calls.slots(asked) : Promise.reject(error);
    });
    const days: Days = new Map();
    for (const slot of found) {
      const date = localDate(slot.start, zone);
      if (!date.startsWith(month) || slot.start === booking?.start) continue;
      const slots = days.get(date);
      if (slots) slots.push(slot);
      else days.set(date, [slot]);
    }
    return days;
  }

  private chooseFirst(month: string, days: Days): void {
    const kept = this.chosen?.startsWith(month) && days.has(this.chosen) ? this.chosen : undefined;
    this.chosen = kept ?? days.keys().next().value;
    const isFocused = this.grid.contains(document.activeElement);
    if (!this.entry.startsWith(month) || !isFocused) this.entry = this.chosen ?? `${month}-01`;
  }

  private showMonth(month: string, isLoading: boolean): void {
    const { words, clock } = this.host;
    const hadFocus = this.grid.contains(document.activeElement);
    const today = this.today();
    this.month = month;
    if (!this.entry.startsWith(month)) this.entry = month === today.slice(0, 7) ? today : `${month}-01`;
    this.title.textContent = monthText(month, clock.locale);
    // Not `disabled`, which would drop the focus from the button that was just pressed.
    this.earlier.setAttribute("aria-disabled", String(month <= today.slice(0, 7)));
    const counts = new Map([...(this.known.get(month) ?? [])].map(([date, slots]) => [date, slots.length]));
    const { chosen, entry } = this;
    const ways = { choose: (date: string) => this.choose(date), go: (date: string) => this.go(date) };
    const monthView = { month, today, chosen, entry, counts, isLoading, locale: clock.locale, words, ...ways };
    this.grid.replaceChildren(monthGrid(monthView, this.title.id));
    if (hadFocus) dayButton(this.grid, this.entry)?.focus();
    this.status.replaceChildren(...(isLoading || counts.size > 0 ? [] : this.nothing(month)));
  }

  private nothing(month: string): HTMLElement[] {
    const { words, clock } = this.host;
    const look = element("button.quiet", { click: () => void this.lookFurther() }, words.lookFurther);
    const text = fillPlaceholders(words.noneInMonth, { month: monthText(month, clock.locale) });
    return [element("p", { role: "status" }, text), look];
  }

  private async lookFurther(): Promise<void> {
    const { words } = this.host;
    const from = this.month;
    this.showStatus(words.loading);
    for (let months = 1; months <= farthest; months++) {
      const month = plusMonths(from, months);
      await this.load(month, true);
      if (this.month !== from || this.status.querySelector(".alert")) return;
    }
    this.showStatus(words.noneAtAll);
  }

  /** Replaces the button that was pressed by a text, which takes its focus. */
  private showStatus(text: string): void {
    const status = element("p", { role: "status", tabindex: "-1" }, text);
    this.status.replaceChildren(status);
    status.focus();
  }

  private showProblem(problem: Problem): void {
    const { words, say } = this.host;
    const text = problem.code === "event_type_not_found" ? words.gone : sentenceOf(problem, words);
    const retry = element("button.quiet", { click: () => void this.load(this.month) }, words.tryAgain);
    this.status.replaceChildren(element("p.alert", text), retry);
    this.times.replaceChildren();
    say(text);
  }

  private choose(date: string): void {
    this.chosen = date;
    this.entry = date;
    this.showMonth(this.month, false);
    this.showTimes();
    const { words, clock, say } = this.host;
    const count = this.known.get(this.month)?.get(date)?.length ?? 0;
    say(
      `${dayText(date, clock.locale, { dateStyle: "full" })}: ${count === 1 ? words.oneTime : fillPlaceholders(words.manyTimes, { count })}`,
    );
    const isBelow = this.times.getBoundingClientRect().top > innerHeight * 0.8;
    if (isBelow) this.times.scrollIntoView({ block: "nearest", behavior: calm() ? "auto" : "smooth" });
  }

  /** The arrow keys move the focus to a date, and change the month if necessary. */
  private go(date: string): void {
    const first = this.today();
    this.entry = date < first ? first : date;
    const month = this.entry.slice(0, 7);
    if (month === this.month) this.showMonth(month, this.grid.querySelector(".loading") !== null);
    else void this.load(month);
  }

  private showTimes(): void {
    const { words, clock, enter } = this.host;
    const slots = this.chosen === undefined ? undefined : this.known.get(this.month)?.get(this.chosen);
    this.times.replaceChildren();
    if (!this.chosen || !slots) return;
    const heading = element(
      "h3",
      { id: `day-${randomId()}` },
      dayText(this.chosen, clock.locale, { weekday: "short", day: "numeric", month: "short" }),
    );
    const texts = slots.map(({ start }) => timeText(start, clock));
    const buttons = slots.map((slot, at) => {
      const isTwice = texts.indexOf(texts[at]!) !== texts.lastIndexOf(texts[at]!);
      const text = isTwice ? timeTextWithZone(slot.start, clock) : texts[at];
      return element("li", element("button.slot", { "data-start": slot.start, click: () => enter(slot) }, text));
    });
    this.times.setAttribute("aria-labelledby", heading.id);
    const bar = element(
      "div.bar",
      heading,
      this.dayTurn("before", words.previousDay, -1),
      this.dayTurn("after", words.nextDay, 1),
    );
    this.times.replaceChildren(bar, element("ul", { "aria-label": words.times }, ...buttons));
  }

  /** Moves to the next day of this month that has free times. */
  private dayTurn(name: "before" | "after", label: string, step: number): HTMLElement {
    const dates = [...(this.known.get(this.month)?.keys() ?? [])];
    const date = dates[dates.indexOf(this.chosen ?? "") + step];
    const turn = (): void => {
      if (date === undefined) return;
      this.choose(date);
      this.times.querySelector<HTMLElement>(`.round .${name}`)?.closest("button")?.focus();
    };
    const attributes = { "aria-label": label, "aria-disabled": date === undefined ? "true" : undefined, click: turn };
    return element("button.round", { type: "button", ...attributes }, pageIcon(name));
  }
}

function calm(): boolean {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}
