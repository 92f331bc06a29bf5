import { readStrategy, retrieveStrategy } from "../core/strategy/strategy.ts";
import { strategyAnswer, strategyPath, strategyQuery } from "../schemas/strategy.ts";
import { creatorOrToken, type Row, route } from "./route.ts";

const strategy = "/v2/handles/:handle/agent/strategy";
const reader = creatorOrToken("agent.strategy.read");

/** Strategy retrieval: for agents, with a session or a token. */
export const strategyRows: Row[] = [
  route(`POST ${strategy}/retrieve`, reader, strategyQuery, retrieveStrategy, {
    reads: true,
    returns: strategyAnswer,
    summary: "Retrieve strategy examples",
    tool: { name: "strategy_query", scope: "agent.strategy.read" },
  }),
  route(`GET ${strategy}/context/:contextId`, reader, strategyPath, readStrategy, {
    returns: strategyAnswer,
    summary: "Get a stored retrieval",
  }),
];
