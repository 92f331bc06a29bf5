import * as s from "./schema.ts";

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

const role = s.oneOf("CREATOR", "OPERATOR", "OWNER");

/** `GET /v2/account/assistant/me`: query parameters, such as cache busters, are ignored. */
export const meQuery = s.object({}, { additionalProperties: true });

export const me = s.component("Account", {
  user: s.object({ userId: s.string(), email: s.nullable(s.string()) }),
  handles: s.array(s.object({ handle: s.string(), role })),
  entitlements: s.array(s.string()),
});
export type Me = s.Infer<typeof me>;

const derived = s.ignored("tokenId", "secret", "expiresAt", "createdAt", "lastUsedAt");

/** `POST /v2/account/tokens`; without `expiresInDays` the token is valid until it is revoked. */
export const newToken = s.object({
  name: s.line(100),
  scopes: s.array(s.oneOf(...scopes), { minItems: 1, uniqueItems: true }),
  expiresInDays: s.optional(s.nullable(s.integer(1, 3650))),
  ...derived,
});

const tokenFields = {
  tokenId: s.string(),
  name: s.string(),
  scopes: s.array(s.string()),
  expiresAt: s.nullable(s.instant),
};
/** A token with its secret, which is shown only once. */
export const tokenWithSecret = s.component("NewToken", {
  ...tokenFields,
  secret: s.string({ pattern: "^pat_[0-9A-Za-z]{36}$" }),
});

export const token = s.component("Token", { ...tokenFields, createdAt: s.instant, lastUsedAt: s.nullable(s.instant) });
export type Token = s.Infer<typeof token>;

/** The public look of a handle, and its owners' notifications. */
const settingsFields = {
  displayName: s.nullable(s.line(100)),
  language: s.nullable(s.language),
  leadNotifications: s.boolean,
  logoUrl: s.nullable(
    s.formed("^https://[^\\s\\u0000-\\u001f\\u007f-\\u009f]+$", "must be an https address", { maxLength: 2048 }),
  ),
};
export const settings = s.component("HandleSettings", settingsFields);
export type Settings = s.Infer<typeof settings>;

/** `PUT /v2/handles/{handle}/settings`: absent keys keep their value, null resets one. */
export const settingsChange = s.object(s.partial(settingsFields));

export const session = s.component("Session", {
  sessionId: s.string(),
  kind: s.oneOf("browser", "desktop", "command-line", "mcp"),
  device: s.string(),
  createdAt: s.instant,
  lastUsedAt: s.instant,
  expiresAt: s.instant,
  current: s.boolean,
});
export type Session = s.Infer<typeof session>;

/**
 * `POST /oauth/assistant/desktop/start`: the challenge may be any text; redemption verifies it. A text `deviceName` is shown with up to 80
 * characters; any other value is ignored.
 */
export const pairingStart = s.object({
  deviceProofChallenge: s.string({ minLength: 1, maxLength: 512 }),
  deviceName: s.unchecked(s.optional(s.text(80))),
  userAgent: s.optional(s.string()),
});

/**
 * The id that the desktop client polls with, and the address for the browser. Characters 5 to 12 of `attemptId` are the code to compare.
 */
export const pairingStarted = s.object({
  attemptId: s.string(),
  authorizeUrl: s.string({ format: "uri" }),
  expiresAt: s.instant,
});

const attemptId = s.string({ minLength: 1, maxLength: 128 });
const decision = s.oneOf("allow", "deny");
const cookie = s.optional(s.string());
/** The decision by one of our own forms, which only its page can send. */
const decided = { decision, proof: s.string({ maxLength: 200 }), cookie };

export const pairingDecision = s.object({ attemptId, decision });
export const pairingDecided = s.object({ attemptId: s.string(), status: s.oneOf("authorised", "denied") });
export type PairingDecided = s.Infer<typeof pairingDecided>;

export const pairingRedemption = s.object({
  attemptId,
  deviceProofVerifier: s.string({ minLength: 1, maxLength: 512 }),
});
/** Pending (202), or the session, once. */
export const pairingRedeemed = s.component("Pairing", {
  status: s.oneOf("pending", "authorised"),
  session: s.optional(s.object({ token: s.string(), expiresAt: s.instant })),
  relay: s.optional(s.object({ baseUrl: s.string({ format: "uri" }), mcpUrls: s.array(s.string({ format: "uri" })) })),
});
export type PairingRedeemed = s.Infer<typeof pairingRedeemed>;

export const pairingPage = s.object({ attemptId: s.optional(s.string({ maxLength: 128 })), cookie });
export const pairingForm = s.object({ attemptId, ...decided });

/** A sign-in may return to an authorization request, which contains the id of its client. */
const returnTo = s.optional(s.string({ maxLength: 8000 }));

/** The built-in sign-in page and its two forms: an address, then the mailed code. */
const signInId = s.optional(s.string({ maxLength: 128 }));
export const signInPage = s.object({ returnTo, signInId, again: s.optional(s.string()), cookie });
export const signInForm = s.object({
  email: s.optional(s.string({ maxLength: 320 })),
  signInId,
  code: s.optional(s.string({ maxLength: 32 })),
  signOut: s.optional(s.string()),
  returnTo,
  origin: s.optional(s.string()),
  host: s.optional(s.string()),
  cookie,
  userAgent: s.optional(s.string()),
  visitorLanguage: s.optional(s.string()),
});

const redirectUri = s.string({ minLength: 1, maxLength: 500 });
const clientId = s.string({ maxLength: 4000 });
const resource = s.optional(s.string({ maxLength: 500 }));
const scope = s.optional(s.string({ maxLength: 500 }));

/** `POST /oauth/register` (RFC 7591, section 2); further metadata is dropped. */
export const clientRegistration = s.object({
  redirect_uris: s.array(redirectUri, { minItems: 1, maxItems: 10 }),
  client_name: s.optional(s.string({ maxLength: 200 })),
});
/** The registered client (RFC 7591, section 3.2.1). */
export const registeredClient = s.object({
  client_id: s.string(),
  client_id_issued_at: s.integer(),
  client_name: s.string(),
  redirect_uris: s.array(s.string()),
  grant_types: s.array(s.string()),
  response_types: s.array(s.string()),
  token_endpoint_auth_method: s.string(),
});
export type RegisteredClient = s.Infer<typeof registeredClient>;

const authorizationFields = {
  client_id: clientId,
  redirect_uri: redirectUri,
  response_type: s.optional(s.string({ maxLength: 40 })),
  code_challenge: s.optional(s.string({ maxLength: 128 })),
  code_challenge_method: s.optional(s.string({ maxLength: 40 })),
  resource,
  scope,
  state: s.optional(s.string({ maxLength: 1000 })),
};
/** `GET /oauth/authorize` (RFC 6749, section 4.1.1, with RFC 7636 and RFC 8707). */
export const authorizationPage = s.object({ ...authorizationFields, cookie });
/** The form of that page: the request again, and the decision. */
export const authorizationForm = s.object({ ...authorizationFields, ...decided });
/** `POST /oauth/token` (RFC 6749, sections 4.1.3 and 6). */
export const tokenRequest = s.object({
  grant_type: s.optional(s.string({ maxLength: 100 })),
  code: s.optional(s.string({ maxLength: 128 })),
  client_id: s.optional(clientId),
  redirect_uri: s.optional(s.string({ maxLength: 500 })),
  code_verifier: s.optional(s.string({ maxLength: 128 })),
  refresh_token: s.optional(s.string({ maxLength: 1000 })),
  resource,
  scope,
  authorization: s.optional(s.string()),
});
/** An access token (RFC 6749, section 5.1). */
export const issuedToken = s.object({
  access_token: s.string(),
  token_type: s.oneOf("Bearer"),
  expires_in: s.integer(1),
  refresh_token: s.string(),
  scope: s.string(),
});
export type IssuedToken = s.Infer<typeof issuedToken>;
