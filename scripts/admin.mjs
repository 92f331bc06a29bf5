/** `npm run -s admin -- <command>`: prepares what is missing and runs the command, which prints one JSON object. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { ensureDependencies, main, root } from "./setup.mjs";

await main(async () => {
  process.chdir(root);
  await ensureDependencies({ dev: false });
  // A production installation has the compiled command and no loader.
  if (!existsSync(join(root, "node_modules", "tsx"))) return import("../dist/scripts/admin.js");
  const { register } = await import("tsx/esm/api");
  register();
  return import("./admin.ts");
});
