import type { Buffer } from "node:buffer";
import { createHash } from "node:crypto";

/** The SHA-256 digest of a text. `hash` of node:crypto would do, but the first versions of Deno 2 lack it. */
export function sha256(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

/** The same as text: 43 characters of base64url. */
export function digestOf(text: string): string {
  return sha256(text).toString("base64url");
}
