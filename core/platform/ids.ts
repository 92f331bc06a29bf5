import { randomFillSync } from "node:crypto";

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** A new id: the prefix and 22 characters of base 62 (130 bits of which 128 or more are random). */
export function newId(prefix: string): string {
  return prefix + base62(22);
}

/** `length` random characters of base 62, each equally likely. */
export function base62(length: number): string {
  let text = "";
  while (text.length < length) {
    const byte = randomByte();
    // 248 is the largest multiple of 62 in a byte; larger bytes would favour the first letters.
    if (byte < 248) text += alphabet[byte % 62];
  }
  return text;
}

/** Random bytes, drawn many at a time since each draw costs as much as making an id; each is used once. */
const drawn = new Uint8Array(4096);
let used = drawn.length;

function randomByte(): number {
  if (used === drawn.length) {
    randomFillSync(drawn);
    used = 0;
  }
  return drawn[used++] as number;
}

/** A whole number's last `length` digits in base 62. */
export function toBase62(number: number, length: number): string {
  let text = "";
  for (let rest = number; text.length < length; rest = Math.floor(rest / 62))
    text = (alphabet[rest % 62] as string) + text;
  return text;
}
