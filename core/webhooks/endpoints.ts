import { type Input, onlyOf } from "../../schemas/schema.ts";
import {
  type newWebhook,
  type SigningSecret,
  type StoredWebhook,
  schedulingEventTypes,
  type Webhook,
  type WebhookWithSecret,
  webhook,
  webhookEventTypes,
} from "../../schemas/webhooks.ts";
import { mustStillBeActive } from "../account/face.ts";
import { Fail } from "../platform/errors.ts";
import { atInput } from "../platform/outbound.ts";
import type { Runtime, Store } from "../platform/runtime.ts";
import { rebound, resealed, seal } from "../platform/sealing.ts";
import { keys } from "../store/keys.ts";
import type { Listed, ListInput } from "../store/paging.ts";
import { Records } from "../store/records.ts";
import { transact } from "../store/redis.ts";
import { formerSecrets, newSecret, PREVIOUS_SECRET_TTL_MS, sealBinding } from "./signature.ts";

/** Most former secrets of one endpoint that still sign. */
const MAX_FORMER_SECRETS = 20;
const MAX_ENDPOINTS = 50;

export const webhookRecords = new Records<StoredWebhook>({
  record: keys.webhook,
  list: keys.webhooks,
  missing: "webhook_not_found",
});

export type WebhookPath = Input<"handle" | "webhookId">;

type WebhookInput = Input<"handle", typeof newWebhook>;

/** Registers an endpoint; its secret is shown only here. `invalid_request` for a refused address. */
export async function createWebhook(runtime: Runtime, input: WebhookInput): Promise<{ webhook: WebhookWithSecret }> {
  const { handle, url, events, description } = input;
  await atInput("/url", runtime.outbound.check(url));
  await mustStillBeActive(runtime.redis, handle);
  const [webhookId, secret, at] = [runtime.id("wh_"), newSecret(), runtime.now()];
  const value: StoredWebhook = {
    webhookId,
    url,
    events: events ?? [...webhookEventTypes],
    description: description ?? null,
    status: "ACTIVE",
    createdAt: new Date(at).toISOString(),
    secret: seal(runtime.env, sealBinding(handle, webhookId), secret),
    previous: [],
  };
  const full = `A handle has at most ${MAX_ENDPOINTS} webhooks.`;
  await webhookRecords.create(runtime, handle, { id: webhookId, value, at, max: MAX_ENDPOINTS, full });
  return { webhook: { ...onlyOf(webhook, value), secret } };
}

/** The same at the older path, where `events` defaults to those of scheduling. */
export function createSchedulingWebhook(runtime: Runtime, input: WebhookInput): ReturnType<typeof createWebhook> {
  return createWebhook(runtime, { ...input, events: input.events ?? [...schedulingEventTypes] });
}

/** One endpoint; `webhook_not_found`. */
export async function readWebhook(runtime: Runtime, input: WebhookPath): Promise<{ webhook: Webhook }> {
  return { webhook: onlyOf(webhook, await webhookRecords.read(runtime, input.handle, input.webhookId)) };
}

/** The handle's endpoints, newest first. */
export async function listWebhooks(runtime: Runtime, input: ListInput): Promise<Listed<"webhooks", Webhook>> {
  const { records, nextCursor } = await webhookRecords.list(runtime, input);
  return { webhooks: records.map((one) => onlyOf(webhook, one)), nextCursor };
}

/** Removes an endpoint with its waiting deliveries; `webhook_not_found`. */
export async function deleteWebhook(runtime: Runtime, input: WebhookPath): Promise<void> {
  const { handle, webhookId } = input;
  if (!(await webhookRecords.remove(runtime, handle, webhookId))) throw new Fail("webhook_not_found");
  await forgetQueue(runtime, input);
}

/** Gives an endpoint a new secret; all secrets of the last 24 hours sign too. `webhook_not_found`, `rate_limited` if there are too many. */
export async function rotateSecret(runtime: Runtime, input: WebhookPath): Promise<{ webhook: WebhookWithSecret }> {
  const { handle, webhookId: id } = input;
  const secret = newSecret();
  const sealed = seal(runtime.env, sealBinding(handle, id), secret);
  const changed = await webhookRecords.change(runtime, handle, {
    id,
    change: (current) => ({ ...current, secret: sealed, previous: withFormer(current) }),
  });
  if (changed === undefined) throw new Fail("webhook_not_found");
  return { webhook: { ...onlyOf(webhook, changed), secret } };
}

/** The replaced secret and those that still sign: none is dropped, so their number is limited. */
function withFormer(webhook: StoredWebhook): SigningSecret[] {
  const former = formerSecrets(webhook);
  const oldest = former.at(-1);
  if (oldest === undefined || former.length < MAX_FORMER_SECRETS)
    return [{ secret: webhook.secret, until: Date.now() + PREVIOUS_SECRET_TTL_MS }, ...former];
  const detail = `An endpoint has at most ${MAX_FORMER_SECRETS + 1} secrets at a time, and each signs for 24 hours after its rotation.`;
  throw new Fail("rate_limited", { retryAfter: Math.ceil((oldest.until - Date.now()) / 1000), detail });
}

/** Enables or disables an endpoint; ignored if it is gone. */
export async function setWebhookStatus(runtime: Runtime, path: WebhookPath, status: Webhook["status"]): Promise<void> {
  const { handle, webhookId } = path;
  await webhookRecords.change(runtime, handle, { id: webhookId, change: (current) => ({ ...current, status }) });
  runtime.log.info({ handle, webhookId, status }, "webhook.status_changed");
}

/** Seals the secrets of a handle's endpoints again after a change of SECRET_KEY. Returns the number of changed endpoints. */
export async function resealWebhooks(runtime: Store, handle: string): Promise<number> {
  let count = 0;
  for (const { webhookId, ...stored } of await webhookRecords.all(runtime, handle)) {
    const reseal = (secret: string) => resealed(runtime.env, sealBinding(handle, webhookId), secret);
    if (![stored.secret, ...formerSecrets(stored).map(({ secret }) => secret)].some(reseal)) continue;
    await changeSecrets(runtime, { handle, webhookId }, (secret) => reseal(secret) ?? secret);
    count++;
  }
  return count;
}

/**
 * Binds the secrets of imported endpoints to their handle, instead of the one for which they were sealed. Returns the endpoints whose
 * secrets can't be opened here: each gets a new one, which its owner learns by rotating it.
 */
export async function rebindWebhooks(
  runtime: Store,
  { from, handle }: { from: string; handle: string },
): Promise<string[]> {
  const renewed: string[] = [];
  for (const { webhookId, secret } of await webhookRecords.all(runtime, handle)) {
    const bound = { from: sealBinding(from, webhookId), to: sealBinding(handle, webhookId) };
    const rebind = (one: string) => rebound(runtime.env, bound, one);
    if (rebind(secret) === undefined) renewed.push(webhookId);
    await changeSecrets(runtime, { handle, webhookId }, rebind);
  }
  return renewed;
}

/** Replaces the sealed secrets of an endpoint. A former one without a successor is dropped, the current one gets a new secret. */
async function changeSecrets(
  runtime: Store,
  { handle, webhookId }: WebhookPath,
  change: (sealed: string) => string | undefined,
): Promise<void> {
  const fresh = seal(runtime.env, sealBinding(handle, webhookId), newSecret());
  await webhookRecords.change(runtime, handle, {
    id: webhookId,
    change: (current) => {
      const previous = formerSecrets(current).flatMap((one) => {
        const secret = change(one.secret);
        return secret === undefined ? [] : [{ ...one, secret }];
      });
      return { ...current, secret: change(current.secret) ?? fresh, previous };
    },
  });
}

/** Removes the waiting deliveries of a deleted endpoint. */
export async function forgetQueue({ redis }: Runtime, { handle, webhookId }: WebhookPath): Promise<void> {
  await transact(redis, (transaction) => {
    transaction.del(keys.webhookQueue(handle, webhookId), keys.webhookAwake(handle, webhookId));
    transaction.del(keys.webhookFailing(handle, webhookId), keys.webhookDeliveries(handle, webhookId));
  });
}
