import type { AuthorizationStep, ConsentRequest } from "../core/account/face.ts";
import type { Fail } from "../core/platform/errors.ts";
import { fillPlaceholders } from "../core/platform/words.ts";
import { wordsOf } from "../schemas/languages.ts";
import { cardView, decisionButtons, factList, hiddenInputs } from "./account-view.ts";
import type { Request, View } from "./route.ts";
import { escapeHtml, redirect, sentence } from "./shell.ts";

/** The consent page of a client that asks for the tools of a handle, or a redirect. */
export function authorizationView(step: AuthorizationStep, request: Request): View {
  return step.step === "ask" ? consentView(step, request) : redirect(step);
}

/** A failure as an OAuth error (RFC 6749, section 5.2). */
export function oauthFailureView(fail: Fail): View | undefined {
  if (fail.code === "not_found") return undefined;
  const { detail, more } = fail.details;
  const error = more?.error ?? (fail.status >= 500 ? "temporarily_unavailable" : "invalid_request");
  const body = JSON.stringify({ error, error_description: detail ?? fail.sentence });
  return { type: "application/json", status: fail.status, body, headers: { "Cache-Control": "no-store" } };
}

/** The consent page for the signed-in person. */
function consentView({ client, handle, name, user, scopes, request, proof }: ConsentRequest, asked: Request): View {
  const language = asked.language();
  const { authorize: words, connect, pairing } = wordsOf(language);
  const target = new URL(request.redirect_uri);
  const facts = factList([
    [words.app, sentence(words.named, { client })],
    [words.place, escapeHtml(target.host || fillPlaceholders(words.onDevice, { scheme: target.protocol }))],
    [connect.handle, escapeHtml(handle)],
    [connect.user, escapeHtml(user)],
  ]);
  const meanings: Record<string, string> = words.rights;
  const rights = scopes.map((scope) => `<li>${escapeHtml(meanings[scope] ?? scope)}</li>`).join("");
  const body = `<p>${sentence(words.question, { client, handle: name })}</p>
${facts}
<ul>${rights}</ul>
<form method="post" action="/oauth/authorize">
${hiddenInputs({ ...request, proof })}
${decisionButtons(["allow", pairing.allow], ["deny", pairing.deny])}
</form>
<p class="note">${escapeHtml(words.note)}</p>`;
  const leadsTo = [target.protocol.startsWith("http") ? target.origin : target.protocol];
  return cardView({ language, title: words.title, body, leadsTo });
}
