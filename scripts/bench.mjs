/**
 * `npm run bench` runs every bench of scripts/bench, one after another, each in its own process, prints one table and writes
 * docs/bench.json. `npm run bench -- http start` runs some and keeps the other figures.
 */
import { fork } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "./build.mjs";
import { ensureDependencies, ensureRedis, main, root, Unready } from "./setup.mjs";

const folder = join(root, "scripts", "bench");
const result = join(root, "docs", "bench.json");
const page = join(root, "docs", "bench.md");
const columns = ["what", "measured", "bar", "reached", "beside it"];

await (process.send ? measure(process.argv[2]) : main(all));

/** Runs one bench in a child process, which sends its rows to the parent. */
async function measure(file) {
  const { bench } = await import(pathToFileURL(file).href);
  process.send(await bench(), () => process.exit(0));
}

async function all() {
  await ensureDependencies();
  await ensureRedis();
  await build();
  const wanted = process.argv.slice(2);
  const unknown = wanted.filter((name) => !benches().includes(name));
  if (unknown.length > 0)
    throw new Unready(`There is no bench ${unknown.join(", ")}: there are ${benches().join(", ")}.`);
  const names = benches().filter((name) => wanted.length === 0 || wanted.includes(name));
  const rows = {};
  for (const name of names) rows[name] = await run(name);
  print(Object.values(rows).flat());
  write(rows);
}

/** Files that export a bench; the others are started by a bench. */
function benches() {
  const names = readdirSync(folder).filter((name) => name.endsWith(".ts"));
  const isBench = (name) => /^export async function bench\(/m.test(readFileSync(join(folder, name), "utf8"));
  return names.filter(isBench).map((name) => name.slice(0, -3));
}

async function run(name) {
  process.stderr.write(`${name} ...\n`);
  const options = { cwd: root, execArgv: ["--import", "./scripts/sources.mjs"] };
  const child = fork(fileURLToPath(import.meta.url), [join(folder, `${name}.ts`)], options);
  const rows = new Promise((resolve) => child.once("message", resolve));
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const first = await Promise.race([rows, ended]);
  if (!Array.isArray(first)) throw new Unready(`The bench ${name} failed.`);
  await ended;
  return first;
}

function cells({ name, value, unit, bar = "", baseline = "" }) {
  const reached = bar === "" ? "" : reaches(value, bar) ? "yes" : "NO";
  return [name, `${rounded(value)} ${unit}`.trim(), bar, reached, baseline];
}

function print(rows) {
  const table = [columns, ...rows.map(cells)];
  const widths = columns.map((_, column) => Math.max(...table.map((row) => row[column].length)));
  const lines = table.map((row) => row.map((cell, column) => cell.padEnd(widths[column])).join("  "));
  process.stdout.write(`${lines.map((line) => line.trimEnd()).join("\n")}\n`);
}

function reaches(value, bar) {
  const [, sign = "<=", limit] = /^([<>]=)?\s*([\d.]+)/.exec(bar) ?? [];
  return sign === ">=" ? value >= Number(limit) : value <= Number(limit);
}

/** Rounded to three significant digits. */
function rounded(value) {
  return Math.abs(value) >= 100 ? Math.round(value) : Number(value.toPrecision(3));
}

/** Writes the figures to docs/bench.json, and the table with the machine to docs/bench.md. */
function write(rows) {
  const known = existsSync(result) ? JSON.parse(readFileSync(result, "utf8")).rows : {};
  const [{ model } = {}] = cpus();
  const machine = { node: process.version, cpus: cpus().length, model };
  const all = Object.fromEntries(Object.entries({ ...known, ...rows }).sort());
  writeFileSync(result, `${JSON.stringify({ at: new Date().toISOString(), machine, rows: all }, null, 2)}\n`);
  inPage(machine, Object.values(all).flat());
}

/** The table of docs/bench.md, between its two markers; the text around them is written by hand. */
function inPage({ node, cpus: count, model }, rows) {
  const table = [columns, columns.map(() => "---"), ...rows.map(cells)].map((row) => `| ${row.join(" | ")} |`);
  const words = `Node ${node}, ${count} cores, ${model}. Each baseline is measured in the same run.`;
  const section = [words, "", ...table].join("\n");
  const place = /(<!-- bench -->\n).*?(\n<!-- \/bench -->)/s;
  const text = readFileSync(page, "utf8");
  writeFileSync(
    page,
    text.replace(place, (_, begin, end) => `${begin}${section}${end}`),
  );
}
