import { readCookie } from "../platform/cookies.ts";
import type { Env } from "../platform/env.ts";
import { Fail, insteadOf } from "../platform/errors.ts";
import type { Runtime, TokenSession } from "../platform/runtime.ts";
import { isSigned, sign } from "../platform/sealing.ts";

/** The session cookie. Browsers send it to consent pages and the sign-in only. */
export const sessionCookie = "session";

/** The valid session of a browser's cookie, if any. */
export async function sessionOfCookie(
  { sessions, env }: Runtime,
  cookie: string | undefined,
): Promise<BrowserSession | undefined> {
  // A cookie without the prefix may be a stranger's, who would sign the browser in.
  const token = readCookie(cookie, sessionCookie, env.LOGIN_URL.startsWith("https:"));
  if (token === undefined) return undefined;
  // An expired or revoked session counts as none.
  const session = await sessions.check(token).catch(insteadOf("invalid_token", undefined));
  return session && { ...session, token };
}

type BrowserSession = TokenSession & { token: string };

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
