import { setImmediate as nextTurn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import t from "tap";
import { withSignal } from "../core/platform/signals.ts";

t.test("the signal of work aborts as soon as one of its sources does, with the reason", async (t) => {
  const [first, second] = [new AbortController(), new AbortController()];
  const reason = await withSignal([first.signal, second.signal], async (signal) => {
    t.equal(signal.aborted, false);
    second.abort(new Error("enough"));
    return signal.reason;
  });
  t.match(reason, { message: "enough" });
  const isAborted = await withSignal([second.signal], async (signal) => signal.aborted);
  t.equal(isAborted, true, "and at once, if a source already is");
});

t.test("what work threw is thrown, and a source that aborts later changes nothing", async (t) => {
  const source = new AbortController();
  let seen: AbortSignal | undefined;
  const work = withSignal([source.signal], async (signal) => {
    seen = signal;
    throw new Error("failed");
  });
  await t.rejects(work, { message: "failed" });
  source.abort();
  t.equal(seen?.aborted, false);
});

t.test("nothing that listened outlives the work, while the sources live on", async (t) => {
  const source = new AbortController();
  const left = await Promise.all(Array.from({ length: 100 }, () => listened(source.signal)));
  // What a WeakRef refers to lives at least until the end of this turn of the event loop.
  await nextTurn();
  collectGarbage();
  // Node itself may hold the last one for a while.
  t.ok(left.filter((one) => one.deref() !== undefined).length <= 1);
  t.equal(source.signal.aborted, false);
});

/** What listened to a signal of finished work. */
function listened(source: AbortSignal): Promise<WeakRef<object>> {
  return withSignal([source, new AbortController().signal], async (signal) => {
    const listener = { heard: false };
    signal.addEventListener("abort", () => Object.assign(listener, { heard: true }));
    return new WeakRef(listener);
  });
}

function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
}
