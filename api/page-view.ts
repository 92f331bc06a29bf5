import { settingsOf } from "../core/account/face.ts";
import { type PageVisit, publicPageOf } from "../core/pages/face.ts";
import { formatMoney } from "../core/platform/formats.ts";
import { perObject } from "../core/platform/lazy.ts";
import type { Runtime } from "../core/platform/runtime.ts";
import { hasWords, wordsLanguage, wordsOf } from "../schemas/languages.ts";
import { cardLink, cardView } from "./card.ts";
import { Html, html, htmlDocument, jsonScript, linkPreview, type Part, sentence } from "./html.ts";
import { type SharedBody, sharedBody } from "./reply.ts";
import type { Request } from "./request.ts";
import type { View } from "./route.ts";

/** Runs only the service's own scripts. Content may have inline styles, and images and media from any secure origin. */
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' https: data:; media-src 'self' https:; font-src 'self' https:; connect-src 'self'; frame-src 'self'; base-uri 'none'; frame-ancestors 'self'";

/** Forms may lead to this host and to any host over TLS. The checkout may also lead to a local payment provider without TLS. */
function policyOf({ isForSale }: PageVisit, { STRIPE_API_BASE }: Runtime["env"]): string {
  const isPlain = isForSale && STRIPE_API_BASE.startsWith("http:");
  return `${policy}; form-action 'self' https:${isPlain ? ` ${new URL(STRIPE_API_BASE).origin}` : ""}`;
}

/** A page in the service's shell. Without access, a paid page shows title, description, teaser and price. */
export function pageView(visit: PageVisit, request: Request): Promise<View> {
  const sharing = visit.page.accessMode === "PAID" || visit.cookie ? "private, no-cache" : "public, no-cache";
  return rendered(visit)(request, {
    "Cache-Control": sharing,
    "Content-Security-Policy": policyOf(visit, request.runtime.env),
    "Referrer-Policy": "strict-origin-when-cross-origin",
    ...(visit.cookie ? { "Set-Cookie": visit.cookie } : {}),
  });
}

/** The page after a request for the link to a paid page: the same whether the address has bought it. */
export async function accessMailView({ email }: { email: string }, request: Request): Promise<View> {
  const language = await languageOfPage(request);
  const { sale, ways } = wordsOf(language);
  const body = html`<p>${sentence(sale.linkDetail, { email })}</p>\n${cardLink(ways.page, request.pagePath ?? "/")}`;
  return cardView({ language, title: sale.linkTitle, body });
}

/** The language of a page of the handle, for what follows a form on it, if the service has its words; else the visitor's. */
export async function languageOfPage(request: Request, slug?: string): Promise<string> {
  const { runtime, parameters } = request;
  const { handle = "", pageSlug = slug } = parameters;
  const page = pageSlug === undefined ? undefined : await publicPageOf(runtime, { handle, pageSlug });
  if (page && hasWords(page.language)) return page.language;
  return request.language((await settingsOf(runtime.redis, handle)).language);
}

const variantsOf = perObject(() => new Map<string, SharedBody>());

/** The page, rendered once per variant and cached as long as the page. */
function rendered(visit: PageVisit): SharedBody {
  const variants = variantsOf(visit.page);
  const variant = [visit.hasAccess, visit.assistant, visit.isForSale, visit.mailsLinks, visit.isReceipt, visit.isClosed]
    .map(Number)
    .join("");
  const body = variants.get(variant) ?? sharedBody("text/html; charset=utf-8", document(visit));
  variants.set(variant, body);
  return body;
}

function document(visit: PageVisit): string {
  const { page, language } = visit;
  const { title, description: summary } = page;
  const body = visit.hasAccess ? [notice(visit), new Html(page.content)] : preview(visit);
  const head = [...linkPreview({ title, summary, url: visit.url }), ...(visit.assistant ? agent(visit) : [])];
  return htmlDocument({ language, title, head, body });
}

function preview(visit: PageVisit): Html {
  const { title, description, teaser } = visit.page;
  const summary = description && html`<p>${description}</p>`;
  return html`<main class="svc-preview">${notice(visit)}<h1>${title}</h1>${summary}${new Html(teaser)}\n${sale(visit)}${linkForm(visit)}</main>`;
}

function sale(visit: PageVisit): Part {
  const { page, language, isForSale } = visit;
  if (!isForSale || !page.price) return undefined;
  const { buy, note } = wordsOf(language).sale;
  const localized = (text: Part): Part => withLanguage(language, text);
  const price = html`<bdi lang="${language}">${formatMoney(page.price, language)}</bdi>`;
  return html`<form class="svc-sale" method="post" action="${actionOf(visit, "checkout")}">
<p><button type="submit">${localized(sentence(buy, { price }))}</button></p>
<p><small>${localized(note)}</small></p>
</form>
`;
}

/** Once after a payment, or by a link: that the payment has arrived, or why the page is still closed. */
function notice({ isReceipt, isClosed, language }: PageVisit): Part {
  const { received, closed } = wordsOf(language).sale;
  const text = withLanguage(language, isClosed ? closed : received);
  const look = isClosed ? "svc-closed" : "svc-receipt";
  return (isReceipt || isClosed) && html`<p class="${look}" role="status">${text}</p>\n`;
}

/** The form by which a buyer who paid in another browser gets the link by mail. */
function linkForm(visit: PageVisit): Part {
  const { bought, paidWith, send } = wordsOf(visit.language).sale;
  const localized = (text: string): Part => withLanguage(visit.language, text);
  return (
    visit.mailsLinks &&
    html`<details class="svc-bought"${visit.isClosed && html` open`}>
<summary>${localized(bought)}</summary>
<form method="post" action="${actionOf(visit, "access-mail")}"><label>${localized(paidWith)} <input name="email" type="email" required maxlength="254" autocomplete="email"></label> <button type="submit">${localized(send)}</button></form>
</details>
`
  );
}

function actionOf({ handle, page }: PageVisit, route: string): string {
  return `/v2/public/pages/${handle}/${page.pageSlug}/${route}`;
}

/** Marks English fallback texts with `lang`, if the page is in another language. */
function withLanguage(language: string, text: Part): Part {
  return hasWords(language) ? text : html`<span lang="en" dir="ltr">${text}</span>`;
}

/** The assistant's config and script. They precede the content, so that the content can't wrap them. */
function agent(visit: PageVisit): Html[] {
  const { handle, page, language } = visit;
  const config = {
    handle,
    pageSlug: page.pageSlug,
    chatUrl: actionOf(visit, "agentic-chat"),
    questionUrl: actionOf(visit, "agentic-question"),
    leadUrl: `/v2/public/handles/${handle}/leads`,
    language,
    wordsLanguage: wordsLanguage(language),
    words: wordsOf(language).widget,
    assistant: page.assistant ?? {},
  };
  const script = html`<script async src="/assets/public-page-agent.js"></script>`;
  return [jsonScript("svc-public-page-agent-config", config), script];
}
