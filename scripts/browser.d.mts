import type { BuildOptions } from "esbuild";

/** How esbuild makes a script of api/browser. */
export function browserOptions(): BuildOptions;
