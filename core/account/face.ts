/** What other modules may import from account. */
export { type HandleAccess, handleSession, isAgentEnabled, mustHaveScope, readMe } from "./access.ts";
export {
  type AuthorizationStep,
  askAuthorization,
  type ConsentRequest,
  decideAuthorization,
  describeServer,
  toolsResource,
} from "./authorization.ts";
export { formProof, loginUrl, sessionOfCookie, sessionOfForm } from "./browser-sessions.ts";
export { issueAccess } from "./client-tokens.ts";
export { mustBeBuiltIn, registerClient } from "./clients.ts";
export { attachDomain, type DomainClaim, domainClaim, domainForm, domainsOf, proveDomain } from "./domains.ts";
export { type ArrivingHandle, beginImport, finishImport } from "./handle-arrival.ts";
export {
  entitlementsOf,
  epochOf,
  findHandle,
  handlesOf,
  hasRole,
  isActive,
  membersOf,
  mustExist,
  mustStillBeActive,
  originOf,
  ownerAddresses,
  ownersOf,
  pagesCounter,
  pagesCounterOf,
  setHandleActive,
  takeHandleToken,
} from "./handles.ts";
export {
  decideByForm,
  decidePairing,
  type PairingVisit,
  redeemPairing,
  startPairing,
  visitPairing,
} from "./pairing.ts";
export { sendServiceMail } from "./service-mail.ts";
export { endSession, listSessions, useSession } from "./session-store.ts";
export { SessionTokens } from "./session-tokens.ts";
export { displayNameOf, readSettings, settingsOf, updateSettings } from "./settings.ts";
export { mustOfferSignIn, openSignIn, type SignInStep, sendSignInCode, signIn } from "./sign-in.ts";
export { resealSigningKey, signingKey } from "./signing.ts";
export { createToken, listTokens, revokeToken } from "./tokens.ts";
