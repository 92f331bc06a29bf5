import type { Fail } from "../core/platform/errors.ts";
import { hasWords, wordsOf } from "../schemas/languages.ts";
import type { leadAccepted } from "../schemas/leads.ts";
import type { Infer } from "../schemas/schema.ts";
import { cardLink, cardView, codeInput, otherLink } from "./card.ts";
import { html } from "./html.ts";
import { languageOfPage } from "./page-view.ts";
import { onThisHost, type Request } from "./request.ts";
import type { View } from "./route.ts";

/** The address and the language of the visitor's form. */
interface Origin {
  language: string;
  /** Path of the page on the visitor's host. */
  page: string | undefined;
}

/**
 * The page after a form was submitted, in the language of the form's page: thanks and a link back, or the form for the mailed code. A form
 * whose browser doesn't name its page may name it itself.
 */
export async function leadView(
  { lead }: Infer<typeof leadAccepted>,
  request: Request,
  { pageSlug }: { pageSlug?: string },
): Promise<View> {
  const { formPage: page } = request;
  const slug = page === undefined ? pageSlug : slugOf(page);
  const origin = { language: await languageOfPage(request, slug), page };
  if (lead.status === "UNVERIFIED") return codeView(request, origin, { leadId: lead.leadId, isWrong: false });
  const { thanks } = wordsOf(origin.language);
  return thanksView(thanks.detail, origin);
}

/** The page after the visitor has verified an address. */
export function verifiedView(_verified: object, request: Request): View {
  const origin = originOf(request);
  return thanksView(wordsOf(origin.language).thanks.confirmed, origin);
}

/** The form once more after a wrong code from it; undefined for all other failures. */
export function wrongCodeView(fail: Fail, request: Request): View | undefined {
  const { leadId = "" } = request.parameters;
  const isFromForm = request.query.has("language");
  if (fail.code !== "invalid_verification_code" || !isFromForm) return undefined;
  return codeView(request, originOf(request), { leadId, isWrong: true });
}

function thanksView(detail: string, { language, page }: Origin): View {
  const { thanks, ways } = wordsOf(language);
  const body = html`<p>${detail}</p>\n${page && cardLink(ways.page, page)}`;
  return cardView({ language, title: thanks.title, body });
}

/** The form for the mailed code. Its address carries the origin, since the answer has no other way to know it. */
function codeView(request: Request, { language, page }: Origin, lead: { leadId: string; isWrong: boolean }): View {
  const { thanks, ways, failures } = wordsOf(language);
  const { title: wrong, advice } = failures.wrongCode;
  const query = new URLSearchParams({ language, ...(page === undefined ? {} : { page }) });
  const leads = `/v2/public/handles/${request.parameters.handle}/leads`;
  const body = html`<p>${thanks.codeDetail}</p>
<form method="post" action="${leads}/${encodeURIComponent(lead.leadId)}/verify?${query.toString()}">
${codeInput(thanks.code, lead.isWrong ? `${wrong}. ${advice}` : undefined)}
<button>${thanks.confirm}</button>
</form>
${page && otherLink(ways.page, page)}`;
  return cardView({ language, title: thanks.codeTitle, body, status: lead.isWrong ? 400 : 200, script: "once.js" });
}

/** The origin that the form for the code carries. Anyone can write that address: it leads to this host at most. */
function originOf(request: Request): Origin {
  const { query } = request;
  const [language = "", page] = [query.get("language") ?? "", query.get("page")];
  return {
    language: hasWords(language) ? language : request.language(),
    page: page?.startsWith("/") ? onThisHost(page) : undefined,
  };
}

/** The last segment of a page's path, with or without a slash after it; `index` on a host's root (docs/reference.md, "Public page"). */
function slugOf(path: string): string {
  const [last = ""] = path.split(/[?#]/);
  return last.replace(/\/$/, "").split("/").at(-1) || "index";
}
