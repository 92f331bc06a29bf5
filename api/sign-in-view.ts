import type { SignInStep } from "../core/account/face.ts";
import { fillPlaceholders } from "../core/platform/words.ts";
import { type Words, wordsOf } from "../schemas/languages.ts";
import { type Card, cardLink, cardView, codeInput, describedBy, hiddenInputs, problemOf } from "./account-view.ts";
import type { Request, View } from "./route.ts";
import { escapeHtml, sentence } from "./shell.ts";

/** The language and the service's name. */
interface Setting {
  language: string;
  words: Words["signIn"];
  noAddress: string;
  service: string;
}

/** The page of a sign-in step. The last step sets the cookie and redirects to the page that asked for the sign-in. */
export function signInView(step: SignInStep, request: Request): View {
  const { BASE_URL, APP_URL } = request.runtime.env;
  const leadsTo = [...new Set([BASE_URL, APP_URL].map((address) => new URL(address).origin))];
  const language = request.language();
  const { signIn: words, mistakes } = wordsOf(language);
  const setting = { language, words, noAddress: mistakes.email, service: new URL(BASE_URL).host };
  if (step.step === "done") return done(step, setting, wayOn(request, language));
  return cardView({
    language,
    leadsTo,
    status: step.problem ? 400 : 200,
    ...(step.step === "email" ? emailForm(step, setting) : codeForm(step, setting)),
    ...(step.step === "code" && step.cookies ? { headers: { "Set-Cookie": step.cookies } } : {}),
  });
}

type Form = Pick<Card, "title" | "body">;

function emailForm(step: Extract<SignInStep, { step: "email" }>, { words, noAddress, service }: Setting): Form {
  const { returnTo, problem } = step;
  const wrong = problem && { email: noAddress, ended: words.ended }[problem];
  const body = `${signedIn(step, words, service)}<p>${escapeHtml(words.intro)}</p>
<form method="post">
${problemOf(wrong)}
<label>${escapeHtml(words.email)}<input type="email" name="email" autocomplete="email" autofocus required maxlength="254"${describedBy(wrong)}></label>
${hiddenInputs({ returnTo })}<button>${escapeHtml(words.send)}</button>
</form>`;
  return { title: fillPlaceholders(words.title, { service }), body };
}

/** For a browser with a session: the account and a link to continue; below, a form to switch accounts. */
function signedIn(
  { session }: Extract<SignInStep, { step: "email" }>,
  words: Setting["words"],
  service: string,
): string {
  if (session === undefined) return "";
  const { email, location } = session;
  return `<p>${sentence(words.done, { email, service })}</p>\n${location ? cardLink(words.goOn, location) : ""}\n<hr>\n`;
}

function codeForm(step: Extract<SignInStep, { step: "code" }>, { words }: Setting): Form {
  const { returnTo, signInId, email, problem } = step;
  const body = `<p>${sentence(words.sent, { email })}</p>
<form method="post">
${codeInput(words.code, problem && words.wrong)}
${hiddenInputs({ returnTo, signInId })}<button>${escapeHtml(words.submit)}</button>
</form>
<form method="post">${hiddenInputs({ returnTo, email })}<button class="quiet">${escapeHtml(words.resend)}</button></form>
<p class="other"><a href="?returnTo=${escapeHtml(encodeURIComponent(returnTo))}">${escapeHtml(words.other)}</a></p>`;
  return { title: words.codeTitle, body };
}

function done(step: Extract<SignInStep, { step: "done" }>, { language, words, service }: Setting, way: string): View {
  const { email, location, cookies } = step;
  const body = `<p>${sentence(words.done, { email, service })}</p>\n${way}`;
  const more = location
    ? { status: 303, headers: { "Set-Cookie": cookies, Location: location } }
    : { headers: { "Set-Cookie": cookies } };
  return cardView({ language, title: words.doneTitle, body, ...more });
}

/** A link to the application; if it is this service itself, to its documentation. */
function wayOn({ runtime: { env } }: Request, language: string): string {
  const { signIn, frontDoor } = wordsOf(language);
  const isOwn = new URL(env.APP_URL).origin === new URL(env.BASE_URL).origin;
  return isOwn ? cardLink(frontDoor.docs, "/docs") : cardLink(signIn.goOn, env.APP_URL);
}
