/** The value of a cookie in a `Cookie` header (RFC 6265, section 4.2.1); undefined if there is none of that name. */
export function readCookie(header: string | undefined, name: string): string | undefined {
  const pair = (header ?? "").split(/; */).find((one) => one.startsWith(`${name}=`));
  return pair?.slice(name.length + 1);
}

/**
 * A `Set-Cookie` value that scripts can't read. From other sites browsers send it with a link or redirect only (RFC 6265bis, sections 4.1.2.6
 * and 4.1.2.7).
 */
export function writeCookie(
  name: string,
  value: string,
  { seconds, path, secure }: { seconds: number; path: string; secure: boolean },
): string {
  return `${name}=${value}; Max-Age=${seconds}; Path=${path}; HttpOnly; SameSite=Lax${secure ? "; Secure" : ""}`;
}
