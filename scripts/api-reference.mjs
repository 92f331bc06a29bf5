/** The renderer of /docs: the copy of Redoc that comes with the Redocly CLI, one script without dependencies. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./setup.mjs";

const bundle = join(root, "node_modules", "@redocly", "cli", "lib", "chunks", "redoc.standalone.js");
/** The only image of another host in the script, and one of ours with the same name. api-docs.ts switches its telemetry off. */
const logo = /https:\/\/cdn\.redoc\.ly\/redoc\/logo-mini(-full)?\.svg/g;
const name =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' width='40' height='14'%3E%3Ctext y='11' font-family='sans-serif' font-size='11' fill='%230b57d0'%3ERedoc%3C/text%3E%3C/svg%3E";

/** The script as browsers load it, without requests to other hosts. Throws if the package has changed. */
export function apiReference() {
  const script = readFileSync(bundle, "utf8");
  if (!logo.test(script)) throw new Error("The renderer of /docs has changed: look at what it loads from other hosts.");
  return script.replace(logo, name);
}
