import { Buffer } from "node:buffer";
import { createHmac, randomBytes } from "node:crypto";
import type { SigningSecret, StoredWebhook } from "../../schemas/webhooks.ts";
import { type Keys, type SealBinding, unseal } from "../platform/sealing.ts";

/** Ms for which a former secret still signs (docs/reference.md, "Webhook delivery"). */
export const PREVIOUS_SECRET_TTL_MS = 86_400_000;

/** A new secret in the format of Standard Webhooks: 32 random bytes. */
export function newSecret(): string {
  return `whsec_${randomBytes(32).toString("base64")}`;
}

export function sealBinding(handle: string, webhookId: string): SealBinding {
  return { purpose: "webhook secret", context: `${handle}/${webhookId}` };
}

/** The former secrets that still sign, newest first. Endpoints of earlier versions have one or null. */
export function formerSecrets({ previous }: Pick<StoredWebhook, "previous">): SigningSecret[] {
  return [previous ?? []].flat().filter(({ until }) => until > Date.now());
}

/** The opened secrets of an endpoint that sign, newest first. */
export function signersOf(env: Keys, binding: SealBinding, webhook: StoredWebhook): SigningSecret[] {
  const sealed = [{ secret: webhook.secret, until: Number.POSITIVE_INFINITY }, ...formerSecrets(webhook)];
  return sealed.map(({ secret, until }) => ({ secret: unseal(env, binding, secret).toString(), until }));
}

/** The headers of one attempt (Standard Webhooks 1.0): the id is constant, the timestamp (real seconds) is the attempt's. */
export function signedHeaders(
  signers: SigningSecret[],
  { eventId, body }: { eventId: string; body: string },
): Record<string, string> {
  const now = Date.now();
  const timestamp = Math.floor(now / 1000);
  const signed = `${eventId}.${timestamp}.${body}`;
  const signatures = signers
    .filter(({ until }) => until > now)
    .map(({ secret }) => Buffer.from(secret.slice("whsec_".length), "base64"))
    .map((key) => `v1,${createHmac("sha256", key).update(signed).digest("base64")}`);
  return {
    "content-type": "application/json",
    "user-agent": "scheduling-webhooks/1",
    "webhook-id": eventId,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": signatures.join(" "),
  };
}
