import { addCaldav, listCalendars, selectCalendars } from "../core/scheduling/calendars.ts";
import {
  disconnect,
  finishOauth,
  listIntegrations,
  returnFromProvider,
  startOauth,
} from "../core/scheduling/integrations.ts";
import { admitPayer, checkoutPage, returnToPage, takeNotice } from "../core/payments/payments.ts";
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
  oauthCallback,
  oauthReturn,
  oauthStarted,
  pageCheckout,
  pageCheckoutReturn,
  providerPath,
  received,
} from "../schemas/integrations.ts";
import { failureCard } from "./account-view.ts";
import { creator, open, type Row, route, type View } from "./route.ts";

const integrations = "/v2/handles/:handle/scheduling/integrations";
const provider = `${integrations}/:providerKey` as const;
const checkout = "/v2/public/pages/:handle/:pageSlug/checkout";
const payer = { guard: admitPayer, takes: { ":authority": "host" } };

/** Providers: connecting accounts, and what providers and payers come back with. */
export const integrationRows: Row[] = [
  route(`GET ${integrations}`, creator, integrationsPath, listIntegrations, {
    returns: integrationList,
    summary: "List providers and connected accounts",
  }),
  route(`POST ${provider}/oauth/start`, creator, providerPath, startOauth, {
    returns: oauthStarted,
    summary: "Start connecting an account",
  }),
  route(`POST ${provider}/oauth/callback`, creator, oauthCallback, finishOauth, {
    status: 201,
    returns: credentialAnswer,
    summary: "Finish connecting an account",
  }),
  route("GET /oauth/scheduling/:providerKey/return", open, oauthReturn, returnFromProvider, {
    view: onward,
    hidden: true,
  }),
  route(`POST ${integrations}/caldav/credentials`, creator, newCaldavCredential, addCaldav, {
    status: 201,
    returns: credentialAnswer,
    summary: "Connect a CalDAV account",
  }),
  route(`GET ${provider}/calendars`, creator, calendarsPath, listCalendars, {
    returns: calendarList,
    summary: "List the calendars of a provider",
  }),
  route("POST /v2/handles/:handle/scheduling/selected-calendars", creator, selection, selectCalendars, {
    returns: selectedCalendarsAnswer,
    summary: "Select the calendars of an account",
  }),
  route(`DELETE ${provider}/credentials/:credentialId`, creator, credentialPath, disconnect, {
    summary: "Disconnect an account",
  }),
  route(`POST ${checkout}`, open, pageCheckout, checkoutPage, {
    ...payer,
    returns: checkoutAnswer,
    summary: "Start the checkout of a paid page",
  }),
  route(`GET ${checkout}/return`, open, pageCheckoutReturn, returnToPage, {
    ...payer,
    view: onward,
    failed: failureCard,
    hidden: true,
  }),
  route("POST /v2/public/providers/stripe/webhook", open, signedRequest, takeNotice, {
    accepts: "raw",
    limit: 262_144,
    returns: received,
    summary: "Receive a Stripe event",
  }),
];

/** A browser goes on; codes in addresses are told to nobody else. */
function onward({ location }: { location: string }): View {
  const headers = { Location: location, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer" };
  return { type: "text/plain; charset=utf-8", body: "", status: 303, headers };
}
