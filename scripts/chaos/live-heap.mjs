/** Loaded before a process under test, with `--expose-gc`: SIGUSR2 collects all garbage and prints the bytes that are still in use. */
import process from "node:process";

process.on("SIGUSR2", () => {
  globalThis.gc();
  process.stdout.write(`heap.live ${process.memoryUsage().heapUsed}\n`);
});
