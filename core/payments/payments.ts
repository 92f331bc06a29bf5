import type { Buffer } from "node:buffer";
import { buffer } from "node:stream/consumers";
import type { StoredCredential } from "../../schemas/integrations.ts";
import type { JobData } from "../../schemas/jobs.ts";
import type { StoredPage } from "../../schemas/pages.ts";
import type { pageCheckout, pageCheckoutReturn } from "../../schemas/payments.ts";
import type { Booking } from "../../schemas/scheduling.ts";
import type { Input } from "../../schemas/schema.ts";
import { originOf } from "../account/face.ts";
import {
  type CheckoutSession,
  closeSession,
  isRefunded,
  isRefundFailed,
  isRevoked,
  openSession,
  readEvent,
  readSession,
  refund,
  type StripeEvent,
} from "../engines/calendars/calendars.ts";
import { type PagePath, publishedPage, visitedUrl, wayToPage } from "../pages/face.ts";
import { instantAt } from "../platform/clock.ts";
import type { Env } from "../platform/env.ts";
import { Fail, unavailable } from "../platform/errors.ts";
import type { Caller, JobAttempt, Order, PaymentProvider, Runtime } from "../platform/runtime.ts";
import { isSigned, sign } from "../platform/sealing.ts";
import {
  credentialRecords,
  findBooking,
  recordFailedRefund,
  recordRefund,
  releaseHold,
  settlePayment,
} from "../scheduling/face.ts";
import { keys } from "../store/keys.ts";
import { takeNetworkToken } from "../store/throttle.ts";
import { findPurchase, recordPageRefund, recordPurchase, refundedAt } from "./purchases.ts";

type BookingName = { handle: string; bookingUid: string };

/** Seconds for which the first return from a checkout is remembered, and ms in which further returns give another code. */
const RETURN_RETENTION_SECONDS = 400 * 86_400;
const RETURN_WINDOW_MS = 3_600_000;
/** Ms for which the payment of a page's checkout counts, even if its owner has disconnected the account. */
const RECEIPT_TTL_MS = 30 * 86_400_000;
const receiptPurpose = "page checkout";
/** Provider calls that one network may cause by checkouts of pages: 20 at once, then one in 6 seconds. */
const CHECKOUT_LIMIT = { burst: 20, rate: 1 / 6 };

/** Payments for bookings by Stripe Checkout on the handle's connected account; undefined if the installation has no key. */
export function openPayments(env: Env, runtime: () => Runtime): PaymentProvider | undefined {
  if (!env.STRIPE_SECRET_KEY) return undefined;
  return {
    accountStatus: async (handle) => (await paymentAccount(runtime(), handle))?.status,
    openCheckout: (order) => openBookingCheckout(runtime(), order),
  };
}

/** Counts a call of a checkout route, before anything is read; `rate_limited`. */
export async function admitPayer(runtime: Runtime, _path: unknown, caller: Caller): Promise<void> {
  await takeNetworkToken(runtime, caller, { name: "checkout", ...CHECKOUT_LIMIT });
}

/** Opens a checkout for a paid page and returns its address. `page_not_found`, `payment_provider_not_connected`. */
export async function startPageCheckout(
  runtime: Runtime,
  input: Input<"handle" | "pageSlug", typeof pageCheckout>,
): Promise<{ nextAction: { type: "redirect_to_checkout"; url: string } }> {
  const { handle, pageSlug, host = "" } = input;
  const page = await publishedPage(runtime, input);
  const price = pagePrice(page);
  const account = (await paymentAccount(runtime, handle))?.account;
  if (!runtime.env.STRIPE_SECRET_KEY || account === undefined)
    throw new Fail("payment_provider_not_connected", { detail: "No payment provider is connected." });
  const visited = await visitedUrl(runtime, input, host);
  const opening = openSession(runtime, {
    account,
    title: page.title,
    ...price,
    metadata: { kind: "page", handle, pageSlug, ...receiptOf(runtime, { handle, pageSlug, account }) },
    // The provider inserts the session's id there.
    successUrl: `${visited.origin}/v2/public/pages/${handle}/${pageSlug}/checkout/return?session={CHECKOUT_SESSION_ID}`,
    cancelUrl: visited.href,
  });
  const session = await trackHealth(runtime, { handle, account }, opening).catch((error: Error) =>
    checkoutFailed(runtime, handle, error),
  );
  return { nextAction: { type: "redirect_to_checkout", url: checkoutUrl(session) } };
}

/** Proof that a page's checkout was opened here for an account, and the end of the proof in ms. */
function receiptOf(
  { env }: Runtime,
  { handle, pageSlug, account }: Record<"handle" | "pageSlug" | "account", string>,
): { until: string; receipt: string } {
  const until = String(Date.now() + RECEIPT_TTL_MS);
  return { until, receipt: sign(env, receiptPurpose, [handle, pageSlug, account, until].join(" ")) };
}

function pagePrice({ accessMode, price }: StoredPage): NonNullable<StoredPage["price"]> {
  const detail = accessMode === "PAID" ? "The page has no price." : "The page is free; there is nothing to pay.";
  if (accessMode !== "PAID" || !price) throw new Fail("payment_provider_not_connected", { detail });
  return price;
}

/**
 * The return from a page's checkout: redirects to the page on the visitor's host, with an access code if it has been paid. Codes and
 * responses may get lost, so each return within an hour of the first one gives another code.
 */
export async function returnToPage(
  runtime: Runtime,
  input: Input<"handle" | "pageSlug", typeof pageCheckoutReturn>,
): Promise<{ location: string; cookie?: string }> {
  const { session } = input;
  await publishedPage(runtime, input);
  const paid = session === undefined ? undefined : await purchaseBy(runtime, input, session);
  const isOpen = session !== undefined && paid && (await mayReturn(runtime, input.handle, { session, ...paid }));
  return wayToPage(runtime, input, isOpen ? { ...paid, isReceipt: true } : undefined);
}

/** The payment of this page by a checkout, which is recorded; undefined for an unpaid or foreign one. A recorded one needs no provider. */
async function purchaseBy(
  runtime: Runtime,
  page: PagePath,
  session: string,
): Promise<{ payment: string | null } | undefined> {
  const known = await findPurchase(runtime, page.handle, session);
  if (known?.pageSlug === page.pageSlug) return { payment: known.payment };
  const paid = await paidSession(runtime, page, session);
  if (paid) await recordPurchase(runtime, page, paid);
  return paid && { payment: paid.payment_intent };
}

/** The session of the handle's account by which this page was paid; undefined for any other session. */
async function paidSession(runtime: Runtime, page: PagePath, id: string): Promise<CheckoutSession | undefined> {
  const { handle, pageSlug } = page;
  const account = (await paymentAccount(runtime, handle))?.account;
  if (account === undefined) return undefined;
  const session = await trackHealth(runtime, { handle, account }, readSession(runtime, account, id)).catch(
    (error: Error) => checkoutFailed(runtime, handle, error),
  );
  const { kind, handle: payee, pageSlug: bought } = session?.metadata ?? {};
  const isOfPage = kind === "page" && payee === handle && bought === pageSlug;
  return session?.payment_status === "paid" && isOfPage ? session : undefined;
}

/** True within an hour of the first return, unless the payment was refunded. */
async function mayReturn(
  runtime: Runtime,
  handle: string,
  { session, payment }: { session: string; payment: string | null },
): Promise<boolean> {
  if (await refundedAt(runtime, handle, payment)) return false;
  const now = Date.now();
  const first = await runtime.redis.set(keys.pageCheckout(session), now, "EX", RETURN_RETENTION_SECONDS, "NX", "GET");
  return first === null || now - Number(first) < RETURN_WINDOW_MS;
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
  const { bookingUid = "", pageSlug = "", until = "", receipt = "" } = data.object.metadata ?? {};
  const isOpenedHere = isSigned(runtime.env, receiptPurpose, [handle, pageSlug, account, until].join(" "), receipt);
  if (isOpenedHere && (await isReceiptValid(runtime, handle, Number(until)))) return true;
  return (await findBooking(runtime.redis, handle, bookingUid))?.payment?.account === account;
}

/** True until the end of a receipt in real ms, unless the handle was erased since and this is a later one of its name. */
async function isReceiptValid(runtime: Runtime, handle: string, until: number): Promise<boolean> {
  const openedAt = instantAt(runtime, until - RECEIPT_TTL_MS);
  return Date.now() < until && openedAt >= (await originOf(runtime.redis, handle));
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

/** The connected account that receives a handle's payments: the newest. */
async function paymentAccount(runtime: Runtime, handle: string): Promise<StoredCredential | undefined> {
  return (await paymentAccounts(runtime, handle)).at(-1);
}

async function paymentAccounts(runtime: Runtime, handle: string): Promise<StoredCredential[]> {
  return (await credentialRecords.all(runtime, handle)).filter(({ providerKey }) => providerKey === "stripe");
}

/** The result of a call on behalf of an account. If that is closed to us, it becomes degraded, and healthy by its next success. */
async function trackHealth<T>(
  runtime: Runtime,
  { handle, account }: { handle: string; account: string },
  calling: Promise<T>,
): Promise<T> {
  const note = async (failure?: Fail): Promise<void> => {
    const known = (await paymentAccounts(runtime, handle)).find((one) => one.account === account);
    if (known) await runtime.credentials.updateHealth({ handle, credentialId: known.credentialId }, failure);
  };
  try {
    const result = await calling;
    await note();
    return result;
  } catch (error) {
    if (isRevoked(error)) await note(new Fail("integration_revoked"));
    throw error;
  }
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

function checkoutUrl({ url }: CheckoutSession): string {
  if (!url) throw new Fail("service_unavailable", { retryAfter: 5, detail: "The checkout session is closed." });
  return url;
}

function checkoutFailed({ log }: Runtime, handle: string, error: Error): never {
  log.warn({ handle, error: error.message }, "payment.checkout_failed");
  throw unavailable(error, "The payment provider is not responding.");
}
