import { readCookie, writeCookie } from "../platform/cookies.ts";
import type { Env } from "../platform/env.ts";
import type { Runtime } from "../platform/runtime.ts";
import { isSigned, sign } from "../platform/sealing.ts";
import { digestTag, takeToken } from "../store/throttle.ts";

/** Codes per network: 3 at once and 3 in 15 minutes for one address, 30 for all addresses together. */
const addressLimit = { burst: 3, rate: 3 / 900 };
const networkLimit = { burst: 30, rate: 30 / 900 };
/** Codes per address from all networks: 20 at once, then one per hour; at most 44 mails a day. */
const mailLimit = { burst: 20, rate: 1 / 3600 };

/** Seconds for which a browser is recognised after its last sign-in: the longest lifetime of a cookie (RFC 6265bis, section 5.5). */
const KNOWN_BROWSER_SECONDS = 400 * 86_400;
const knownBrowserCookie = "known-browser";
const purpose = "known browser";

/** A request for a sign-in code. */
interface CodeRequest {
  email: string;
  network: string;
  cookie: string | undefined;
}

/**
 * Counts a request for a code; `rate_limited`. A browser that has signed in with this address before has its own buckets, so that strangers
 * who request codes can't lock out the owner of an address.
 */
export async function admitCodeRequest(runtime: Runtime, asked: CodeRequest): Promise<void> {
  const { env } = runtime;
  const { email, network } = asked;
  const browser = knownBrowser(env, asked);
  if (browser === undefined)
    await takeToken(runtime, { name: "sign-in-network", tag: digestTag(env, network), ...networkLimit });
  const origin = digestTag(env, email, browser ?? network);
  await takeToken(runtime, { name: "sign-in-address", tag: origin, ...addressLimit });
  await takeToken(runtime, { name: "sign-in-mail", tag: digestTag(env, email, browser ?? ""), ...mailLimit });
}

/** The cookie that recognises a browser after a sign-in with this address; it is worthless for other addresses. */
export function rememberBrowser({ env, id }: Runtime, email: string): string {
  const browser = id("brw_");
  const value = `${browser}.${sign(env, purpose, `${browser} ${email}`)}`;
  return writeCookie(knownBrowserCookie, value, { ...loginPage(env), seconds: KNOWN_BROWSER_SECONDS });
}

/** Scope of the sign-in page's cookies. */
export function loginPage({ LOGIN_URL }: Env): { path: string; secure: boolean } {
  const { pathname, protocol } = new URL(LOGIN_URL);
  return { path: pathname, secure: protocol === "https:" };
}

/** The id of the browser, if it has signed in with this address before. */
function knownBrowser(env: Env, { email, cookie }: CodeRequest): string | undefined {
  const [browser = "", mac = ""] = readCookie(cookie, knownBrowserCookie)?.split(".") ?? [];
  return isSigned(env, purpose, `${browser} ${email}`, mac) ? browser : undefined;
}
