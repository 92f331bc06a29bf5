import type { ConsentQuestion, SignInNeeded } from "../core/scheduling/face.ts";
import type { ProviderKey } from "../schemas/integrations.ts";
import { wordsOf } from "../schemas/languages.ts";
import { cardLink, cardView, decisionButtons, factList, hiddenInputs } from "./account-view.ts";
import type { Request, View } from "./route.ts";
import { escapeHtml, redirect, sentence } from "./shell.ts";

const NAMES: Record<ProviderKey, string> = {
  google: "Google",
  microsoft: "Microsoft",
  caldav: "CalDAV",
  zoom: "Zoom",
  stripe: "Stripe",
};

/** Where a browser continues after it returns from a provider. The codes in the address go to no other server. */
export function returnView(next: { step: "onward"; location: string } | SignInNeeded, request: Request): View {
  return next.step === "sign-in" ? signInView(next, request) : redirect(next);
}

/** The page that asks whether to connect an account to a handle. */
export function consentView(question: ConsentQuestion | SignInNeeded, request: Request): View {
  if (question.step === "sign-in") return signInView(question, request);
  const { providerKey, account, handle, name, user, consentId, proof } = question;
  const language = request.language();
  const { connect: words } = wordsOf(language);
  const facts = factList([
    [words.provider, NAMES[providerKey]],
    [words.account, escapeHtml(account)],
    [words.handle, escapeHtml(handle)],
    [words.user, escapeHtml(user)],
  ]);
  const body = `<p>${sentence(words.question, { account, handle: name })}</p>
${facts}
<form method="post" action="/oauth/scheduling/${providerKey}/connect">
${hiddenInputs({ consentId, proof })}
${decisionButtons(["connect", words.connect], ["cancel", words.cancel])}
</form>
<p class="note">${escapeHtml(words.note)}</p>`;
  return cardView({ language, title: words.title, body });
}

/** The page after the decision. */
export function decidedView(
  { isConnected, account, name }: { isConnected: boolean; account: string; name: string },
  request: Request,
): View {
  const language = request.language();
  const { done, doneDetail, cancelled, cancelledDetail } = wordsOf(language).connect;
  const [title, detail] = isConnected ? [done, doneDetail] : [cancelled, cancelledDetail];
  return cardView({ language, title, body: `<p>${sentence(detail, { account, handle: name })}</p>` });
}

function signInView({ loginUrl }: SignInNeeded, request: Request): View {
  const language = request.language();
  const { title, signInDetail, signIn } = wordsOf(language).connect;
  const body = `<p>${escapeHtml(signInDetail)}</p>\n${cardLink(signIn, loginUrl)}`;
  return cardView({ language, title, body });
}
