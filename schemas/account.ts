import {
  anything,
  array,
  boolean,
  documented,
  handle,
  type Infer,
  ignored,
  instant,
  integer,
  language,
  line,
  listing,
  merge,
  nullable,
  object,
  oneOf,
  optional,
  partial,
  string,
  text,
} from "./schema.ts";

/**
 * Scopes of personal access tokens (docs/reference.md, "Personal access tokens"); the last three apply to the tool endpoint only. Tokens
 * store the indexes of their scopes in this list, so new ones go to the end.
 */
export const scopes = [
  "agent.strategy.read",
  "agent.pages.read",
  "agent.knowledge.read",
  "agent.bookings.read",
] as const;
export type Scope = (typeof scopes)[number];

const role = oneOf("CREATOR", "OPERATOR", "OWNER");

/** `GET /v2/account/assistant/me`: query parameters, such as cache busters, are ignored. */
export const meQuery = object({}, { additionalProperties: true });

/** The signed-in user, their handles, and their accounts' entitlements. */
export const me = object({
  user: object({ userId: string(), email: nullable(string()) }),
  handles: array(object({ handle: string(), role })),
  entitlements: array(string()),
});
export type Me = Infer<typeof me>;

const derived = ignored("tokenId", "secret", "expiresAt", "createdAt", "lastUsedAt");

/** `POST /v2/account/tokens`; without `expiresInDays` the token is valid until it is revoked. */
export const newToken = object({
  name: line(100),
  scopes: array(oneOf(...scopes), { minItems: 1, uniqueItems: true }),
  expiresInDays: optional(nullable(integer(1, 3650))),
  ...derived,
});

/** A token with its secret, which is shown only once. */
export const shownToken = object({
  tokenId: string(),
  name: string(),
  scopes: array(string()),
  expiresAt: nullable(instant),
  secret: string({ pattern: "^pat_[0-9A-Za-z]{36}$" }),
});
/** `{token}` with its secret. */
export const newTokenAnswer = object({ token: shownToken });
export type NewToken = Infer<typeof shownToken>;

/** A token as its owner sees it later. */
export const token = object({
  tokenId: string(),
  name: string(),
  scopes: array(string()),
  createdAt: instant,
  expiresAt: nullable(instant),
  lastUsedAt: nullable(instant),
});
export type Token = Infer<typeof token>;

/** The public look of a handle, and its owners' notifications. */
export const settings = object({
  displayName: nullable(line(100)),
  language: nullable(language),
  leadNotifications: boolean,
  logoUrl: nullable(string({ pattern: "^https://[^\\s\\u0000-\\u001f\\u007f-\\u009f]+$", maxLength: 2048 })),
});
export type Settings = Infer<typeof settings>;

/** `GET /v2/handles/{handle}/settings`. */
export const settingsPath = object({ handle });
/** `PUT /v2/handles/{handle}/settings`: absent keys keep their value, null resets one. */
export const settingsChange = merge(settingsPath, partial(settings));
export const settingsAnswer = object({ settings });

/** `GET /v2/account/tokens`. */
export const tokenListing = object(listing);
export const tokenList = object({ tokens: array(token), nextCursor: nullable(string()) });
/** A session of the signed-in user: the device, and since when. */
export const session = object({
  sessionId: string(),
  kind: oneOf("browser", "desktop", "command-line", "mcp"),
  device: string(),
  createdAt: instant,
  lastUsedAt: instant,
  expiresAt: instant,
  current: boolean,
});
export type Session = Infer<typeof session>;

/** `GET /v2/account/sessions`. */
export const sessionListing = object(listing);
export const sessionList = object({ sessions: array(session), nextCursor: nullable(string()) });
/** The path of one session; `current` is the caller's own. */
export const sessionPath = object({ sessionId: string() });

/** The path of one token. */
export const tokenPath = object({ tokenId: string() });

/**
 * `POST /oauth/assistant/desktop/start`: the challenge may be any text; redemption verifies it. A text `deviceName` is shown with up to 80
 * characters; any other value is ignored.
 */
export const pairingStart = object({
  deviceProofChallenge: string({ minLength: 1, maxLength: 512 }),
  deviceName: documented(optional(anything), optional(text(80))),
  userAgent: optional(string()),
});

/**
 * The id that the desktop client polls with, and the address for the browser. Characters 5 to 12 of `attemptId` are the code to compare.
 */
export const pairingStarted = object({
  attemptId: string(),
  authorizeUrl: string({ format: "uri" }),
  expiresAt: instant,
});
export type PairingStarted = Infer<typeof pairingStarted>;

const attemptId = string({ minLength: 1, maxLength: 128 });

/** `POST /oauth/assistant/desktop/authorize`. */
export const pairingDecision = object({ attemptId, decision: oneOf("allow", "deny") });
/** The result of the decision. */
export const pairingDecided = object({ attemptId: string(), status: oneOf("authorised", "denied") });
export type PairingDecided = Infer<typeof pairingDecided>;

/** `POST /oauth/assistant/desktop/redeem`. */
export const pairingRedemption = object({ attemptId, deviceProofVerifier: string({ minLength: 1, maxLength: 512 }) });
/** Pending (202), or the session, once. */
export const pairingRedeemed = object({
  status: oneOf("pending", "authorised"),
  session: optional(object({ token: string(), expiresAt: instant })),
  relay: optional(object({ baseUrl: string({ format: "uri" }), mcpUrls: array(string({ format: "uri" })) })),
});
export type PairingRedeemed = Infer<typeof pairingRedeemed>;

/** The page where a person decides about an attempt: its address and its form. */
export const pairingPage = object({ attemptId: optional(string({ maxLength: 128 })), cookie: optional(string()) });
export const pairingForm = object({
  attemptId,
  decision: oneOf("allow", "deny"),
  proof: string({ maxLength: 200 }),
  cookie: optional(string()),
});

/** A sign-in may return to an authorization request, which contains the id of its client. */
const MAX_RETURN_LENGTH = 8000;

/** The built-in sign-in page and its two forms: an address, then the mailed code. */
export const signInPage = object({
  returnTo: optional(string({ maxLength: MAX_RETURN_LENGTH })),
  cookie: optional(string()),
});
export const signInForm = object({
  email: optional(string({ maxLength: 320 })),
  signInId: optional(string({ maxLength: 128 })),
  code: optional(string({ maxLength: 32 })),
  returnTo: optional(string({ maxLength: MAX_RETURN_LENGTH })),
  origin: optional(string()),
  host: optional(string()),
  cookie: optional(string()),
  userAgent: optional(string()),
  visitorLanguage: optional(string()),
});

const MAX_REDIRECT_LENGTH = 500;
const redirectUri = string({ minLength: 1, maxLength: MAX_REDIRECT_LENGTH });

/** `POST /oauth/register` (RFC 7591, section 2); further metadata is dropped. */
export const clientRegistration = object({
  redirect_uris: array(redirectUri, { minItems: 1, maxItems: 10 }),
  client_name: optional(string({ maxLength: 200 })),
});
/** The registered client (RFC 7591, section 3.2.1). */
export const registeredClient = object({
  client_id: string(),
  client_id_issued_at: integer(),
  client_name: string(),
  redirect_uris: array(string()),
  grant_types: array(string()),
  response_types: array(string()),
  token_endpoint_auth_method: string(),
});
export type RegisteredClient = Infer<typeof registeredClient>;

const authorizationFields = {
  client_id: string({ maxLength: 4000 }),
  redirect_uri: redirectUri,
  response_type: optional(string({ maxLength: 40 })),
  code_challenge: optional(string({ maxLength: 128 })),
  code_challenge_method: optional(string({ maxLength: 40 })),
  resource: optional(string({ maxLength: 500 })),
  scope: optional(string({ maxLength: 500 })),
  state: optional(string({ maxLength: 1000 })),
};
/** `GET /oauth/authorize` (RFC 6749, section 4.1.1, with RFC 7636 and RFC 8707). */
export const authorizationPage = object({ ...authorizationFields, cookie: optional(string()) });
/** The form of that page: the request again, and the decision. */
export const authorizationForm = object({
  ...authorizationFields,
  decision: oneOf("allow", "deny"),
  proof: string({ maxLength: 200 }),
  cookie: optional(string()),
});
/** `POST /oauth/token` (RFC 6749, sections 4.1.3 and 6). */
export const tokenRequest = object({
  grant_type: optional(string({ maxLength: 100 })),
  code: optional(string({ maxLength: 128 })),
  client_id: optional(string({ maxLength: 4000 })),
  redirect_uri: optional(string({ maxLength: MAX_REDIRECT_LENGTH })),
  code_verifier: optional(string({ maxLength: 128 })),
  refresh_token: optional(string({ maxLength: 1000 })),
  resource: optional(string({ maxLength: 500 })),
});
/** An access token (RFC 6749, section 5.1). */
export const issuedToken = object({
  access_token: string(),
  token_type: oneOf("Bearer"),
  expires_in: integer(1),
  refresh_token: string(),
  scope: string(),
});
export type IssuedToken = Infer<typeof issuedToken>;
