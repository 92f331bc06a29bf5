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

/** Entries of a list from one score to another, by default all, the highest first unless `order` is `asc`. */
interface ListPage {
  /** The position that earlier pages have reached: `score member`. */
  after: string | undefined;
  count: number;
  from?: number;
  to?: number;
  order?: "asc" | "desc";
}

/** One page of the ids of a list, and the cursor of the next page. `name` is that of the list, by default its key. */
export async function listIds(
  { env, redis }: Pick<Runtime, "env" | "redis">,
  list: string,
  { range, name = list, ...input }: ListInput<never> & { range?: Partial<ListPage>; name?: string },
): Promise<Listed<"ids", string>> {
  const { limit, after } = pageOf(env, input, name);
  const pairs = await entriesOf(redis, list, { ...range, after, count: limit + 1 });
  const last = pairs.length > limit ? pairs[limit - 1] : undefined;
  return {
    ids: pairs.slice(0, limit).map(([id]) => id),
    nextCursor: cursorAfter(env, last && `${last[1]} ${last[0]}`, name),
  };
}

/** The entries of a page; also if the member of its position is gone or has another score by now. */
export async function entriesOf(
  redis: Redis,
  list: string,
  { after, count, from = Number.MIN_SAFE_INTEGER, to = Number.MAX_SAFE_INTEGER, order }: ListPage,
): Promise<[member: string, score: string][]> {
  const isAscending = order === "asc";
  const [score = isAscending ? from : to, member = ""] = after?.split(/ (.*)/s) ?? [];
  const reached = Number(score);
  const [least, most] = isAscending ? [Math.max(from, reached), to] : [from, Math.min(to, reached)];
  // Of the entries with the score of the position, the earlier pages had those up to it.
  const together = after ? await redis.zrangebyscore(list, Math.max(least, reached), Math.min(most, reached)) : [];
  const offset = together.filter((one) => (isAscending ? one <= member : one >= member)).length;
  const found = isAscending
    ? await redis.zrangebyscore(list, least, most, "WITHSCORES", "LIMIT", offset, count)
    : await redis.zrevrangebyscore(list, most, least, "WITHSCORES", "LIMIT", offset, count);
  return pairsOf(found);
}

function open(env: Env, cursor: string, list: string): string {
  const text = Buffer.from(cursor, "base64url").toString();
  const [mac, position] = [text.slice(0, MAC_LENGTH), text.slice(MAC_LENGTH)];
  if (!isSigned(env, "cursor", `${list} ${position}`, mac) || Buffer.from(text).toString("base64url") !== cursor)
    throw invalid("/cursor", "must be a cursor of this list");
  return position;
}
