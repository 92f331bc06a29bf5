import { Buffer } from "node:buffer";
import type { accessAnswer, pageVisit, StoredPage } from "../../schemas/pages.ts";
import type { Infer, Input } from "../../schemas/schema.ts";
import { isAgentEnabled, originOf, settingsOf } from "../account/face.ts";
import { readHtml } from "../engines/answers/answers.ts";
import { instantAt } from "../platform/clock.ts";
import { readCookie, writeCookie } from "../platform/cookies.ts";
import { Fail, insteadOf } from "../platform/errors.ts";
import { languageOf } from "../platform/languages.ts";
import type { Runtime } from "../platform/runtime.ts";
import { isSigned, sign } from "../platform/sealing.ts";
import { keys } from "../store/keys.ts";
import { readRecord, type Versioned } from "../store/records.ts";
import { visitedUrl } from "./hosts.ts";
import { cachedPage, type PagePath, pageUrl } from "./pages.ts";

type VisitInput = Input<"handle" | "pageSlug", typeof pageVisit>;

export interface PageVisit {
  handle: string;
  page: Versioned<StoredPage>;
  /** The page's own address, whatever the requested host. */
  url: string;
  /** Language of the page (BCP 47). */
  language: string;
  /** False if only title, description and teaser may be shown. */
  hasAccess: boolean;
  assistant: boolean;
  /** True if the visitor has no access and can buy it. */
  isForSale: boolean;
  /** True where those who bought it are mailed a link that opens it, also when it is no longer for sale. */
  mailsLinks: boolean;
  /** A cookie to set, after a checkout. */
  cookie?: string;
  /** True on the return from the checkout: the visitor reads that the payment has arrived. */
  isReceipt: boolean;
  /** True where a checkout, a link or a code has led here without opening the page. */
  isClosed: boolean;
}

interface AccessGrant {
  /** The payment at the provider; a refund of it ends the access. */
  payment: string | null;
  /** True for the return from the checkout. */
  isReceipt?: boolean;
}

/** Seconds for which a browser has access to a paid page (docs/reference.md, "Paid pages"). */
const ACCESS_TTL_SECONDS = 365 * 86_400;
/** Lifetime of an access code in seconds. */
const CODE_TTL_SECONDS = 900;
/**
 * The cookie of the page that a checkout or a link has not opened, and the seconds for which that page says so. A host has one such cookie:
 * anybody can make a browser follow dead links of many pages, which would displace the cookies of other handles on the host.
 */
const CLOSED_COOKIE = "page-closed";
const CLOSED_TTL_SECONDS = 60;
/** Characters of a fragment that suffice to detect its language. */
const SAMPLE_LENGTH = 20_000;

/**
 * The page for a visitor; `page_not_found` for drafts and unknown pages alike. Only a GET redeems an access code, since the response to a
 * HEAD shows no page.
 */
export async function visitPage(runtime: Runtime, input: VisitInput): Promise<PageVisit> {
  const { handle, pageSlug, method } = input;
  const visible = await visiblePage(runtime, input);
  const redeemed = method === "HEAD" ? undefined : await redeem(runtime, input);
  const hasAccess = redeemed !== undefined || (await mayRead(runtime, visible.page, input));
  const isForSale = !hasAccess && (await canBeBought(runtime, handle, visible.page));
  const isClosed =
    !hasAccess && (input.access !== undefined || readCookie(input.cookie, CLOSED_COOKIE) === pageName(input));
  const url = pageUrl(runtime, handle, pageSlug);
  const wasSold = isForSale || (!hasAccess && (await runtime.redis.exists(keys.pagePurchases(handle, pageSlug))) === 1);
  const mailsLinks = runtime.env.SMTP_URL !== undefined && wasSold;
  return { handle, ...visible, url, hasAccess, isForSale, mailsLinks, isClosed, isReceipt: false, ...redeemed };
}

async function canBeBought({ payments }: Runtime, handle: string, { price }: StoredPage): Promise<boolean> {
  return Boolean(price) && (await payments?.accountStatus(handle)) !== undefined;
}

/** `{accessMode, hasAccess}` of a published page for this browser. */
export async function checkPageAccess(runtime: Runtime, input: VisitInput): Promise<Infer<typeof accessAnswer>> {
  const { page } = await visiblePage(runtime, input);
  return { accessMode: page.accessMode, hasAccess: await mayRead(runtime, page, input) };
}

/** A published page with its language and whether it has the assistant. */
async function visiblePage(
  runtime: Runtime,
  path: PagePath,
): Promise<Pick<PageVisit, "page" | "language" | "assistant">> {
  const { handle, pageSlug } = path;
  const make = async () => {
    const [page, assistant, settings] = await Promise.all([
      publishedPage(runtime, path),
      isAgentEnabled(runtime, handle),
      settingsOf(runtime.redis, handle),
    ]);
    return { page, language: pageLanguage(page, settings.language), assistant };
  };
  return cachedPage(runtime, "visitor", { handle, pageSlug, make });
}

/** The language of a page (BCP 47): as declared, else the handle's, else detected from its public text. */
function pageLanguage(page: StoredPage, ofHandle: string | null): string {
  const { title, description, accessMode, content, teaser } = page;
  const named = page.language ?? ofHandle;
  if (named) return named;
  const { blocks } = readHtml((accessMode === "PAID" ? teaser : content).slice(0, SAMPLE_LENGTH));
  return languageOf([title, description, ...blocks.map(({ text }) => text)].join("\n"));
}

/** Title and language of a page as its visitors see it; undefined where they see none. */
export async function publicPageOf(
  runtime: Runtime,
  path: PagePath,
): Promise<{ title: string; language: string } | undefined> {
  const visible = await visiblePage(runtime, path).catch(insteadOf("page_not_found", undefined));
  return visible && { title: visible.page.title, language: visible.language };
}

/** The published page of an active handle; `page_not_found` otherwise. */
export async function publishedPage({ redis }: Runtime, input: PagePath): Promise<Versioned<StoredPage>> {
  const [page, status] = await Promise.all([
    readRecord<StoredPage>(redis, keys.page(input.handle, input.pageSlug)),
    redis.hget(keys.handle(input.handle), "status"),
  ]);
  if (page?.status !== "PUBLISHED" || status !== "ACTIVE") throw new Fail("page_not_found");
  return page;
}

/**
 * The way to a paid page on the visitor's host, after a checkout or by the link in a mail: with a single-use code, which opens the page in
 * the browser that brings it. Without a grant a cookie lets the page say that it is still closed.
 */
export async function wayToPage(
  runtime: Runtime,
  input: PagePath & { host?: string | undefined },
  grant: AccessGrant | undefined,
): Promise<{ location: string; cookie?: string }> {
  const page = await visitedUrl(runtime, input, input.host ?? "");
  if (grant === undefined)
    return { location: page.href, cookie: pageCookie(runtime, [CLOSED_COOKIE, pageName(input)], CLOSED_TTL_SECONDS) };
  page.searchParams.set("access", await accessCode(runtime, input, grant));
  return { location: page.href };
}

async function accessCode(
  { redis, id }: Runtime,
  { handle, pageSlug }: PagePath,
  { payment, isReceipt }: AccessGrant,
): Promise<string> {
  const code = id("pac_");
  const origin = await originOf(redis, handle);
  const granted = [handle, pageSlug, tokenOf(payment), isReceipt ? "receipt" : "", origin].join(" ");
  await redis.set(keys.pageAccess(code), granted, "EX", CODE_TTL_SECONDS);
  return code;
}

/** Exchanges an access code for the cookie of its page. */
async function redeem(
  runtime: Runtime,
  input: VisitInput,
): Promise<{ cookie: string; isReceipt: boolean } | undefined> {
  const { env, redis } = runtime;
  if (input.access === undefined) return undefined;
  const key = keys.pageAccess(input.access);
  const [handle, pageSlug, token = "", receipt, origin] = (await redis.get(key))?.split(" ") ?? [];
  // A code that is entered at another page stays valid for its own. Of two browsers at once one gets it.
  if (handle !== input.handle || pageSlug !== input.pageSlug || (await redis.del(key)) === 0) return undefined;
  // The code of an erased handle opens nothing of a later one of its name.
  if (origin !== undefined && origin !== (await originOf(redis, handle))) return undefined;
  if (await isRefunded(runtime, handle, token)) return undefined;
  const until = Math.floor(Date.now() / 1000) + ACCESS_TTL_SECONDS;
  const mac = sign(env, "page access", accessText(input, String(until), token));
  const value = [until, token, mac].filter(Boolean).join(".");
  const cookie = pageCookie(runtime, [accessCookie(input), value], ACCESS_TTL_SECONDS);
  return { cookie, isReceipt: receipt === "receipt" };
}

function pageCookie({ env }: Runtime, [name, value]: [string, string], seconds: number): string {
  return writeCookie(name, value, { seconds, path: "/", secure: env.BASE_URL.startsWith("https:") });
}

async function mayRead(runtime: Runtime, { accessMode }: StoredPage, input: VisitInput): Promise<boolean> {
  return accessMode === "PUBLIC" || (await hasPaid(runtime, input));
}

/** True if the cookie of a browser proves a payment, until the provider says that it went back. Cookies of the first kind name no payment. */
async function hasPaid(runtime: Runtime, input: VisitInput): Promise<boolean> {
  const { env, redis } = runtime;
  const parts = readCookie(input.cookie, accessCookie(input))?.split(".") ?? [];
  const [until = "", mac = "", token = ""] = [parts[0], parts.at(-1), parts.length > 2 ? parts[1] : ""];
  const isCurrent = Number(until) > Date.now() / 1000;
  if (!isCurrent || !isSigned(env, "page access", accessText(input, until, token), mac)) return false;
  // What was bought of an erased handle opens nothing of a later one of its name. Cookies have whole seconds.
  const givenAt = instantAt(runtime, (Number(until) + 1 - ACCESS_TTL_SECONDS) * 1000);
  if (givenAt < (await originOf(redis, input.handle))) return false;
  return !(await isRefunded(runtime, input.handle, token));
}

/** True for a payment, as `tokenOf` writes it, that the provider says went back. */
async function isRefunded({ redis }: Runtime, handle: string, token: string): Promise<boolean> {
  const payment = Buffer.from(token, "base64url").toString();
  return payment !== "" && (await redis.exists(keys.pageRefund(handle, payment))) === 1;
}

function accessText({ handle, pageSlug }: PagePath, until: string, token: string): string {
  return [handle, pageSlug, until, token].filter(Boolean).join(" ");
}

/** A payment in letters that a cookie and an access code can carry. */
function tokenOf(payment: string | null): string {
  return Buffer.from(payment ?? "").toString("base64url");
}

function accessCookie(page: PagePath): string {
  return `page-access.${pageName(page)}`;
}

/** A page in the letters of a cookie. */
function pageName({ handle, pageSlug }: PagePath): string {
  return `${handle}.${pageSlug}`;
}
