import { attachDomain, domainClaim, domainsOf } from "../account/face.ts";
import { batchesOf } from "../platform/batches.ts";
import { insteadOf } from "../platform/errors.ts";
import type { Store } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { requestCheck } from "./domains.ts";
import { exportedIdentity, importIdentity } from "./identity.ts";
import { findMessages, withdrawMessage } from "./messages.ts";
import { senderRecords } from "./senders.ts";

/** A domain of the handle's account that its pages or senders use. */
interface ExportedDomain {
  domain: string;
  /** True if the domain shows the handle's pages. */
  isHost: boolean;
  /** The immutable part of its email identity with the sealed signing key, so that its DNS records may stay; null if there is none. */
  identity: string | null;
}

const MESSAGE_BATCH = 500;

export async function exportDomains(
  store: Store,
  { handle, account }: { handle: string; account: string },
): Promise<ExportedDomain[]> {
  const { redis } = store;
  const senders = await senderRecords.all(store, handle);
  const used = new Set(senders.map(({ domain }) => domain));
  const claims = (await domainsOf(redis, account)).filter((one) => one.handle === handle || used.has(one.domain));
  return Promise.all(
    claims.map(async (one) => ({
      domain: one.domain,
      isHost: one.handle === handle,
      identity: await exportedIdentity(redis, one),
    })),
  );
}

/**
 * Attaches a domain to the account of an imported handle, unproven: its records are checked soon. A domain that the account already has
 * is unchanged. False if another account owns it.
 */
export async function importDomain(
  store: Store,
  { handle, account, from }: { handle: string; account: string; from: string },
  { domain, isHost, identity }: ExportedDomain,
): Promise<boolean> {
  const claim = { account, domain, ...(isHost ? { handle } : {}) };
  const isOurs =
    (await domainClaim(store.redis, account, domain)) ??
    (await attachDomain(store, claim).catch(insteadOf("domain_taken", undefined)));
  if (!isOurs) return false;
  // An interrupted run may have attached it and done no more; neither changes what exists.
  if (identity !== null) await importIdentity(store, { domain, account, from }, identity);
  await requestCheck(store, { domain, account });
  return true;
}

/**
 * Assigns imported messages to the handle, so that the links in sent mails still work, and cancels the unsent ones, which the exporting
 * installation still has. Returns the number of cancelled deliveries.
 */
export async function adoptMessages(store: Store, handle: string): Promise<{ cancelledMails: number }> {
  const { redis } = store;
  let cancelledMails = 0;
  for (const ids of batchesOf(await redis.zrange(keys.messages(handle), 0, "-1"), MESSAGE_BATCH))
    for (const message of await findMessages(redis, handle, ids)) {
      const expiresAt = await redis.pexpiretime(keys.message(handle, message.messageId));
      // It has expired meanwhile.
      if (expiresAt < 0) continue;
      await redis.set(keys.messageOwner(message.messageId), handle, "PXAT", expiresAt);
      cancelledMails += await withdrawMessage(store, message);
    }
  return { cancelledMails };
}
