import { createPrivateKey, generateKeyPair, type KeyObject } from "node:crypto";
import { promisify } from "node:util";
import type { Redis } from "ioredis";
import { LRUCache } from "lru-cache";
import type { DnsRecord, Identity, IdentityStatus, RecordPurpose, RecordStatus } from "../../schemas/email.ts";
import { type DomainClaim, domainClaim, proveDomain } from "../account/face.ts";
import type { AskDns, DkimKey, DnsAnswer } from "../engines/mail/mail.ts";
import type { Env } from "../platform/env.ts";
import type { Store } from "../platform/runtime.ts";
import { rebound, resealed, type SealBinding, seal, unseal } from "../platform/sealing.ts";
import { keys } from "../store/keys.ts";

/** Ms for which a required record must be definitely absent before the identity fails (docs/reference.md, "Email identity of a domain"). */
const FAILED_AFTER_MS = 72 * 3_600_000;

/** The immutable part of an identity. Each account that claims a domain has its own, so that none learns another's. */
interface IdentityKeys {
  identityKey: string;
  /** The value of the OWNERSHIP record. */
  token: string;
  selector: string;
  /** SubjectPublicKeyInfo in base64, as in the DKIM record. */
  publicKey: string;
  /** The private key (PKCS #8), sealed. */
  sealed: string;
}

/** The mutable part. */
interface IdentityState {
  status: IdentityStatus;
  records: Partial<Record<RecordPurpose, RecordStatus>>;
  lastCheckedAt: string | null;
  /** The domain ms since which each required record is definitely absent. A failed query changes nothing. */
  absences: Partial<Record<RecordPurpose, number>>;
  /** True if the operator of a development installation has verified the domain by hand; DNS is ignored then. */
  vouched: boolean;
}

type IdentityName = Pick<DomainClaim, "domain" | "account">;

/** The identity of an account's domain; the first call creates its key pair and token. */
export async function identityOf(store: Store, at: IdentityName): Promise<Identity> {
  return toIdentity(store.env, at.domain, await readIdentity(store, at));
}

/** The status of one identity; PENDING if it doesn't exist yet. */
export async function identityStatus(redis: Redis, { domain, account }: IdentityName): Promise<IdentityStatus> {
  return ((await redis.hget(keys.emailIdentity(domain, account), "status")) ?? "PENDING") as IdentityStatus;
}

/** Seals the private key of an identity again after a change of SECRET_KEY; true if it did. */
export async function resealIdentity({ redis, env }: Store, at: IdentityName): Promise<boolean> {
  const key = keys.emailIdentity(at.domain, at.account);
  const json = await redis.hget(key, "made");
  if (json === null) return false;
  const made = JSON.parse(json) as IdentityKeys;
  const sealed = resealed(env, sealBinding(at), made.sealed);
  // The keys are immutable otherwise, so no change can interfere.
  if (sealed !== undefined) await redis.hset(key, "made", JSON.stringify({ ...made, sealed }));
  return sealed !== undefined;
}

/** The immutable part of an identity, as JSON with the sealed signing key; null if there is none. */
export function exportedIdentity(redis: Redis, { domain, account }: IdentityName): Promise<string | null> {
  return redis.hget(keys.emailIdentity(domain, account), "made");
}

/** Imports the immutable part of another identity; ignored if its key can't be opened here or an identity exists. */
export async function importIdentity(
  { redis, env }: Store,
  { from, ...at }: IdentityName & { from: string },
  json: string,
): Promise<void> {
  const made = JSON.parse(json) as IdentityKeys;
  const bindings = { from: sealBinding({ ...at, account: from }), to: sealBinding(at) };
  const sealed = rebound(env, bindings, made.sealed);
  if (sealed === undefined) return;
  await redis.hsetnx(keys.emailIdentity(at.domain, at.account), "made", JSON.stringify({ ...made, sealed }));
}

/** The name that bounces return to, for which SPF is checked. */
export function mailFromDomain(domain: string): string {
  return `mail.${domain}`;
}

const opened = new LRUCache<string, KeyObject>({ max: 500 });

/** The signing key of a domain, unsealed once per process. Throws if it can't be opened. */
export async function dkimKey(store: Store, at: IdentityName): Promise<DkimKey> {
  const { selector, sealed } = await identityKeys(store, at);
  const unsealed = () => unseal(store.env, sealBinding(at), sealed);
  const key = opened.get(sealed) ?? createPrivateKey({ key: unsealed(), format: "der", type: "pkcs8" });
  opened.set(sealed, key);
  return { domain: at.domain, selector, key };
}

/**
 * Checks the domain's records and updates its status: READY if all required ones exist, FAILED after 72 hours in which a required one was
 * definitely absent. Failed DNS queries change nothing, nor does a domain that the account has lost meanwhile.
 */
export async function checkIdentity(store: Store, ask: AskDns, claim: DomainClaim): Promise<Identity> {
  const before = await readIdentity(store, claim);
  const found = await lookUp(ask, recordsOf(store.env, claim.domain, before));
  // Detached meanwhile, or another account's.
  if ((await domainClaim(store.redis, claim.account, claim.domain)) === undefined)
    return toIdentity(store.env, claim.domain, before);
  const records =
    found.OWNERSHIP === "FOUND" && !(await proveDomain(store, claim))
      ? { ...found, OWNERSHIP: "MISMATCH" as const }
      : found;
  const next = nextState(before, records, store.now());
  const absences = JSON.stringify(next.absences);
  await store.redis.hset(keys.emailIdentity(claim.domain, claim.account), {
    records: JSON.stringify(next.records),
    lastCheckedAt: next.lastCheckedAt ?? "",
    // Only what it changes: another check, or an operator, may have changed the rest meanwhile.
    ...(next.status === before.status ? {} : { status: next.status }),
    ...(absences === JSON.stringify(before.absences) ? {} : { absences }),
  });
  return toIdentity(store.env, claim.domain, { ...before, ...next });
}

async function readIdentity(store: Store, at: IdentityName): Promise<IdentityKeys & IdentityState> {
  const made = await identityKeys(store, at);
  const { status, records, lastCheckedAt, absences, vouched } = (await store.redis.hgetall(
    keys.emailIdentity(at.domain, at.account),
  )) as Partial<Record<string, string>>;
  return {
    ...made,
    status: (status ?? "PENDING") as IdentityStatus,
    records: records ? (JSON.parse(records) as IdentityState["records"]) : {},
    lastCheckedAt: lastCheckedAt || null,
    absences: absences ? (JSON.parse(absences) as IdentityState["absences"]) : {},
    vouched: vouched === "1",
  };
}

async function identityKeys({ redis, env, id }: Store, at: IdentityName): Promise<IdentityKeys> {
  const key = keys.emailIdentity(at.domain, at.account);
  const known = await redis.hget(key, "made");
  if (known !== null) return JSON.parse(known) as IdentityKeys;
  // Concurrent first calls end up with the same keys.
  await redis.hsetnx(key, "made", JSON.stringify(await makeKeys(env, id, at)));
  return JSON.parse((await redis.hget(key, "made")) as string) as IdentityKeys;
}

async function makeKeys(env: Env, id: Store["id"], at: IdentityName): Promise<IdentityKeys> {
  const pair = await promisify(generateKeyPair)("rsa", { modulusLength: 2048 });
  const identityKey = id("ident_");
  const publicKey = pair.publicKey.export({ type: "spki", format: "der" }).toString("base64");
  const sealed = seal(env, sealBinding(at), pair.privateKey.export({ type: "pkcs8", format: "der" }));
  return { identityKey, token: id(""), selector: `s${id("").slice(0, 8).toLowerCase()}`, publicKey, sealed };
}

function sealBinding({ domain, account }: IdentityName): SealBinding {
  return { purpose: "dkim key", context: `${domain} ${account}` };
}

function toIdentity(env: Env, domain: string, identity: IdentityKeys & IdentityState): Identity {
  return {
    identityKey: identity.identityKey,
    region: env.EMAIL_REGION,
    domain,
    status: identity.status,
    mailFromDomain: mailFromDomain(domain),
    requiredDnsRecords: recordsOf(env, domain, identity),
    lastCheckedAt: identity.lastCheckedAt,
  };
}

function recordsOf(
  env: Env,
  domain: string,
  { token, selector, publicKey, records }: IdentityKeys & Pick<IdentityState, "records">,
): DnsRecord[] {
  const from = mailFromDomain(domain);
  const rows: [RecordPurpose, DnsRecord["type"], string, string][] = [
    ["OWNERSHIP", "TXT", `_ownership.${domain}`, `domain-ownership=${token}`],
    ["DKIM", "TXT", `${selector}._domainkey.${domain}`, `v=DKIM1; k=rsa; p=${publicKey}`],
    ["SPF", "TXT", from, `v=spf1 include:${env.MAIL_SPF_INCLUDE} ~all`],
    ["MAIL_FROM_MX", "MX", from, `10 ${env.MAIL_MX_HOST}`],
    ["DMARC", "TXT", `_dmarc.${domain}`, "v=DMARC1; p=none"],
  ];
  return rows.map(([purpose, type, name, value]) => {
    return { type, name, value, purpose, required: purpose !== "DMARC", status: records[purpose] ?? "UNKNOWN" };
  });
}

async function lookUp(ask: AskDns, records: DnsRecord[]): Promise<IdentityState["records"]> {
  const statuses = await Promise.all(records.map((record) => statusInDns(ask, record)));
  return Object.fromEntries(records.map(({ purpose }, at) => [purpose, statuses[at] as RecordStatus]));
}

async function statusInDns(ask: AskDns, record: DnsRecord): Promise<RecordStatus> {
  const answer = await ask(record.type, record.name);
  const status = compareRecord(record, answer);
  return record.purpose === "DMARC" && status === "MISSING" ? policyAbove(ask, record) : status;
}

function compareRecord(record: DnsRecord, answer: DnsAnswer): RecordStatus {
  if (answer.kind !== "found") return answer.kind === "none" ? "MISSING" : "UNKNOWN";
  const [related, fits] = comparisons[record.purpose];
  const candidates = answer.values.filter(related);
  return candidates.length === 0 ? "MISSING" : fits(candidates, record.value) ? "FOUND" : "MISMATCH";
}

type Comparison = [related: (value: string) => boolean, fits: (candidates: string[], wanted: string) => boolean];

/** Selects the values of a record's kind and compares them with the expected one. */
const comparisons: Record<RecordPurpose, Comparison> = {
  OWNERSHIP: [
    (value) => value.startsWith("domain-ownership="),
    (values, wanted) => values.some((value) => value.trim() === wanted),
  ],
  // With several keys at one selector, a receiver may use any of them (RFC 6376, section 3.6.2.2).
  DKIM: [
    (value) => /(^|;)\s*p\s*=/i.test(value),
    (values, wanted) => values.length === 1 && keyIn(values[0]) === keyIn(wanted),
  ],
  // More than one SPF record is a permanent error (RFC 7208, section 4.5).
  SPF: [
    (value) => /^v=spf1(\s|$)/i.test(value),
    (values, wanted) => values.length === 1 && includesIn(values[0]).includes(includesIn(wanted)[0] ?? ""),
  ],
  MAIL_FROM_MX: [
    () => true,
    (values, wanted) => values.some((value) => value.split(" ")[1] === wanted.split(" ")[1]?.toLowerCase()),
  ],
  DMARC: [(value) => /^v\s*=\s*DMARC1\s*(;|$)/.test(value), (values) => values.length === 1 && isPolicy(values[0])],
};

/** The public key of a DKIM record; undefined for one that is not for mails signed by RSA with SHA-256 (RFC 6376, section 3.6.1). */
function keyIn(record = ""): string | undefined {
  const { v = "DKIM1", k = "rsa", h = "sha256", s = "*", p } = tagsIn(record);
  const includes = (list: string, ...names: string[]) => list.split(/\s*:\s*/).some((name) => names.includes(name));
  const isFit = v === "DKIM1" && k === "rsa" && includes(h, "sha256") && includes(s, "*", "email");
  return isFit ? p?.replace(/\s/g, "") : undefined;
}

/** True for a policy, or for none with an address for reports, which counts as `none` (RFC 7489, section 6.6.3). */
function isPolicy(record = ""): boolean {
  const { p = "", rua } = tagsIn(record);
  return /^(none|quarantine|reject)$/i.test(p) || rua !== undefined;
}

/** The values of a tag list by name (RFC 6376, section 3.2). */
function tagsIn(record: string): Partial<Record<string, string>> {
  const tags = record.matchAll(/(?:^|;)\s*(\w+)\s*=\s*([^;]*)/g);
  return Object.fromEntries(Array.from(tags, ([, name, value = ""]) => [name, value.trim()]));
}

/** The hosts whose includes let a mail pass: those without another qualifier, before `all` (RFC 7208, sections 4.6.2 and 5.1). */
function includesIn(record = ""): string[] {
  const terms = record.toLowerCase().split(/\s+/);
  const all = terms.findIndex((term) => /^[+?~-]?all$/.test(term));
  return terms.slice(0, all < 0 ? undefined : all).flatMap((term) => /^\+?include:(\S+?)\.?$/.exec(term)?.[1] ?? []);
}

/** A domain without a policy inherits that of a parent domain. */
async function policyAbove(ask: AskDns, record: DnsRecord): Promise<RecordStatus> {
  const above = record.name.replace(/^_dmarc\.[^.]+\./, "_dmarc.");
  if (above === record.name || above.split(".").length < 3) return "MISSING";
  return statusInDns(ask, { ...record, name: above });
}

function nextState(state: IdentityState, records: IdentityState["records"], now: number): IdentityState {
  const { DMARC: _optional, ...required } = records;
  const lacking = (Object.entries(required) as [RecordPurpose, RecordStatus][]).filter((row) => row[1] !== "FOUND");
  const absences: IdentityState["absences"] = {};
  let hasFailed = false;
  for (const [purpose, status] of lacking) {
    const isAbsent = status !== "UNKNOWN";
    const since = state.absences[purpose] ?? (isAbsent ? now : undefined);
    if (since === undefined) continue;
    absences[purpose] = since;
    hasFailed ||= isAbsent && now - since >= FAILED_AFTER_MS && !state.vouched;
  }
  const status = lacking.length === 0 ? "READY" : hasFailed ? "FAILED" : state.status;
  return { ...state, status, records, absences, lastCheckedAt: new Date(now).toISOString() };
}
