import { Buffer } from "node:buffer";
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes, timingSafeEqual } from "node:crypto";
import { sha256 } from "./digest.ts";
import type { Env } from "./env.ts";
import { typedDigits } from "./typed.ts";

/** The root keys. */
export type Keys = Pick<Env, "SECRET_KEY" | "SECRET_KEY_PREVIOUS">;

/** The purpose for which the key of a sealed value is derived, and the record to which the value belongs: in another one it does not open. */
export interface SealBinding {
  purpose: string;
  context: string;
}

/**
 * Seals a secret for storage: AES-256-GCM with a random 96-bit nonce, prefixed by the key's id. The context is associated data. HKDF
 * derives the key from SECRET_KEY for this purpose only.
 */
export function seal(env: Keys, { purpose, context }: SealBinding, secret: string | Uint8Array): string {
  const nonce = randomBytes(12);
  const cipher = createCipheriv("aes-256-gcm", derive(env.SECRET_KEY, purpose), nonce).setAAD(Buffer.from(context));
  const body = Buffer.concat([nonce, cipher.update(secret), cipher.final(), cipher.getAuthTag()]);
  return `v1.${keyId(env.SECRET_KEY)}.${body.toString("base64url")}`;
}

/** Opens a sealed value, also with the previous key. Throws if key, binding or content don't match. */
export function unseal(env: Keys, { purpose, context }: SealBinding, sealed: string): Buffer {
  const [version, id, encoded] = sealed.split(".");
  const root = roots(env).find((key) => keyId(key) === id);
  if (version !== "v1" || root === undefined || encoded === undefined)
    throw new Error("Sealed with a key that is not known here; set SECRET_KEY or SECRET_KEY_PREVIOUS to it.");
  const body = Buffer.from(encoded, "base64url");
  const decipher = createDecipheriv("aes-256-gcm", derive(root, purpose), body.subarray(0, 12)).setAAD(
    Buffer.from(context),
  );
  decipher.setAuthTag(body.subarray(-16));
  return Buffer.concat([decipher.update(body.subarray(12, -16)), decipher.final()]);
}

/** The same secret sealed with the current key; undefined if it already is. Throws like `unseal`. */
export function resealed(env: Keys, binding: SealBinding, sealed: string): string | undefined {
  if (sealed.split(".")[1] === keyId(env.SECRET_KEY)) return undefined;
  return seal(env, binding, unseal(env, binding, sealed));
}

/**
 * A sealed secret, bound to another record and sealed with the current key; undefined if it can't be opened here: its key is unknown, or it
 * is damaged.
 */
export function rebound(env: Keys, bindings: Record<"from" | "to", SealBinding>, sealed: string): string | undefined {
  try {
    return seal(env, bindings.to, unseal(env, bindings.from, sealed));
  } catch {
    // The result of the import names what was lost.
    return undefined;
  }
}

/** A MAC (HMAC-SHA-256, base64url) over `text` under the current key, for values that visitors carry. */
export function sign(env: Keys, purpose: string, text: string): string {
  return createHmac("sha256", derive(env.SECRET_KEY, purpose)).update(text).digest("base64url");
}

/** Verifies a MAC of `sign` in constant time, under the current and the previous key. */
export function isSigned(env: Keys, purpose: string, text: string, mac: string): boolean {
  return roots(env).some((key) => sameText(sign({ ...env, SECRET_KEY: key }, purpose, text), mac));
}

/** A value that its holder can read but not change: its JSON in base64url, and a MAC. */
export function signedValue(env: Keys, purpose: string, value: unknown): string {
  const body = Buffer.from(JSON.stringify(value)).toString("base64url");
  return `${body}.${sign(env, purpose, body)}`;
}

/** The value of `signedValue`; undefined for a text that this service didn't sign. */
export function readSignedValue<T>(env: Keys, purpose: string, text: string): T | undefined {
  const [, body = "", mac = ""] = /^([^.]*)\.([^.]*)$/.exec(text) ?? [];
  if (!isSigned(env, purpose, body, mac)) return undefined;
  return JSON.parse(Buffer.from(body, "base64url").toString("utf8")) as T;
}

/** Six digits derived from a text under a root key, for codes that people type. Nothing needs to be stored. */
export function sixDigits(root: string, purpose: string, text: string): string {
  const mac = createHmac("sha256", derive(root, purpose)).update(text).digest();
  return String(mac.readUIntBE(0, 6) % 1_000_000).padStart(6, "0");
}

/** Verifies six digits as a person typed them, under the current and the previous key. */
export function isSixDigits(env: Keys, purpose: string, { text, typed }: { text: string; typed: string }): boolean {
  return roots(env).some((root) => sameText(typedDigits(typed).replace(/\D/g, ""), sixDigits(root, purpose, text)));
}

/** The current root key and the previous one, if there is one. */
export function roots({ SECRET_KEY, SECRET_KEY_PREVIOUS }: Keys): string[] {
  return [SECRET_KEY, SECRET_KEY_PREVIOUS].filter((root) => root !== undefined);
}

/** Compares two texts in constant time. */
export function sameText(one: string, other: string): boolean {
  const digests = [one, other].map((text) => sha256(text)) as [Buffer, Buffer];
  return timingSafeEqual(...digests);
}

const derived = new Map<string, Buffer>();

/** Derives the 32-byte key of one purpose from a root. */
export function derive(root: string, purpose: string): Buffer {
  const name = `${root} ${purpose}`;
  const key = derived.get(name) ?? Buffer.from(hkdfSync("sha256", Buffer.from(root, "base64"), "", purpose, 32));
  derived.set(name, key);
  return key;
}

function keyId(root: string): string {
  return derive(root, "key id").toString("base64url").slice(0, 6);
}
