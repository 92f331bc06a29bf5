import {
  admitAsker,
  admitPayer,
  askForAccess,
  eraseBuyer,
  listPurchases,
  openByLink,
  receiveStripeEvent,
  returnToPage,
  startPageCheckout,
} from "../core/payments/face.ts";
import { signedRequest } from "../schemas/email.ts";
import {
  accessLink,
  accessMail,
  checkoutAnswer,
  pageCheckout,
  pageCheckoutReturn,
  purchaseList,
  purchaseListing,
  purchasePath,
  received,
  stripeEvent,
} from "../schemas/payments.ts";
import { failureView } from "./failure-view.ts";
import { accessMailView } from "./page-view.ts";
import { anyone, creator, operator, type Row, route } from "./route.ts";
import { redirect } from "./shell.ts";

const page = "/v2/public/pages/:handle/:pageSlug";
const checkout = `${page}/checkout` as const;
const purchases = "/v2/handles/:handle/pages/:pageSlug/purchases";
const headerInputs = ["host"] as const;
const payer = { guard: admitPayer, headerInputs, said: { service_unavailable: "paymentAway" } } as const;

/** Payments: checkouts of paid pages, returns and events from the provider, and purchases. */
export const paymentRows: Row[] = [
  route(`POST ${checkout}`, anyone, pageCheckout, startPageCheckout, {
    ...payer,
    accepts: "form",
    page: ({ nextAction }) => redirect({ location: nextAction.url }),
    returns: checkoutAnswer,
    summary: "Start the checkout of a paid page",
    description:
      "Send the visitor's browser to `nextAction.url`; a form post that prefers HTML is led there by 303. It returns to the page with a code that unlocks it.",
    failures: ["page_not_found", "payment_provider_not_connected", "rate_limited"],
  }),
  route(`GET ${checkout}/return`, anyone, pageCheckoutReturn, returnToPage, {
    ...payer,
    view: redirect,
    errorView: failureView,
    hidden: true,
  }),
  route(`GET ${page}/access-link/:token`, anyone, accessLink, openByLink, {
    headerInputs,
    view: redirect,
    errorView: failureView,
    hidden: true,
  }),
  route(`POST ${page}/access-mail`, anyone, accessMail, askForAccess, {
    guard: admitAsker,
    headerInputs,
    accepts: "form",
    view: accessMailView,
    errorView: failureView,
    hidden: true,
  }),
  route(`GET ${purchases}`, creator, purchaseListing, listPurchases, {
    returns: purchaseList,
    summary: "List the purchases of a page",
    description: "Newest first, those of the last 400 days. `email` is null once the buyer is erased.",
  }),
  route(`DELETE ${purchases}/:sessionId/buyer`, operator, purchasePath, eraseBuyer, {
    summary: "Erase the buyer of a purchase",
    description:
      "Takes the buyer's address out of all purchases of this handle, and out of its mails and webhook events. The purchases stay.",
    failures: ["not_found"],
  }),
  route("POST /v2/public/providers/stripe/webhook", anyone, signedRequest, receiveStripeEvent, {
    accepts: "raw",
    limit: 262_144,
    returns: received,
    summary: "Receive a Stripe event",
    signed: "stripe",
    consumes: { "application/json": stripeEvent },
    description: "For Stripe: reports the outcome of a checkout. Unknown events are acknowledged and ignored.",
  }),
];
