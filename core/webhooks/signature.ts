import { Buffer } from "node:buffer";
import { createHmac, createSecretKey, type KeyObject, randomBytes } from "node:crypto";
import type { FormerSecret, StoredWebhook } from "../../schemas/webhooks.ts";
import type { Runtime } from "../platform/runtime.ts";
import { type SealBinding, unseal } from "../platform/sealing.ts";

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
export function formerSecrets({ previous }: Pick<StoredWebhook, "previous">): FormerSecret[] {
  return [previous ?? []].flat().filter(({ until }) => until > Date.now());
}

/** A prepared secret, and the real ms until which it signs. */
export interface Signer {
  key: KeyObject;
  until: number;
}

/** The signers of an endpoint, newest secret first. */
export function signersOf({ env }: Pick<Runtime, "env">, binding: SealBinding, webhook: StoredWebhook): Signer[] {
  const sealed = [{ secret: webhook.secret, until: Number.POSITIVE_INFINITY }, ...formerSecrets(webhook)];
  return sealed.map((one) => signerOf(unseal(env, binding, one.secret).toString(), one.until));
}

export function signerOf(secret: string, until = Number.POSITIVE_INFINITY): Signer {
  return { key: createSecretKey(Buffer.from(secret.slice("whsec_".length), "base64")), until };
}

/** The headers of one attempt (Standard Webhooks 1.0): the id is constant, the timestamp (real seconds) is the attempt's. */
export function signedHeaders(
  signers: Signer[],
  { eventId, body }: { eventId: string; body: string },
): Record<string, string> {
  const now = Date.now();
  const timestamp = Math.floor(now / 1000);
  const signing = signers.filter(({ until }) => until > now);
  const signed = `${eventId}.${timestamp}.${body}`;
  const signatures = signing.map(({ key }) => `v1,${createHmac("sha256", key).update(signed).digest("base64")}`);
  return {
    "content-type": "application/json",
    "user-agent": "scheduling-webhooks/1",
    "webhook-id": eventId,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": signatures.join(" "),
  };
}
