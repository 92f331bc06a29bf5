import * as s from "./schema.ts";

/** The groups of strategy knowledge: a document joins one by the tags `strategy` and the group's name (docs/reference.md, "Strategy"). */
export const strategyGroups = ["worked_examples", "failed_examples", "app_structure_examples"] as const;
export type StrategyGroup = (typeof strategyGroups)[number];

/** `POST …/agent/strategy/retrieve`; `limit` applies to each group and is clamped to 20. */
export const strategyQuery = s.object({
  query: s.string({ ...s.filled, maxLength: 2000 }),
  limit: s.withDefault(s.integer(1), 5),
});

const group = s.component("StrategyGroup", {
  matchCount: s.integer(0),
  items: s.array(s.object({ documentId: s.string(), title: s.string(), summary: s.string(), score: s.number })),
});
export type StrategyMatches = s.Infer<typeof group>;

/** The result of a retrieval; `partial` if a part of the search could not answer in full. */
export const strategyAnswer = s.component("StrategyRetrieval", {
  contextId: s.string(),
  status: s.oneOf("complete", "partial"),
  query: s.string(),
  worked_examples: group,
  failed_examples: group,
  app_structure_examples: group,
});
export type StrategyAnswer = s.Infer<typeof strategyAnswer>;
