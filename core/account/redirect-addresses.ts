/** Schemes that browsers handle themselves, so that no app can own them (RFC 8252, section 7.1). */
const BROWSER_SCHEMES = /^(javascript|data|file|blob|about|vbscript|filesystem|view-source|wss?|ftp):$/;
export const LOOPBACK = /^(localhost|127\.0\.0\.1|\[::1\])$/;
const LOOPBACK_PORT = /^(http:\/\/(?:localhost|127\.0\.0\.1|\[::1\])):\d{1,5}(?=\/|$)/;

/** https, http on loopback, or an app's scheme; no fragment (RFC 6749, section 3.1.2) and no credentials. */
export function isRedirectUri(uri: string): boolean {
  if (!URL.canParse(uri) || /[\s"'<>\\#]/.test(uri)) return false;
  const { protocol, hostname, username, password } = new URL(uri);
  if (username !== "" || password !== "") return false;
  if (protocol === "http:") return LOOPBACK.test(hostname);
  return !BROWSER_SCHEMES.test(protocol);
}

/**
 * True for an address among the registered ones. A registered address on loopback without a port allows every port: the app listens on a
 * free one (RFC 8252, section 7.3).
 */
export function isRegistered(registered: readonly string[], uri: string): boolean {
  return registered.includes(uri) || (URL.canParse(uri) && registered.includes(uri.replace(LOOPBACK_PORT, "$1")));
}
