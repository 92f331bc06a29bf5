import type { AuthorizationStep, ConsentRequest } from "../core/account/face.ts";
import type { Fail } from "../core/platform/errors.ts";
import { cardView } from "./account-view.ts";
import type { View } from "./route.ts";
import { escapeHtml } from "./shell.ts";

/** The page where a person lets a client use the tools of a handle, or where the browser goes on. */
export function authorizationView(step: AuthorizationStep): View {
  if (step.step === "ask") return consentView(step);
  const headers = { Location: step.location, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer" };
  return { type: "text/plain; charset=utf-8", body: "", status: 303, headers };
}

/** A failure in the words of OAuth (RFC 6749, section 5.2). */
export function oauthFailureView(fail: Fail): View | undefined {
  if (fail.code === "not_found") return undefined;
  const { detail, more } = fail.details;
  const error = more?.error ?? (fail.status >= 500 ? "temporarily_unavailable" : "invalid_request");
  const body = JSON.stringify({ error, error_description: detail ?? fail.sentence });
  return { type: "application/json", status: fail.status, body, headers: { "Cache-Control": "no-store" } };
}

const MEANINGS: Record<string, string> = {
  "agent.strategy.read": "Search strategy documents",
  "agent.pages.read": "Read pages",
  "agent.knowledge.read": "Search knowledge documents",
  "agent.bookings.read": "Read bookings, with the names and addresses of visitors",
};

function consentView({ client, handle, user, scopes, request, proof }: ConsentRequest): View {
  const target = new URL(request.redirect_uri);
  const place = target.host || `${target.protocol} on this device`;
  const facts = [
    ["App", `${client} (the app says so itself)`],
    ["Goes on to", place],
    ["Handle", handle],
    ["Signed in as", user],
  ].map(([name, value]) => `<div><dt>${name}</dt><dd>${escapeHtml(value ?? "")}</dd></div>`);
  const rights = scopes.map((scope) => `<li>${escapeHtml(MEANINGS[scope] ?? scope)}</li>`).join("");
  const hidden = Object.entries({ ...request, proof })
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `<input type="hidden" name="${name}" value="${escapeHtml(value ?? "")}">`);
  const body = `<p>Let ${escapeHtml(client)} use the tools of ${escapeHtml(handle)}?</p>
<dl class="facts">${facts.join("")}</dl>
<ul>${rights}</ul>
<form method="post" action="/oauth/authorize">
${hidden.join("")}
<div class="actions"><button name="decision" value="allow">Allow</button><button name="decision" value="deny" class="quiet">Deny</button></div>
</form>
<p class="note">It can read for 30 days, or until you revoke its session. You did not start this yourself? Deny.</p>`;
  const leadsTo = [target.protocol.startsWith("http") ? target.origin : target.protocol];
  return cardView({ language: "en", title: "Connect an app", body, leadsTo });
}
