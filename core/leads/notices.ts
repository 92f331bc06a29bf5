import type { JobData } from "../../schemas/jobs.ts";
import { spokenLanguage, type Words, wordsOf } from "../../schemas/languages.ts";
import type { StoredPage } from "../../schemas/pages.ts";
import { ownerAddresses, settingsOf } from "../account/face.ts";
import { findCampaign } from "../campaigns/face.ts";
import {
  decideNotice,
  digestTexts,
  eraseMentions,
  findMessage,
  readDigest,
  sendForHandle,
  unlessErased,
  withdrawMessage,
} from "../email/face.ts";
import { type Fact, layOut, type MailLayout } from "../engines/mail/mail.ts";
import { canonicalAddress, isAddress } from "../platform/address.ts";
import { clip, oneLine } from "../platform/characters.ts";
import { fillPlaceholders } from "../platform/placeholders.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keyDigest } from "../store/idempotency.ts";
import { keys } from "../store/keys.ts";
import { readRecord } from "../store/records.ts";
import { transact } from "../store/redis.ts";
import type { StoredLead } from "./content.ts";

/** Maximum number of characters of each message in a digest. */
const MAX_DIGEST_TEXT = 300;
/** Prefix of the fields of a lead's record that name the notices about it, as `accept-message.lua` writes them. */
const MAIL_FIELD = "mail:";

/** Mails a new lead to each owner of the handle once, unless disabled; later leads of an hour go to its digest. */
export async function sendLeadNotice(runtime: Runtime, { handle, leadId }: JobData<"leads.notify">): Promise<void> {
  const basics = await basicsOf(runtime, handle);
  if (basics === undefined || (await decideLeadNotice(runtime, handle, leadId)) !== "mail") return;
  const lead = await readRecord<StoredLead>(runtime.redis, keys.lead(handle, leadId));
  if (lead === undefined) return;
  const content = { ...layOut(await noticeLayout(runtime, handle, { basics, lead })), replyTo: lead.email };
  await tellOwners(runtime, handle, { key: leadId, leads: [lead], content });
}

/** Mails the leads of an hour that were not mailed singly. */
export async function sendLeadDigest(runtime: Runtime, { handle, round }: JobData<"leads.digest">): Promise<void> {
  const { found: leads, others } = await readDigest(runtime.redis, keys.leadDigest(handle, round), (leadId) =>
    findUnerased(runtime, handle, leadId),
  );
  const basics = await basicsOf(runtime, handle);
  if (leads.length === 0 || basics === undefined) return;
  const facts = leads.flatMap((lead) => summaryOf(basics.words, lead));
  const content = layOut({ ...basics, ...digestTexts(basics.words, leads.length, others), facts });
  if ((await tellOwners(runtime, handle, { key: digestKey(round), leads, content })) === "erased")
    await sendLeadDigest(runtime, { handle, round });
}

async function findUnerased({ redis }: Runtime, handle: string, leadId: string): Promise<StoredLead | undefined> {
  const key = keys.lead(handle, leadId);
  return (await redis.hexists(key, "erased")) ? undefined : readRecord<StoredLead>(redis, key);
}

/**
 * Lets no new mail about leads be accepted, and cancels the unsent ones: their content would outlive the person's data. Returns the
 * once-only keys of the cancelled digests by their rounds. The step that erases the leads must delete them and enqueue the digests' jobs, so
 * that they are mailed without these leads.
 */
export async function withdrawNotices(
  runtime: Runtime,
  handle: string,
  leadIds: string[],
): Promise<Map<string, string[]>> {
  await transact(runtime.redis, (transaction) => {
    for (const leadId of leadIds) transaction.hset(keys.lead(handle, leadId), "erased", 1);
  });
  const rounds = new Map<string, string[]>();
  for (const leadId of leadIds) {
    const { notice: round = "mail", json = "{}", ...fields } = await runtime.redis.hgetall(keys.lead(handle, leadId));
    const { email } = JSON.parse(json) as Partial<StoredLead>;
    if (round !== "mail") await runtime.redis.lrem(keys.leadDigest(handle, round), 0, leadId);
    const key = round === "mail" ? leadId : digestKey(round);
    const digests = await onceDigests(runtime, handle, { key, fields });
    const onceKeys = await withdraw(runtime, handle, { digests, email });
    if (round !== "mail" && onceKeys.length > 0) rounds.set(round, [...(rounds.get(round) ?? []), ...onceKeys]);
  }
  return rounds;
}

/**
 * Cancels the unsent mails of these once-only keys, and returns the keys of the cancelled ones. Mail servers may have quoted the person's
 * address, which is erased from the events.
 */
async function withdraw(
  runtime: Runtime,
  handle: string,
  { digests, email }: { digests: Set<string>; email: string | undefined },
): Promise<string[]> {
  const cancelled: string[] = [];
  for (const digest of digests) {
    const once = keys.emailOnce(handle, digest);
    const messageId = await runtime.redis.get(once);
    if (messageId === null) continue;
    if (await isCancelled(runtime, handle, messageId)) cancelled.push(once);
    if (email) await eraseMentions(runtime, { handle, messageId, email });
  }
  return cancelled;
}

/**
 * The digests of the once-only keys of a lead's notices, also to former owners: its record names them. It names none that an earlier version
 * accepted, which are those of today's owners.
 */
async function onceDigests(
  { redis }: Runtime,
  handle: string,
  { key, fields }: { key: string; fields: Record<string, string> },
): Promise<Set<string>> {
  const named = Object.entries(fields).flatMap(([name, digest]) => (name.startsWith(MAIL_FIELD) ? digest : []));
  const owners = await ownerAddresses(redis, handle);
  return new Set([...named, ...owners.map((owner) => keyDigest(noticeKey(key, owner)))]);
}

/** Cancels a mail; false if it was already sent, or if the service itself sent it, which stores nothing. */
async function isCancelled(runtime: Runtime, handle: string, messageId: string): Promise<boolean> {
  const message = await findMessage(runtime.redis, handle, messageId);
  if (message === undefined) return false;
  // An earlier attempt at the erasure may have cancelled it.
  return message.status === "CANCELLED" || (await withdrawMessage(runtime, message)) > 0;
}

function digestKey(round: string): string {
  return `lead digest ${round}`;
}

/** The once-only key of a notice to one owner. */
function noticeKey(key: string, owner: string): string {
  return `${key} ${canonicalAddress(owner)}`;
}

function decideLeadNotice(runtime: Runtime, handle: string, leadId: string): ReturnType<typeof decideNotice> {
  return decideNotice(runtime, handle, {
    record: keys.lead(handle, leadId),
    notices: keys.leadNotices(handle),
    digests: keys.leadDigest(handle, ""),
    field: "notice",
    item: leadId,
    job: { name: "leads.digest", id: "lead-digest" },
  });
}

/** What all notices of a handle have in common. */
interface NoticeBasics {
  language: string;
  words: Words["mails"]["lead"];
  sender: string;
  footer: string;
}

/** A mail to owners; its `key` is the lead or the digest that it is about. */
interface Notice {
  key: string;
  leads: StoredLead[];
  content: ReturnType<typeof layOut> & { replyTo?: string };
}

/** Mails each owner once, unless one of the leads was erased meanwhile. */
async function tellOwners(
  runtime: Runtime,
  handle: string,
  { key, leads, content }: Notice,
): Promise<"told" | "erased"> {
  const owners = (await ownerAddresses(runtime.redis, handle)).filter(isAddress);
  const mail = { handle, content, leads: leads.map(({ leadId }) => leadId), isNotice: true };
  for (const owner of owners) {
    const one = { ...mail, to: owner, key: noticeKey(key, owner) };
    if ((await unlessErased(() => sendForHandle(runtime, one))) === "erased") return "erased";
  }
  return "told";
}

/** Undefined if the owners want no notices. */
async function basicsOf({ redis }: Runtime, handle: string): Promise<NoticeBasics | undefined> {
  const { leadNotifications, displayName, language: given } = await settingsOf(redis, handle);
  if (!leadNotifications) return undefined;
  const language = spokenLanguage(given);
  const { lead: words } = wordsOf(language).mails;
  const name = displayName ?? handle;
  return { language, words, sender: name, footer: fillPlaceholders(words.why, { name }) };
}

async function noticeLayout(
  runtime: Runtime,
  handle: string,
  { basics, lead }: { basics: NoticeBasics; lead: StoredLead },
): Promise<MailLayout> {
  const { words } = basics;
  const page = await linkedPage(runtime, handle, lead.pageSlug);
  const campaign = lead.campaignId === null ? undefined : await findCampaign(runtime, handle, lead.campaignId);
  return {
    ...basics,
    subject: fillPlaceholders(words.subject, { name: nameOf(lead) ?? lead.email }),
    title: words.title,
    paragraphs: [fillPlaceholders(words.reply, { email: lead.email })],
    facts: factsOf(words, lead, { page, campaign: campaign?.name }),
    actions: page ? [[words.open, page.url]] : [],
  };
}

interface Page {
  title: string;
  url: string;
}

/** The published page of a lead; an unpublished page counts as none. */
async function linkedPage({ env, redis }: Runtime, handle: string, slug: string | null): Promise<Page | undefined> {
  const page = slug === null ? undefined : await readRecord<StoredPage>(redis, keys.page(handle, slug));
  if (page?.status !== "PUBLISHED") return undefined;
  return { title: page.title, url: `${env.BASE_URL}/p/${handle}/${page.pageSlug}` };
}

function factsOf(
  words: NoticeBasics["words"],
  lead: StoredLead,
  { page, campaign }: { page: Page | undefined; campaign: string | undefined },
): Fact[] {
  const facts: [string, string | undefined, (string | undefined)?][] = [
    [words.name, lead.name ?? lead.firstName],
    [words.email, lead.email, mailtoOf(lead.email)],
    [words.company, lead.company],
    [words.phone, lead.phone],
    [words.service, lead.service],
    [words.message, lead.message],
    [words.question, lead.leadContext?.visitorQuestion],
    ...Object.entries(lead.fields),
    [words.page, page?.title, page?.url],
    [words.campaign, campaign],
    [words.source, lead.source],
  ];
  return facts.flatMap(([name, value, address]) => (value ? [[name, value, address] as Fact] : []));
}

function summaryOf(words: NoticeBasics["words"], { email, message, leadContext, ...lead }: StoredLead): Fact[] {
  const whole = (message ?? leadContext?.visitorQuestion ?? "").trim();
  const text = whole.length > MAX_DIGEST_TEXT ? `${clip(whole, MAX_DIGEST_TEXT)} …` : whole;
  const who: Fact = [nameOf(lead) ?? words.email, email, mailtoOf(email)];
  return text === "" ? [who] : [who, [message ? words.message : words.question, text]];
}

function nameOf({ name, firstName }: Pick<StoredLead, "name" | "firstName">): string | undefined {
  return oneLine(name ?? "") || oneLine(firstName ?? "") || undefined;
}

function mailtoOf(email: string): string {
  return `mailto:${encodeURIComponent(email)}`;
}
