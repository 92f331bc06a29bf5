import {
  createToken,
  decideByForm,
  decidePairing,
  endSession,
  listSessions,
  listTokens,
  openSignIn,
  readMe,
  readSettings,
  redeemPairing,
  revokeToken,
  signIn,
  startPairing,
  updateSettings,
  visitPairing,
} from "../core/account/face.ts";
import type { Fail } from "../core/platform/errors.ts";
import {
  me,
  meQuery,
  newToken,
  newTokenAnswer,
  pairingDecided,
  pairingDecision,
  pairingForm,
  pairingPage,
  pairingRedeemed,
  pairingRedemption,
  pairingStart,
  pairingStarted,
  sessionList,
  sessionListing,
  sessionPath,
  settingsAnswer,
  settingsChange,
  settingsPath,
  signInForm,
  signInPage,
  tokenList,
  tokenListing,
  tokenPath,
} from "../schemas/account.ts";
import { failureView } from "./failure-view.ts";
import { pairedView, pairingView } from "./pairing-view.ts";
import { anyone, operator, type Request, type Row, route, user } from "./route.ts";
import { signInView } from "./sign-in-view.ts";

const tokens = "/v2/account/tokens";
const desktop = "/oauth/assistant/desktop";

/** Pages for a browser, which may carry a session cookie. */
const browserPage = { headerInputs: ["cookie"], errorView: failureView, hidden: true } as const;

/** The session check, personal access tokens, and the pairing of desktop clients. */
export const accountRows: Row[] = [
  route("GET /v2/account/assistant/me", user, meQuery, readMe, {
    returns: me,
    summary: "Get the signed-in user",
    description:
      "Answers the user, the handles with the user's role on each, and the entitlements of the user's accounts. All query parameters are ignored. Answers 401 if none of the accounts has the entitlement `assistant`.",
  }),
  route(`POST ${tokens}`, user, newToken, createToken, {
    status: 201,
    returns: newTokenAnswer,
    summary: "Create a personal access token",
    description:
      "The secret (`pat_…`) is in this answer only. Without `expiresInDays` the token is valid until it is revoked. A user has at most 200 tokens.",
  }),
  route(`GET ${tokens}`, user, tokenListing, listTokens, {
    returns: tokenList,
    summary: "List personal access tokens",
  }),
  route(`DELETE ${tokens}/:tokenId`, user, tokenPath, revokeToken, {
    summary: "Revoke a personal access token",
    description: "The token is refused from the next request on.",
    failures: ["token_not_found"],
  }),
  route("GET /v2/account/sessions", user, sessionListing, listSessions, {
    returns: sessionList,
    summary: "List sessions",
    description: "Sessions of the user that have not expired, paired desktops among them.",
  }),
  route("DELETE /v2/account/sessions/:sessionId", user, sessionPath, endSession, {
    summary: "Revoke a session",
    description: "Its token is refused from the next request on.",
    failures: ["session_not_found"],
  }),
  route("GET /v2/handles/:handle/settings", operator, settingsPath, readSettings, {
    returns: settingsAnswer,
    summary: "Get the settings of a handle",
  }),
  route("PUT /v2/handles/:handle/settings", operator, settingsChange, updateSettings, {
    returns: settingsAnswer,
    summary: "Update the settings of a handle",
    description: "An absent field keeps its value. `displayName` is the name that people see.",
  }),
  route(`POST ${desktop}/start`, anyone, pairingStart, startPairing, {
    headerInputs: ["userAgent"],
    returns: pairingStarted,
    summary: "Start a desktop pairing",
    description:
      "The challenge is base64url(SHA-256(verifier)), as in PKCE (RFC 7636). Open `authorizeUrl` in a browser; characters 5 to 12 of `attemptId` are the code that the user compares. An attempt lives 10 minutes.",
    failures: ["rate_limited"],
  }),
  route(`POST ${desktop}/authorize`, user, pairingDecision, decidePairing, {
    returns: pairingDecided,
    summary: "Allow or deny a desktop pairing",
    description: "Records the decision of the signed-in user.",
    failures: ["attempt_expired", "attempt_not_pending"],
  }),
  route(`POST ${desktop}/redeem`, anyone, pairingRedemption, redeemPairing, {
    status: 202,
    created: 200,
    returns: pairingRedeemed,
    summary: "Redeem a desktop pairing",
    description:
      "Answers 202 until the user has decided, and the session once. A wrong verifier is refused; the fifth ends the attempt.",
    failures: ["attempt_expired", "attempt_denied", "device_proof_mismatch"],
  }),
  route(`GET ${desktop}/authorize`, anyone, pairingPage, visitPairing, { ...browserPage, view: pairingView }),
  route(`POST ${desktop}/decide`, anyone, pairingForm, decideByForm, {
    ...browserPage,
    accepts: "form",
    view: pairedView,
  }),
];

/** The built-in sign-in at the path of LOGIN_URL. */
export function signInRows(path: string): Row[] {
  const line = path as `/${string}`;
  const columns = {
    view: signInView,
    errorView: (fail: Fail, request: Request) => (fail.code === "not_found" ? undefined : failureView(fail, request)),
    hidden: true,
  };
  return [
    route(`GET ${line}`, anyone, signInPage, openSignIn, { ...columns, headerInputs: ["cookie"] }),
    route(`POST ${line}`, anyone, signInForm, signIn, {
      ...columns,
      accepts: "form",
      headerInputs: ["origin", "host", "cookie", "userAgent", "visitorLanguage"],
    }),
  ];
}
