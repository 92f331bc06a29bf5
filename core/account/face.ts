/** What other modules may import from account. */
export { handleSession, mustHaveScope } from "./access.ts";
export { isAgentEnabled } from "./agent.ts";
export {
  type AuthorizationStep,
  askAuthorization,
  type ConsentRequest,
  decideAuthorization,
  describeServer,
  issueAccess,
  toolsResource,
} from "./authorization.ts";
export { registerClient } from "./clients.ts";
export { attachDomain, type DomainClaim, domainClaim, domainsOf, proveDomain } from "./domains.ts";
export {
  entitlementsOf,
  epochOf,
  findHandle,
  handlesOf,
  hasRole,
  membersOf,
  mustExist,
  ownerAddresses,
  pagesCounter,
  pagesCounterOf,
  setHandleActive,
  throttleTag,
} from "./handles.ts";
export { type ArrivingHandle, beginImport, finishImport } from "./imports.ts";
export { readMe } from "./me.ts";
export { decidePairing, redeemPairing, startPairing } from "./pairing.ts";
export { decideByForm, type PairingVisit, visitPairing } from "./pairing-page.ts";
export { sendServiceMail } from "./service-mail.ts";
export { endSession, listSessions, useSession } from "./session-store.ts";
export { Sessions } from "./sessions.ts";
export { displayNameOf, readSettings, settingsOf, updateSettings } from "./settings.ts";
export {
  type BrowserSession,
  formProof,
  loginUrl,
  openSignIn,
  type SignInStep,
  sessionOfCookie,
  sessionOfForm,
  signIn,
} from "./sign-in.ts";
export { sendSignInCode } from "./sign-in-mail.ts";
export { resealSigningKey, signingKey } from "./signing.ts";
export { createToken, listTokens, revokeToken } from "./tokens.ts";
