import type { PairingVisit } from "../core/account/face.ts";
import type { PairingDecided } from "../schemas/account.ts";
import { cardView } from "./account-view.ts";
import type { View } from "./route.ts";
import { escapeHtml } from "./shell.ts";

/** The page of an attempt: what asks, the code to compare, and either the decision or the way to sign in. */
export function pairingView(visit: PairingVisit): View {
  const who = visit.user?.email ?? visit.user?.userId;
  const facts = [
    fact("Device", escapeHtml(visit.device || "A desktop app")),
    ...(who ? [fact("Account", escapeHtml(who))] : []),
  ];
  const body = `<p>A desktop app asks to be signed in to your account.</p>
<dl class="facts">${facts.join("")}</dl>
<p id="code-label">Go on only if the desktop shows this code:</p>
<p class="code" aria-labelledby="code-label">${escapeHtml(visit.code)}</p>
${visit.user ? decision(visit) : signIn(visit)}
<p class="note">You did not start this yourself, or the code is a different one? Do not go on: whoever asked would be signed in as you.</p>`;
  return cardView({ title: "Pair a desktop", body, ...(visit.user ? {} : { script: "pairing.js" }) });
}

/** What a person sees after the decision. */
export function pairedView({ status }: PairingDecided): View {
  const allowed = { title: "Desktop paired", body: "<p>The desktop is signed in now. You can close this page.</p>" };
  const denied = { title: "Pairing denied", body: "<p>The desktop was given nothing. You can close this page.</p>" };
  return cardView(status === "authorised" ? allowed : denied);
}

function fact(name: string, value: string): string {
  return `<div><dt>${name}</dt><dd>${value}</dd></div>`;
}

const buttons = `<div class="actions"><button name="decision" value="allow">Allow</button><button name="decision" value="deny" class="quiet">Deny</button></div>`;

function decision({ attemptId, proof, loginUrl }: PairingVisit): string {
  return `<form method="post" action="/oauth/assistant/desktop/decide">
<input type="hidden" name="attemptId" value="${escapeHtml(attemptId)}"><input type="hidden" name="proof" value="${escapeHtml(proof ?? "")}">
${buttons}
</form>
<p class="other"><a href="${escapeHtml(loginUrl)}">Use another account</a></p>`;
}

/** Without a cookie: sign in, and come back with the token in the fragment, which the script takes. */
function signIn({ attemptId, loginUrl }: PairingVisit): string {
  return `<p class="actions" id="sign-in"><a class="button" href="${escapeHtml(loginUrl)}">Sign in to go on</a></p>
<form id="decide" data-attempt="${escapeHtml(attemptId)}" hidden><p class="as">Signed in as <strong id="who"></strong></p>${buttons}</form>
<p role="status" id="said"></p>`;
}
