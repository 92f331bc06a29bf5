import type { JobData } from "../../schemas/jobs.ts";
import { spokenLanguage, wordsOf } from "../../schemas/languages.ts";
import type { leadCode, leadVerified } from "../../schemas/leads.ts";
import type { Infer, Input } from "../../schemas/schema.ts";
import { settingsOf } from "../account/face.ts";
import { acceptMessage, findSender, unlessErased } from "../email/face.ts";
import { layOut } from "../engines/mail/mail.ts";
import { addressDigest } from "../platform/address.ts";
import { Fail } from "../platform/errors.ts";
import { fillPlaceholders } from "../platform/placeholders.ts";
import type { JobAttempt, Runtime } from "../platform/runtime.ts";
import { isSixDigits, sixDigits } from "../platform/sealing.ts";
import { keys } from "../store/keys.ts";
import { readRecord, requireRecord, type Versioned } from "../store/records.ts";
import { retryOnConflict } from "../store/retry.ts";
import { scripts } from "../store/scripts.ts";
import { digestTag, hasToken } from "../store/throttle.ts";
import { leadJobs, noticeJobs } from "./capture.ts";
import { awaitsCode, type StoredLead, verified } from "./content.ts";

/** Lifetime of a code in ms, and the number of wrong codes that ends it (docs/reference.md, "Lead verification"). */
const CODE_TTL_MS = 600_000;
const MAX_WRONG_CODES = 5;
/** Codes per address of a handle: 3 at once and 3 in 15 minutes. */
const CODE_LIMIT = { burst: 3, rate: 3 / 900 };

const codePurpose = "lead code";

type CodeInput = Input<"handle" | "leadId", typeof leadCode>;

/**
 * Mails a lead its code through the handle's LEAD_VERIFICATION sender. Without a usable one the owners are told of the lead at once, since
 * nobody can verify it. The code is never stored: it is derived from the round. Attempts after a failure don't count for the limit.
 */
export async function sendLeadCode(
  runtime: Runtime,
  { handle, leadId, round }: JobData<"leads.send-code">,
  { failures }: Pick<JobAttempt, "failures"> = { failures: 0 },
): Promise<void> {
  const lead = await readRecord<StoredLead>(runtime.redis, keys.lead(handle, leadId));
  if (lead === undefined || !awaitsCode(lead)) return;
  const sender = await findSender(runtime, handle, "LEAD_VERIFICATION");
  if (sender === undefined) {
    runtime.log.warn({ handle }, "lead.verification_sender_missing");
    if (lead.status === "UNVERIFIED") await runtime.queues.later(...noticeJobs(runtime, handle, leadId));
    return;
  }
  const tag = digestTag(runtime.env, handle, addressDigest(lead.email));
  // Too many codes for one address: the newest that was sent still counts.
  if (failures === 0 && !(await hasToken(runtime, { name: "lead-code", tag, ...CODE_LIMIT }))) return;
  const expiresAt = Date.now() + CODE_TTL_MS;
  const issue = () => tryIssue(runtime, { handle, leadId, round });
  const issued = await retryOnConflict(runtime.redis, keys.lead(handle, leadId), issue);
  if (issued === "over") return;
  const code = sixDigits(runtime.env.SECRET_KEY, codePurpose, issued.round);
  const content = { ...(await codeMail(runtime, handle, { lead: issued.lead, code })), expiresAt };
  await unlessErased(() =>
    acceptMessage(runtime, {
      handle,
      senderId: sender.senderId,
      to: [lead.email],
      purpose: "LEAD_VERIFICATION",
      caps: ["visitor"],
      leads: [leadId],
      key: `code ${round}`,
      content,
    }),
  );
}

/** The lead and the round of its code; "over" if it awaits none any more, undefined if it has changed since it was read. */
async function tryIssue(
  { redis }: Runtime,
  { handle, leadId, round }: JobData<"leads.send-code">,
): Promise<{ lead: StoredLead; round: string } | "over" | undefined> {
  const scriptKeys = { code: keys.leadCode(handle, leadId), lead: keys.lead(handle, leadId) };
  const lead = await readRecord<StoredLead>(redis, scriptKeys.lead);
  if (lead === undefined || !awaitsCode(lead)) return "over";
  const issued = await scripts.issueLeadCode(redis, scriptKeys, { round, version: lead.version, ttlMs: CODE_TTL_MS });
  return issued === "changed" ? undefined : { lead, round: issued };
}

/**
 * Verifies the code that a visitor typed; repeatable. `invalid_verification_code` for a wrong or late code, and for a verified lead too, so
 * that strangers don't learn of it. `lead_not_found`.
 */
export async function verifyLead(runtime: Runtime, input: CodeInput): Promise<Infer<typeof leadVerified>> {
  const { handle, leadId } = input;
  const result = await retryOnConflict(runtime.redis, keys.lead(handle, leadId), async () => {
    const lead = await requireRecord<StoredLead>(runtime.redis, keys.lead(handle, leadId), "lead_not_found");
    const reply = await tryCode(runtime, input, lead);
    return reply === "changed" ? undefined : reply;
  });
  if (result !== "verified") throw new Fail("invalid_verification_code");
  return { lead: { leadId, status: "VERIFIED" } };
}

async function tryCode(
  runtime: Runtime,
  { handle, leadId, code }: CodeInput,
  lead: Versioned<StoredLead>,
): Promise<string> {
  const { env, redis, queues } = runtime;
  const round = await redis.hget(keys.leadCode(handle, leadId), "round");
  const isRight = round !== null && isSixDigits(env, codePurpose, { text: round, typed: code });
  const { version, ...stored } = lead;
  const next = verified(stored, new Date(runtime.now()).toISOString());
  const isNew = lead.status === "UNVERIFIED";
  const caused = isRight ? leadJobs(runtime, handle, { type: "lead.verified", lead: next, isNew }) : [];
  const tried = { round: round ?? undefined, isRight, maxWrong: MAX_WRONG_CODES, version, json: JSON.stringify(next) };
  return queues.step(handle, caused, (outbox, jobs) => {
    const scriptKeys = { code: keys.leadCode(handle, leadId), lead: keys.lead(handle, leadId), outbox };
    return scripts.tryLeadCode(redis, scriptKeys, { ...tried, jobs });
  });
}

async function codeMail(
  { redis }: Runtime,
  handle: string,
  { lead, code }: { lead: StoredLead; code: string },
): Promise<ReturnType<typeof layOut>> {
  const settings = await settingsOf(redis, handle);
  const language = spokenLanguage(lead.language, settings.language);
  const { subject, title, text } = wordsOf(language).mails.leadCode;
  const sender = settings.displayName ?? handle;
  return layOut({ language, sender, subject: fillPlaceholders(subject, { code }), title, code, paragraphs: [text] });
}
