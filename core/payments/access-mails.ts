import type { JobData } from "../../schemas/jobs.ts";
import { spokenLanguage, wordsOf } from "../../schemas/languages.ts";
import type { accessLink, accessMail } from "../../schemas/payments.ts";
import type { Input } from "../../schemas/schema.ts";
import { displayNameOf } from "../account/face.ts";
import { sendForHandle } from "../email/face.ts";
import { layOut, type MailLayout } from "../engines/mail/mail.ts";
import { pageUrl, publicPageOf, publishedPage, wayToPage } from "../pages/face.ts";
import { addressDigest } from "../platform/address.ts";
import { formatMoney } from "../platform/formats.ts";
import { fillPlaceholders } from "../platform/placeholders.ts";
import type { Caller, JobAttempt, Runtime } from "../platform/runtime.ts";
import { isSigned, sign } from "../platform/sealing.ts";
import { job } from "../store/outbox.ts";
import { digestTag, hasToken, takeNetworkToken, takeToken } from "../store/throttle.ts";
import { findPurchase, type KnownPurchase, purchaseOfBuyer } from "./purchases.ts";

const linkPurpose = "page purchase link";
/** Uses of one buyer's link: 20 at once, then 20 a day, so that a published link soon stops working. */
const LINK_LIMIT = { burst: 20, rate: 20 / 86_400 };
/** Requests for links that one network may make: 20 at once, then one a minute. */
const REQUEST_LIMIT = { burst: 20, rate: 1 / 60 };
/** Requested links mailed to one address: 3 at once, then 5 a day. */
const MAIL_LIMIT = { burst: 3, rate: 5 / 86_400 };

/** Counts a request for a link, before anything is read; `rate_limited`. */
export async function admitAccessRequest(runtime: Runtime, _path: unknown, caller: Caller): Promise<void> {
  await takeNetworkToken(runtime, caller, { name: "access-ask", ...REQUEST_LIMIT });
}

/**
 * Requests the link of a paid page by the buyer's address. Response and timing are the same whether that address has paid: a job looks it
 * up. `page_not_found`.
 */
export async function requestAccessMail(
  runtime: Runtime,
  input: Input<"handle" | "pageSlug", typeof accessMail>,
): Promise<{ email: string }> {
  const { handle, pageSlug, email } = input;
  await publishedPage(runtime, input);
  const round = runtime.id("acm_");
  const data = { handle, pageSlug, buyer: addressDigest(email), round };
  await runtime.queues.later(job("payments.access-mail", `access-mail-${round}`, data));
  return { email };
}

/**
 * Follows a buyer's link: redirects to the page on the visitor's host, with an access code. Without a code if the link is invalid or its
 * payment was refunded. `page_not_found`, `rate_limited`.
 */
export async function openAccessLink(
  runtime: Runtime,
  input: Input<"handle" | "pageSlug" | "token", typeof accessLink>,
): Promise<{ location: string; cookie?: string }> {
  await publishedPage(runtime, input);
  return wayToPage(runtime, input, await purchaseOfLink(runtime, input));
}

async function purchaseOfLink(
  runtime: Runtime,
  { handle, pageSlug, token }: Input<"handle" | "pageSlug" | "token", typeof accessLink>,
): Promise<KnownPurchase | undefined> {
  const [sessionId = "", mac = ""] = token.split(".");
  if (!isSigned(runtime.env, linkPurpose, `${handle} ${pageSlug} ${sessionId}`, mac)) return undefined;
  await takeToken(runtime, { name: "access-link", tag: digestTag(runtime.env, handle, sessionId), ...LINK_LIMIT });
  const purchase = await findPurchase(runtime, handle, sessionId);
  return purchase?.refundedAt === null ? purchase : undefined;
}

/** Mails the link to the buyer of a page, once. */
export async function sendPurchaseMail(
  runtime: Runtime,
  { handle, sessionId }: JobData<"payments.purchase-mail">,
): Promise<void> {
  const purchase = await findPurchase(runtime, handle, sessionId);
  if (purchase) await mailLink(runtime, handle, { purchase, key: `purchase ${sessionId}`, isRequested: false });
}

/**
 * Mails the link to an address that bought the page; no other address is mailed. Requests over the address's limit are recorded as one
 * DENIED mail a day for each page. Attempts after a failure don't count: a mail server may be away for a night.
 */
export async function sendAccessMail(
  runtime: Runtime,
  { handle, pageSlug, buyer, round }: JobData<"payments.access-mail">,
  { failures }: Pick<JobAttempt, "failures">,
): Promise<void> {
  const purchase = await purchaseOfBuyer(runtime, { handle, pageSlug, buyer });
  if (purchase === undefined) return;
  const bucket = { name: "access-mail", tag: digestTag(runtime.env, handle, buyer), ...MAIL_LIMIT };
  if (failures > 0 || (await hasToken(runtime, bucket)))
    return mailLink(runtime, handle, { purchase, key: `access ${round}`, isRequested: true });
  const day = new Date(runtime.now()).toISOString().slice(0, 10);
  const key = `access-denied ${pageSlug} ${buyer} ${day}`;
  await mailLink(runtime, handle, { purchase, key, isRequested: true, denied: "visitor_mail_limit" });
}

interface LinkMail {
  purchase: KnownPurchase;
  /** Identifies the mail, so that it is sent once. */
  key: string;
  isRequested: boolean;
  /** Why it is not sent. */
  denied?: string;
}

/** No mail after a refund, after the buyer's erasure, or while the page can't be opened. */
async function mailLink(runtime: Runtime, handle: string, mail: LinkMail): Promise<void> {
  const { email, refundedAt } = mail.purchase;
  if (email === null || refundedAt !== null) return;
  const layout = await linkLayout(runtime, handle, mail);
  if (layout === undefined) return;
  const caps = mail.isRequested ? (["visitor"] as const) : [];
  const { key, denied } = mail;
  await sendForHandle(runtime, { handle, to: email, content: layOut(layout), key, caps, denied });
}

async function linkLayout(
  runtime: Runtime,
  handle: string,
  { purchase, isRequested }: LinkMail,
): Promise<MailLayout | undefined> {
  const { sessionId, pageSlug, amountMinor, currency } = purchase;
  const page = await publicPageOf(runtime, { handle, pageSlug });
  if (page === undefined) return undefined;
  const language = spokenLanguage(page.language);
  const { purchase: words } = wordsOf(language).mails;
  const sender = await displayNameOf(runtime.redis, handle);
  const price =
    amountMinor !== null && currency !== null ? formatMoney({ amountMinor, currency }, language) : undefined;
  const names = { title: page.title, name: sender };
  return {
    language,
    sender,
    subject: fillPlaceholders(words.subject, names),
    title: isRequested ? words.titleAgain : words.title,
    paragraphs: [fillPlaceholders(words.text, names)],
    facts: price && !isRequested ? [[words.paid, price]] : [],
    actions: [[words.open, linkOf(runtime, { handle, pageSlug, sessionId })]],
    footer: `${fillPlaceholders(isRequested ? words.whyAgain : words.why, names)} ${words.keep}`,
  };
}

function linkOf(
  runtime: Runtime,
  { handle, pageSlug, sessionId }: Record<"handle" | "pageSlug" | "sessionId", string>,
): string {
  const mac = sign(runtime.env, linkPurpose, `${handle} ${pageSlug} ${sessionId}`);
  const path = `/v2/public/pages/${handle}/${pageSlug}/access-link/${sessionId}.${mac}`;
  return new URL(path, pageUrl(runtime, handle, pageSlug)).href;
}
