import type { ConsentQuestion, SignInNeeded } from "../core/scheduling/face.ts";
import type { ProviderKey } from "../schemas/integrations.ts";
import { cardView } from "./account-view.ts";
import type { View } from "./route.ts";
import { escapeHtml } from "./shell.ts";

const NAMES: Record<ProviderKey, string> = {
  google: "Google",
  microsoft: "Microsoft",
  caldav: "CalDAV",
  zoom: "Zoom",
  stripe: "Stripe",
};

/** Where a browser that comes back from a provider goes on. The codes in the address are kept from every other server. */
export function returnView(next: { step: "onward"; location: string } | SignInNeeded): View {
  if (next.step === "sign-in") return signInView(next);
  const headers = { Location: next.location, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer" };
  return { type: "text/plain; charset=utf-8", body: "", status: 303, headers };
}

/** The page that asks whether an account shall be connected to a handle. */
export function consentView(question: ConsentQuestion | SignInNeeded): View {
  if (question.step === "sign-in") return signInView(question);
  const { providerKey, account, handle, user, consentId, proof } = question;
  const facts = [
    ["Provider", NAMES[providerKey]],
    ["Account", account],
    ["Handle", handle],
    ["Signed in as", user],
  ].map(([name, value]) => `<div><dt>${name}</dt><dd>${escapeHtml(value ?? "")}</dd></div>`);
  const body = `<p>Connect ${escapeHtml(account)} to the handle ${escapeHtml(handle)}?</p>
<dl class="facts">${facts.join("")}</dl>
<form method="post" action="/oauth/scheduling/${providerKey}/connect">
<input type="hidden" name="consentId" value="${escapeHtml(consentId)}"><input type="hidden" name="proof" value="${escapeHtml(proof)}">
<div class="actions"><button name="decision" value="connect">Connect</button><button name="decision" value="cancel" class="quiet">Cancel</button></div>
</form>
<p class="note">You did not start this yourself? Cancel: whoever asked would be able to use this account.</p>`;
  return cardView({ title: "Connect an account", body });
}

/** What a person sees after the decision. */
export function decidedView(decided: { isConnected: boolean; account: string; handle: string }): View {
  const [account, handle] = [escapeHtml(decided.account), escapeHtml(decided.handle)];
  if (!decided.isConnected) return cardView({ title: "Not connected", body: `<p>${account} was not connected.</p>` });
  return cardView({
    title: "Account connected",
    body: `<p>${account} is connected to ${handle}. You can close this page.</p>`,
  });
}

function signInView({ loginUrl }: SignInNeeded): View {
  const link = `<a class="button" href="${escapeHtml(loginUrl)}">Sign in to go on</a>`;
  return cardView({
    title: "Connect an account",
    body: `<p>Sign in as the user who started this.</p><p class="actions">${link}</p>`,
  });
}
