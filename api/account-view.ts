import type { AuthorizationStep, ConsentRequest, PairingVisit, SignInStep } from "../core/account/face.ts";
import type { Fail } from "../core/platform/errors.ts";
import { fillPlaceholders } from "../core/platform/placeholders.ts";
import type { PairingDecided } from "../schemas/account.ts";
import { type Words, wordsOf } from "../schemas/languages.ts";
import {
  type CardContent,
  cardLink,
  cardView,
  codeInput,
  decisionButtons,
  describedBy,
  factList,
  hiddenInputs,
  otherLink,
  problemOf,
} from "./card.ts";
import { type Html, html, jsonScript, type Part, redirect, sentence } from "./html.ts";
import type { Request } from "./request.ts";
import type { View } from "./route.ts";

type Step<S extends SignInStep["step"]> = Extract<SignInStep, { step: S }>;

/** The page of a sign-in step. The last step sets the cookie and redirects to the page that asked for the sign-in. */
export function signInView(step: SignInStep, request: Request): View {
  const { BASE_URL, APP_URL } = request.runtime.env;
  const language = request.language();
  const leadsTo = [...new Set([BASE_URL, APP_URL].map((address) => new URL(address).origin))];
  const { cookies, location, problem } = { cookies: undefined, location: undefined, problem: undefined, ...step };
  const headers = {
    ...(cookies && { "Set-Cookie": cookies }),
    ...(location && { Location: location }),
    // A link there contains the token, beside text that any site may choose: a compressed length would reveal it (CVE-2013-3587, BREACH).
    ...("session" in step && { "Cache-Control": "no-store, no-transform" }),
  };
  const status = problem ? 400 : location ? 303 : 200;
  const content = stepContent(step, request, wordsOf(language));
  return cardView({ language, leadsTo, status, headers, script: "once.js", ...content });
}

/** The answer to the form of a browser: where a page follows, a redirect to it, since a reload of the answer would send the form again. */
export function signInAnswer(step: SignInStep, request: Request): View {
  if (step.step === "email" || "problem" in step) return signInView(step, request);
  if (step.step === "done") return redirect({ location: step.location ?? "?", cookie: step.cookies });
  const { returnTo, signInId, isAgain, cookies } = step;
  const query = new URLSearchParams({ returnTo, signInId, ...(isAgain && { again: "1" }) });
  return redirect({ location: `?${query}`, cookie: cookies });
}

function stepContent(step: SignInStep, { runtime: { env } }: Request, words: Words): CardContent {
  const service = new URL(env.BASE_URL).host;
  if (step.step === "code") return codeForm(step, words.signIn);
  const { done, doneTitle, goOn } = words.signIn;
  // The application may be this service itself, which has its documentation to show.
  const isOwn = new URL(env.APP_URL).origin === new URL(env.BASE_URL).origin;
  const onward = isOwn ? cardLink(words.frontDoor.docs, "/docs") : cardLink(goOn, env.APP_URL);
  if (step.step === "email") return emailForm(step, words, { service, onward: step.returnTo ? undefined : onward });
  return { title: doneTitle, body: html`<p>${sentence(done, { email: step.email, service })}</p>\n${onward}` };
}

/** The form for the address. A signed-in browser also gets a link to continue and a way to sign out, and the form switches accounts. */
function emailForm(
  step: Step<"email">,
  words: Words,
  { service, onward: usual }: { service: string; onward: Part },
): CardContent {
  const { returnTo, problem, session, email: entered = "" } = step;
  const { title, done, goOn, intro, other, ended, email, send, signOut } = words.signIn;
  const wrong = problem && { email: words.mistakes.email, ended }[problem];
  const onward = session?.location ? cardLink(goOn, session.location) : usual;
  const known =
    session &&
    html`<p>${sentence(done, { email: session.email, service })}</p>
${onward}
<form method="post">${hiddenInputs({ returnTo, signOut: "1" })}<button class="quiet">${signOut}</button></form>
<hr>
`;
  const body = html`${known}<p>${session ? other : intro}</p>
<form method="post">
${problemOf(wrong)}
<label>${email}<input type="email" name="email" value="${entered}" autocomplete="email"${!session && html` autofocus`} required maxlength="254"${problem === "email" && describedBy(wrong)}></label>
${hiddenInputs({ returnTo })}<button>${send}</button>
</form>`;
  return { title: fillPlaceholders(title, { service }), body };
}

function codeForm(step: Step<"code">, words: Words["signIn"]): CardContent {
  const { returnTo, signInId, email, problem, isAgain } = step;
  const body = html`<p>${sentence(words.sent, { email })}</p>
${isAgain && html`<p role="status">${words.resent}</p>`}
<form method="post">
${codeInput(words.code, problem && words.wrong)}
${hiddenInputs({ returnTo, signInId, email })}<button>${words.submit}</button>
</form>
<form method="post">${hiddenInputs({ returnTo, email })}<button class="quiet">${words.resend}</button></form>
${otherLink(words.other, `?returnTo=${encodeURIComponent(returnTo)}`)}`;
  return { title: words.codeTitle, body };
}

/** The page of a pairing attempt: the client, its scopes and their lifetime, the code to compare, and the decision or the sign-in. */
export function pairingView(visit: PairingVisit, request: Request): View {
  const language = request.language();
  const { pairing: words, failures } = wordsOf(language);
  const service = new URL(request.runtime.env.BASE_URL).host;
  const facts = factList([
    [words.device, visit.device || words.anyDevice],
    ...(visit.user ? [[words.account, visit.user] as const] : []),
    [words.duration, fillPlaceholders(words.days, { count: visit.days })],
  ]);
  const body = html`<p>${sentence(words.intro, { service })}</p>
${facts}
<p>${words.may}</p>
<p id="code-label">${words.codeLabel}</p>
<p class="code">${visit.code}</p>
${visit.user ? pairingForm(visit, words) : pairingSignIn(visit, { ...words, over: failures.pairingOver.advice })}
<p class="note">${words.note}</p>`;
  return cardView({ language, title: words.title, body, script: visit.user ? "once.js" : "pairing.js" });
}

function pairingForm({ attemptId, proof, loginUrl }: PairingVisit, words: Words["pairing"]): Html {
  return html`<form method="post" action="/oauth/assistant/desktop/decide">
${hiddenInputs({ attemptId, proof })}
${pairingButtons(words)}
</form>
${otherLink(words.other, loginUrl)}`;
}

/** Without a cookie: a link to the sign-in. It returns with the token in the fragment, where the page's script reads it. */
function pairingSignIn({ attemptId, loginUrl }: PairingVisit, words: Words["pairing"] & { over: string }): Html {
  const email = html`<strong id="who" dir="auto"></strong>`;
  return html`<p class="actions" id="sign-in"><a class="button" href="${loginUrl}">${words.signIn}</a></p>
<form id="decide" data-attempt="${attemptId}" hidden><p class="as">${sentence(words.signedInAs, { email })}</p>${pairingButtons(words)}</form>
<p role="status" id="said"></p>
${jsonScript("pairing-words", words)}`;
}

function pairingButtons({ allow, deny }: Words["pairing"]): Html {
  return decisionButtons(["allow", allow], ["deny", deny]);
}

/** The page after the decision. Who has allowed by mistake can withdraw there. */
export function pairedView({ attemptId, status, proof }: PairingDecided & { proof: string }, request: Request): View {
  const language = request.language();
  const { paired, pairedDetail, withdraw, denied, deniedDetail } = wordsOf(language).pairing;
  if (status === "denied") return cardView({ language, title: denied, body: html`<p>${deniedDetail}</p>` });
  const body = html`<p>${pairedDetail}</p>
<form method="post">
${hiddenInputs({ attemptId, proof })}
<button name="decision" value="deny" class="quiet">${withdraw}</button>
</form>`;
  return cardView({ language, title: paired, body });
}

/** The consent page of a client that asks for the tools of a handle, or a redirect. */
export function authorizationView(step: AuthorizationStep, request: Request): View {
  if (step.step === "onward") return redirect(step);
  return step.step === "ask" ? consentView(step, request) : strangerView(step, request);
}

/** The page for a person whose account has no access to the handle: another account may have it. */
function strangerView({ user, loginUrl }: Pick<ConsentRequest, "user" | "loginUrl">, request: Request): View {
  const language = request.language();
  const { failures, pairing } = wordsOf(language);
  const { title, advice } = failures.forbidden;
  const body = html`<p>${advice}</p>
<p class="as">${sentence(pairing.signedInAs, { email: user })}</p>
${cardLink(pairing.other, loginUrl)}`;
  return cardView({ language, title, status: 403, body });
}

function consentView(step: ConsentRequest, asked: Request): View {
  const { client, handle, name, user, loginUrl, scopes, request, proof } = step;
  const language = asked.language();
  const { authorize: words, connect, pairing } = wordsOf(language);
  const target = new URL(request.redirect_uri);
  // In an address with an app's own scheme the host is a word of the app's choice.
  const redirectTarget = /^https?:$/.test(target.protocol)
    ? target.host
    : fillPlaceholders(words.onDevice, { scheme: target.protocol });
  const facts = factList([
    [words.app, sentence(words.named, { client })],
    [words.place, redirectTarget],
    [connect.handle, handle],
    [connect.user, user],
  ]);
  const meanings: Record<string, string> = words.rights;
  const body = html`<p>${sentence(words.question, { client, handle: name })}</p>
${facts}
<ul>${scopes.map((scope) => html`<li>${meanings[scope] ?? scope}</li>`)}</ul>
<form method="post" action="/oauth/authorize">
${hiddenInputs({ ...request, proof })}
${pairingButtons(pairing)}
</form>
${otherLink(pairing.other, loginUrl)}
<p class="note">${words.note}</p>`;
  // Chromium applies `form-action` to each redirect, and the client's callback may redirect to another origin.
  return cardView({ language, title: words.title, body, leadsTo: [target.protocol], script: "once.js" });
}

/** A failure as an OAuth error (RFC 6749, section 5.2); `invalid` names one of the input. */
export function oauthFailureView(fail: Fail, invalid = "invalid_request"): View | undefined {
  if (fail.code === "not_found") return undefined;
  const { detail = fail.sentence, errors, more } = fail.details;
  const error = more?.error ?? (fail.status >= 500 ? "temporarily_unavailable" : invalid);
  const faults = errors?.map(({ path, message }) => `${path.slice(1)} ${message}`.trim()).join("; ");
  const body = JSON.stringify({ error, error_description: faults ?? detail });
  return { type: "application/json", status: fail.status, body, headers: { "Cache-Control": "no-store" } };
}
