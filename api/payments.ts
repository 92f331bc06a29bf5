import * as core from "../core/payments/face.ts";
import { signedRequest } from "../schemas/email.ts";
import * as shape from "../schemas/payments.ts";
import { listOf, listQuery, nothing } from "../schemas/schema.ts";
import { failureView } from "./failure-view.ts";
import { redirect } from "./html.ts";
import { accessMailView } from "./page-view.ts";
import { anyone, creator, operator, page, type Row, route } from "./route.ts";

const pagePath = "/v2/public/pages/:handle/:pageSlug";
const checkout = `${pagePath}/checkout` as const;
const purchases = "/v2/handles/:handle/pages/:pageSlug/purchases";
const visitor = { errorView: failureView };
const payer = { guard: core.admitPayer, failureTexts: { service_unavailable: "paymentAway" } } as const;

export const paymentRows: Row[] = [
  route(`POST ${checkout}`, anyone, shape.pageCheckout, core.startPageCheckout, {
    ...payer,
    page: ({ nextAction }) => redirect({ location: nextAction.url }),
    returns: shape.checkoutAnswer,
    empty: { 303: "A browser's form leads to the checkout" },
    summary: "Start the checkout of a paid page",
    description:
      "Send the visitor's browser to `nextAction.url`; a form post that prefers HTML is led there by 303. It returns to the page with a code that unlocks it.",
    failures: ["payment_provider_not_connected"],
  }),
  page(`GET ${checkout}/return`, shape.pageCheckoutReturn, core.returnToPage, redirect, {
    ...payer,
    errorView: failureView,
  }),
  page(`GET ${pagePath}/access-link/:token`, shape.accessLink, core.openAccessLink, redirect, visitor),
  route(`POST ${pagePath}/access-mail`, anyone, shape.accessMail, core.requestAccessMail, {
    guard: core.admitAccessRequest,
    status: 202,
    page: accessMailView,
    returns: shape.accessMailRequested,
    summary: "Request the link of a bought page",
    description:
      "Mails the link to an address that bought the page. The answer is the same for every address; a form post that prefers HTML is answered with a page.",
  }),
  route(`GET ${purchases}`, creator, listQuery, core.listPurchases, {
    returns: listOf("purchases", shape.listedPurchase),
    summary: "List the purchases of a page",
    description: "Newest first, those of the last 400 days. `email` is null once the buyer is erased.",
  }),
  route(`DELETE ${purchases}/:sessionId/buyer`, operator, nothing, core.eraseBuyer, {
    summary: "Erase the buyer of a purchase",
    description:
      "Takes the buyer's address out of all purchases of this handle, and out of its mails and webhook events. The purchases stay.",
    failures: ["not_found"],
  }),
  route("POST /v2/public/providers/stripe/webhook", anyone, signedRequest, core.receiveStripeEvent, {
    limit: 262_144,
    returns: shape.received,
    summary: "Receive a Stripe event",
    signed: "stripe",
    consumes: { "application/json": shape.stripeEvent },
    description: "For Stripe: reports the outcome of a checkout. Unknown events are acknowledged and ignored.",
  }),
];
