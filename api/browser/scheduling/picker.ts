import { fillPlaceholders } from "../../../core/platform/placeholders.ts";
import { element, randomId } from "../agent/element.ts";
import type { BookableSlot, Problem } from "./calls.ts";
import type { Host } from "./host.ts";
import { pageIcon } from "./icons.ts";
import { countText, dayButton, monthGrid } from "./month.ts";
import { sentenceOf } from "./problem.ts";
import { clock, dayText, localDate, monthText, plusMonths, spanOf, timeText } from "./times.ts";
import { visit, words } from "./visit.ts";
import { zoneControls } from "./zones.ts";

/** The free times of a month by date. */
type Days = Map<string, BookableSlot[]>;

/** Number of months to search for a free time. */
const MAX_MONTHS = 12;
/** Ms after which free times are reloaded when the visitor returns to the page. */
const FRESH_MS = 30_000;

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
  /** Free times by zone and month. */
  private readonly known = new Map<string, Days>();
  private month: string;
  /** The date that the visitor chose last. */
  private wanted = "";
  /** The date that Tab moves to. */
  private entry: string;
  private problem: Problem | undefined;
  /** The progress of a search, instead of the button that started it. */
  private progress = "";
  /** The element with the focus, or the one that lost it by rendering, until another has it. */
  private held: Element | null = null;
  /** Number of the latest load; the result of an earlier one is ignored. */
  private turn = 0;
  private loadedAt = 0;

  constructor(host: Host, notice?: string) {
    this.host = host;
    const { booking } = host;
    this.entry = this.today();
    this.month = this.entry.slice(0, 7);
    this.heading = element("h2", { tabindex: "-1" }, booking ? words.chooseNew : words.chooseDay);
    const by = (months: number) => () => void this.show(plusMonths(this.month, months));
    this.earlier = turnButton("before", words.previousMonth, by(-1));
    const bar = element("div.bar", this.title, this.earlier, turnButton("after", words.nextMonth, by(1)));
    const zones = zoneControls(host, () => void this.show(this.month));
    this.view = element(
      "div.picker",
      element("div.head", this.heading, booking && element("p.muted", words.unmoved)),
      notice !== undefined && element("p.alert", { role: "alert" }, notice),
      element("div.calendar", bar, this.grid, this.status, zones),
      this.times,
    );
    const left = new AbortController();
    for (const kind of ["visibilitychange", "online"])
      addEventListener(kind, () => (this.view.isConnected ? this.refresh() : left.abort()), { signal: left.signal });
  }

  /** Shows the first month with free times, this one or the next. */
  async open(): Promise<void> {
    await this.show(this.month);
    if (this.days?.size === 0) await this.search(1);
  }

  private get days(): Days | undefined {
    return this.known.get(this.keyOf(this.month));
  }

  private keyOf(month: string): string {
    return `${clock.zone} ${month}`;
  }

  private today(): string {
    return localDate(this.host.now());
  }

  /** Reloads the times when the visitor returns. */
  private refresh(): void {
    if (document.hidden || Date.now() - this.loadedAt < FRESH_MS) return;
    this.known.clear();
    void this.show(this.month);
  }

  private async show(month: string): Promise<void> {
    this.month = month;
    this.progress = "";
    this.problem = undefined;
    this.draw();
    if (await this.load(month)) this.draw();
  }

  /** Shows the first of the next months that has free times, or why none is shown. */
  private async search(months: number): Promise<void> {
    for (let next = 1; next <= months; next++) {
      const month = plusMonths(this.month, next);
      if (!(await this.load(month))) return;
      const isFound = this.known.get(this.keyOf(month))?.size !== 0;
      if (isFound && !this.problem) this.month = month;
      if (isFound) return this.draw();
    }
    if (months > 1) this.progress = words.noneAtAll;
    this.draw();
  }

  /** Loads a month if it isn't known; false if another load has started since. */
  private async load(month: string): Promise<boolean> {
    const turn = ++this.turn;
    const key = this.keyOf(month);
    const loaded = this.known.get(key) ?? (await this.freeTimes(month).catch((error: Problem) => error));
    if (turn !== this.turn) return false;
    this.loadedAt = Date.now();
    if (loaded instanceof Map) this.known.set(key, loaded);
    else this.fail(loaded);
    return true;
  }

  private fail(problem: Problem): void {
    this.problem = problem;
    this.host.say(this.problemText(problem));
  }

  private problemText(problem: Problem): string {
    return problem.code === "event_type_not_found" ? words.gone : sentenceOf(problem);
  }

  private async freeTimes(month: string): Promise<Days> {
    const { calls, booking } = this.host;
    const asked = { ...spanOf(month), ...(booking ? { bookingUid: booking.bookingUid } : {}) };
    const { zone } = clock;
    const found = await calls.slots({ ...asked, timeZone: zone }).catch((error: Problem) => {
      // The browser knows this zone and the service doesn't: the grid uses the event's own zone.
      const isZone = error.faults.some(({ path }) => path === "/timeZone");
      return isZone && visit.event ? calls.slots(asked) : Promise.reject(error);
    });
    const days: Days = new Map();
    for (const slot of found) {
      const date = localDate(slot.start);
      if (!date.startsWith(month) || slot.start === booking?.start) continue;
      days.set(date, [...(days.get(date) ?? []), slot]);
    }
    return days;
  }

  /** Renders the state. The focus stays on its day, time or button; if that is gone, it moves to what comes next. */
  private draw(): void {
    const { month, days, grid } = this;
    // If the visitor took the focus away, as by a click beside it, it stays away.
    if (document.activeElement !== document.body || this.held?.isConnected) this.held = document.activeElement;
    const isInGrid = grid.contains(this.held);
    const today = this.today();
    const chosen = days?.has(this.wanted) ? this.wanted : days?.keys().next().value;
    if (chosen && !isInGrid) this.entry = chosen;
    if (!this.entry.startsWith(month)) this.entry = today.startsWith(month) ? today : `${month}-01`;
    this.title.textContent = monthText(month);
    // Not `disabled`, which would drop the focus from the button that was just pressed.
    this.earlier.setAttribute("aria-disabled", String(month <= today.slice(0, 7)));
    const isLoading = !days && !this.problem;
    const { entry, choose, go } = this;
    const shown = { month, today, chosen, entry, days, isLoading, choose, go };
    grid.replaceChildren(monthGrid(shown, this.title.id));
    this.status.replaceChildren(...this.statusParts());
    // While a month is loaded, the times of the last one stay.
    if (!isLoading) this.drawTimes(chosen);
    if (!this.held || this.held.isConnected) return;
    const day = dayButton(grid, entry);
    const same = this.times.querySelector<HTMLElement>(`[data-key="${(this.held as HTMLElement).dataset.key}"]`);
    const next = this.status.querySelector<HTMLElement>("button, [tabindex]") ?? (isLoading ? null : day);
    (isInGrid ? day : (same ?? next))?.focus();
    if (document.activeElement !== document.body) this.held = document.activeElement;
  }

  /** The notice below the month: none while it is loading or if it has free times. */
  private statusParts(): HTMLElement[] {
    const button = (text: string, click: () => unknown): HTMLElement => element("button.quiet", { click }, text);
    if (this.problem) {
      const retry = button(words.tryAgain, () => this.show(this.month));
      return [element("p.alert", this.problemText(this.problem)), retry];
    }
    if (this.days?.size !== 0) return [];
    if (this.progress) return [element("p", { role: "status", tabindex: "-1" }, this.progress)];
    const text = fillPlaceholders(words.noneInMonth, { month: monthText(this.month) });
    return [element("p", { role: "status" }, text), button(words.lookFurther, this.lookFurther)];
  }

  private readonly lookFurther = (): void => {
    this.progress = words.loading;
    this.draw();
    void this.search(MAX_MONTHS);
  };

  private readonly choose = (date: string): void => {
    this.wanted = date;
    this.entry = date;
    this.draw();
    const { say } = this.host;
    const count = this.days?.get(date)?.length ?? 0;
    say(`${dayText(date, { dateStyle: "full" })}: ${countText(count)}`);
    const isBelow = this.times.getBoundingClientRect().top > innerHeight * 0.8;
    const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (isBelow) this.times.scrollIntoView({ block: "nearest", behavior: isCalm ? "auto" : "smooth" });
  };

  /** The arrow keys move the focus to a date, and change the month if necessary. */
  private readonly go = (date: string): void => {
    const first = this.today();
    this.entry = date < first ? first : date;
    const month = this.entry.slice(0, 7);
    if (month === this.month) this.draw();
    else void this.show(month);
  };

  private drawTimes(chosen: string | undefined): void {
    const { enter } = this.host;
    const slots = this.days?.get(chosen ?? "");
    if (!chosen || !slots) return void this.times.replaceChildren();
    const title = dayText(chosen, { weekday: "short", day: "numeric", month: "short" });
    const heading = element("h3", { id: `day-${randomId()}` }, title);
    const texts = slots.map(({ start }) => timeText(start));
    const items = slots.map((slot, at) => {
      const isTwice = texts.indexOf(texts[at]!) !== texts.lastIndexOf(texts[at]!);
      const text = isTwice ? timeText(slot.start, { timeZoneName: "short" }) : texts[at];
      return element("li", element("button.slot", { "data-key": slot.start, click: () => enter(slot) }, text));
    });
    this.times.setAttribute("aria-labelledby", heading.id);
    const dates = [...this.days!.keys()];
    const dayTurn = (name: "before" | "after", label: string, step: number): HTMLElement => {
      const date = dates[dates.indexOf(chosen) + step];
      const button = turnButton(name, label, () => date && this.choose(date));
      button.setAttribute("aria-disabled", String(date === undefined));
      return button;
    };
    const turns = [dayTurn("before", words.previousDay, -1), dayTurn("after", words.nextDay, 1)];
    const list = element("ul", { "aria-label": words.times }, ...items);
    this.times.replaceChildren(element("div.bar", heading, ...turns), list);
  }
}

/** A button with an arrow, which does nothing while it is `aria-disabled`. */
function turnButton(name: "before" | "after", label: string, turn: () => unknown): HTMLButtonElement {
  const click = ({ currentTarget }: Event): unknown =>
    (currentTarget as HTMLElement).getAttribute("aria-disabled") !== "true" && turn();
  return element("button.round", { "aria-label": label, "data-key": name, click }, pageIcon(name));
}
