import type { PublicEvent } from "../../../schemas/scheduling.ts";
import { element, randomId } from "../agent/element.ts";
import { type BookableSlot, Problem } from "./calls.ts";
import { storeDraft } from "./draft.ts";
import { type Field, type FormQuestion, fieldOf } from "./fields.ts";
import { openForm } from "./form.ts";
import { guestList } from "./guests.ts";
import type { Host } from "./host.ts";
import { pageIcon } from "./icons.ts";
import { placeName, timeOf } from "./info.ts";
import { endedTo } from "./problem.ts";
import { clock, locale } from "./times.ts";
import { visit, words } from "./visit.ts";

/** A step: its content, and the element that gets the focus. */
export interface Step {
  view: HTMLElement;
  heading: HTMLElement;
}

/** The form between choosing a time and booking it. */
export function detailsStep(host: Host, event: PublicEvent, slot: BookableSlot): Step {
  const { draft } = host;
  const fields = questionsOf(host, event);
  const entered = [...draft].filter(([path]) => path.startsWith("/guests/")).map(([, value]) => value);
  const guests = guestList(host, entered);
  const all = (): Field[] => [...fields, ...guests.fields()];
  const keep = (): void => {
    draft.clear();
    for (const field of all()) draft.set(field.path, field.read());
    storeDraft(draft);
  };
  const send = sender(host, () => bodyOf(slot, all()));
  const form = openForm(host, {
    fields: all,
    parts: [...fields.map(({ node }) => node), guests.node],
    action: event.paymentRequired ? words.pay : event.confirmationRequired ? words.request : words.confirm,
    reassurance: words.bookedOnce,
    send: () => {
      keep();
      return send();
    },
  });
  // A click may add or remove a guest.
  for (const kind of ["input", "click"]) form.addEventListener(kind, keep);
  return stepWith(words.details, form);
}

/** The form that moves a booking to another time. */
export function moveStep(host: Host, slot: BookableSlot): Step {
  const { calls, booking } = host;
  const reason = fieldOf({ path: "/reschedulingReason", label: words.reason, type: "textarea", required: false });
  const change = element(
    "dl",
    element("div", element("dt", words.before), element("dd", timeOf(booking ?? slot))),
    element("div", element("dt", words.after), element("dd", timeOf(slot))),
  );
  const send = async (): Promise<void> => {
    const bookingUid = booking?.bookingUid ?? "";
    const asked = calls.move({ bookingUid, slot, reschedulingReason: reason.read() || null });
    const answer = await asked.catch(endedTo(host, bookingUid)).catch(takenTo(host));
    if (answer) host.finish(answer.booking, answer.status === "PENDING" ? words.requested : words.moved);
  };
  const form = openForm(host, {
    fields: () => [reason],
    parts: [change, reason.node],
    action: words.moveConfirm,
    send,
  });
  return stepWith(words.moveTitle, form);
}

function stepWith(title: string, form: HTMLElement): Step {
  const heading = element("h2", { tabindex: "-1" }, title);
  const back = element("button.text.back", { click: () => history.back() }, pageIcon("before"), words.change);
  return { heading, view: element("div.details", back, heading, form) };
}

function questionsOf({ draft }: Host, event: PublicEvent): Field[] {
  const field = (question: FormQuestion): Field =>
    fieldOf({ ...question, value: draft.get(question.path) ?? question.value });
  return [
    field({ path: "/attendee/name", label: words.name, type: "text", required: true, autocomplete: "name" }),
    field({ path: "/attendee/email", label: words.email, type: "email", required: true, autocomplete: "email" }),
    ...placeQuestion(event).map(field),
    ...event.bookingFields.map((one) => field({ ...one, path: `/answers/${one.id}` })),
  ];
}

/** The choice between several places; the service tells them apart by type. */
function placeQuestion({ locations }: PublicEvent): FormQuestion[] {
  const places = locations.filter(({ type }, at) => locations.findIndex((one) => one.type === type) === at);
  if (places.length < 2) return [];
  const options = places.map(({ type }) => type);
  const names = places.map((place) => placeName(place));
  const label = words.location;
  return [{ path: "/location", label, type: "radio", required: true, options, names, value: options[0] }];
}

function bodyOf(slot: BookableSlot, fields: Field[]): object {
  const values = new Map(fields.map((field) => [field.path, field.read()]));
  const under = (start: string): [string, string][] =>
    [...values]
      .filter(([path, value]) => path.startsWith(start) && value !== "")
      .map(([path, value]) => [path.slice(start.length), value]);
  const source = new URLSearchParams(location.search).get("utm_source");
  const place = values.get("/location");
  return {
    attendee: { name: values.get("/attendee/name"), email: values.get("/attendee/email"), timeZone: clock.zone },
    slot,
    answers: Object.fromEntries(under("/answers/")),
    guests: under("/guests/").map(([, address]) => address),
    ...(place ? { location: { type: place } } : {}),
    tracking: {
      ...(source ? { source: source.slice(0, 200) } : {}),
      placement: visit.isEmbedded ? "embed" : "page",
    },
    language: locale,
  };
}

/** Sends a booking. The same entries get the same idempotency key, so that a repeat never books twice. */
function sender(host: Host, body: () => object): () => Promise<void> {
  const { calls } = host;
  let sent = { text: "", key: "" };
  return async () => {
    const given = body();
    const text = JSON.stringify(given);
    if (text !== sent.text) sent = { text, key: randomId() };
    const answer = await calls.book(given, sent.key).catch(takenTo(host));
    if (!answer) return;
    host.draft.clear();
    storeDraft(host.draft);
    if (answer.nextAction) return host.pay(answer);
    host.finish(answer.booking, answer.status === "PENDING" ? words.requested : words.booked);
  };
}

/** Returns to the free times if the chosen one is taken; every other problem is shown in the form. */
function takenTo(host: Host): (error: unknown) => undefined {
  return (error) => {
    if (!(error instanceof Problem) || error.code !== "scheduling_slot_unavailable") throw error;
    host.choose(words.taken);
    return undefined;
  };
}
