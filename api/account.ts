import * as core from "../core/account/face.ts";
import type { Fail } from "../core/platform/errors.ts";
import * as shape from "../schemas/account.ts";
import { listOf, listQuery, nothing, object } from "../schemas/schema.ts";
import * as view from "./account-view.ts";
import { browserPage, failureView } from "./failure-view.ts";
import type { Request } from "./request.ts";
import { anyone, operator, page, type Row, route, user } from "./route.ts";

const tokens = "/v2/account/tokens";
const desktop = "/oauth/assistant/desktop";

export const accountRows: Row[] = [
  route("GET /v2/account/assistant/me", user, shape.meQuery, core.readMe, {
    returns: shape.me,
    summary: "Get the signed-in user",
    description:
      "Answers the user, the handles with the user's role on each, and the entitlements of the user's accounts. All query parameters are ignored. Answers 401 if none of the accounts has the entitlement `assistant`.",
  }),
  route(`POST ${tokens}`, user, shape.newToken, core.createToken, {
    status: 201,
    returns: object({ token: shape.tokenWithSecret }),
    summary: "Create a personal access token",
    description:
      "The secret (`pat_…`) is in this answer only. Without `expiresInDays` the token is valid until it is revoked. A user has at most 200 tokens.",
  }),
  route(`GET ${tokens}`, user, listQuery, core.listTokens, {
    returns: listOf("tokens", shape.token),
    summary: "List personal access tokens",
  }),
  route(`DELETE ${tokens}/:tokenId`, user, nothing, core.revokeToken, {
    summary: "Revoke a personal access token",
    description: "The token is refused from the next request on.",
  }),
  route("GET /v2/account/sessions", user, listQuery, core.listSessions, {
    returns: listOf("sessions", shape.session),
    description: "Sessions of the user that have not expired, paired desktops among them.",
  }),
  route("DELETE /v2/account/sessions/:sessionId", user, nothing, core.endSession, {
    summary: "Revoke a session",
    description: "Its token is refused from the next request on.",
  }),
  route("GET /v2/handles/:handle/settings", operator, nothing, core.readSettings, {
    returns: object({ settings: shape.settings }),
    summary: "Get the settings of a handle",
  }),
  route("PUT /v2/handles/:handle/settings", operator, shape.settingsChange, core.updateSettings, {
    returns: object({ settings: shape.settings }),
    summary: "Update the settings of a handle",
    description: "An absent field keeps its value. `displayName` is the name that people see.",
  }),
  route(`POST ${desktop}/start`, anyone, shape.pairingStart, core.startPairing, {
    returns: shape.pairingStarted,
    summary: "Start a desktop pairing",
    description:
      "The challenge is base64url(SHA-256(verifier)), as in PKCE (RFC 7636). Open `authorizeUrl` in a browser; characters 5 to 12 of `attemptId` are the code that the user compares. An attempt lives 10 minutes.",
    failures: ["rate_limited"],
  }),
  route(`POST ${desktop}/authorize`, user, shape.pairingDecision, core.decidePairing, {
    returns: shape.pairingDecided,
    summary: "Allow or deny a desktop pairing",
    description:
      "Records the decision of the signed-in user. The user who allowed can still deny, which ends the desktop's session.",
    failures: ["attempt_expired", "attempt_not_pending"],
  }),
  route(`POST ${desktop}/redeem`, anyone, shape.pairingRedemption, core.redeemPairing, {
    status: 202,
    created: 200,
    returns: shape.pairingRedeemed,
    summary: "Redeem a desktop pairing",
    description:
      "Answers 202 until the user has decided, and the session once. A wrong verifier is refused; the fifth ends the attempt.",
    failures: ["attempt_expired", "attempt_denied", "device_proof_mismatch"],
  }),
  page(`GET ${desktop}/authorize`, shape.pairingPage, core.visitPairing, view.pairingView, browserPage),
  page(`POST ${desktop}/decide`, shape.pairingForm, core.decideByForm, view.pairedView, browserPage),
];

/** The built-in sign-in at the path of LOGIN_URL. */
export function signInRows(path: string): Row[] {
  const line = path as `/${string}`;
  const errorView = (fail: Fail, request: Request) =>
    fail.code === "not_found" ? undefined : failureView(fail, request);
  const more = { errorView, guard: core.mustOfferSignIn };
  return [
    page(`GET ${line}`, shape.signInPage, core.openSignIn, view.signInView, more),
    page(`POST ${line}`, shape.signInForm, core.signIn, view.signInView, { ...more, page: view.signInAnswer }),
  ];
}

const authorize = "/oauth/authorize";
const builtIn = { guard: core.mustBeBuiltIn, hidden: true } as const;
/** RFC 9700, section 2.6: no CORS. */
const person = {
  ...browserPage,
  ...builtIn,
  failureTexts: { invalid_request: "appUnknown" },
  isNavigated: true,
} as const;

/** The authorization server for MCP clients, if the built-in sign-in is on (docs/reference.md, "MCP sign-in"). */
export const authorizationRows: Row[] = [
  route("GET /.well-known/oauth-authorization-server", anyone, nothing, core.describeServer, {
    ...builtIn,
    headers: { "Cache-Control": "public, max-age=3600" },
  }),
  route("POST /oauth/register", anyone, shape.clientRegistration, core.registerClient, {
    ...builtIn,
    errorView: (fail) => view.oauthFailureView(fail, "invalid_client_metadata"),
    status: 201,
    returns: shape.registeredClient,
  }),
  page(`GET ${authorize}`, shape.authorizationPage, core.askAuthorization, view.authorizationView, person),
  page(`POST ${authorize}`, shape.authorizationForm, core.decideAuthorization, view.authorizationView, person),
  route("POST /oauth/token", anyone, shape.tokenRequest, core.issueAccess, {
    ...builtIn,
    errorView: (fail) => view.oauthFailureView(fail),
    accepts: "form",
    headers: { Pragma: "no-cache" },
    returns: shape.issuedToken,
  }),
];
