import { spokenLanguage, wordsOf } from "../../schemas/languages.ts";
import { layOut } from "../engines/mail/mail.ts";
import type { Runtime } from "../platform/runtime.ts";
import { fillPlaceholders } from "../platform/words.ts";
import { keys } from "../store/keys.ts";
import { sendServiceMail } from "./service-mail.ts";
import { signInCode } from "./sign-in.ts";

/** Mails the code of a sign-in in the language of its page, unless the address has no user or the sign-in is over. */
export async function sendSignInCode({ redis, env }: Runtime, { signInId }: { signInId: string }): Promise<void> {
  const [user, email, language] = await redis.hmget(keys.signIn(signInId), "user", "email", "language");
  if (!user || !email) return;
  const code = signInCode(env.SECRET_KEY, signInId);
  const mail = mailOf(spokenLanguage(language), new URL(env.LOGIN_URL).host, code);
  await sendServiceMail(env, email, { key: `sign-in ${signInId}`, ...mail });
}

/** The code is in the body only: subjects appear in lists and logs. */
function mailOf(language: string, site: string, code: string): ReturnType<typeof layOut> {
  const { subject, title, text } = wordsOf(language).mails.signInCode;
  return layOut({
    language,
    sender: site,
    subject: fillPlaceholders(subject, { site }),
    title: fillPlaceholders(title, { site }),
    code,
    paragraphs: [text],
  });
}
