import { formatMoney } from "../../../core/platform/formats.ts";
import { fillPlaceholders } from "../../../core/platform/placeholders.ts";
import type { Booking } from "../../../schemas/scheduling.ts";
import { link, parseWebAddress } from "../agent/address.ts";
import { element } from "../agent/element.ts";
import { calendarLinks } from "./calendars.ts";
import type { Step } from "./details.ts";
import { fieldOf } from "./fields.ts";
import { openForm } from "./form.ts";
import type { Host } from "./host.ts";
import { pageIcon } from "./icons.ts";
import { bookingRows, isEnded } from "./info.ts";
import { endedTo } from "./problem.ts";
import { dateText, locale, timeText } from "./times.ts";
import { addressOf, ownAddressOf, visit, words } from "./visit.ts";

/** Ms between two polls of a booking that awaits its payment. */
const PAYMENT_PAUSE_MS = 3000;

/** True on the way back from a checkout that was paid, until the page is loaded again. */
const isBackFromPayment = new URLSearchParams(location.search).has("paid");

/** The icon of each kind of state. */
const seals = { good: "tick", waiting: "wait", ended: "close" } as const;

/** A booking: its state, its details, and its actions. `change` names what has just happened to it. */
export function bookedStep(host: Host, booking: Booking, change?: string): Step {
  const [look, title, text] = stateOf(host, booking);
  const heading = element("h2", { tabindex: "-1" }, change ?? title);
  const view = element(
    `div.booked.${look}`,
    element("div.seal", pageIcon(seals[look])),
    heading,
    element("p.muted", text),
    keptAddress(host, booking),
    bookingRows(booking),
    booking.status === "ACCEPTED" && !isPast(host, booking) && calendarLinks(host, booking),
    actions(host, booking),
  );
  if (booking.status === "PENDING_PAYMENT") void watchPayment(host, booking, view);
  return { view, heading };
}

function stateOf(host: Host, booking: Booking): [look: keyof typeof seals, title: string, text: string] {
  const { status, payment, cancelledBy, holdUntil, bookingUid } = booking;
  const { email } = booking.attendee;
  const isUnpaid = payment !== null && cancelledBy === "service";
  const time = holdUntil ? timeText(holdUntil) : "";
  if (status === "CANCELLED") return ["ended", words.cancelled, ending(booking, words.cancelledText)];
  if (status === "REJECTED" && isUnpaid) return ["ended", words.unpaidOver, ending(booking, words.unpaidOverText)];
  if (status === "REJECTED") return ["ended", words.declined, ending(booking, words.declinedText)];
  if (isPast(host, booking)) return ["ended", words.over, ""];
  if (status === "PENDING") return ["waiting", words.requested, fillPlaceholders(words.requestedText, { email })];
  if (status === "PENDING_PAYMENT") return ["waiting", words.unpaid, fillPlaceholders(words.unpaidText, { time })];
  const isNew = visit.booking?.bookingUid !== bookingUid;
  if (isNew) return ["good", words.accepted, fillPlaceholders(words.bookedText, { email })];
  return ["good", words.accepted, visit.event ? words.acceptedText : words.noLonger];
}

/** The address to keep if no mail has it: a frame shows none. */
function keptAddress(host: Host, booking: Booking): HTMLElement | undefined {
  if (!visit.isEmbedded || visit.isMailed || isEnded(booking) || isPast(host, booking)) return undefined;
  const address = ownAddressOf(booking.bookingUid);
  return element("p", link(address, address));
}

/** How a booking ended, and whether it is refunded: always if its slot was lost. */
function ending({ payment, cancelledBy }: Booking, text: string): string {
  const isBack = payment?.status === "REFUNDED";
  if (!isBack && payment?.status !== "REFUND_DUE") return text;
  if (cancelledBy === "service") return words.refund;
  return `${text} ${isBack ? words.refunded : words.refunding}`;
}

function isPast(host: Host, booking: Booking): boolean {
  return Date.parse(booking.start) <= host.now();
}

function actions(host: Host, booking: Booking): HTMLElement {
  if (isEnded(booking) || isPast(host, booking))
    return element(
      "div.actions",
      visit.event && element("button.primary", { click: () => startOver(host) }, words.bookAnother),
    );
  const ask = (): void => row.replaceWith(cancelForm(host, booking, row, cancel));
  const cancel = element("button.quiet.danger", { click: ask }, words.cancel);
  const move = visit.event && element("button.quiet", { click: () => host.move() }, words.move);
  const row = element("div.actions", payLink(booking), joinLink(booking), move, cancel);
  return row;
}

function joinLink({ meetingUrl, status }: Booking): HTMLElement | undefined {
  const href = parseWebAddress(meetingUrl ?? "");
  if (status !== "ACCEPTED" || !href) return undefined;
  return element("a.button", { href, target: "_blank", rel: "noopener" }, words.join);
}

/** A new window if the page is embedded: checkouts refuse to be framed. */
function payLink({ payment, status, bookingUid }: Booking): HTMLElement | undefined {
  if (isBackFromPayment && bookingUid === visit.booking?.bookingUid) return undefined;
  const href = parseWebAddress(payment?.checkoutUrl ?? "");
  if (status !== "PENDING_PAYMENT" || !payment || !href) return undefined;
  const text = fillPlaceholders(words.payNow, { price: formatMoney(payment, locale) });
  return element("a.button", { href, target: visit.isEmbedded ? "_blank" : "_self", rel: "noopener" }, text);
}

function startOver(host: Host): void {
  host.booking = null;
  history.pushState({ step: "choose" }, "", addressOf());
  host.choose();
}

/** The confirmation prompt for cancelling, instead of the actions. */
function cancelForm(host: Host, booking: Booking, row: HTMLElement, opener: HTMLElement): HTMLElement {
  const { calls } = host;
  const reason = fieldOf({ path: "/cancellationReason", label: words.reason, type: "textarea", required: false });
  const keep = element("button.quiet", { type: "button" }, words.keep);
  const send = async (): Promise<void> => {
    const { bookingUid } = booking;
    const asked = calls.cancel(bookingUid, { cancellationReason: reason.read() || null });
    const answer = await asked.catch(endedTo(host, bookingUid));
    if (answer) host.finish(answer.booking);
  };
  const question = element("h3", { tabindex: "-1" }, words.sureCancel);
  const money = refundText(booking);
  const form = openForm(host, {
    fields: () => [reason],
    parts: [question, ...(money ? [element("p", money)] : []), reason.node],
    action: words.cancel,
    look: "primary danger",
    others: [keep],
    send,
  });
  const close = (): void => {
    form.replaceWith(row);
    opener.focus();
  };
  keep.addEventListener("click", close);
  form.addEventListener("keydown", ({ key }) => key === "Escape" && close());
  queueMicrotask(() => question.focus());
  return form;
}

/** Says before a paid booking is cancelled whether it will be refunded. */
function refundText({ payment }: Booking): string | undefined {
  if (payment?.status !== "PAID") return undefined;
  const values = {
    price: formatMoney(payment, locale),
    time: `${dateText(payment.refundUntil)}, ${timeText(payment.refundUntil)}`,
  };
  return fillPlaceholders(payment.refundable ? words.cancelRefund : words.cancelKept, values);
}

/** Polls until the payment has arrived or the hold has expired; stops when another view is shown. */
async function watchPayment(host: Host, booking: Booking, view: HTMLElement): Promise<void> {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, PAYMENT_PAUSE_MS));
    if (!view.isConnected) return;
    // A failed poll is retried by the next one.
    const now = document.hidden ? booking : await host.calls.read(booking.bookingUid).catch(() => booking);
    if (!view.isConnected) return;
    if (now.status !== booking.status) return host.finish(now, now.status === "ACCEPTED" ? words.booked : undefined);
  }
}
