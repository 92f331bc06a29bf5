import { spokenLanguage, wordsOf } from "../../schemas/languages.ts";
import { layOut } from "../engines/mail/mail.ts";
import type { Runtime } from "../platform/runtime.ts";
import { filled } from "../platform/words.ts";
import { keys } from "../store/keys.ts";
import { sendServiceMail } from "./service-mail.ts";
import { codeOf } from "./sign-in.ts";

/** Mails the code of a sign-in in the language of its page, unless the address has no user or the sign-in is over. */
export async function sendSignInCode({ redis, env }: Runtime, { signInId }: { signInId: string }): Promise<void> {
  const [user, email, language] = await redis.hmget(keys.signIn(signInId), "user", "email", "language");
  if (!user || !email) return;
  const code = codeOf(env.SECRET_KEY, signInId);
  await sendServiceMail(env, email, letterOf(spokenLanguage(language), new URL(env.LOGIN_URL).host, code));
}

/** The code is in the body only: subjects appear in lists and logs. */
function letterOf(language: string, site: string, code: string): ReturnType<typeof layOut> {
  const { subject, title, text } = wordsOf(language).mails.signInCode;
  return layOut({
    language,
    sender: site,
    subject: filled(subject, { site }),
    title: filled(title, { site }),
    code,
    paragraphs: [text],
  });
}
