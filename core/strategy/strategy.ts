import type { Input } from "../../schemas/schema.ts";
import {
  type StrategyAnswer,
  type StrategyGroup,
  type StrategyMatches,
  strategyGroups,
  type strategyQuery,
} from "../../schemas/strategy.ts";
import { mustStillBeActive } from "../account/face.ts";
import { snippets } from "../engines/search/search.ts";
import { searchDocuments } from "../knowledge/face.ts";
import { Fail } from "../platform/errors.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";

const MAX_ITEMS = 20;
/** Passages searched per group; more only if these are of fewer documents than requested. */
const PASSAGES = 200;
/** Lifetime of a stored retrieval in seconds (docs/reference.md, "Strategy"). */
const CONTEXT_TTL_SECONDS = 86_400;

/**
 * The handle's strategy documents that match a query, in three groups, each with its best documents and the number of all of them
 * among the passages that were searched. `partial` if a group could not be searched in full. Stored for 24 h for `readStrategy`.
 */
export async function retrieveStrategy(
  runtime: Runtime,
  input: Input<"handle", typeof strategyQuery>,
): Promise<StrategyAnswer> {
  const searches = await Promise.allSettled(strategyGroups.map((group) => searchGroup(runtime, input, group)));
  const failures = searches.flatMap((search) => (search.status === "rejected" ? [search.reason] : []));
  if (failures.length === searches.length)
    throw new Fail("service_unavailable", { detail: "The index is not available." }, failures[0]);
  const found = searches.map((search) => (search.status === "fulfilled" ? search.value : nothing));
  const matches = strategyGroups.map((group, at) => [group, found[at]?.matches]);
  const groups = Object.fromEntries(matches) as Record<StrategyGroup, StrategyMatches>;
  const status = found.some(({ degraded }) => degraded) ? "partial" : "complete";
  const answer: StrategyAnswer = { contextId: runtime.id("ctx_"), status, query: input.query, ...groups };
  await mustStillBeActive(runtime.redis, input.handle);
  const key = keys.strategyContext(input.handle, answer.contextId);
  await runtime.redis.set(key, JSON.stringify(answer), "EX", CONTEXT_TTL_SECONDS);
  return answer;
}

/** An earlier retrieval of the handle; `context_not_found` after 24 h. */
export async function readStrategy({ redis }: Runtime, input: Input<"handle" | "contextId">): Promise<StrategyAnswer> {
  const stored = await redis.get(keys.strategyContext(input.handle, input.contextId));
  if (stored === null) throw new Fail("context_not_found");
  return JSON.parse(stored) as StrategyAnswer;
}

const nothing = { matches: { matchCount: 0, items: [] }, degraded: true };

async function searchGroup(
  runtime: Runtime,
  { handle, query: text, limit }: Input<"handle", typeof strategyQuery>,
  group: StrategyGroup,
) {
  const most = Math.min(limit, MAX_ITEMS);
  const request = { handle, text, tags: ["strategy", group], limit: PASSAGES };
  const { hits, degraded } = await searchDocuments(runtime, request, most);
  const snippetOf = snippets(text);
  const items = hits.slice(0, most).map(({ passage, score }) => {
    const { documentId, title } = passage;
    return { documentId, title, summary: snippetOf(passage), score };
  });
  return { matches: { matchCount: hits.length, items }, degraded };
}
