import * as core from "../core/strategy/face.ts";
import { nothing } from "../schemas/schema.ts";
import * as shape from "../schemas/strategy.ts";
import { type Access, type Row, route } from "./route.ts";

const strategy = "/v2/handles/:handle/agent/strategy";
const reader: Access = { kind: "handle", role: "CREATOR", scopes: ["agent.strategy.read"] };

/** Strategy retrieval: for agents, with a session or a token. */
export const strategyRows: Row[] = [
  route(`POST ${strategy}/retrieve`, reader, shape.strategyQuery, core.retrieveStrategy, {
    isReadOnly: true,
    returns: shape.strategyAnswer,
    summary: "Retrieve strategy examples",
    description:
      "Finds worked examples, failed examples and app structure examples in the documents tagged `strategy`. `status` is `partial` if a part of the search failed. The answer is kept for 24 h.",
    tool: {
      name: "strategy_query",
      scope: "agent.strategy.read",
      description:
        "Searches the handle's strategy documents before something is written or built. Answers the best matches in three groups: examples that worked, examples that failed, and how applications are structured.",
    },
  }),
  route(`GET ${strategy}/context/:contextId`, reader, nothing, core.readStrategy, {
    returns: shape.strategyAnswer,
    summary: "Get a stored retrieval",
  }),
];
