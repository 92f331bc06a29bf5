import { formatMoney } from "../../../core/platform/formats.ts";
import { fillPlaceholders } from "../../../core/platform/words.ts";
import type { Booking } from "../../../schemas/scheduling.ts";
import { parseWebAddress } from "../agent/address.ts";
import { element } from "../agent/element.ts";
import { calendarLinks } from "./calendars.ts";
import type { Step } from "./details.ts";
import { fieldOf } from "./fields.ts";
import { openForm } from "./form.ts";
import type { Host } from "./host.ts";
import { type Icon, pageIcon } from "./icons.ts";
import { bookingRows } from "./info.ts";
import { dateText, locale, timeText } from "./times.ts";
import { addressOf, visit, words } from "./visit.ts";

/** Ms between two polls of a booking that awaits its payment. */
const paymentPause = 3000;

/** A booking: its state, its details, and its actions. `title` names the change that has just happened. */
export function bookedStep(host: Host, booking: Booking, title?: string): Step {
  const statusText = tell(host, booking);
  const heading = element("h2", { tabindex: "-1" }, title ?? statusText.title);
  const view = element(
    "div",
    { class: `booked ${statusText.look}` },
    element("div.seal", pageIcon(statusText.icon)),
    heading,
    element("p.muted", statusText.text),
    bookingRows(booking),
    booking.status === "ACCEPTED" && !isPast(host, booking) && calendarLinks(host, booking),
    actions(host, booking),
  );
  if (booking.status === "PENDING_PAYMENT") void watchPayment(host, booking, view);
  return { view, heading };
}

interface OutcomeView {
  title: string;
  text: string;
  icon: Icon;
  look: "good" | "waiting" | "ended";
}

function tell(host: Host, booking: Booking): OutcomeView {
  const { email } = booking.attendee;
  const good = { icon: "tick", look: "good" } as const;
  const waiting = { icon: "wait", look: "waiting" } as const;
  const ended = { icon: "close", look: "ended" } as const;
  if (booking.status === "CANCELLED")
    return { title: words.cancelled, text: ending(booking, words.cancelledText), ...ended };
  if (booking.status === "REJECTED") return { ...rejected(booking), ...ended };
  if (isPast(host, booking)) return { title: words.over, text: "", ...ended };
  if (booking.status === "PENDING")
    return { title: words.requested, text: fillPlaceholders(words.requestedText, { email }), ...waiting };
  const time = booking.holdUntil ? timeText(booking.holdUntil) : "";
  if (booking.status === "PENDING_PAYMENT")
    return { title: words.unpaid, text: fillPlaceholders(words.unpaidText, { time }), ...waiting };
  const isNew = visit.booking?.bookingUid !== booking.bookingUid;
  const text = isNew
    ? fillPlaceholders(words.bookedText, { email })
    : visit.event
      ? words.acceptedText
      : words.noLonger;
  return { title: words.accepted, text, ...good };
}

function rejected(booking: Booking): { title: string; text: string } {
  const isUnpaid = booking.payment !== null && booking.cancelledBy === "service";
  if (isUnpaid) return { title: words.unpaidOver, text: ending(booking, words.unpaidOverText) };
  return { title: words.declined, text: ending(booking, words.declinedText) };
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
  if (booking.status === "CANCELLED" || booking.status === "REJECTED" || isPast(host, booking))
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
function payLink({ payment, status }: Booking): HTMLElement | undefined {
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
    const answer = await calls.cancel(booking.bookingUid, { cancellationReason: reason.read() || null });
    host.finish(answer.booking);
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
    await new Promise((resolve) => setTimeout(resolve, paymentPause));
    if (!view.isConnected) return;
    // A failed poll is retried by the next one.
    const now = document.hidden ? booking : await host.calls.read(booking.bookingUid).catch(() => booking);
    if (!view.isConnected) return;
    if (now.status !== booking.status) return host.finish(now, now.status === "ACCEPTED" ? words.booked : undefined);
  }
}
