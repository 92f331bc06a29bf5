import nodemailer from "nodemailer";
import type { Env } from "../platform/env.ts";
import { Fail } from "../platform/errors.ts";
import { keys } from "../store/keys.ts";
import type { Runtime } from "../platform/runtime.ts";
import { codeOf } from "./sign-in.ts";

/**
 * Mails the code of a sign-in, unless its address has no user or it is over. It belongs to no handle, so it has a sender of the
 * installation's own and a connection of its own, and leaves nothing behind: no message, no event.
 */
export async function sendSignInCode({ redis, env }: Runtime, { signInId }: { signInId: string }): Promise<void> {
  const [user, email] = await redis.hmget(keys.signIn(signInId), "user", "email");
  if (!user || !email) return;
  if (env.SMTP_URL === undefined) throw new Fail("transactional_email_queue_unavailable");
  const transport = nodemailer.createTransport(env.SMTP_URL);
  const from = { name: "", address: senderOf(env) };
  const headers = { "Auto-Submitted": "auto-generated" };
  try {
    await transport.sendMail({
      from,
      to: { name: "", address: email },
      headers,
      ...letter(env, codeOf(env.SECRET_KEY, signInId)),
      ...closed,
    });
  } catch (error) {
    // The server's own words may name the address, and what fails is logged.
    const { responseCode, code } = error as { responseCode?: number; code?: string };
    throw new Error(`The sign-in mail was not taken: ${responseCode ?? code ?? "no answer"}.`);
  } finally {
    transport.close();
  }
}

const closed = { disableFileAccess: true, disableUrlAccess: true };

function senderOf({ LOGIN_MAIL_FROM, PUBLIC_DOMAIN, BASE_URL }: Env): string {
  const domain = PUBLIC_DOMAIN?.replace(/:\d+$/, "") ?? new URL(BASE_URL).hostname;
  return LOGIN_MAIL_FROM ?? `noreply@${/^[\d.]+$|^\[/.test(domain) ? "localhost" : domain}`;
}

/** The code stands in the body alone: subjects are shown in lists and written to logs. */
function letter({ LOGIN_URL }: Env, code: string): { subject: string; text: string; html: string } {
  const site = new URL(LOGIN_URL).host;
  const warning =
    "It works once and for ten minutes. If you did not ask for it, do nothing: nobody can sign in without it.";
  return {
    subject: `Your sign-in code for ${site}`,
    text: `Your sign-in code for ${site}:\n\n    ${code}\n\n${warning}\n`,
    html: `<p>Your sign-in code for ${site}:</p><p style="font-size:28px;font-weight:700;letter-spacing:4px">${code}</p><p>${warning}</p>`,
  };
}
