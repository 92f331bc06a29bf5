import { nextAction } from "./scheduling.ts";
import * as s from "./schema.ts";

const fromHeader = { host: s.optional(s.string()) };
/** A checkout's id, as the provider makes it. */
const session = s.formed("^[A-Za-z0-9_]+$", "must be the id of a checkout", { maxLength: 255 });

/** `POST …/pages/{slug}/checkout` and the way back from there. */
export const pageCheckout = s.object(fromHeader);
export const pageCheckoutReturn = s.object({ ...fromHeader, session: s.optional(session) });
export const checkoutAnswer = s.object({ nextAction });

/** A buyer's link to the page, and the form that asks for it by mail. */
export const accessLink = s.object(fromHeader);
export const accessMail = s.object({ ...fromHeader, email: s.trimmed(s.string({ format: "address" })) });

export const accessMailRequested = s.object({ email: s.string() });

/** An event as Stripe sends it; its `data.object` is read as its type says. */
export const stripeEvent = s.object({
  id: s.string(),
  type: s.string(),
  data: s.object({ object: s.map(s.anything) }),
});
export const received = s.object({ received: s.boolean });

const bought = {
  sessionId: s.string(),
  pageSlug: s.string(),
  email: s.nullable(s.string()),
  amountMinor: s.nullable(s.integer(0)),
  currency: s.nullable(s.string()),
  purchasedAt: s.instant,
};

export const purchase = s.component("Purchase", bought);

/** A purchase as its owner reads it later. */
export const listedPurchase = s.component("ListedPurchase", { ...bought, refundedAt: s.nullable(s.instant) });
export type ListedPurchase = s.Infer<typeof listedPurchase>;

/** A purchase as it is stored, with the payment by which a refund names it. */
export type StoredPurchase = s.Infer<typeof purchase> & { payment: string | null };
