import { type Credential, credential as credentialShape, type StoredCredential } from "../../schemas/integrations.ts";
import { onlyOf } from "../../schemas/schema.ts";
import { ownerAddresses } from "../account/face.ts";
import { CalendarServerError } from "../engines/calendars/calendars.ts";
import { Fail } from "../platform/errors.ts";
import type { CredentialRef, CredentialStore, Runtime, Store } from "../platform/runtime.ts";
import { rebound, resealed, type SealBinding, seal, unseal } from "../platform/sealing.ts";
import { keys } from "../store/keys.ts";
import { Records } from "../store/records.ts";
import { retryOnConflict } from "../store/retry.ts";
import { eventJob } from "../webhooks/face.ts";
import { failedRefundJobs } from "./booking-payments.ts";

export const credentialRecords = new Records<StoredCredential>({
  record: keys.credential,
  list: keys.credentials,
  missing: "integration_not_found",
});

/** Most connected accounts of a handle. */
const MAX_ACCOUNTS = 50;

/** An account at a provider, with its secret. */
export type ConnectedAccount = Pick<StoredCredential, "providerKey" | "account" | "secret">;

/**
 * Stores a connected account. A reconnected one keeps its id, and so its calendars, and becomes healthy. One for payments tries failed
 * refunds again, in the same step. `invalid_request` if full.
 */
export async function storeCredential(
  runtime: Runtime,
  handle: string,
  connected: ConnectedAccount,
): Promise<Credential> {
  return retryOnConflict(runtime.redis, keys.credentials(handle), () => tryStore(runtime, handle, connected));
}

/** Undefined if another account was connected meanwhile: it may be the same one. */
async function tryStore(
  runtime: Runtime,
  handle: string,
  { secret, ...made }: ConnectedAccount,
): Promise<Credential | undefined> {
  const all = await credentialRecords.all(runtime, handle);
  const earlier = all.find((one) => one.providerKey === made.providerKey && one.account === made.account);
  const jobs = made.providerKey === "stripe" ? await failedRefundJobs(runtime, handle) : [];
  const again =
    earlier &&
    (await credentialRecords.change(runtime, handle, {
      id: earlier.credentialId,
      change: ({ detail: _detail, ...current }) => {
        return { ...current, status: "OK", secret: sealed(runtime, sealBinding(handle, current), secret) };
      },
      jobs: () => jobs,
    }));
  if (again) return toCredential(again);
  if (all.length >= MAX_ACCOUNTS)
    throw new Fail("invalid_request", {
      detail: `A handle has at most ${MAX_ACCOUNTS} connected accounts; disconnect one first.`,
    });
  const [id, at] = [runtime.id("cred_"), runtime.now()];
  const bare = { credentialId: id, ...made, status: "OK" as const, createdAt: new Date(at).toISOString() };
  const value: StoredCredential = { ...bare, secret: sealed(runtime, sealBinding(handle, bare), secret) };
  const isStored = await credentialRecords.create(runtime, handle, { id, value, at, jobs, max: all.length + 1 });
  return isStored ? toCredential(value) : undefined;
}

/** Marks an account as degraded by a failure, or as healthy without one. A change to degraded is stored with its event. */
export async function updateHealth(
  runtime: Runtime,
  { handle, credentialId }: CredentialRef,
  failure: Error | undefined,
): Promise<void> {
  const details = failure && failureDetails(failure);
  const status = details ? "DEGRADED" : "OK";
  let isChanged = false;
  const stored = await credentialRecords.change(runtime, handle, {
    id: credentialId,
    change: ({ detail, ...current }) => {
      isChanged = current.status !== status || detail !== details?.detail;
      return isChanged ? { ...current, status, ...(details ? { detail: details.detail } : {}) } : undefined;
    },
    jobs: ({ providerKey }, before) => {
      const data = { handle, providerKey, credentialId, ...details };
      const isNew = details !== undefined && before.status === "OK";
      return isNew ? [eventJob(runtime, handle, { type: "scheduling.sync.degraded", data })] : [];
    },
  });
  if (stored === undefined || !isChanged) return;
  const { providerKey } = stored;
  runtime.log.warn({ handle, providerKey, status, error: failure?.message }, "integration.status_changed");
}

/** The reason of a provider's failure, for events and accounts: a code, and a sentence for the owner. */
export function failureDetails(failure: Error): { reason: string; detail: string } {
  if (failure instanceof Fail) return { reason: failure.code, detail: failure.sentence };
  const isNamed = failure instanceof CalendarServerError;
  const detail = isNamed ? failure.message : "The provider is unavailable; synchronisation is retried.";
  return { reason: "provider_unavailable", detail };
}

/**
 * Replaces the secret of an account atomically by the result of `change`; null keeps it. Returns the resulting secret;
 * `integration_not_found`.
 */
async function changeSecret(
  runtime: Runtime,
  { handle, credentialId }: CredentialRef,
  change: (secret: string | null) => string | null,
): Promise<string | null> {
  const changed = await credentialRecords.change(runtime, handle, {
    id: credentialId,
    change(current) {
      const next = change(secretOf(runtime, handle, current));
      return next === null ? undefined : { ...current, secret: sealed(runtime, sealBinding(handle, current), next) };
    },
  });
  if (changed === undefined) throw new Fail("integration_not_found");
  return secretOf(runtime, handle, changed);
}

/** Connected accounts, for providers. */
export function openCredentials(runtime: () => Runtime): CredentialStore {
  return {
    secret: async ({ handle, credentialId }) =>
      secretOf(runtime(), handle, await credentialRecords.read(runtime(), handle, credentialId)),
    changeSecret: (account, change) => changeSecret(runtime(), account, change),
    updateHealth: (account, failure) => updateHealth(runtime(), account, failure),
    ownerAddresses: (handle) => ownerAddresses(runtime().redis, handle),
  };
}

/** Seals the secrets of a handle's accounts again after a change of SECRET_KEY. Returns the number of changed secrets. */
export async function resealCredentials(runtime: Store, handle: string): Promise<number> {
  const resealedSecret = (one: StoredCredential): string | null | undefined =>
    one.secret && resealed(runtime.env, sealBinding(handle, one), one.secret);
  const stale = (await credentialRecords.all(runtime, handle)).filter(resealedSecret);
  for (const { credentialId } of stale)
    await credentialRecords.change(runtime, handle, {
      id: credentialId,
      change: (current) => ({ ...current, secret: resealedSecret(current) || current.secret }),
    });
  return stale.length;
}

/**
 * Binds the secrets of imported accounts to their handle, instead of the one for which they were sealed. Returns the accounts whose
 * secrets can't be opened here: they are removed, and their owner must connect them again.
 */
export async function rebindCredentials(
  runtime: Store,
  { from, handle }: { from: string; handle: string },
): Promise<Pick<Credential, "providerKey" | "account">[]> {
  const lost: Pick<Credential, "providerKey" | "account">[] = [];
  for (const stored of await credentialRecords.all(runtime, handle)) {
    const { credentialId, providerKey, account } = stored;
    const bindings = { from: sealBinding(from, stored), to: sealBinding(handle, stored) };
    const secret = stored.secret && rebound(runtime.env, bindings, stored.secret);
    const change = (current: StoredCredential): StoredCredential => ({ ...current, secret: secret ?? null });
    if (secret !== undefined) await credentialRecords.change(runtime, handle, { id: credentialId, change });
    else if (await credentialRecords.remove(runtime, handle, credentialId)) lost.push({ providerKey, account });
  }
  return lost;
}

/** The secret of a credential, or null. */
export function secretOf({ env }: Pick<Runtime, "env">, handle: string, stored: StoredCredential): string | null {
  const { secret } = stored;
  return secret && unseal(env, sealBinding(handle, stored), secret).toString("utf8");
}

/** A credential as its owner sees it. */
export function toCredential(stored: StoredCredential): Credential {
  return onlyOf(credentialShape, stored);
}

function sealed({ env }: Pick<Runtime, "env">, binding: SealBinding, secret: string | null): string | null {
  return secret === null ? null : seal(env, binding, secret);
}

function sealBinding(
  handle: string,
  { providerKey, credentialId }: Pick<StoredCredential, "providerKey" | "credentialId">,
): SealBinding {
  return { purpose: "provider credential", context: `${handle}/${providerKey}/${credentialId}` };
}
