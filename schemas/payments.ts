import { nextAction } from "./scheduling.ts";
import {
  anything,
  array,
  boolean,
  handle,
  type Infer,
  instant,
  integer,
  listing,
  map,
  nullable,
  object,
  optional,
  string,
} from "./schema.ts";

const publicPath = { handle: string(), pageSlug: string(), host: optional(string()) };
/** A checkout's id, as the provider makes it. */
const session = string({ maxLength: 255, pattern: "^[A-Za-z0-9_]+$" });

/** `POST …/pages/{slug}/checkout` and the way back from there. */
export const pageCheckout = object(publicPath);
export const pageCheckoutReturn = object({ ...publicPath, session: optional(session) });
export const checkoutAnswer = object({ nextAction });

/** A buyer's link to the page, and the form that asks for it by mail. */
export const accessLink = object({ ...publicPath, token: string() });
export const accessMail = object({ ...publicPath, email: optional(string({ maxLength: 1000 })) });

/** An event as Stripe sends it; its `data.object` is read as its type says. */
export const stripeEvent = object({ id: string(), type: string(), data: object({ object: map(anything) }) });
export const received = object({ received: boolean });

const bought = {
  sessionId: string(),
  pageSlug: string(),
  email: nullable(string()),
  amountMinor: nullable(integer(0)),
  currency: nullable(string()),
  purchasedAt: instant,
};

/** A paid page that was bought. */
export const purchase = object(bought);

/** The same as its owner reads it later. */
export const listedPurchase = object({ ...bought, refundedAt: nullable(instant) });
export type ListedPurchase = Infer<typeof listedPurchase>;

/** A purchase as it is stored, with the payment by which a refund names it. */
export type StoredPurchase = Infer<typeof purchase> & { payment: string | null };

/** `GET …/pages/{pageSlug}/purchases`. */
export const purchaseListing = object({ handle, pageSlug: string(), ...listing });
export const purchaseList = object({ purchases: array(listedPurchase), nextCursor: nullable(string()) });
/** `DELETE …/purchases/{sessionId}/buyer`. */
export const purchasePath = object({ handle, pageSlug: string(), sessionId: string() });
