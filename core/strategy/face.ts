/** What the others may use of strategy. */
export { readStrategy, retrieveStrategy } from "./strategy.ts";
