import type { Buffer } from "node:buffer";
import { createHash } from "node:crypto";

/** The SHA-256 digest of a text. `hash` of node:crypto would do, but Deno has it only since 2.2. */
export function sha256(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
