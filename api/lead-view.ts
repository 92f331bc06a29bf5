import { settingsOf } from "../core/account/face.ts";
import { publicPageOf } from "../core/pages/face.ts";
import { hasWords, wordsOf } from "../schemas/languages.ts";
import { cardLink, cardView } from "./account-view.ts";
import type { Request, View } from "./route.ts";
import { escapeHtml } from "./shell.ts";

/** The page after a form was submitted, in the language of the form's page: thanks and a link back, or the form for the mailed code. */
export async function leadView(
  { lead }: { lead: { leadId: string; status: string } },
  request: Request,
): Promise<View> {
  const language = await languageOf(request);
  const { thanks, ways } = wordsOf(language);
  const back = request.formPage === undefined ? "" : cardLink(ways.page, request.formPage);
  if (lead.status !== "UNVERIFIED")
    return cardView({ language, title: thanks.title, body: `<p>${escapeHtml(thanks.detail)}</p>\n${back}` });
  const action = `/v2/public/handles/${request.parameters.handle}/leads/${lead.leadId}/verify`;
  const body = `<p>${escapeHtml(thanks.codeDetail)}</p>
<form method="post" action="${escapeHtml(action)}">
<label>${escapeHtml(thanks.code)}<input name="code" class="digits" inputmode="numeric" autocomplete="one-time-code" required maxlength="7"></label>
<button>${escapeHtml(thanks.confirm)}</button>
</form>`;
  return cardView({ language, title: thanks.codeTitle, body });
}

/** The page after the visitor has verified an address. */
export async function verifiedView(_verified: object, request: Request): Promise<View> {
  const language = await languageOf(request);
  const { thanks } = wordsOf(language);
  return cardView({ language, title: thanks.title, body: `<p>${escapeHtml(thanks.confirmed)}</p>` });
}

/** The language of the page with the form, if it is one of the handle's and the service has its words; else the visitor's. */
async function languageOf(request: Request): Promise<string> {
  const { runtime, formPage } = request;
  const { handle = "" } = request.parameters;
  const page = formPage && (await publicPageOf(runtime, { handle, pageSlug: slugOf(formPage) }));
  if (page && hasWords(page.language)) return page.language;
  return request.language((await settingsOf(runtime.redis, handle)).language);
}

/** The last segment of a page's path; `index` on a host's root (docs/reference.md, "Public page"). */
function slugOf(path: string): string {
  const [last = ""] = path.split(/[?#]/);
  return last.split("/").at(-1) || "index";
}
