/** Prefixes by which browsers take a cookie from pages with TLS alone, the first one from its own host alone (RFC 6265bis, section 4.1.3). */
const prefixes = ["__Host-", "__Secure-"];

/**
 * The value of a cookie of this service in a `Cookie` header (RFC 6265, section 4.2.1); undefined if there is none of that name. One with a
 * prefix wins; `isPrefixed` takes no other.
 */
export function readCookie(header: string | undefined, name: string, isPrefixed = false): string | undefined {
  const pairs = (header ?? "").split(/; */);
  for (const prefix of isPrefixed ? prefixes : [...prefixes, ""]) {
    const pair = pairs.find((one) => one.startsWith(`${prefix}${name}=`));
    if (pair !== undefined) return pair.slice(prefix.length + name.length + 1);
  }
  return undefined;
}

/**
 * A `Set-Cookie` value that scripts can't read. From other sites browsers send it with a link or redirect only (RFC 6265bis, sections 4.1.2.6
 * and 4.1.2.7). A secure one has a prefix.
 */
export function writeCookie(
  name: string,
  value: string,
  { seconds, path, secure }: { seconds: number; path: string; secure: boolean },
): string {
  const prefix = secure ? (path === "/" ? "__Host-" : "__Secure-") : "";
  return `${prefix}${name}=${value}; Max-Age=${seconds}; Path=${path}; HttpOnly; SameSite=Lax${secure ? "; Secure" : ""}`;
}
