import type { JobData } from "../../schemas/jobs.ts";
import type { ListedPurchase, StoredPurchase } from "../../schemas/payments.ts";
import type { Input } from "../../schemas/schema.ts";
import { erasePerson } from "../email/face.ts";
import type { CheckoutSession } from "../engines/calendars/calendars.ts";
import type { PagePath } from "../pages/face.ts";
import { addressDigest, isAddress } from "../platform/address.ts";
import { instantAt } from "../platform/clock.ts";
import { Fail } from "../platform/errors.ts";
import type { EventJob, Job, Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { job } from "../store/outbox.ts";
import { type Listed, type ListInput, listIds } from "../store/paging.ts";
import { pipelined } from "../store/redis.ts";
import { scripts } from "../store/scripts.ts";
import { eventJob } from "../webhooks/face.ts";

/** Seconds for which a purchase is stored: its buyer can get the link, and a later event of its checkout is recognised. */
const PURCHASE_RETENTION_SECONDS = 400 * 86_400;

/** Records the purchase of a page, with its webhook event and the buyer's mail, in one step; idempotent. */
export async function recordPurchase(runtime: Runtime, path: PagePath, session: CheckoutSession): Promise<void> {
  const { handle, pageSlug } = path;
  const purchase = purchaseOf(runtime, path, session);
  const { sessionId, email, purchasedAt } = purchase;
  const names = {
    purchase: keys.pagePurchase(handle, sessionId),
    purchases: keys.pagePurchases(handle, pageSlug),
    buyer: keys.pageBuyer(handle, email === null ? "" : addressDigest(email)),
  };
  const input = {
    json: JSON.stringify(purchase),
    sessionId,
    ms: Date.parse(purchasedAt),
    keepSeconds: PURCHASE_RETENTION_SECONDS,
    hasBuyer: email !== null,
  };
  await runtime.queues.step(handle, causedBy(runtime, handle, purchase), (outbox, jobs) =>
    scripts.recordPurchase(runtime.redis, { ...names, outbox }, { ...input, jobs }),
  );
}

function purchaseOf(
  runtime: Runtime,
  { pageSlug }: PagePath,
  { id, amount_total, currency, payment_intent, customer_details }: CheckoutSession,
): StoredPurchase {
  const email = customer_details?.email ?? "";
  return {
    sessionId: id,
    pageSlug,
    email: isAddress(email) ? email : null,
    amountMinor: amount_total,
    currency: currency?.toUpperCase() ?? null,
    purchasedAt: new Date(runtime.now()).toISOString(),
    payment: payment_intent,
  };
}

/** The event of a purchase, which is erased with its buyer, and the mail with the buyer's link. */
function causedBy(runtime: Runtime, handle: string, { payment: _, ...purchase }: StoredPurchase): (Job | EventJob)[] {
  const { sessionId, email } = purchase;
  const people = email === null ? [] : [email];
  const event = eventJob(runtime, handle, { type: "page.purchased", data: { handle, purchase }, people });
  if (email === null || runtime.env.SMTP_URL === undefined) return [event];
  return [event, job("payments.purchase-mail", `purchase-mail-${sessionId}`, { handle, sessionId })];
}

/** Records the refund of a page, which invalidates its link and its cookies. The event may precede that of the purchase. */
export async function recordPageRefund(runtime: Runtime, handle: string, payment: string): Promise<void> {
  const at = new Date(runtime.now()).toISOString();
  await runtime.redis.set(keys.pageRefund(handle, payment), at, "EX", PURCHASE_RETENTION_SECONDS, "NX");
}

/** When the payment of a page was refunded, or null. */
export async function refundedAt({ redis }: Runtime, handle: string, payment: string | null): Promise<string | null> {
  return payment === null ? null : redis.get(keys.pageRefund(handle, payment));
}

/** A purchase with the instant of its refund, and its payment at the provider. */
export type KnownPurchase = ListedPurchase & Pick<StoredPurchase, "payment">;

/** The purchase of a checkout, with the instant of its refund; undefined for an unknown one. */
export async function findPurchase(
  runtime: Runtime,
  handle: string,
  sessionId: string,
): Promise<KnownPurchase | undefined> {
  return (await readPurchases(runtime, handle, [sessionId]))[0];
}

/** The newest purchase of a page by the buyer of an address (`addressDigest`) that was not refunded; undefined without any. */
export async function purchaseOfBuyer(
  runtime: Runtime,
  { handle, pageSlug, buyer }: PagePath & { buyer: string },
): Promise<KnownPurchase | undefined> {
  const sessions = await runtime.redis.smembers(keys.pageBuyer(handle, buyer));
  const all = await readPurchases(runtime, handle, sessions);
  return all
    .filter((one) => one.pageSlug === pageSlug && one.refundedAt === null)
    .sort((one, other) => other.purchasedAt.localeCompare(one.purchasedAt))[0];
}

/** The purchases of a page, the newest first, which outlive it; `page_not_found` without page and purchases. */
export async function listPurchases(
  runtime: Runtime,
  input: ListInput<"handle" | "pageSlug">,
): Promise<Listed<"purchases", ListedPurchase>> {
  const { handle, pageSlug } = input;
  const list = keys.pagePurchases(handle, pageSlug);
  if ((await runtime.redis.exists(keys.page(handle, pageSlug), list)) === 0) throw new Fail("page_not_found");
  const { ids, nextCursor } = await listIds(runtime, list, input);
  const known = await readPurchases(runtime, handle, ids);
  return { purchases: known.map(({ payment: _, ...purchase }) => purchase), nextCursor };
}

async function readPurchases(runtime: Runtime, handle: string, sessions: string[]): Promise<KnownPurchase[]> {
  const stored = await pipelined(runtime.redis, (pipeline) => {
    for (const sessionId of sessions) pipeline.get(keys.pagePurchase(handle, sessionId));
  });
  const known = (stored as (string | null)[]).flatMap((json) => (json ? [JSON.parse(json) as StoredPurchase] : []));
  return Promise.all(
    known.map(async ({ payment = null, email = null, ...purchase }) => ({
      ...purchase,
      payment,
      email,
      refundedAt: await refundedAt(runtime, handle, payment),
    })),
  );
}

/** Erases a purchase's buyer, and what is written meanwhile by a job; `not_found`. */
export async function eraseBuyer(runtime: Runtime, input: Input<"handle" | "pageSlug" | "sessionId">): Promise<void> {
  const { handle, pageSlug, sessionId } = input;
  const purchase = await findPurchase(runtime, handle, sessionId);
  if (purchase?.pageSlug !== pageSlug) throw new Fail("not_found");
  if (purchase.email === null) return;
  const address = addressDigest(purchase.email);
  await erasePerson(runtime, { handle, address });
  await runtime.queues.later(job("leads.erase", `purchases.erase-${sessionId}`, { handle, address }));
  await erasePurchases(runtime, { handle, address });
}

/** Removes a person's address from the purchases of a handle, or from those until real ms; the purchases stay. */
export async function erasePurchases(
  runtime: Runtime,
  { handle, address }: JobData<"leads.erase">,
  until?: number,
): Promise<void> {
  const { redis } = runtime;
  const instant = until === undefined ? undefined : instantAt(runtime, until);
  const list = keys.pageBuyer(handle, address);
  for (const sessionId of await redis.smembers(list)) {
    const key = keys.pagePurchase(handle, sessionId);
    const stored = JSON.parse((await redis.get(key)) ?? "null") as StoredPurchase | null;
    if (stored !== null && instant !== undefined && stored.purchasedAt > instant) continue;
    if (stored !== null) await redis.set(key, JSON.stringify({ ...stored, email: null }), "KEEPTTL", "XX");
    await redis.srem(list, sessionId);
  }
}
