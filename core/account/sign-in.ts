import type { signInForm, signInPage } from "../../schemas/account.ts";
import type { Infer } from "../../schemas/schema.ts";
import { readCookie, writeCookie } from "../platform/cookies.ts";
import type { Env } from "../platform/env.ts";
import { Fail } from "../platform/errors.ts";
import type { Caller, Runtime, TokenSession } from "../platform/runtime.ts";
import { isSigned, isSixDigits, sign, sixDigits } from "../platform/sealing.ts";
import { keys } from "../store/keys.ts";
import { job } from "../store/outbox.ts";
import { scripts } from "../store/scripts.ts";
import { userOfEmail } from "./handles.ts";
import { deviceName, startSession } from "./session-store.ts";
import { admitCodeRequest, loginPage, rememberBrowser } from "./sign-in-limits.ts";

/** Lifetime of a code in ms, and the number of wrong codes that ends a sign-in. */
const CODE_TTL_MS = 600_000;
const MAX_WRONG_CODES = 5;
const codePurpose = "sign-in code";
/** Lifetime of a browser's session in seconds. */
const SESSION_TTL_SECONDS = 12 * 3600;
const address = /^[^\s@]{1,64}@[^\s@.]+(?:\.[^\s@.]+)*$/;

/** The current step of a sign-in, for its page. */
export type SignInStep =
  | {
      step: "email";
      returnTo: string;
      problem?: "email" | "ended";
      /** The account that this browser is already signed in with, and the address to continue to. */
      session?: { email: string; location: string | undefined };
    }
  | { step: "code"; returnTo: string; signInId: string; email: string; problem?: "wrong"; cookies?: string[] }
  | { step: "done"; email: string; location: string | undefined; cookies: string[] };

/** The first step of the built-in sign-in; `not_found` if LOGIN_BUILTIN is off. */
export async function openSignIn(
  runtime: Runtime,
  { returnTo = "", cookie }: Infer<typeof signInPage>,
): Promise<SignInStep> {
  const { env } = runtime;
  mustBeOn(env);
  const session = await sessionOfCookie(runtime, cookie);
  if (session === undefined) return { step: "email", returnTo };
  const location = destination(env, returnTo, session.token);
  return { step: "email", returnTo, session: { email: session.email ?? session.userId, location } };
}

/** The next step: mails a code, or checks one. Responses are the same for addresses without a user. */
export async function signIn(runtime: Runtime, input: Infer<typeof signInForm>, caller: Caller): Promise<SignInStep> {
  mustBeOn(runtime.env);
  mustBeOwnPage(runtime.env, input);
  const { signInId, returnTo = "" } = input;
  return signInId === undefined
    ? askForCode(runtime, input, caller)
    : tryCode(runtime, { signInId, code: input.code ?? "", returnTo, device: deviceName(input.userAgent) });
}

/** The valid session of a browser's cookie, if any. */
export async function sessionOfCookie(
  { sessions }: Runtime,
  cookie: string | undefined,
): Promise<BrowserSession | undefined> {
  const token = readCookie(cookie, sessionCookie);
  if (token === undefined) return undefined;
  try {
    return { ...(await sessions.check(token)), token };
  } catch (error) {
    // An expired or revoked session counts as none; other errors propagate.
    if (error instanceof Fail && error.code === "invalid_token") return undefined;
    throw error;
  }
}

/** A browser's session, with its token. */
export type BrowserSession = TokenSession & { token: string };

/** A form of one of our pages: its kind, and what it decides about. */
interface PageForm {
  form: string;
  about: string;
}

/** Ties a form to the session that it was made for. */
export function formProof(env: Env, { token }: BrowserSession, { form, about }: PageForm): string {
  return sign(env, form, `${about} ${token}`);
}

/** The session of a posted form; `invalid_token` without a session, `forbidden` for a forged form. */
export async function sessionOfForm(
  runtime: Runtime,
  { cookie, proof }: { cookie?: string | undefined; proof: string },
  { form, about }: PageForm,
): Promise<BrowserSession> {
  const session = await sessionOfCookie(runtime, cookie);
  if (session === undefined) throw new Fail("invalid_token");
  if (!isSigned(runtime.env, form, `${about} ${session.token}`, proof)) throw new Fail("forbidden");
  return session;
}

/** The address of the sign-in that returns to an address of this service. */
export function loginUrl({ LOGIN_URL }: Env, returnTo: string): string {
  return `${LOGIN_URL}${LOGIN_URL.includes("?") ? "&" : "?"}returnTo=${encodeURIComponent(returnTo)}`;
}

/** The session cookie. Browsers send it to consent pages and the sign-in only. */
const sessionCookie = "session";
const pendingCookie = "pending-sign-in";
const cookiePath = "/oauth";

function mustBeOn(env: Env): void {
  if (!env.LOGIN_BUILTIN) throw new Fail("not_found");
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
  const email = (input.email ?? "").trim().toLowerCase();
  if (email.length > 254 || !address.test(email)) return { step: "email", returnTo, problem: "email" };
  if (env.SMTP_URL === undefined) throw new Fail("transactional_email_queue_unavailable");
  const pending = await pendingSignIn(runtime, input.cookie, email);
  try {
    await admitCodeRequest(runtime, { email, cookie: input.cookie, network: caller.network ?? "" });
  } catch (error) {
    // The code that this browser requested before still works.
    if (pending && error instanceof Fail && error.code === "rate_limited")
      return { step: "code", returnTo, signInId: pending, email };
    throw error;
  }
  const signInId = runtime.id("sgn_");
  const user = (await userOfEmail(redis, email)) ?? "";
  await queues.commit(signInId, [job("account.sign-in-code", signInId, { signInId })], (transaction) => {
    transaction.hset(keys.signIn(signInId), { email, user, language: input.visitorLanguage ?? "" });
    transaction.pexpire(keys.signIn(signInId), CODE_TTL_MS);
  });
  const cookie = writeCookie(pendingCookie, signInId, { ...loginPage(env), seconds: CODE_TTL_MS / 1000 });
  return { step: "code", returnTo, signInId, email, cookies: [cookie] };
}

/** This browser's pending sign-in with the address, while its code is valid. */
async function pendingSignIn(
  { redis }: Runtime,
  cookie: string | undefined,
  email: string,
): Promise<string | undefined> {
  const signInId = readCookie(cookie, pendingCookie);
  if (signInId === undefined) return undefined;
  return (await redis.hget(keys.signIn(signInId), "email")) === email ? signInId : undefined;
}

async function tryCode(
  runtime: Runtime,
  input: { signInId: string; code: string; returnTo: string; device: string },
): Promise<SignInStep> {
  const { env, redis } = runtime;
  const { signInId, returnTo, device } = input;
  const isRight = isSixDigits(env, codePurpose, { text: signInId, typed: input.code });
  const tried = { isRight, maxWrong: MAX_WRONG_CODES };
  const [result, userId = "", email = ""] = await scripts.trySignIn(redis, { signIn: keys.signIn(signInId) }, tried);
  if (result === "right") return welcome(runtime, { userId, email, returnTo, device });
  if (result !== "wrong") return { step: "email", returnTo, problem: "ended" };
  return {
    step: "code",
    returnTo,
    signInId,
    email: (await redis.hget(keys.signIn(signInId), "email")) ?? "",
    problem: "wrong",
  };
}

async function welcome(
  runtime: Runtime,
  { returnTo, ...who }: { userId: string; email: string; returnTo: string; device: string },
): Promise<SignInStep> {
  const { email } = who;
  const { token } = await startSession(runtime, { ...who, kind: "browser", seconds: SESSION_TTL_SECONDS });
  const { secure, path } = loginPage(runtime.env);
  const [session, atSignIn] = [cookiePath, path].map((at) =>
    writeCookie(sessionCookie, token, { seconds: SESSION_TTL_SECONDS, path: at, secure }),
  ) as [string, string];
  const cookies = [session, rememberBrowser(runtime, email), atSignIn];
  return { step: "done", email, location: destination(runtime.env, returnTo, token), cookies };
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
  if (url.origin === own && url.pathname.startsWith(`${cookiePath}/`)) return login + url.pathname + url.search;
  url.hash = `token=${token}`;
  return url.href;
}

/** Six digits derived from the id under the service's key, so that neither Redis nor a job contains the code. */
export function signInCode(root: string, signInId: string): string {
  return sixDigits(root, codePurpose, signInId);
}
