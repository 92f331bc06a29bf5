import { Buffer } from "node:buffer";
import { createHmac, type Hmac } from "node:crypto";
import type { Env } from "../platform/env.ts";
import { Fail } from "../platform/errors.ts";
import { sameText } from "../platform/sealing.ts";

/** Tolerated age of a signature in real seconds, past or future (Standard Webhooks, "Verifying webhook authenticity"). */
const TOLERANCE_SECONDS = 300;

/** A request whose body, an async iterable of bytes, is yet to arrive. */
export interface SignedRequest {
  body?: unknown;
  headers: unknown;
}

/**
 * The first bytes of a body that is signed with EMAIL_FEEDBACK_SECRET (`whsec_` and base64) according to Standard Webhooks, at least
 * `maxBytes` of them. `invalid_token` for any other request, before its body arrives if the headers are wrong. The signature is computed
 * while the body arrives, so that no stranger fills the memory.
 */
export async function signedBody(env: SecretEnv, request: SignedRequest, maxBytes: number): Promise<Buffer> {
  const headers = request.headers as Headers;
  const hmac = signer(env, headers);
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request.body as AsyncIterable<Buffer>) {
    hmac.update(part);
    if (size < maxBytes) parts.push(part);
    size += part.length;
  }
  const expected = `v1,${hmac.digest("base64")}`;
  const signatures = headers["webhook-signature"]?.split(" ") ?? [];
  if (!signatures.some((one) => sameText(one, expected))) throw refused("Signature mismatch.");
  return Buffer.concat(parts);
}

type SecretEnv = Pick<Env, "EMAIL_FEEDBACK_SECRET">;
type Headers = Record<string, string | undefined>;

/** The signature of a request before its body. */
function signer({ EMAIL_FEEDBACK_SECRET: secret }: SecretEnv, headers: Headers): Hmac {
  const { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures } = headers;
  if (secret === undefined) throw refused("The service is not configured for feedback.");
  if (!id || !timestamp || !signatures) throw refused("The signature headers are missing.");
  if (!/^\d{1,12}$/.test(timestamp) || Math.abs(Date.now() / 1000 - Number(timestamp)) > TOLERANCE_SECONDS)
    throw refused("The signature timestamp is too old or in the future.");
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  return createHmac("sha256", key).update(`${id}.${timestamp}.`);
}

function refused(detail: string): Fail {
  return new Fail("invalid_token", { detail });
}
