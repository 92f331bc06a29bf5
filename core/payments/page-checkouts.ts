import type { StoredPage } from "../../schemas/pages.ts";
import type { pageCheckout, pageCheckoutReturn } from "../../schemas/payments.ts";
import type { Input } from "../../schemas/schema.ts";
import { isActive, originOf } from "../account/face.ts";
import { type CheckoutSession, openSession, readSession } from "../engines/calendars/calendars.ts";
import { type PagePath, publishedPage, visitedUrl, wayToPage } from "../pages/face.ts";
import { instantAt } from "../platform/clock.ts";
import { Fail } from "../platform/errors.ts";
import type { Caller, Runtime } from "../platform/runtime.ts";
import { isSigned, sign } from "../platform/sealing.ts";
import { keys } from "../store/keys.ts";
import { takeNetworkToken } from "../store/throttle.ts";
import { checkoutFailed, checkoutUrl, paymentAccount, trackHealth } from "./accounts.ts";
import { findPurchase, recordPurchase, refundedAt } from "./purchases.ts";

/** Seconds for which the first return from a checkout is remembered, and ms in which further returns give another code. */
const RETURN_RETENTION_SECONDS = 400 * 86_400;
const RETURN_WINDOW_MS = 3_600_000;
/** Ms for which the payment of a page's checkout counts, even if its owner has disconnected the account. */
const RECEIPT_TTL_MS = 30 * 86_400_000;
const receiptPurpose = "page checkout";
/** Provider calls that one network may cause by checkouts of pages: 20 at once, then one in 6 seconds. */
const CHECKOUT_LIMIT = { burst: 20, rate: 1 / 6 };

/** What a session says of the checkout that opened it. */
type Receipt = { [name in "handle" | "account" | "pageSlug" | "until" | "receipt"]?: string | undefined };

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

/** True for a receipt of this handle and account until its end, unless the handle was erased since and this is a later one of its name. */
export async function wasOpenedHere(
  runtime: Runtime,
  { handle = "", pageSlug = "", account = "", until = "", receipt = "" }: Receipt,
): Promise<boolean> {
  if (!isSigned(runtime.env, receiptPurpose, [handle, pageSlug, account, until].join(" "), receipt)) return false;
  const openedAt = instantAt(runtime, Number(until) - RECEIPT_TTL_MS);
  return Date.now() < Number(until) && openedAt >= (await originOf(runtime.redis, handle));
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
  // Erased while the provider was asked, it has no purchases.
  if (paid === undefined || !(await isActive(runtime.redis, page.handle))) return undefined;
  await recordPurchase(runtime, page, paid);
  return { payment: paid.payment_intent };
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
