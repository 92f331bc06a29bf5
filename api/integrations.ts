import {
  askForConsent,
  connectCaldav,
  decideConsent,
  disconnectAccount,
  finishAuthorization,
  listCalendars,
  listIntegrations,
  returnFromProvider,
  selectCalendars,
  startAuthorization,
} from "../core/scheduling/face.ts";
import {
  calendarList,
  consentForm,
  consentPage,
  credentialAnswer,
  credentialPath,
  integrationList,
  integrationsPath,
  newCaldavCredential,
  oauthCallback,
  oauthReturn,
  oauthStarted,
  providerPath,
  selectedCalendarsAnswer,
  selection,
} from "../schemas/integrations.ts";
import { failureView } from "./failure-view.ts";
import { consentView, decidedView, returnView } from "./provider-consent-view.ts";
import { anyone, creator, type Row, route } from "./route.ts";

const integrations = "/v2/handles/:handle/scheduling/integrations";
const provider = `${integrations}/:providerKey` as const;
const consent = "/oauth/scheduling/:providerKey";

/** Pages for a browser, which may carry a session cookie. */
const browserPage = { headerInputs: ["cookie"], errorView: failureView, hidden: true } as const;

/** Provider accounts, and the return of browsers from providers. */
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
  route(`GET ${consent}/return`, anyone, oauthReturn, returnFromProvider, { ...browserPage, view: returnView }),
  route(`GET ${consent}/connect`, anyone, consentPage, askForConsent, { ...browserPage, view: consentView }),
  route(`POST ${consent}/connect`, anyone, consentForm, decideConsent, {
    ...browserPage,
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
  route(`GET ${provider}/calendars`, creator, providerPath, listCalendars, {
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
];
