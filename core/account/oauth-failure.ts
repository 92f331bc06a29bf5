import { Fail } from "../platform/errors.ts";

/** OAuth errors of RFC 6749 (section 5.2), RFC 7591 (section 3.2.2) and RFC 8707 (section 2). */
type OAuthError =
  | "invalid_request"
  | "invalid_grant"
  | "invalid_target"
  | "invalid_redirect_uri"
  | "invalid_client_metadata"
  | "unsupported_grant_type";

/** A failure that OAuth clients recognise by its error name. */
export function oauthFailure(error: OAuthError, detail: string): Fail {
  return new Fail("invalid_request", { detail, more: { error } });
}

/** A failure that must not be redirected, since the client's redirect address is unknown: the user sees it. */
export function wrongClient(detail: string, cause?: unknown): Fail {
  return new Fail("invalid_request", { detail }, cause);
}
