/** How esbuild bundles scripts of api/browser, for the build, development and tests. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./setup.mjs";

/**
 * The esbuild options. The widget contains only its English texts; the page brings those of other languages.
 * @returns {import("esbuild").BuildOptions}
 */
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
