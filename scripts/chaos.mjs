/** `npm run chaos` and `npm run soak`: builds, and runs what the argument names from scripts/chaos in a process that ends with this one. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import process from "node:process";
import { build } from "./build.mjs";
import { ensureDependencies, ensureRedis, main, root } from "./setup.mjs";

await main(async () => {
  await ensureDependencies();
  await ensureRedis();
  await build();
  const file = join(root, "scripts", "chaos", `${process.argv[2] === "soak" ? "soak" : "chaos"}.ts`);
  const child = spawn(process.execPath, ["--import", "tsx", file], { cwd: root, stdio: "inherit" });
  // Ctrl-C reaches both; a signal to this process alone is handed on.
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => child.kill(signal));
  process.exitCode = await new Promise((resolve) => child.once("exit", (code) => resolve(code ?? 1)));
});
