import type { Booking, BookingAnswer } from "../../../schemas/scheduling.ts";
import { element } from "../agent/element.ts";
import { bookedStep } from "./booked.ts";
import { type BookableSlot, openCalls } from "./calls.ts";
import { detailsStep, moveStep, type Step } from "./details.ts";
import { readDraft } from "./draft.ts";
import { applyTheme, postSize } from "./frame.ts";
import type { Host } from "./host.ts";
import { eventInfo, isEnded } from "./info.ts";
import { languagePicker } from "./language.ts";
import { Picker } from "./picker.ts";
import { addressOf, visit, words } from "./visit.ts";

/** Names of the steps in the browser's history, so that Back returns to the previous step. */
type Name = "choose" | "details" | "booking" | "move" | "move-details";

/** What an entry of the history shows. */
type Shown = { step?: Name; slot?: BookableSlot };

/** Makes the page interactive: shows the free times, or the booking in the URL. */
export function startPage(main: HTMLElement, region: HTMLElement): void {
  document.body.append(region);
  if (visit.isEmbedded) {
    applyTheme();
    postSize(main, visit.event?.title ?? visit.booking?.title);
  }
  const ahead = visit.now - Date.now();
  /** The state of the browser's history outlasts a reload. */
  let { step: first = visit.booking ? "booking" : "choose", slot }: Shown = history.state ?? {};

  const host: Host = {
    calls: openCalls(visit.handle, visit.eventSlug),
    draft: readDraft(),
    booking: null,
    now: () => Date.now() + ahead,
    say: (text) => say(region, text),
    choose: (notice) => {
      const name = host.booking ? "move" : "choose";
      if (notice !== undefined) history.replaceState({ step: name }, "");
      showTimes(notice);
    },
    enter: (chosen) => {
      slot = chosen;
      history.pushState({ step: host.booking ? "move-details" : "details", slot }, "");
      showForm(chosen);
    },
    move: () => {
      host.booking = current;
      history.pushState({ step: "move" }, "");
      showTimes();
    },
    finish: (booking, title) => showBooking(booking, title),
    pay: (answer) => pay(answer),
  };
  /** The booking that was loaded last. */
  let current = visit.booking;

  const show = ({ view, heading }: Step, look: string, chosen?: BookableSlot): void => {
    const info = eventInfo(host, look !== "done", chosen);
    // Another language loads the page again, and asks for the time first.
    const language = look !== "entering" && languagePicker((look === "done" ? current : host.booking)?.bookingUid);
    const stage = element("div.stage", view, language);
    main.replaceChildren(element("div", { class: `card ${look}` }, info, stage));
    document.title = titleOf(heading.textContent);
    if (isStarted) heading.focus({ preventScroll: visit.isEmbedded });
    if (isStarted && !visit.isEmbedded) scrollTo(0, 0);
    isStarted = true;
  };
  const unpayable = visit.isUnpayable ? words.unpayable : undefined;
  const showTimes = (notice = host.booking ? undefined : unpayable): void => {
    const picker = new Picker(host, notice);
    show(picker, "choosing");
    void picker.open();
  };
  const showForm = (chosen: BookableSlot): void => {
    const { event } = visit;
    if (host.booking) show(moveStep(host, chosen), "entering");
    else if (event) show(detailsStep(host, event, chosen), "entering", chosen);
  };
  const showBooking = (booking: Booking, title?: string): void => {
    current = booking;
    host.booking = null;
    // From here on the URL is that of the booking, also after reloading.
    history.replaceState({ step: "booking" }, "", addressOf(booking.bookingUid));
    show(bookedStep(host, booking, title), "done");
  };
  const pay = ({ booking, nextAction }: BookingAnswer): void => {
    showBooking(booking);
    const url = nextAction?.url ?? "";
    if (!visit.isEmbedded && /^https?:/i.test(url)) location.assign(url);
  };
  const go = (name: Name): void => {
    const isMove = name === "move" || name === "move-details";
    host.booking = isMove ? current : null;
    if (current && (name === "booking" || (isMove && isEnded(current)))) showBooking(current);
    else if (name.endsWith("details") && slot) showForm(slot);
    else showTimes();
  };
  let isStarted = false;
  history.replaceState({ step: first, slot }, "");
  addEventListener("popstate", ({ state }) => {
    const step: Name = state?.step ?? first;
    // The way back has restored the address of a booking that this load of the page doesn't know.
    if (step === "booking" && !current) location.reload();
    else go(step);
  });
  go(first);
}

/** The step, the event, and the host. */
function titleOf(step: string | null): string {
  const { event, booking, host } = visit;
  return [step, event?.title ?? booking?.title, host.name].filter(Boolean).join(" · ");
}

/** Announced again even if the text equals the last one. */
function say(region: HTMLElement, text: string): void {
  const one = element("p", { dir: "auto" }, text);
  region.replaceChildren(one);
  setTimeout(() => one.remove(), 10_000);
}
