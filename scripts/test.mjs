/**
 * Runs the tests: `npm test`, `npm test -- test/pages.test.ts`, `npm test -- --deno` for the same files on Deno, and
 * `npm test -- --cluster` for the same on a Redis Cluster of three nodes. Shows one line for each promise and all of what failed;
 * the last line counts the assertions of the whole run.
 */
import { spawn } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { build } from "./build.mjs";
import {
  ensureChromium,
  ensureDependencies,
  ensureDovecot,
  ensureRadicale,
  ensureRedis,
  main,
  root,
  Unready,
} from "./setup.mjs";

/** Test files that run at the same time: one more than the cores of a small machine, since many of them wait for clocks and processes. */
const jobs = 3;
/** Test files that run by themselves, after the others: what a deploy does to requests is no question of who else needs the cores. */
const alone = [join("test", "rolling.test.ts")];
/** Ms after which a file on Deno is ended; tap has its own limit, in .taprc. */
const longest = 300_000;

await main(async () => {
  const named = process.argv.slice(2).filter((word) => !/^--(deno|cluster)$/.test(word));
  await ensureDependencies();
  await ensureRedis();
  if (!(await ensureRadicale()))
    process.stdout.write("# skipped: calendars on a real server (radicale is not installed)\n");
  if (!(await ensureDovecot()))
    process.stdout.write("# skipped: bounces in a real mailbox (dovecot is not installed)\n");
  const chromium = await ensureChromium();
  const cluster = process.argv.includes("--cluster");
  const env = {
    ...process.env,
    ...(chromium ? { CHROMIUM: process.env.CHROMIUM ?? chromium } : {}),
    ...(cluster ? { TEST_REDIS_CLUSTER: "1" } : {}),
  };
  const count = process.argv.includes("--deno") ? await onDeno(named, env) : await onNode(named, env);
  const indexes = process.env.TEST_REDISEARCH_URL ? "in-process + RediSearch" : "in-process";
  if (cluster) process.stdout.write("\nRedis: a cluster of three nodes, one server where a test restarts it\n");
  process.stdout.write(`\nknowledge index: ${indexes}\n${count.passed} passed, ${count.failed} failed\n`);
  process.exitCode = count.failed === 0 ? 0 : 1;
});

/** Everything under tap's own runner, against a fresh build. */
async function onNode(named, env) {
  await build();
  const runner = join(root, "node_modules", ".bin", "tap");
  const shown = filter(4);
  const say = (line) => shown(line) && process.stdout.write(`${line}\n`);
  const tap = (most, files) =>
    run(process.execPath, [runner, "run", `--jobs=${most}`, "--reporter=tap", ...files], { env, say });
  const { together, single } = parted(named);
  const counts = [];
  if (together.length > 0) counts.push(await tap(jobs, together));
  if (single.length > 0) counts.push(await tap(1, single));
  return { passed: sum(counts, "passed"), failed: sum(counts, "failed") };
}

/** The named files, or all, in those that run side by side and those that don't. */
function parted(named) {
  const files = named.length > 0 ? named : testFiles();
  return {
    together: files.filter((file) => !alone.includes(file)),
    single: files.filter((file) => alone.includes(file)),
  };
}

function sum(counts, name) {
  return counts.reduce((total, count) => total + count[name], 0);
}

/** Each file in a process of its own, from the sources. */
async function onDeno(named, env) {
  const deno = join(root, "node_modules", "deno", process.platform === "win32" ? "deno.exe" : "deno");
  if (!existsSync(deno)) throw new Unready("Deno is not installed for this platform.");
  const { together, single } = parted(named);
  // Without its runner, tap would end each file after 30 s.
  const patient = { ...env, TAP_TIMEOUT: String(longest / 1000) };
  const total = { passed: 0, failed: 0 };
  const through = async (files) => {
    for (let file = files.shift(); file !== undefined; file = files.shift()) {
      const said = [];
      const options = { env: patient, limit: longest, say: (line) => said.push(line) };
      const count = await run(deno, ["run", "-A", "--preload", "./test/deno-preload.ts", file], options);
      said.push(`${count.failed === 0 ? "ok" : "not ok"} - ${file} on Deno`);
      process.stdout.write(`${said.filter(filter(0)).join("\n")}\n`);
      total.passed += count.passed;
      total.failed += count.failed;
    }
  };
  await Promise.all(Array.from({ length: jobs }, () => through(together)));
  await through(single);
  return total;
}

function testFiles() {
  const names = readdirSync(join(root, "test"), { recursive: true }).filter((name) => name.endsWith(".test.ts"));
  return names.sort().map((name) => join("test", name));
}

/** Runs a program that speaks TAP and counts its assertions; a program that fails without saying so is one failure. */
async function run(program, args, { env, say, limit = 0 }) {
  const child = spawn(program, args, { cwd: root, env, stdio: ["ignore", "pipe", "inherit"] });
  const timer = limit > 0 ? setTimeout(() => child.kill("SIGKILL"), limit) : undefined;
  const ended = new Promise((resolve) => child.once("close", resolve));
  const count = { passed: 0, failed: 0 };
  for await (const line of createInterface({ input: child.stdout })) {
    const totals = /^# \{ total: .*\}$/.exec(line);
    if (totals) Object.assign(count, { passed: figure(line, "pass"), failed: figure(line, "fail") });
    else say(line);
  }
  const status = await ended;
  clearTimeout(timer);
  return { ...count, failed: status === 0 ? count.failed : Math.max(1, count.failed) };
}

function figure(line, name) {
  return Number(new RegExp(`\\b${name}: (\\d+)`).exec(line)?.[1] ?? 0);
}

/**
 * Leaves out plans, blank lines and single assertions that hold; keeps promises, which stand at this indent at most, what was
 * skipped, and failures whole.
 */
function filter(indentOfPromises) {
  let inDiagnosis = false;
  let shown = false;
  return (line) => {
    if (inDiagnosis) {
      inDiagnosis = !/^\s*\.\.\.$/.test(line);
      return shown;
    }
    if (/^\s*---$/.test(line)) {
      inDiagnosis = true;
      return shown;
    }
    const [, indent, failed] = /^( *)(not )?ok\b/.exec(line) ?? [];
    if (indent === undefined) return !/^\s*(\d+\.\.\d+|#.*|TAP version \d+|)$/.test(line);
    shown = failed !== undefined && !/# SKIP/.test(line);
    return shown || indent.length <= indentOfPromises || /# SKIP/.test(line);
  };
}
