/** What other modules may import from strategy. */
export { readStrategy, retrieveStrategy } from "./strategy.ts";
