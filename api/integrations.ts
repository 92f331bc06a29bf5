import * as core from "../core/scheduling/face.ts";
import * as shape from "../schemas/integrations.ts";
import { wordsOf } from "../schemas/languages.ts";
import { nothing, object } from "../schemas/schema.ts";
import { cardView, decisionButtons, factList, hiddenInputs } from "./card.ts";
import { browserPage } from "./failure-view.ts";
import { html, redirect, sentence } from "./html.ts";
import type { Request } from "./request.ts";
import { creator, page, type Row, route, type View } from "./route.ts";

const integrations = "/v2/handles/:handle/scheduling/integrations";
const provider = `${integrations}/:providerKey` as const;
const consent = "/oauth/scheduling/:providerKey";

export const integrationRows: Row[] = [
  route(`GET ${integrations}`, creator, nothing, core.listIntegrations, {
    returns: shape.integrationList,
    summary: "List providers and connected accounts",
    description: "`configured` says whether this installation has client credentials of the provider.",
  }),
  route(`POST ${provider}/oauth/start`, creator, nothing, core.startAuthorization, {
    returns: shape.oauthStarted,
    summary: "Start connecting an account",
    description: "Send the user's browser to `authorizeUrl`. The state is single use.",
    failures: ["integration_not_found", "provider_not_configured"],
  }),
  route(`POST ${provider}/oauth/callback`, creator, shape.oauthCallback, core.finishAuthorization, {
    status: 201,
    createdId: ({ credential }) => credential.credentialId,
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
  page(`GET ${consent}/return`, shape.oauthReturn, core.returnFromProvider, redirect, browserPage),
  page(`GET ${consent}/connect`, shape.consentPage, core.askForConsent, consentView, browserPage),
  page(`POST ${consent}/connect`, shape.consentForm, core.decideConsent, decidedView, {
    ...browserPage,
    audited: ({ isConnected, userId, handle }) => (isConnected ? { userId, handle } : undefined),
  }),
  route(`POST ${integrations}/caldav/credentials`, creator, shape.newCaldavCredential, core.connectCaldav, {
    status: 201,
    createdId: ({ credential }) => credential.credentialId,
    returns: object({ credential: shape.credential }),
    summary: "Connect a CalDAV account",
    description: "Logs in at the calendar server first. `detail` says why a connection failed.",
    failures: ["caldav_login_failed", "version_conflict"],
  }),
  route(`GET ${provider}/calendars`, creator, nothing, core.listCalendars, {
    returns: shape.calendarList,
    summary: "List the calendars of a provider",
    failures: ["integration_not_found", "integration_revoked", "provider_not_configured", "caldav_login_failed"],
  }),
  route(
    "POST /v2/handles/:handle/scheduling/selected-calendars",
    creator,
    shape.selectedCalendars,
    core.selectCalendars,
    {
      createdId: ({ selectedCalendars }) => selectedCalendars.credentialId,
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
    },
  ),
  route(`DELETE ${provider}/credentials/:credentialId`, creator, nothing, core.disconnectAccount, {
    description: "Removes the account with its selection and gives the grant back to the provider.",
    failures: ["integration_not_found"],
  }),
];

const providerNames: Record<shape.ProviderKey, string> = {
  google: "Google",
  microsoft: "Microsoft",
  caldav: "CalDAV",
  zoom: "Zoom",
  stripe: "Stripe",
};

/** The page that asks whether to connect an account to a handle, or a redirect. */
function consentView(question: core.ConsentQuestion | core.Redirect, request: Request): View {
  if ("location" in question) return redirect(question);
  const { providerKey, account, handle, name, user, consentId, proof } = question;
  const language = request.language();
  const { connect: words } = wordsOf(language);
  const facts = factList([
    [words.provider, providerNames[providerKey]],
    [words.account, account],
    [words.handle, handle],
    [words.user, user],
  ]);
  const body = html`<p>${sentence(words.question, { account, handle: name })}</p>
${facts}
<form method="post" action="/oauth/scheduling/${providerKey}/connect">
${hiddenInputs({ consentId, proof })}
${decisionButtons(["connect", words.connect], ["cancel", words.cancel])}
</form>
<p class="note">${words.note}</p>`;
  return cardView({ language, title: words.title, body, script: "once.js" });
}

function decidedView(
  { isConnected, account, name }: { isConnected: boolean; account: string; name: string },
  request: Request,
): View {
  const language = request.language();
  const { done, doneDetail, cancelled, cancelledDetail } = wordsOf(language).connect;
  const [title, detail] = isConnected ? [done, doneDetail] : [cancelled, cancelledDetail];
  return cardView({ language, title, body: html`<p>${sentence(detail, { account, handle: name })}</p>` });
}
