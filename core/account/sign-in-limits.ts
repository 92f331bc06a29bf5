import type { Env } from "../platform/env.ts";
import { readCookie, writeCookie } from "../platform/cookies.ts";
import type { Runtime } from "../platform/runtime.ts";
import { isSigned, sign } from "../platform/sealing.ts";
import { digestTag, takeToken } from "../store/throttle.ts";

/** Codes that one network may ask for: 3 at once and 3 in 15 minutes for one mail address, 30 for all of them together. */
const addressLimit = { burst: 3, rate: 3 / 900 };
const networkLimit = { burst: 30, rate: 30 / 900 };
/** Codes that all networks together may ask for one mail address: 20 at once, then one an hour; at most 44 mails a day. */
const mailLimit = { burst: 20, rate: 1 / 3600 };

/** Seconds for which a browser is known after its last sign-in: the longest that browsers keep a cookie (RFC 6265bis, section 5.5). */
const KNOWN_BROWSER_SECONDS = 400 * 86_400;
const knownBrowserCookie = "known-browser";
const purpose = "known browser";

/** A person who requests a code. */
export interface CodeRequest {
  email: string;
  network: string;
  cookie: string | undefined;
}

/**
 * Counts a request for a code; `rate_limited`. A browser that has signed in with this address before has buckets of its own, so
 * that strangers who ask for codes can't keep the owner of an address from signing in.
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

/** The cookie of a browser that has just signed in with an address; it counts for no other address. */
export function rememberBrowser({ env, id }: Runtime, email: string): string {
  const browser = id("brw_");
  const value = `${browser}.${sign(env, purpose, `${browser} ${email}`)}`;
  return writeCookie(knownBrowserCookie, value, { ...loginPage(env), seconds: KNOWN_BROWSER_SECONDS });
}

/** Where the cookies of the sign-in page are sent. */
export function loginPage({ LOGIN_URL }: Env): { path: string; secure: boolean } {
  const { pathname, protocol } = new URL(LOGIN_URL);
  return { path: pathname, secure: protocol === "https:" };
}

/** The id of the browser, if it has signed in with this address before. */
function knownBrowser(env: Env, { email, cookie }: CodeRequest): string | undefined {
  const [browser = "", mac = ""] = readCookie(cookie, knownBrowserCookie)?.split(".") ?? [];
  return isSigned(env, purpose, `${browser} ${email}`, mac) ? browser : undefined;
}
