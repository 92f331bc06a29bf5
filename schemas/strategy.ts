import { array, handle, type Infer, integer, number, object, oneOf, string, withDefault } from "./schema.ts";

/** The groups of strategy knowledge: a document joins one by the tags `strategy` and the group's name (docs/reference.md, "Strategy"). */
export const strategyGroups = ["worked_examples", "failed_examples", "app_structure_examples"] as const;
export type StrategyGroup = (typeof strategyGroups)[number];

/** `POST …/agent/strategy/retrieve`; `limit` applies to each group and is clamped to 20. */
export const strategyQuery = object({
  handle,
  query: string({ minLength: 1, maxLength: 2000, pattern: "\\S" }),
  limit: withDefault(integer(1), 5),
});

/** The path of one stored retrieval. */
export const strategyPath = object({ handle: string(), contextId: string() });

export const group = object({
  matchCount: integer(0),
  items: array(object({ documentId: string(), title: string(), summary: string(), score: number() })),
});
export type StrategyMatches = Infer<typeof group>;

/** The result of a retrieval; `partial` if a part of the search could not answer in full. */
export const strategyAnswer = object({
  contextId: string(),
  status: oneOf("complete", "partial"),
  query: string(),
  worked_examples: group,
  failed_examples: group,
  app_structure_examples: group,
});
export type StrategyAnswer = Infer<typeof strategyAnswer>;
