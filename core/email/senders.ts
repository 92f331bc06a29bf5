import type { IdentityStatus, Purpose, Sender, StoredSender, senderChange } from "../../schemas/email.ts";
import type { ErrorCode } from "../../schemas/errors.ts";
import type { Input } from "../../schemas/schema.ts";
import { type DomainClaim, domainClaim, findHandle } from "../account/face.ts";
import { canonicalDomain } from "../platform/address.ts";
import { Fail, invalid } from "../platform/errors.ts";
import type { Runtime, Store } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import type { Listed, ListInput } from "../store/paging.ts";
import { Records } from "../store/records.ts";
import { identityOf, identityStatus } from "./identity.ts";

type SenderChange = Input<"handle" | "senderId", typeof senderChange>;

export const senderRecords = new Records<StoredSender>({
  record: keys.sender,
  list: keys.senders,
  missing: "sender_profile_not_found",
});

/**
 * Creates a sender or changes the given fields. `account_domain_not_found`; `domain_email_identity_not_ready` if it is to be enabled. After
 * an error nothing is stored.
 */
export async function putSender(runtime: Runtime, input: SenderChange): Promise<{ sender: Sender }> {
  const { handle, senderId } = input;
  const { account = "" } = (await findHandle(runtime.redis, handle)) ?? {};
  const change = (current: StoredSender) => checked(runtime, account, changed(runtime, input, current));
  const replaced = await senderRecords.change(runtime, handle, { id: senderId, change });
  const value = replaced ?? (await change(blank(input)));
  // A concurrent request may have created it; then this one changes it.
  if (!replaced && !(await senderRecords.create(runtime, handle, { id: senderId, value, at: runtime.now() })))
    return putSender(runtime, input);
  return { sender: await toSender(runtime, { handle, account }, value) };
}

/** The handle's senders, newest first. */
export async function listSenders(runtime: Runtime, input: ListInput): Promise<Listed<"senders", Sender>> {
  const { records, nextCursor } = await senderRecords.list(runtime, input);
  const { handle } = input;
  const { account = "" } = (await findHandle(runtime.redis, handle)) ?? {};
  return {
    senders: await Promise.all(records.map((stored) => toSender(runtime, { handle, account }, stored))),
    nextCursor,
  };
}

/** Senders of a domain on all handles of its account, at most 100 per handle. */
export async function sendersOfDomain(
  runtime: Runtime,
  claim: Pick<DomainClaim, "domain" | "account">,
): Promise<Sender[]> {
  const handles = (await runtime.redis.smembers(keys.accountHandles(claim.account))).sort();
  const lists = await Promise.all(handles.map((handle) => listSenders(runtime, { handle, limit: 100 })));
  return lists.flatMap(({ senders }) => senders).filter(({ domain }) => domain === claim.domain);
}

/** What a sender's right to send depends on, read at one moment. */
export interface SendingRights {
  sender: StoredSender | undefined;
  account: string;
  active: boolean;
  claim: DomainClaim | undefined;
  status: IdentityStatus;
}

/** Reads a handle's sender, its domain (or the one that a message was accepted with) and the domain's identity. */
export async function sendingRights(
  store: Store,
  { handle, senderId, domain }: { handle: string; senderId: string; domain?: string },
): Promise<SendingRights> {
  const { redis } = store;
  const [sender, owner] = await Promise.all([senderRecords.find(store, handle, senderId), findHandle(redis, handle)]);
  const account = owner?.account ?? "";
  const at = { domain: domain ?? sender?.domain ?? "", account };
  const [claim, status] = await Promise.all([domainClaim(redis, account, at.domain), identityStatus(redis, at)]);
  return { sender, account, active: owner?.active === true, claim, status };
}

/** Why a sender may not send now, in the documented order; undefined if it may. */
export function refusal({ sender, claim, status }: SendingRights, purpose: Purpose): ErrorCode | undefined {
  if (sender === undefined) return "sender_profile_not_found";
  if (!sender.enabled) return "sender_not_ready";
  if (claim === undefined) return "account_domain_not_found";
  if (status !== "READY") return "domain_email_identity_not_ready";
  return sender.purposes.includes(purpose) ? undefined : "sender_purpose_not_allowed";
}

/**
 * The newest sender that may send now for the first of these purposes, else for the next one; undefined if there is none. Reads the newest
 * 100 senders of the handle.
 */
export async function findSender(
  runtime: Runtime,
  handle: string,
  ...purposes: readonly Purpose[]
): Promise<Sender | undefined> {
  const { senders } = await listSenders(runtime, { handle, limit: 100 });
  const ready = senders.filter(({ status }) => status === "READY");
  return purposes.flatMap((purpose) => ready.filter((one) => one.purposes.includes(purpose)))[0];
}

/** A new sender; fields without a default must be in the request. */
function blank(input: SenderChange): StoredSender {
  const { senderId, domain, localPart, purposes } = input;
  if (localPart === undefined)
    throw new Fail("sender_local_part_not_allowed", { errors: [{ path: "/localPart", message: "is required" }] });
  if (domain === undefined) throw invalid("/domain", "is required");
  if (purposes === undefined) throw invalid("/purposes", "is required");
  const more = { displayName: "", replyTo: null, enabled: true, createdAt: "", updatedAt: "" };
  return { senderId, domain, localPart, purposes, ...more };
}

function changed(runtime: Runtime, input: SenderChange, current: StoredSender): StoredSender {
  const { handle: _handle, ...changes } = input;
  const { domain, displayName, createdAt, ...next } = { ...current, ...(changes as Partial<StoredSender>) };
  const updatedAt = new Date(runtime.now()).toISOString();
  const own = { domain: canonicalDomain(domain), displayName: displayName.trim() };
  return { ...next, ...own, createdAt: createdAt || updatedAt, updatedAt };
}

async function checked({ redis }: Runtime, account: string, sender: StoredSender): Promise<StoredSender> {
  if ((await domainClaim(redis, account, sender.domain)) === undefined) throw new Fail("account_domain_not_found");
  const status = await identityStatus(redis, { domain: sender.domain, account });
  if (sender.enabled && status !== "READY") throw new Fail("domain_email_identity_not_ready");
  return sender;
}

async function toSender(
  runtime: Runtime,
  { handle, account }: Record<"handle" | "account", string>,
  { version: _version, ...stored }: StoredSender & { version?: number },
): Promise<Sender> {
  const { localPart, domain, enabled } = stored;
  const { status: domainStatus, identityKey } = await identityOf(runtime, { domain, account });
  const status = enabled ? (domainStatus === "READY" ? "READY" : "PENDING") : "PAUSED";
  return { ...stored, handle, fromEmail: `${localPart}@${domain}`, status, identityKey };
}
