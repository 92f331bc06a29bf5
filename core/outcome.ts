/** What a result is besides its content: made anew, there before, or the stored answer of an earlier request. */
export type Outcome = "created" | "replayed";

const outcomes = new WeakMap<object, Outcome>();

/** Says of a result how it came about; the surface turns that into a status or a header. */
export function outcome<T extends object>(result: T, kind: Outcome): T {
  outcomes.set(result, kind);
  return result;
}

/** What was said of a result. */
export function outcomeOf(result: unknown): Outcome | undefined {
  return typeof result === "object" && result !== null ? outcomes.get(result) : undefined;
}

const texts = new WeakMap<object, { json?: string }>();

/** Says of a result that it never changes and is given again, so that its JSON is made once. */
export function lasting<T extends object>(result: T): T {
  texts.set(result, {});
  return result;
}

/** The JSON of a result. */
export function jsonOf(result: object): string {
  const kept = texts.get(result);
  if (kept === undefined) return JSON.stringify(result);
  kept.json ??= JSON.stringify(result);
  return kept.json;
}
