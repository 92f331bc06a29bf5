import { Fail } from "../platform/errors.ts";

/** Errors of an authorization server by their names in RFC 6749 (5.2), RFC 7591 (3.2.2) and RFC 8707 (2). */
export type OAuthError =
  | "invalid_request"
  | "invalid_grant"
  | "invalid_target"
  | "invalid_redirect_uri"
  | "invalid_client_metadata"
  | "unsupported_grant_type";

/** A failure that a client reads by the name that its protocol has for it. */
export function oauthFailure(error: OAuthError, detail: string): Fail {
  return new Fail("invalid_request", { detail, more: { error } });
}

/** A client that can't be told of its failure, for nobody knows where it is: its user reads it. */
export function wrongClient(detail: string, cause?: unknown): Fail {
  return new Fail("invalid_request", { detail }, cause);
}
