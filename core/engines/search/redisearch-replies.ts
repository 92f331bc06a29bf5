import type { Ranked } from "./ranking.ts";

/** A reply of `FT.SEARCH` with NOCONTENT. */
interface FoundRows {
  /** Number of all matches, beyond the rows too. */
  total: number;
  /** The score is 0 without WITHSCORES. */
  rows: Ranked<string>[];
  /** True if the server stopped early; RESP2 can't report that. */
  partial: boolean;
}

type Reply = unknown[];

/**
 * Parses a reply of `FT.SEARCH` in RESP2 (`[total, key, score?, …]`) or in RESP3 as ioredis flattens it (`["results", [["id", key, …], …],
 * "total_results", total, "warning", [], …]`).
 */
export function readRows(reply: unknown, asked: { scores: boolean }): FoundRows {
  if (!Array.isArray(reply)) throw new TypeError("FT.SEARCH did not answer with a list");
  return typeof reply[0] === "number" ? readClassic(reply, asked) : readNamed(reply);
}

/** Whether the server has read all chunks into an index; `foreign` if the index covers other keys. */
export type IndexState = "complete" | "building" | "partial" | "foreign";

/**
 * Parses a reply of `FT.INFO`, the same in both protocols. `indexing` says exactly whether a scan is running; `percent_indexed` doesn't,
 * since it counts all keys of the server.
 */
export function readState(reply: unknown, prefix: string): IndexState {
  const info = pairs(reply as Reply);
  const prefixes = pairs((info.get("index_definition") ?? []) as Reply).get("prefixes");
  if (JSON.stringify(prefixes) !== JSON.stringify([prefix])) return "foreign";
  if (Number(info.get("indexing") ?? 0) !== 0) return "building";
  const status = pairs((info.get("Index Errors") ?? []) as Reply).get("background indexing status") ?? "OK";
  return status === "OK" ? "complete" : "partial";
}

function readClassic([total, ...rest]: Reply, { scores }: { scores: boolean }): FoundRows {
  const found = scores ? Array.from(pairs(rest)) : rest.map((key) => [String(key), 0] as const);
  const rows = found.map(([key, score]) => ({ item: key, score: Number(score) }));
  return { total: Number(total), rows, partial: false };
}

function readNamed(reply: Reply): FoundRows {
  const answer = pairs(reply);
  const rows = (answer.get("results") as Reply[]).map((result) => {
    const row = pairs(result);
    return { item: String(row.get("id")), score: Number(row.get("score") ?? 0) };
  });
  const warnings = answer.get("warning") as Reply | undefined;
  return { total: Number(answer.get("total_results")), rows, partial: (warnings?.length ?? 0) > 0 };
}

function pairs(list: Reply): Map<string, unknown> {
  const found = new Map<string, unknown>();
  for (let at = 0; at + 1 < list.length; at += 2) found.set(String(list[at]), list[at + 1]);
  return found;
}
