import type { signInForm, signInPage } from "../../schemas/account.ts";
import type { JobData } from "../../schemas/jobs.ts";
import { spokenLanguage, wordsOf } from "../../schemas/languages.ts";
import type { Infer } from "../../schemas/schema.ts";
import { layOut } from "../engines/mail/mail.ts";
import { canonicalAddress } from "../platform/address.ts";
import { readCookie, writeCookie } from "../platform/cookies.ts";
import type { Env } from "../platform/env.ts";
import { Fail } from "../platform/errors.ts";
import { fillPlaceholders } from "../platform/placeholders.ts";
import type { Caller, Runtime } from "../platform/runtime.ts";
import { isSigned, isSixDigits, sign, sixDigits } from "../platform/sealing.ts";
import { typedText } from "../platform/typed.ts";
import { keys } from "../store/keys.ts";
import { job } from "../store/outbox.ts";
import { scripts } from "../store/scripts.ts";
import { digestTag, takeNetworkToken, takeToken } from "../store/throttle.ts";
import { sessionCookie, sessionOfCookie } from "./browser-sessions.ts";
import { userOfEmail } from "./handles.ts";
import { sendServiceMail } from "./service-mail.ts";
import { deviceName, removeSession, startSession } from "./session-store.ts";

/** Lifetime of a code in ms, and the number of wrong codes that ends a sign-in. */
const CODE_TTL_MS = 600_000;
const MAX_WRONG_CODES = 5;
const codePurpose = "sign-in code";
const SESSION_TTL_SECONDS = 12 * 3600;
/** Codes per network: 3 at once and 3 in 15 minutes for one address, 30 for all addresses together. */
const ADDRESS_LIMIT = { burst: 3, rate: 3 / 900 };
const NETWORK_LIMIT = { burst: 30, rate: 30 / 900 };
/** Codes per network for one address in a day: well below those of the address, so that no network takes all of them. */
const DAY_LIMIT = { burst: 8, rate: 8 / 86_400 };
/** Codes per address from all networks: 20 at once, then one per hour; at most 44 mails a day. */
const MAIL_LIMIT = { burst: 20, rate: 1 / 3600 };
/** Seconds for which a browser is recognised after its last sign-in: the longest lifetime of a cookie (RFC 6265bis, section 5.5). */
const KNOWN_BROWSER_SECONDS = 400 * 86_400;
const knownBrowserCookie = "known-browser";
const consentPath = "/oauth";
const pendingCookie = "pending-sign-in";
const address = /^[^\s@]{1,64}@[^\s@.]+(?:\.[^\s@.]+)*$/;

export type SignInStep =
  | {
      step: "email";
      returnTo: string;
      problem?: "email" | "ended";
      /** The address that was entered before. */
      email?: string | undefined;
      /** The account that this browser is already signed in with, and the address to continue to. */
      session?: { email: string; location: string | undefined };
    }
  | {
      step: "code";
      returnTo: string;
      signInId: string;
      email: string;
      problem?: "wrong";
      /** True if this browser requested a code for the address before. */
      isAgain?: boolean;
      cookies?: string[];
    }
  | { step: "done"; email: string; location: string | undefined; cookies: string[] };

/** `not_found` if LOGIN_BUILTIN is off. */
export async function mustOfferSignIn({ env }: Runtime): Promise<void> {
  if (!env.LOGIN_BUILTIN) throw new Fail("not_found");
}

/** The first step of the built-in sign-in, or the code of one that was started. */
export async function openSignIn(
  runtime: Runtime,
  { returnTo = "", cookie, signInId, again }: Infer<typeof signInPage>,
): Promise<SignInStep> {
  const { env, redis } = runtime;
  const email = signInId && (await redis.hget(keys.signIn(signInId), "email"));
  if (signInId && email) return { step: "code", returnTo, signInId, email, isAgain: again !== undefined };
  const session = await sessionOfCookie(runtime, cookie);
  if (session === undefined) return { step: "email", returnTo, ...(signInId && { problem: "ended" }) };
  const location = destination(env, returnTo, session.token);
  return { step: "email", returnTo, session: { email: session.email ?? session.userId, location } };
}

/** The next step: mails a code, checks one, or signs the browser out. Responses are the same for addresses without a user. */
export async function signIn(runtime: Runtime, input: Infer<typeof signInForm>, caller: Caller): Promise<SignInStep> {
  mustBeOwnPage(runtime.env, input);
  if (input.signOut !== undefined) {
    await endSessionOf(runtime, input.cookie);
    return { step: "email", returnTo: input.returnTo ?? "" };
  }
  return input.signInId === undefined ? askForCode(runtime, input, caller) : tryCode(runtime, input);
}

/** Rejects cross-site sign-in forms. Programs send no origin. */
function mustBeOwnPage(env: Env, { origin, host }: Infer<typeof signInForm>): void {
  if (origin === undefined) return;
  const own = [env.LOGIN_URL, env.BASE_URL].map((one) => new URL(one).origin);
  const isOwn = own.includes(origin) || (URL.canParse(origin) && new URL(origin).host === host);
  if (!isOwn) throw new Fail("forbidden", { detail: "The form was not sent from this page." });
}

async function askForCode(runtime: Runtime, input: Infer<typeof signInForm>, caller: Caller): Promise<SignInStep> {
  const { env, redis, queues } = runtime;
  const { returnTo = "" } = input;
  const typed = typedText(input.email ?? "");
  // Some browsers send an international domain in ASCII, others as it was typed.
  const email = typed.length > 254 ? "" : canonicalAddress(typed);
  if (!address.test(email)) return { step: "email", returnTo, problem: "email", email: typed };
  if (env.SMTP_URL === undefined) throw new Fail("transactional_email_queue_unavailable");
  const pending = readCookie(input.cookie, pendingCookie) ?? "";
  const isAgain = (await redis.hget(keys.signIn(pending), "email")) === email;
  try {
    await admitCodeRequest(runtime, { email, cookie: input.cookie, network: caller.network ?? "" });
  } catch (error) {
    const isLimited = error instanceof Fail && error.code === "rate_limited";
    // The code that this browser requested before still works.
    if (isLimited && isAgain) return { step: "code", returnTo, signInId: pending, email, isAgain };
    throw error;
  }
  const signInId = runtime.id("sgn_");
  const user = (await userOfEmail(redis, email)) ?? "";
  await queues.commit(signInId, [job("account.sign-in-code", signInId, { signInId })], (transaction) => {
    transaction.hset(keys.signIn(signInId), { email, user, language: input.visitorLanguage ?? "" });
    transaction.pexpire(keys.signIn(signInId), CODE_TTL_MS);
  });
  const cookie = writeCookie(pendingCookie, signInId, { ...loginPage(env), seconds: CODE_TTL_MS / 1000 });
  return { step: "code", returnTo, signInId, email, isAgain, cookies: [cookie] };
}

/**
 * Counts a request for a code; `rate_limited`. A browser that has signed in with this address before has its own buckets, so that strangers
 * who request codes can't lock out the owner of an address.
 */
async function admitCodeRequest(
  runtime: Runtime,
  { email, network, cookie }: { email: string; network: string; cookie: string | undefined },
): Promise<void> {
  const { env } = runtime;
  const [id = "", mac = ""] = readCookie(cookie, knownBrowserCookie)?.split(".") ?? [];
  const browser = isSigned(env, "known browser", `${id} ${email}`, mac) ? id : undefined;
  if (browser === undefined)
    await takeNetworkToken(runtime, { network }, { name: "sign-in-network", ...NETWORK_LIMIT });
  const origin = digestTag(env, email, browser ?? network);
  await takeToken(runtime, { name: "sign-in-address", tag: origin, ...ADDRESS_LIMIT });
  if (browser === undefined) await takeToken(runtime, { name: "sign-in-day", tag: origin, ...DAY_LIMIT });
  await takeToken(runtime, { name: "sign-in-mail", tag: digestTag(env, email, browser ?? ""), ...MAIL_LIMIT });
}

/** The cookie that recognises a browser after a sign-in with this address; it is worthless for other addresses. */
function rememberBrowser({ env, id }: Runtime, email: string): string {
  const browser = id("brw_");
  const value = `${browser}.${sign(env, "known browser", `${browser} ${email}`)}`;
  return writeCookie(knownBrowserCookie, value, { ...loginPage(env), seconds: KNOWN_BROWSER_SECONDS });
}

/** Scope of the sign-in page's cookies. */
function loginPage({ LOGIN_URL }: Env): { path: string; secure: boolean } {
  const { pathname, protocol } = new URL(LOGIN_URL);
  return { path: pathname, secure: protocol === "https:" };
}

async function tryCode(runtime: Runtime, input: Infer<typeof signInForm>): Promise<SignInStep> {
  const { env, redis } = runtime;
  const { signInId = "", code = "", returnTo = "" } = input;
  const isRight = isSixDigits(env, codePurpose, { text: signInId, typed: code });
  const attempt = keys.signIn(signInId);
  const [result, userId = "", email = ""] = await scripts.redeemAttempt(
    redis,
    { attempt },
    { isRight, maxWrong: MAX_WRONG_CODES },
  );
  if (result === "authorised") {
    const welcomed = await welcome(runtime, { userId, email, device: deviceName(input.userAgent) }, returnTo);
    // A person who signs in with another account means to leave the first one.
    await endSessionOf(runtime, input.cookie);
    return welcomed;
  }
  if (result !== "wrong") return { step: "email", returnTo, problem: "ended", email: input.email };
  return { step: "code", returnTo, signInId, email: (await redis.hget(attempt, "email")) ?? "", problem: "wrong" };
}

/** Ends the session of a browser, if it has one. */
async function endSessionOf(runtime: Runtime, cookie: string | undefined): Promise<void> {
  const session = await sessionOfCookie(runtime, cookie);
  if (session?.sessionId) await removeSession(runtime.redis, session.userId, session.sessionId);
}

async function welcome(
  runtime: Runtime,
  who: { userId: string; email: string; device: string },
  returnTo: string,
): Promise<SignInStep> {
  const { token } = await startSession(runtime, { ...who, kind: "browser", seconds: SESSION_TTL_SECONDS });
  const { secure, path } = loginPage(runtime.env);
  const sessionAt = (path: string) => writeCookie(sessionCookie, token, { seconds: SESSION_TTL_SECONDS, path, secure });
  const cookies = [sessionAt(consentPath), rememberBrowser(runtime, who.email), sessionAt(path)];
  return { step: "done", email: who.email, location: destination(runtime.env, returnTo, token), cookies };
}

/**
 * Where to go after the sign-in: only to this service and to the application. Consent pages read the cookie, which only the sign-in's host
 * gets, so they are opened there; all others take the token from the fragment, which no server sees.
 */
function destination({ BASE_URL, APP_URL, LOGIN_URL }: Env, returnTo: string, token: string): string | undefined {
  if (returnTo === "" || !URL.canParse(returnTo, BASE_URL)) return undefined;
  const url = new URL(returnTo, BASE_URL);
  const [own, app, login] = [BASE_URL, APP_URL, LOGIN_URL].map((one) => new URL(one).origin);
  if (url.origin !== own && url.origin !== app) return undefined;
  if (url.origin === own && url.pathname.startsWith(`${consentPath}/`)) return login + url.pathname + url.search;
  url.hash = `token=${token}`;
  return url.href;
}

/** Mails the code of a sign-in in the language of its page, unless the address has no user or the sign-in is over. */
export async function sendSignInCode(
  { redis, env }: Runtime,
  { signInId }: JobData<"account.sign-in-code">,
): Promise<void> {
  const [user, email, language] = await redis.hmget(keys.signIn(signInId), "user", "email", "language");
  if (!user || !email) return;
  // Derived from the id under the service's key, so that neither Redis nor a job contains it.
  const code = sixDigits(env.SECRET_KEY, codePurpose, signInId);
  const mail = mailOf(spokenLanguage(language), new URL(env.LOGIN_URL).host, code);
  await sendServiceMail(env, email, { key: `sign-in ${signInId}`, ...mail });
}

/** The code is in the body only: subjects appear in lists and logs. */
function mailOf(language: string, site: string, code: string): ReturnType<typeof layOut> {
  const words = wordsOf(language).mails.signInCode;
  const [subject, title] = [fillPlaceholders(words.subject, { site }), fillPlaceholders(words.title, { site })];
  return layOut({ language, sender: site, subject, title, code, paragraphs: [words.text] });
}
