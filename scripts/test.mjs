/**
 * Runs the tests: `npm test`, `npm test -- pages mcp` for test/pages.test.ts and test/mcp.test.ts, `npm test -- --deno` for the same files
 * on Deno, `npm test -- --deno --brief` for those that depend on the runtime, `npm test -- --cluster` for all on a Redis Cluster of three
 * nodes. With TEST_REDISEARCH_URL the files run one after another on that server, which has the search module and is emptied by each of
 * them. Prints one line per promise and everything about failures; the last line counts the assertions of the whole run.
 */
import { spawn } from "node:child_process";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { build, buildTests } from "./build.mjs";
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

/** A server with the search module that all tests use instead of their own servers. It is emptied repeatedly. */
const shared = process.env.TEST_REDISEARCH_URL;
/** Concurrent test files: more than the cores of a small machine, since many of them wait for clocks and processes. */
const jobs = shared ? 1 : 4;
/**
 * Test files that take long, most of them over 50 s. Half of the jobs begin with them, so that none is left running at the end, and so that
 * not all browsers run at once.
 */
const long = filesOf(`
  admin processes widget-comfort hostile-servers assistant-processes integrations-caldav surface scheduling-page
  webhooks assistant-models visitor-browser answers-sets widget webhooks-crash scheduling-look
  integrations-writing widget-words widget-lead full-redis shutdown widget-chat
`);
/** Test files that run alone, after the others: competition for the cores must not affect what they measure. */
const alone = filesOf("hostile-pauses rolling");
/**
 * Test files that `--brief` skips, because the runtime doesn't affect them: the code of browsers, the format of the sources, pure
 * computation, rules that scripts of Redis decide, and the work of other programs.
 */
const alikeEverywhere = filesOf(`
  access-walk account-browser addresses admin admin-data alerts answers-sets api-docs assistant-models
  assistant-processes campaigns campaigns-far campaigns-restart client collisions data drill email-crash
  email-errors email-failures email-fairness email-feedback email-grammar failover full-redis grounding
  handle-import hostile-pauses hostile-servers house integrations-caldav integrations-google integrations-late
  integrations-links integrations-microsoft integrations-writing integrations-zoom knowledge-chunking
  knowledge-ranking languages lead-forms lead-notices lead-section lists lock openapi pages-content rolling
  scheduling-invitations scheduling-limits scheduling-look scheduling-offers scheduling-orders scheduling-owner
  scheduling-owner-links scheduling-page scheduling-payment scheduling-races scheduling-recurrence
  scheduling-slots scheduling-words sentinel throttle visitor-browser webhooks-crash webhooks-nouns widget
  widget-chat widget-comfort widget-lead widget-words
`);
/**
 * Most seconds per file, so that one that hangs ends: ten times what the slowest takes on two idle cores. Tests have no shorter limits of
 * their own, unless they promise something to happen within some time: how fast they run is the machine's.
 */
const longest = 600;
/** Ms after which an unfinished file is ended. */
const TIMEOUT_MS = (longest + 15) * 1000;

await main(async () => {
  const words = process.argv.slice(2).filter((word) => !/^--(deno|cluster|brief)$/.test(word));
  const named = words.map((word) => (/^\w[\w-]*$/.test(word) ? fileOf(word) : word));
  const unknown = named.filter((file) => !existsSync(file));
  if (unknown.length > 0) throw new Unready(`There is no test file ${unknown.join(", ")}.`);
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
    // Without its own runner, tap would end each file after 30 s.
    TAP_TIMEOUT: String(longest),
    ...(chromium ? { CHROMIUM: process.env.CHROMIUM ?? chromium } : {}),
    ...(cluster ? { TEST_REDIS_CLUSTER: "1" } : shared ? { TEST_REDIS_SHARED: shared } : {}),
  };
  const all = (named.length > 0 ? named : testFiles()).map((file) => relative(root, resolve(file)));
  const files = process.argv.includes("--brief") ? all.filter((file) => !alikeEverywhere.includes(file)) : all;
  const count = await runAll(files, process.argv.includes("--deno") ? await onDeno() : await onNode(files), env);
  const indexes = shared ? "in-process + RediSearch" : "in-process";
  if (cluster) process.stdout.write("\nRedis: a cluster of three nodes, one server where a test restarts it\n");
  process.stdout.write(`\nknowledge index: ${indexes}\n${count.passed} passed, ${count.failed} failed\n`);
  process.exitCode = count.failed === 0 ? 0 : 1;
});

/** Node runs a bundle of the test file and the code under test, like the programs, since loading 900 files takes seconds. */
async function onNode(files) {
  await build();
  const folder = join(root, ".data", `tests-${process.pid}`);
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));
  await buildTests(folder, files);
  const options = ["--enable-source-maps", "--import", "./test/node-preload.mjs"];
  return (file) => [process.execPath, ...options, join(folder, file.replace(/\.ts$/, ".js"))];
}

/** Deno runs the sources, which serve the browser's files from the build. */
async function onDeno() {
  await build();
  const deno = join(root, "node_modules", "deno", process.platform === "win32" ? "deno.exe" : "deno");
  if (!existsSync(deno)) throw new Unready("Deno is not installed for this platform.");
  return (file) => [deno, "run", "-A", "--preload", "./test/deno-preload.ts", file];
}

/** Runs each file in its own process. */
async function runAll(files, commandOf, env) {
  const slow = long.filter((file) => files.includes(file));
  const quick = files.filter((file) => ![...alone, ...long].includes(file));
  const total = { passed: 0, failed: 0 };
  const through = async (first, then) => {
    for (let file = first.shift() ?? then.shift(); file !== undefined; file = first.shift() ?? then.shift()) {
      const count = await runOne(file, commandOf(file), env);
      total.passed += count.passed;
      total.failed += count.failed;
    }
  };
  await Promise.all(
    Array.from({ length: jobs }, (_, at) => (at % 2 === 0 ? through(slow, quick) : through(quick, slow))),
  );
  await through(
    alone.filter((file) => files.includes(file)),
    [],
  );
  return total;
}

/** Prints a file's output once it has ended, so that files don't mix. */
async function runOne(file, command, env) {
  const said = [];
  const since = performance.now();
  const count = await run(command, { env, say: (line) => said.push(line) });
  const seconds = ((performance.now() - since) / 1000).toFixed(1);
  said.push(`${count.failed === 0 ? "ok" : "not ok"} - ${file} # ${seconds} s`);
  process.stdout.write(`${said.filter(filter()).join("\n")}\n`);
  return count;
}

function filesOf(names) {
  return names.trim().split(/\s+/).map(fileOf);
}

function fileOf(name) {
  return join("test", `${name}.test.ts`);
}

function testFiles() {
  const names = readdirSync(join(root, "test"), { recursive: true }).filter((name) => name.endsWith(".test.ts"));
  return names.sort().map((name) => join("test", name));
}

/**
 * Runs a program that prints TAP and counts its assertions. A program that fails, or ends without totals, counts as at least one failure.
 */
async function run([program, ...args], { env, say }) {
  const child = spawn(program, args, { cwd: root, env, stdio: ["ignore", "pipe", "inherit"] });
  const timer = setTimeout(() => child.kill("SIGKILL"), TIMEOUT_MS);
  const ended = new Promise((resolve) => child.once("close", resolve));
  let count;
  for await (const line of createInterface({ input: child.stdout })) {
    if (/^# \{ total: .*\}$/.test(line)) count = { passed: figure(line, "pass"), failed: figure(line, "fail") };
    else say(line);
  }
  const status = await ended;
  clearTimeout(timer);
  const { passed = 0, failed = 0 } = count ?? {};
  return { passed, failed: status === 0 && count ? failed : Math.max(1, failed) };
}

function figure(line, name) {
  return Number(new RegExp(`\\b${name}: (\\d+)`).exec(line)?.[1] ?? 0);
}

/** Drops plans, blank lines and passing assertions; keeps promises, skipped tests, and failures in full. */
function filter() {
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
    return shown || indent === "" || /# SKIP/.test(line);
  };
}
