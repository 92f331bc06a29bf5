import { digestOf } from "../platform/digest.ts";

/** A digest that is equal for bodies with equal parsed JSON, whatever the order of keys (docs/reference.md, "Idempotency"). */
export function bodyDigest(body: unknown): string {
  return digestOf(canonical(body));
}

/** The digest of a client's key for Redis key names. */
export function keyDigest(key: string): string {
  return digestOf(key).slice(0, 32);
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return `{${members
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`)
    .join(",")}}`;
}
