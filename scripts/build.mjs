/** Makes dist/: the sources as JavaScript, the scripts of Redis, and what browsers load. */
import { spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, realpathSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { ensureDependencies, main, root, Unready } from "./setup.mjs";

const sources = join(root, "api", "browser");

if (realpathSync(process.argv[1] ?? "") === fileURLToPath(import.meta.url)) await main(build);

/** Builds everything anew beside the old build and puts it in its place, so that a failure leaves the old one. */
export async function build() {
  await ensureDependencies();
  const made = join(root, `dist-${process.pid}`);
  try {
    await Promise.all([compile(made), bundle(join(made, "browser"))]);
    copy(join(root, "core"), join(made, "core"), ".lua");
    rmSync(join(root, "dist"), { recursive: true, force: true });
    renameSync(made, join(root, "dist"));
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}

/** Bundles each script of api/browser that starts something, and copies the style sheets, into a folder. */
export async function bundle(folder) {
  mkdirSync(folder, { recursive: true });
  if (!existsSync(sources)) return;
  const { build } = await import("esbuild");
  const browser = { bundle: true, minify: true, format: "iife", target: "es2020", legalComments: "none" };
  await build({ ...browser, entryPoints: entries(), outdir: folder, logLevel: "warning" });
  copy(sources, folder, ".css");
}

/** Scripts directly in api/browser are entries; what they share lies in folders below it. */
function entries() {
  const names = readdirSync(sources).filter((name) => name.endsWith(".ts") && !name.endsWith(".d.ts"));
  return names.map((name) => join(sources, name));
}

async function compile(folder) {
  const compiler = join(root, "node_modules", "typescript", "bin", "tsc");
  const options = ["-p", "tsconfig.build.json", "--outDir", folder];
  const child = spawn(process.execPath, [compiler, ...options], { cwd: root, stdio: ["ignore", 2, 2] });
  const status = await new Promise((resolve) => child.once("exit", resolve));
  if (status !== 0) throw new Unready("The sources do not compile; see above.");
}

/** Copies the files of one ending, also of the folders below, beside their compiled neighbours. */
function copy(from, to, ending) {
  const names = readdirSync(from, { recursive: true }).filter((name) => name.endsWith(ending));
  for (const name of names) cpSync(join(from, name), join(to, name));
}
