/** Builds dist/: the programs with their packages, the Redis scripts, and the browser files. Test files are built in the same way. */
import { cpSync, existsSync, mkdirSync, readdirSync, realpathSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { apiReference } from "./api-reference.mjs";
import { browserOptions } from "./browser.mjs";
import { ensureDependencies, main, root } from "./setup.mjs";

const sources = join(root, "api", "browser");
/** Entry points, each in the folder of dist/ that matches its source. */
const threads = ["core/engines/calendars/expansion-thread.ts"];
const programs = ["api/server.ts", "workers/main.ts", "scripts/admin.ts", ...threads];
/** Packages that load files of their own at runtime. */
const unbundled = ["@bull-board/*", "msgpackr-extract"];
const ofTests = ["tap", "esbuild", "playwright-core", "typescript"];
/** CommonJS packages load Node's modules by `require`. */
const requires = `import{createRequire as requires}from"node:module";const require=requires(import.meta.url);`;
/** Tests, fixtures and scripts find files relative to their source. */
const inPlace = {
  name: "in place",
  setup({ onLoad }) {
    onLoad({ filter: /\.m?ts$|\.mjs$/ }, async ({ path }) => {
      if (!/^(test|fixtures|scripts)[\\/]/.test(relative(root, path))) return undefined;
      const source = await readFile(path, "utf8");
      return { contents: source.replaceAll("import.meta.url", JSON.stringify(pathToFileURL(path).href)), loader: "ts" };
    });
  },
};

if (realpathSync(process.argv[1] ?? "") === fileURLToPath(import.meta.url)) await main(build);

/** Builds everything next to the old build, then replaces it, so that a failure leaves the old one. */
export async function build() {
  await ensureDependencies();
  const made = join(root, `dist-${process.pid}`);
  try {
    await make(made, programs);
    rmSync(join(root, "dist"), { recursive: true, force: true });
    renameSync(made, join(root, "dist"));
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}

/**
 * Builds test files with everything that they test into a folder. core/platform/files.ts is an entry, so that it is shared and in the place
 * that it expects.
 */
export async function buildTests(folder, files) {
  await make(folder, ["core/platform/files.ts", ...threads, ...files], {
    external: [...unbundled, ...ofTests],
    plugins: [inPlace],
  });
}

async function make(folder, entryPoints, more = {}) {
  await Promise.all([compile(folder, entryPoints, more), bundle(join(folder, "browser"))]);
  copy(join(root, "core"), join(folder, "core"), ".lua");
}

/** Bundles the entry scripts of api/browser, and copies the style sheets, the icon and the renderer of /docs, into a folder. */
export async function bundle(folder) {
  mkdirSync(folder, { recursive: true });
  if (!existsSync(sources)) return;
  const { build } = await import("esbuild");
  await build({ ...browserOptions(), entryPoints: entries(), outdir: folder, logLevel: "warning" });
  copy(sources, folder, ".css");
  copy(sources, folder, ".ico");
  writeFileSync(join(folder, "api-reference.js"), apiReference());
}

/** Scripts directly in api/browser are entries; shared code is in its subfolders. */
function entries() {
  const names = readdirSync(sources).filter((name) => name.endsWith(".ts") && !name.endsWith(".d.ts"));
  return names.map((name) => join(sources, name));
}

/**
 * Bundles the programs: loading a few files instead of fifteen hundred halves the start time. Names stay unminified for stack traces;
 * esbuild's `keepNames` would cost a third of the requests, since it names each closure at creation. Shared code is in dist/core/platform/,
 * two folders deep, as core/platform/files.ts expects.
 */
async function compile(folder, entryPoints, more) {
  const { build } = await import("esbuild");
  await build({
    entryPoints,
    absWorkingDir: root,
    outbase: root,
    outdir: folder,
    chunkNames: "core/platform/[name]-[hash]",
    bundle: true,
    splitting: true,
    platform: "node",
    format: "esm",
    target: "node20",
    external: unbundled,
    banner: { js: requires },
    minifyWhitespace: true,
    minifySyntax: true,
    sourcemap: true,
    sourcesContent: false,
    logLevel: "warning",
    ...more,
  });
}

/** Copies the files with one extension, also from subfolders, next to their compiled neighbours. */
function copy(from, to, ending) {
  const names = readdirSync(from, { recursive: true }).filter((name) => name.endsWith(ending));
  for (const name of names) cpSync(join(from, name), join(to, name));
}
