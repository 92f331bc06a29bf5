/** How esbuild makes a script of api/browser: for a build, for development and for tests. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./setup.mjs";

/** Options of esbuild. The widget holds its English words alone: those of other languages come with the page. */
export function browserOptions() {
  const { widget } = JSON.parse(readFileSync(join(root, "schemas", "languages", "en.json"), "utf8"));
  return {
    bundle: true,
    minify: true,
    format: "iife",
    target: "es2020",
    legalComments: "none",
    define: { englishWords: JSON.stringify(widget) },
  };
}
