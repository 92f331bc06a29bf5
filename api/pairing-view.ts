import type { PairingVisit } from "../core/account/face.ts";
import { fillPlaceholders } from "../core/platform/words.ts";
import type { PairingDecided } from "../schemas/account.ts";
import { type Words, wordsOf } from "../schemas/languages.ts";
import { cardView, decisionButtons, factList, hiddenInputs } from "./account-view.ts";
import type { Request, View } from "./route.ts";
import { escapeHtml, jsonScript, sentence } from "./shell.ts";

/** The page of a pairing attempt: the client, its scopes and their lifetime, the code to compare, and the decision or the sign-in. */
export function pairingView(visit: PairingVisit, request: Request): View {
  const language = request.language();
  const { pairing: words, failures } = wordsOf(language);
  const service = new URL(request.runtime.env.BASE_URL).host;
  const facts = factList([
    [words.device, escapeHtml(visit.device || words.anyDevice)],
    ...(visit.user ? [[words.account, escapeHtml(visit.user)] as [string, string]] : []),
    [words.duration, escapeHtml(fillPlaceholders(words.days, { count: String(visit.days) }))],
  ]);
  const body = `<p>${sentence(words.intro, { service })}</p>
${facts}
<p>${escapeHtml(words.may)}</p>
<p id="code-label">${escapeHtml(words.codeLabel)}</p>
<p class="code" aria-labelledby="code-label">${escapeHtml(visit.code)}</p>
${visit.user ? decision(visit, words) : signIn(visit, { ...words, over: failures.pairingOver.advice })}
<p class="note">${escapeHtml(words.note)}</p>`;
  return cardView({ language, title: words.title, body, ...(visit.user ? {} : { script: "pairing.js" }) });
}

/** The page after the decision. */
export function pairedView({ status }: PairingDecided, request: Request): View {
  const language = request.language();
  const { paired, pairedDetail, denied, deniedDetail } = wordsOf(language).pairing;
  const [title, detail] = status === "authorised" ? [paired, pairedDetail] : [denied, deniedDetail];
  return cardView({ language, title, body: `<p>${escapeHtml(detail)}</p>` });
}

type PairingWords = Words["pairing"];

function buttons({ allow, deny }: PairingWords): string {
  return decisionButtons(["allow", allow], ["deny", deny]);
}

function decision({ attemptId, proof, loginUrl }: PairingVisit, words: PairingWords): string {
  return `<form method="post" action="/oauth/assistant/desktop/decide">
${hiddenInputs({ attemptId, proof })}
${buttons(words)}
</form>
<p class="other"><a href="${escapeHtml(loginUrl)}">${escapeHtml(words.other)}</a></p>`;
}

/** Without a cookie: a link to the sign-in. It returns with the token in the fragment, where the page's script reads it. */
function signIn({ attemptId, loginUrl }: PairingVisit, words: PairingWords & { over: string }): string {
  const who = escapeHtml(words.signedInAs).replace("{email}", '<strong id="who" dir="auto"></strong>');
  return `<p class="actions" id="sign-in"><a class="button" href="${escapeHtml(loginUrl)}">${escapeHtml(words.signIn)}</a></p>
<form id="decide" data-attempt="${escapeHtml(attemptId)}" hidden><p class="as">${who}</p>${buttons(words)}</form>
<p role="status" id="said"></p>
${jsonScript("pairing-words", words)}`;
}
