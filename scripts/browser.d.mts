import type { BuildOptions } from "esbuild";

/** The esbuild options for scripts of api/browser. */
export function browserOptions(): BuildOptions;
