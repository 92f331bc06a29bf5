/** Attempts to write an event that others change meanwhile. */
const MAX_ATTEMPTS = 5;

/** How a provider keeps an event, for `bringTo`. */
export interface EventKeeper<S> {
  /** Writes on top of the state that is assumed, undefined to make the event. Undefined where the provider has another state. */
  write(assumed: S | undefined): Promise<S | undefined>;
  /** The state that the provider has; undefined where there is no event. */
  read(): Promise<S | undefined>;
  /** The booking's sequence in a state; -1 where it tells none, or may be replaced for another reason. */
  sequenceOf(state: S): number;
}

/**
 * Brings an event to its booking's state, with concurrent writers: first on top of what is assumed, then on top of what is there. A state
 * with a higher sequence stays.
 */
export async function bringTo<S>(sequence: number, assumed: S | undefined, keeper: EventKeeper<S>): Promise<S> {
  let state = assumed;
  for (let tries = 0; tries < MAX_ATTEMPTS; tries++) {
    const written = await keeper.write(state);
    if (written !== undefined) return written;
    state = await keeper.read();
    if (state !== undefined && keeper.sequenceOf(state) > sequence) return state;
  }
  throw new Error("The event changes too often.");
}
