import { Buffer } from "node:buffer";
import { createHmac } from "node:crypto";
import type { Env } from "../platform/env.ts";
import { Fail } from "../platform/errors.ts";
import { sameText } from "../platform/sealing.ts";

/** Tolerated age of a signature in real seconds, past or future (Standard Webhooks, "Verifying webhook authenticity"). */
const TOLERANCE_SECONDS = 300;

/** A request with its raw body. */
export interface SignedRequest {
  body?: unknown;
  headers: unknown;
}

/** Refuses feedback before its body is read if no secret is configured: `invalid_token`. */
export async function admitFeedback({ env }: { env: Pick<Env, "EMAIL_FEEDBACK_SECRET"> }): Promise<void> {
  if (env.EMAIL_FEEDBACK_SECRET === undefined)
    throw new Fail("invalid_token", { detail: "The service is not configured for feedback." });
}

/**
 * The verified body of a request signed with EMAIL_FEEDBACK_SECRET (`whsec_` and base64) according to Standard Webhooks. `invalid_token`
 * for any other request.
 */
export function signedBody(
  { EMAIL_FEEDBACK_SECRET: secret }: Pick<Env, "EMAIL_FEEDBACK_SECRET">,
  request: SignedRequest,
): Buffer {
  const headers = request.headers as Record<string, string | undefined>;
  const { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures } = headers;
  const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
  if (secret === undefined || !id || !timestamp || !signatures)
    throw new Fail("invalid_token", { detail: "The signature headers are missing." });
  if (!/^\d{1,12}$/.test(timestamp) || Math.abs(Date.now() / 1000 - Number(timestamp)) > TOLERANCE_SECONDS) {
    throw new Fail("invalid_token", { detail: "The signature timestamp is too old or in the future." });
  }
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const expected = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64");
  const fits = signatures.split(" ").some((one) => one.startsWith("v1,") && sameText(one.slice(3), expected));
  if (!fits) throw new Fail("invalid_token", { detail: "Signature mismatch." });
  return body;
}
