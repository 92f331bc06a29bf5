import {
  connectCaldav,
  disconnectAccount,
  askForConsent,
  decideConsent,
  finishAuthorization,
  listCalendars,
  listIntegrations,
  returnFromProvider,
  selectCalendars,
  startAuthorization,
} from "../core/scheduling/face.ts";
import { admitPayer, receiveStripeEvent, returnToPage, startPageCheckout } from "../core/payments/face.ts";
import { signedRequest } from "../schemas/email.ts";
import {
  calendarList,
  calendarsPath,
  newCaldavCredential,
  selectedCalendarsAnswer,
  selection,
  checkoutAnswer,
  credentialAnswer,
  credentialPath,
  integrationList,
  integrationsPath,
  consentForm,
  consentPage,
  oauthCallback,
  oauthReturn,
  oauthStarted,
  pageCheckout,
  pageCheckoutReturn,
  providerPath,
  received,
  stripeEvent,
} from "../schemas/integrations.ts";
import { failureView } from "./failure-view.ts";
import { consentView, decidedView, returnView } from "./provider-consent-view.ts";
import { creator, anyone, type Row, route, type View } from "./route.ts";

const integrations = "/v2/handles/:handle/scheduling/integrations";
const provider = `${integrations}/:providerKey` as const;
const consent = "/oauth/scheduling/:providerKey";
const checkout = "/v2/public/pages/:handle/:pageSlug/checkout";
const payer = {
  guard: admitPayer,
  headerInputs: { ":authority": "host" },
  said: { service_unavailable: "paymentAway" },
} as const;

/** Pages for a browser, which may carry a session cookie. */
const person = { headerInputs: { cookie: "cookie" }, errorView: failureView, hidden: true };

/** Provider accounts, and the return of browsers from providers and checkouts. */
export const integrationRows: Row[] = [
  route(`GET ${integrations}`, creator, integrationsPath, listIntegrations, {
    returns: integrationList,
    summary: "List providers and connected accounts",
    description: "`configured` says whether this installation has client credentials of the provider.",
  }),
  route(`POST ${provider}/oauth/start`, creator, providerPath, startAuthorization, {
    returns: oauthStarted,
    summary: "Start connecting an account",
    description: "Send the user's browser to `authorizeUrl`. The state is single use.",
    failures: ["integration_not_found", "provider_not_configured"],
  }),
  route(`POST ${provider}/oauth/callback`, creator, oauthCallback, finishAuthorization, {
    status: 201,
    returns: credentialAnswer,
    summary: "Finish connecting an account",
    description: "Exchanges the code that the provider sent to the browser. Only the user who started can finish.",
    failures: [
      "invalid_oauth_state",
      "oauth_exchange_failed",
      "integration_not_found",
      "provider_not_configured",
      "version_conflict",
    ],
  }),
  route(`GET ${consent}/return`, anyone, oauthReturn, returnFromProvider, { ...person, view: returnView }),
  route(`GET ${consent}/connect`, anyone, consentPage, askForConsent, { ...person, view: consentView }),
  route(`POST ${consent}/connect`, anyone, consentForm, decideConsent, {
    ...person,
    accepts: "form",
    view: decidedView,
  }),
  route(`POST ${integrations}/caldav/credentials`, creator, newCaldavCredential, connectCaldav, {
    status: 201,
    wrote: ({ credential }) => credential.credentialId,
    returns: credentialAnswer,
    summary: "Connect a CalDAV account",
    description: "Logs in at the calendar server first. `detail` says why a connection failed.",
    failures: ["caldav_login_failed", "version_conflict"],
  }),
  route(`GET ${provider}/calendars`, creator, calendarsPath, listCalendars, {
    returns: calendarList,
    summary: "List the calendars of a provider",
    failures: ["integration_not_found", "integration_revoked", "provider_not_configured", "caldav_login_failed"],
  }),
  route("POST /v2/handles/:handle/scheduling/selected-calendars", creator, selection, selectCalendars, {
    wrote: ({ selectedCalendars }) => selectedCalendars.credentialId,
    returns: selectedCalendarsAnswer,
    summary: "Select the calendars of an account",
    description:
      "Replaces the selection of this account: the calendars whose events are busy time, and the one that bookings are written to.",
    failures: [
      "integration_not_found",
      "integration_revoked",
      "provider_not_configured",
      "caldav_login_failed",
      "version_conflict",
    ],
  }),
  route(`DELETE ${provider}/credentials/:credentialId`, creator, credentialPath, disconnectAccount, {
    summary: "Disconnect an account",
    description: "Removes the account with its selection and gives the grant back to the provider.",
    failures: ["integration_not_found"],
  }),
  route(`POST ${checkout}`, anyone, pageCheckout, startPageCheckout, {
    ...payer,
    accepts: "form",
    page: ({ nextAction }) => onward({ location: nextAction.url }),
    returns: checkoutAnswer,
    summary: "Start the checkout of a paid page",
    description:
      "Send the visitor's browser to `nextAction.url`; a form post that prefers HTML is led there by 303. It returns to the page with a code that unlocks it.",
    failures: ["page_not_found", "payment_provider_not_connected", "rate_limited"],
  }),
  route(`GET ${checkout}/return`, anyone, pageCheckoutReturn, returnToPage, {
    ...payer,
    view: onward,
    errorView: failureView,
    hidden: true,
  }),
  route("POST /v2/public/providers/stripe/webhook", anyone, signedRequest, receiveStripeEvent, {
    accepts: "raw",
    limit: 262_144,
    returns: received,
    summary: "Receive a Stripe event",
    signed: "stripe",
    consumes: { "application/json": stripeEvent },
    description: "For Stripe: reports what became of a checkout. Unknown events are acknowledged and ignored.",
  }),
];

/** Redirects the browser; the codes in the address go to no other server. */
function onward({ location }: { location: string }): View {
  const headers = { Location: location, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer" };
  return { type: "text/plain; charset=utf-8", body: "", status: 303, headers };
}
