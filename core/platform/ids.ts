import { randomFillSync } from "node:crypto";

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** A new id: the prefix and 22 base-62 characters with at least 128 random bits. */
export function newId(prefix: string): string {
  return prefix + base62(22);
}

/** `length` random base-62 characters, uniformly distributed. */
export function base62(length: number): string {
  let text = "";
  while (text.length < length) {
    const byte = randomByte();
    // 248 is the largest multiple of 62 in a byte; larger bytes would favour the first characters.
    if (byte < 248) text += alphabet[byte % 62];
  }
  return text;
}

/** A pool of random bytes, since each draw costs as much as making an id. Each byte is used once. */
const drawn = new Uint8Array(4096);
let used = drawn.length;

function randomByte(): number {
  if (used === drawn.length) {
    randomFillSync(drawn);
    used = 0;
  }
  return drawn[used++] as number;
}

/** The last `length` base-62 digits of an integer. */
export function toBase62(number: number, length: number): string {
  let text = "";
  for (let rest = number; text.length < length; rest = Math.floor(rest / 62))
    text = (alphabet[rest % 62] as string) + text;
  return text;
}
