import { Buffer } from "node:buffer";
import type { Redis } from "ioredis";
import type { Input, listQuery } from "../../schemas/schema.ts";
import { invalid } from "../platform/errors.ts";
import type { Runtime } from "../platform/runtime.ts";
import { isSigned, sign } from "../platform/sealing.ts";
import { pairsOf } from "./redis.ts";

/** Most items of one page of a list (docs/reference.md, "Envelopes and lists"). */
const MAX_ITEMS = 100;
/** Characters of the MAC before each position: a cursor is valid only if it was issued, and only for its own list. */
const MAC_LENGTH = 43;

type Env = Runtime["env"];

/** The input of a list, by default of a handle. */
export type ListInput<N extends string = "handle"> = Input<N, typeof listQuery>;

/** One page of a list, under the plural of its resource, and the cursor of the next page. */
export type Listed<N extends string, T> = Record<N, T[]> & { nextCursor: string | null };

/** `limit` and `cursor` of a list request as a range of positions; `list` names the list, usually by its key. */
export function pageOf(env: Env, input: ListInput<never>, list: string): { limit: number; after: string | undefined } {
  return {
    limit: Math.min(input.limit, MAX_ITEMS),
    after: input.cursor === undefined ? undefined : open(env, input.cursor, list),
  };
}

/** The opaque cursor that continues this list after a position, or null at the end. */
export function cursorAfter(env: Env, position: string | undefined, list: string): string | null {
  if (position === undefined) return null;
  return Buffer.from(`${sign(env, "cursor", `${list} ${position}`)}${position}`).toString("base64url");
}

/** One page of the ids of a list, newest first, and the cursor of the next page. */
export async function listIds(
  { env, redis }: Pick<Runtime, "env" | "redis">,
  list: string,
  input: ListInput<never>,
): Promise<Listed<"ids", string>> {
  const { limit, after } = pageOf(env, input, list);
  const start = after === undefined ? 0 : await rankAfter(redis, list, after);
  const found = await redis.zrevrange(list, start, start + limit, "WITHSCORES");
  const pairs = pairsOf(found);
  const last = pairs.length > limit ? pairs[limit - 1] : undefined;
  return {
    ids: pairs.slice(0, limit).map(([id]) => id),
    nextCursor: cursorAfter(env, last && `${last[1]} ${last[0]}`, list),
  };
}

/** The rank in a list, newest first, of what follows a position, `score member`; also if that member is gone or has another score by now. */
export async function rankAfter(redis: Redis, list: string, position: string): Promise<number> {
  const [score = "", member = ""] = position.split(/ (.*)/s);
  const [newer, sameAge] = await Promise.all([
    redis.zcount(list, `(${score}`, "+inf"),
    redis.zrangebyscore(list, score, score),
  ]);
  return newer + sameAge.filter((one) => one >= member).length;
}

function open(env: Env, cursor: string, list: string): string {
  const text = Buffer.from(cursor, "base64url").toString();
  const [mac, position] = [text.slice(0, MAC_LENGTH), text.slice(MAC_LENGTH)];
  if (!isSigned(env, "cursor", `${list} ${position}`, mac) || Buffer.from(text).toString("base64url") !== cursor)
    throw invalid("/cursor", "must be a cursor of this list");
  return position;
}
