import { Buffer } from "node:buffer";

/** How a result came about: created, or replayed from an earlier request. */
type Outcome = "created" | "replayed";

const outcomes = new WeakMap<object, Outcome>();

/** Marks how a result came about; the API turns that into a status or a header. */
export function withOutcome<T extends object>(result: T, kind: Outcome): T {
  outcomes.set(result, kind);
  return result;
}

/** The mark of `withOutcome`. */
export function outcomeOf(result: unknown): Outcome | undefined {
  return typeof result === "object" && result !== null ? outcomes.get(result) : undefined;
}

const cachedJson = new WeakMap<object, { json?: Uint8Array }>();

/** Marks a result as immutable and often returned, so that its JSON is made once. */
export function cacheJson<T extends object>(result: T): T {
  cachedJson.set(result, {});
  return result;
}

/** The JSON of a result; as bytes for one that `cacheJson` marked. */
export function jsonOf(result: object): string | Uint8Array {
  const made = cachedJson.get(result);
  if (made === undefined) return JSON.stringify(result);
  made.json ??= Buffer.from(JSON.stringify(result));
  return made.json;
}
