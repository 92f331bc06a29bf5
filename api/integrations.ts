import * as core from "../core/scheduling/face.ts";
import * as shape from "../schemas/integrations.ts";
import { object } from "../schemas/schema.ts";
import { failureView } from "./failure-view.ts";
import { consentView, decidedView, returnView } from "./provider-consent-view.ts";
import { creator, page, type Row, route } from "./route.ts";

const integrations = "/v2/handles/:handle/scheduling/integrations";
const provider = `${integrations}/:providerKey` as const;
const consent = "/oauth/scheduling/:providerKey";

/** Pages for a browser, which may carry a session cookie. */
const browserPage = { headerInputs: ["cookie"], errorView: failureView } as const;

/** Provider accounts, and the return of browsers from providers. */
export const integrationRows: Row[] = [
  route(`GET ${integrations}`, creator, shape.integrationsPath, core.listIntegrations, {
    returns: shape.integrationList,
    summary: "List providers and connected accounts",
    description: "`configured` says whether this installation has client credentials of the provider.",
  }),
  route(`POST ${provider}/oauth/start`, creator, shape.providerPath, core.startAuthorization, {
    returns: shape.oauthStarted,
    summary: "Start connecting an account",
    description: "Send the user's browser to `authorizeUrl`. The state is single use.",
    failures: ["integration_not_found", "provider_not_configured"],
  }),
  route(`POST ${provider}/oauth/callback`, creator, shape.oauthCallback, core.finishAuthorization, {
    status: 201,
    returns: object({ credential: shape.credential }),
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
  page(`GET ${consent}/return`, shape.oauthReturn, core.returnFromProvider, returnView, browserPage),
  page(`GET ${consent}/connect`, shape.consentPage, core.askForConsent, consentView, browserPage),
  page(`POST ${consent}/connect`, shape.consentForm, core.decideConsent, decidedView, {
    ...browserPage,
    accepts: "form",
  }),
  route(`POST ${integrations}/caldav/credentials`, creator, shape.newCaldavCredential, core.connectCaldav, {
    status: 201,
    wrote: ({ credential }) => credential.credentialId,
    returns: object({ credential: shape.credential }),
    summary: "Connect a CalDAV account",
    description: "Logs in at the calendar server first. `detail` says why a connection failed.",
    failures: ["caldav_login_failed", "version_conflict"],
  }),
  route(`GET ${provider}/calendars`, creator, shape.providerPath, core.listCalendars, {
    returns: shape.calendarList,
    summary: "List the calendars of a provider",
    failures: ["integration_not_found", "integration_revoked", "provider_not_configured", "caldav_login_failed"],
  }),
  route("POST /v2/handles/:handle/scheduling/selected-calendars", creator, shape.selection, core.selectCalendars, {
    wrote: ({ selectedCalendars }) => selectedCalendars.credentialId,
    returns: object({ selectedCalendars: shape.selectedCalendars }),
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
  route(`DELETE ${provider}/credentials/:credentialId`, creator, shape.credentialPath, core.disconnectAccount, {
    summary: "Disconnect an account",
    description: "Removes the account with its selection and gives the grant back to the provider.",
    failures: ["integration_not_found"],
  }),
];
