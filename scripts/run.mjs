/**
 * `node scripts/run.mjs NAME …` installs missing dependencies and runs scripts/NAME.ts, for npm's commands. A production installation runs
 * the built file, without a loader.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { ensureDependencies, main, root } from "./setup.mjs";

const [name] = process.argv.splice(2, 1);

await main(async () => {
  process.chdir(root);
  const built = join(root, "dist", "scripts", `${name}.js`);
  await ensureDependencies({ dev: !existsSync(built) });
  const hasLoader = existsSync(join(root, "node_modules", "tsx"));
  if (hasLoader) await import("./sources.mjs");
  process.argv[1] = hasLoader ? join(root, "scripts", `${name}.ts`) : built;
  await import(pathToFileURL(process.argv[1]).href);
});
