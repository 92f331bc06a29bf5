import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { invalid } from "./errors.ts";

/** Most items of one page of a list (contract 1). */
const mostItems = 100;
/** Letters of a list's digest before each place, so that a cursor fits its own list alone. */
const digestLetters = 8;

/** `limit` and `cursor` of a request for a list, as one range over its places; `list` names it, by its key as a rule. */
export function pageOf(
  input: { limit: number; cursor?: string | undefined },
  list: string,
): {
  limit: number;
  after: string | undefined;
} {
  return {
    limit: Math.min(input.limit, mostItems),
    after: input.cursor === undefined ? undefined : open(input.cursor, list),
  };
}

/** The opaque cursor that goes on in this list after a place, or null at the end. */
export function cursorAfter(place: string | undefined, list: string): string | null {
  return place === undefined ? null : Buffer.from(`${digestOf(list)}${place}`).toString("base64url");
}

function open(cursor: string, list: string): string {
  const place = Buffer.from(cursor, "base64url").toString();
  if (!place.startsWith(digestOf(list)) || Buffer.from(place).toString("base64url") !== cursor)
    throw invalid("/cursor", "is not a cursor of this list");
  return place.slice(digestLetters);
}

function digestOf(list: string): string {
  return createHash("sha256").update(list).digest("base64url").slice(0, digestLetters);
}
