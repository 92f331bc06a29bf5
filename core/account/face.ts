/** What other modules may import from account. */
export { handleSession, mustHaveScope } from "./access.ts";
export {
  askAuthorization,
  type AuthorizationStep,
  type ConsentRequest,
  decideAuthorization,
  describeServer,
  issueAccess,
  toolsResource,
} from "./authorization.ts";
export { registerClient } from "./clients.ts";
export { isAgentEnabled } from "./agent.ts";
export { attachDomain, type DomainClaim, domainClaim, domainsOf, proveDomain } from "./domains.ts";
export {
  entitlementsOf,
  epochOf,
  findHandle,
  handlesOf,
  membersOf,
  mustExist,
  ownerAddresses,
  pagesCounter,
  pagesCounterOf,
  hasRole,
  setHandleActive,
  throttleTag,
} from "./handles.ts";
export { type ArrivingHandle, beginImport, finishImport } from "./imports.ts";
export { readMe } from "./me.ts";
export { decideByForm, type PairingVisit, visitPairing } from "./pairing-page.ts";
export { decidePairing, redeemPairing, startPairing } from "./pairing.ts";
export { endSession, listSessions, useSession } from "./session-store.ts";
export { Sessions } from "./sessions.ts";
export { sendServiceMail } from "./service-mail.ts";
export { displayNameOf, readSettings, settingsOf, updateSettings } from "./settings.ts";
export { sendSignInCode } from "./sign-in-mail.ts";
export {
  type BrowserSession,
  formProof,
  loginUrl,
  openSignIn,
  signIn,
  type SignInStep,
  sessionOfCookie,
  sessionOfForm,
} from "./sign-in.ts";
export { resealSigningKey, signingKey } from "./signing.ts";
export { createToken, listTokens, revokeToken } from "./tokens.ts";
