import { Buffer } from "node:buffer";
import { createHmac, randomBytes } from "node:crypto";
import type { StoredWebhook } from "../../schemas/webhooks.ts";
import type { Runtime } from "../runtime.ts";
import { resealed, seal, unseal } from "../sealing.ts";

const purpose = "webhook secret";

/** Ms for which the secret before a rotation signs too (contract 8). */
export const previousLasts = 86_400_000;

/** A new secret in the form of Standard Webhooks: 32 random bytes. */
export function newSecret(): string {
  return `whsec_${randomBytes(32).toString("base64")}`;
}

/** A secret as it is stored, bound to its endpoint. */
export function sealSecret({ env }: Pick<Runtime, "env">, place: string, secret: string): string {
  return seal(env, purpose, place, secret);
}

/** An endpoint with its secrets sealed by the current key; undefined where they are already. */
export function resealedWebhook(
  { env }: Pick<Runtime, "env">,
  place: string,
  webhook: StoredWebhook,
): StoredWebhook | undefined {
  const { secret, previous } = webhook;
  const [now, before] = [secret, previous?.secret].map((one) => one && resealed(env, purpose, place, one));
  if (!now && !before) return undefined;
  return {
    ...webhook,
    secret: now || secret,
    previous: previous && { ...previous, secret: before || previous.secret },
  };
}

/** The secrets that sign for an endpoint now, the newest first. */
export function secretsOf({ env }: Pick<Runtime, "env">, place: string, webhook: StoredWebhook): string[] {
  const { secret, previous } = webhook;
  const sealed = previous && previous.until > Date.now() ? [secret, previous.secret] : [secret];
  return sealed.map((one) => unseal(env, purpose, place, one).toString());
}

/** The headers of one attempt (Standard Webhooks 1.0): the id stays, the timestamp (real seconds) is the attempt's. */
export function signedHeaders(
  secrets: string[],
  { eventId, body }: { eventId: string; body: string },
): Record<string, string> {
  const timestamp = Math.floor(Date.now() / 1000);
  const signatures = secrets.map((secret) => `v1,${signature(secret, `${eventId}.${timestamp}.${body}`)}`);
  return {
    "content-type": "application/json",
    "user-agent": "scheduling-webhooks/1",
    "webhook-id": eventId,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": signatures.join(" "),
  };
}

function signature(secret: string, signed: string): string {
  return createHmac("sha256", Buffer.from(secret.slice("whsec_".length), "base64"))
    .update(signed)
    .digest("base64");
}
