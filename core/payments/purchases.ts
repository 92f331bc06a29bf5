import type { Purchase } from "../../schemas/webhooks.ts";
import type { CheckoutSession } from "../engines/calendars/calendars.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { scripts } from "../store/scripts.ts";
import { eventJob } from "../webhooks/face.ts";

/** Seconds for which a purchase is remembered, so that no later notice or return of its checkout is another one. */
const PURCHASE_RETENTION_SECONDS = 400 * 86_400;

/** Notes that the page of a paid checkout was bought, with its webhook event, in one step; again is no change. */
export async function recordPurchase(
  runtime: Runtime,
  { handle, pageSlug }: { handle: string; pageSlug: string },
  { id: sessionId, amount_total: amountMinor, currency }: CheckoutSession,
): Promise<void> {
  const purchasedAt = new Date(runtime.now()).toISOString();
  const purchase: Purchase = {
    sessionId,
    pageSlug,
    amountMinor,
    currency: currency?.toUpperCase() ?? null,
    purchasedAt,
  };
  const event = eventJob(runtime, handle, { type: "page.purchased", data: { handle, purchase } });
  await runtime.queues.step(handle, [event], (outbox, jobs) =>
    scripts.recordPurchase(
      runtime.redis,
      { purchase: keys.pagePurchase(handle, sessionId), outbox },
      { json: JSON.stringify(purchase), keepSeconds: PURCHASE_RETENTION_SECONDS, jobs },
    ),
  );
}
