import { Buffer } from "node:buffer";
import { type Cipher, createCipheriv, createHmac } from "node:crypto";
import { derive, type Keys, roots, sameText } from "../../platform/sealing.ts";

/** What a nonce binds besides the start and end of its slot. */
interface Issuer {
  handle: string;
  eventTypeId: string;
  revision: number;
}

/** Bytes of a tag (120 bits, so that tags are whole groups of base64), and its length in characters. */
const TAG_BYTES = 15;
export const TAG_LENGTH = 20;

/** Nonces of many slots: each is the prefix with the next `TAG_LENGTH` characters of the tags. */
export interface Nonces {
  prefix: string;
  tags: string;
}

/**
 * Nonces for many slots at once, `v1.<revision>.<tag>`. Start and end fill one block of AES-128, a pseudorandom function whose key is
 * derived from owner, event type and revision; one block of fixed length makes it a MAC. Nothing is stored. An HMAC per slot would take
 * longer than the rest of the response: 2 µs instead of 0.05.
 */
export function bookingNonces(env: Keys, issuer: Issuer, starts: readonly number[], duration: number): Nonces {
  return { prefix: `v1.${issuer.revision.toString(36)}.`, tags: tagsOf(env.SECRET_KEY, issuer, starts, duration) };
}

/**
 * Checks a slot's nonce: "offered" for this revision of the event type; "unproven" without one, or with that of an earlier revision;
 * "foreign" for everything else.
 */
export function checkNonce(
  env: Keys,
  issuer: Issuer,
  slot: { start: number; end: number; nonce: string | undefined },
): "offered" | "unproven" | "foreign" {
  if (slot.nonce === undefined) return "unproven";
  const [, letters = "", tag = ""] = /^v1\.([0-9a-z]{1,11})\.([A-Za-z0-9_-]{20})$/.exec(slot.nonce) ?? [];
  const revision = Number.parseInt(letters, 36);
  if (!Number.isSafeInteger(revision)) return "foreign";
  const isOurs = roots(env).some((root) =>
    sameText(tag, tagsOf(root, { ...issuer, revision }, [slot.start], slot.end - slot.start)),
  );
  if (!isOurs) return "foreign";
  return revision === issuer.revision ? "offered" : "unproven";
}

function tagsOf(root: string, issuer: Issuer, starts: readonly number[], duration: number): string {
  const blocks = Buffer.alloc(starts.length * 16);
  const view = new DataView(blocks.buffer, blocks.byteOffset);
  for (let at = 0; at < starts.length; at++) {
    view.setFloat64(at * 16, starts[at] as number);
    view.setFloat64(at * 16 + 8, (starts[at] as number) + duration);
  }
  const outputs = cipherOf(root, issuer).update(blocks);
  for (let at = 1; at < starts.length; at++) outputs.copyWithin(at * TAG_BYTES, at * 16, at * 16 + TAG_BYTES);
  return outputs.toString("base64url", 0, starts.length * TAG_BYTES);
}

function cipherOf(root: string, { handle, eventTypeId, revision }: Issuer): Cipher {
  const about = `${handle} ${eventTypeId} ${revision}`;
  const key = createHmac("sha256", derive(root, "booking nonce")).update(about).digest().subarray(0, 16);
  return createCipheriv("aes-128-ecb", key, null).setAutoPadding(false);
}
