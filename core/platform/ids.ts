import { randomInt } from "node:crypto";

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** A new id: the prefix and 22 base-62 characters with at least 128 random bits. */
export function newId(prefix: string): string {
  return prefix + base62(22);
}

/** `length` random base-62 characters, uniformly distributed. */
export function base62(length: number): string {
  return Array.from({ length }, () => alphabet[randomInt(62)]).join("");
}
