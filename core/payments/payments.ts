import type { Buffer } from "node:buffer";
import { buffer } from "node:stream/consumers";
import type { JobData } from "../../schemas/jobs.ts";
import type { Booking } from "../../schemas/scheduling.ts";
import {
  closeSession,
  isRefunded,
  isRefundFailed,
  isRevoked,
  openSession,
  readEvent,
  refund,
  type StripeEvent,
} from "../engines/calendars/calendars.ts";
import type { PagePath } from "../pages/face.ts";
import type { Env } from "../platform/env.ts";
import type { JobAttempt, Order, PaymentProvider, Runtime } from "../platform/runtime.ts";
import { findBooking, recordFailedRefund, recordRefund, releaseHold, settlePayment } from "../scheduling/face.ts";
import { checkoutUrl, paymentAccount, paymentAccounts, trackHealth } from "./accounts.ts";
import { wasOpenedHere } from "./page-checkouts.ts";
import { recordPageRefund, recordPurchase } from "./purchases.ts";

type BookingName = { handle: string; bookingUid: string };

/** Payments for bookings by Stripe Checkout on the handle's connected account; undefined if the installation has no key. */
export function openPayments(env: Env, runtime: () => Runtime): PaymentProvider | undefined {
  if (!env.STRIPE_SECRET_KEY) return undefined;
  return {
    accountStatus: async (handle) => (await paymentAccount(runtime(), handle))?.status,
    openCheckout: (order) => openBookingCheckout(runtime(), order),
  };
}

/**
 * Handles a signed event of Stripe; idempotent in any order. A payment settles its booking, or is refunded if the slot is lost; a failed
 * or expired checkout releases the slot; purchases and refunds of pages are recorded. `invalid_request` for a wrong signature.
 */
export async function receiveStripeEvent(
  runtime: Runtime,
  { body, headers }: { body?: unknown; headers?: unknown },
): Promise<{ received: boolean }> {
  const signature = (headers as Record<string, string | undefined>)["stripe-signature"] ?? "";
  const event = await readEvent(runtime, await buffer(body as AsyncIterable<Buffer>), signature);
  const { kind, handle, bookingUid, pageSlug } = event.data.object.metadata ?? {};
  // Another account could create sessions that name somebody else's bookings.
  if (handle === undefined || !(await isReceiver(runtime, handle, event))) return { received: true };
  if (kind === "booking" && bookingUid !== undefined) await applyBookingEvent(runtime, event, { handle, bookingUid });
  if (kind === "page" && pageSlug !== undefined) await applyPageEvent(runtime, event, { handle, pageSlug });
  return { received: true };
}

/** True for an account of the handle, and for that of the checkout, even if its owner has disconnected it meanwhile. */
async function isReceiver(runtime: Runtime, handle: string, { account, data }: StripeEvent): Promise<boolean> {
  if (account === undefined) return false;
  if ((await paymentAccounts(runtime, handle)).some((one) => one.account === account)) return true;
  const { bookingUid = "", ...receipt } = data.object.metadata ?? {};
  if (await wasOpenedHere(runtime, { ...receipt, handle, account })) return true;
  return (await findBooking(runtime.redis, handle, bookingUid))?.payment?.account === account;
}

async function applyPageEvent(runtime: Runtime, event: StripeEvent, page: PagePath): Promise<void> {
  const { object } = event.data;
  if (isRefunded(event) && object.payment_intent) return recordPageRefund(runtime, page.handle, object.payment_intent);
  if (tellsOfPayment(event)) await recordPurchase(runtime, page, object);
}

async function openBookingCheckout(
  runtime: Runtime,
  { booking, returnUrl, openMinutes }: Order,
): Promise<{ url: string; account: string; session: string }> {
  const { handle, bookingUid, title } = booking;
  const { amountMinor, currency } = booking.payment as NonNullable<Booking["payment"]>;
  const account = (await paymentAccount(runtime, handle))?.account;
  if (account === undefined) throw new Error("No account is connected.");
  // Repeated calls for a booking must send the same parameters to get the same session; with a test clock, only real time is valid there.
  const opened = runtime.env.TEST_CLOCK === undefined ? Date.parse(booking.createdAt) : Date.now();
  const opening = openSession(runtime, {
    account,
    title,
    amountMinor,
    currency,
    metadata: { kind: "booking", handle, bookingUid },
    // The provider's notice may come after the payer, whom the page then doesn't ask to pay again.
    successUrl: `${returnUrl}&paid=1`,
    cancelUrl: returnUrl,
    expiresAt: Math.ceil(opened / 1000) + openMinutes * 60,
    idempotencyKey: `booking-${bookingUid}`,
  });
  const session = await trackHealth(runtime, { handle, account }, opening);
  return { url: checkoutUrl(session), account, session: session.id };
}

/** Job: closes the checkout of a booking that was cancelled, so that nobody pays for it. Does nothing if it was paid. */
export async function closeCheckout(
  runtime: Runtime,
  { handle, bookingUid }: JobData<"payments.close">,
): Promise<void> {
  const { status, account, session } = (await findBooking(runtime.redis, handle, bookingUid))?.payment ?? {};
  if (status === "REQUIRED" && account && session) await closeSession(runtime, account, session);
}

function tellsOfPayment({ type, data }: StripeEvent): boolean {
  const isPaid = type === "checkout.session.completed" && data.object.payment_status === "paid";
  return isPaid || type === "checkout.session.async_payment_succeeded";
}

async function applyBookingEvent(runtime: Runtime, event: StripeEvent, name: BookingName): Promise<void> {
  const at = event.created ?? Date.now() / 1000;
  if (isRefunded(event)) await recordRefund(runtime, name, at);
  else if (isRefundFailed(event)) await recordFailedRefund(runtime, name, { reason: "failed", at });
  else if (tellsOfPayment(event)) await settleOrder(runtime, event, name);
  else if (/^checkout\.session\.(expired|async_payment_failed)$/.test(event.type)) await releaseHold(runtime, name);
}

async function settleOrder(runtime: Runtime, { account, data }: StripeEvent, name: BookingName): Promise<void> {
  const { amount_total, currency, payment_intent: intent } = data.object;
  const stored = await findBooking(runtime.redis, name.handle, name.bookingUid);
  const price = stored?.payment;
  const isPrice = amount_total === price?.amountMinor && currency === price?.currency.toLowerCase();
  if (!isPrice) return void runtime.log.error(name, "payment.amount_mismatch");
  const paid = intent ? { paid: { account: account as string, intent } } : {};
  const settlement = await settlePayment(runtime, { ...name, ...paid });
  runtime.log.info({ ...name, settlement }, "payment.settled");
}

/**
 * Refunds the payment of a booking that is due for it, and records it once the provider confirms: in its response, or by a later event.
 * Throws if the provider fails. A failure that needs the owner is reported at once, any other one after its last attempt.
 */
export async function refundBooking(
  runtime: Runtime,
  { handle, bookingUid }: JobData<"payments.refund">,
  { last }: Pick<JobAttempt, "last">,
): Promise<void> {
  const name = { handle, bookingUid };
  const payment = (await findBooking(runtime.redis, handle, bookingUid))?.payment;
  if (payment?.status !== "REFUND_DUE") return;
  if (payment.paid === undefined) return recordFailedRefund(runtime, name, { reason: "unknown" });
  const asking = askRefund(runtime, name, { ...payment.paid, reportedAt: payment.refundReportedAt });
  const { status, at } = await asking.catch(async (error: Error) => {
    if (last || isRevoked(error)) await recordFailedRefund(runtime, name, { reason: error.message });
    throw error;
  });
  if (status === "succeeded") await recordRefund(runtime, name, at);
  if (status === "failed" || status === "canceled") await recordFailedRefund(runtime, name, { reason: status, at });
}

/** Asks for a refund. The answer counts as newer than what was reported before, whatever the provider's clock says. */
async function askRefund(
  runtime: Runtime,
  name: BookingName,
  { account, intent, reportedAt = 0 }: { account: string; intent: string; reportedAt: number | undefined },
): Promise<{ status: string | null; at: number }> {
  // A refund that failed is followed by another one; the same key would repeat the answer about the first.
  const key = `refund-${name.bookingUid}${reportedAt || ""}`;
  const order = { intent, key, metadata: { kind: "booking", ...name } };
  const asking = refund(runtime, account, order);
  const { status, created = Date.now() / 1000 } = await trackHealth(runtime, { handle: name.handle, account }, asking);
  return { status, at: Math.max(created, reportedAt + 1) };
}
