/**
 * `npm run first-use` tries what a new user does. In a bare Debian root made by debootstrap, with only this machine's Node and npm copied
 * in, `npm run dev` must become ready, every README example must print what it shows, and `npm test` must pass. Needs root on Debian; `npm
 * run first-use -- dev` skips the tests. FIRST_USE_ROOT names a root to reuse.
 */
import { spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { findProgram, main, root, Unready } from "./setup.mjs";

/** Ms within which `npm run dev` must be ready: it installs everything first. */
const TIMEOUT_MS = 900_000;
/** The environment of a new user; the certificates of this machine's network are needed there too. */
const certificates = process.env.NODE_EXTRA_CA_CERTS;
const plain = {
  ...{ PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", HOME: "/root", TERM: "dumb" },
  ...(certificates ? { NODE_EXTRA_CA_CERTS: "/etc/ssl/machine.pem" } : {}),
};

await main(async () => {
  if (process.getuid?.() !== 0) throw new Unready("Only root can make a bare root: run it as root on Debian.");
  if (!(await findProgram("debootstrap"))) throw new Unready("debootstrap was not found: apt-get install debootstrap.");
  const kept = process.env.FIRST_USE_ROOT;
  const bare = kept ?? mkdtempSync(join(tmpdir(), "first-use-"));
  try {
    furnish(bare);
    await tryService(bare);
    if (!process.argv.includes("dev")) tryTests(bare);
    process.stdout.write("First use: all of it works.\n");
  } finally {
    for (const place of ["dev", "proc"]) spawnSync("umount", ["-l", join(bare, place)]);
    if (!kept) rmSync(bare, { recursive: true, force: true });
  }
});

/** Creates the root with Node, npm and the committed files. */
function furnish(bare) {
  // Servers that change their user must be able to enter the root.
  chmodSync(bare, 0o755);
  if (!existsSync(join(bare, "etc", "debian_version")))
    must("debootstrap", ["--variant=minbase", "--include=ca-certificates,curl", "bookworm", bare]);
  cpSync(realpathSync(process.execPath), join(bare, "usr/bin/node"));
  const npm = dirname(dirname(realpathSync(join(dirname(process.execPath), "npm"))));
  mkdirSync(join(bare, "usr/lib/node_modules"), { recursive: true });
  must("cp", ["-aT", npm, join(bare, "usr/lib/node_modules/npm")]);
  for (const name of ["npm", "npx"])
    spawnSync("ln", ["-sf", `../lib/node_modules/npm/bin/${name}-cli.js`, join(bare, "usr/bin", name)]);
  rmSync(join(bare, "app"), { recursive: true, force: true });
  mkdirSync(join(bare, "app"));
  must("sh", ["-c", `git -C '${root}' archive HEAD | tar -x -C '${join(bare, "app")}'`]);
  if (certificates) cpSync(certificates, join(bare, plain.NODE_EXTRA_CA_CERTS));
  // An installed Debian has this file; debootstrap omits it.
  writeFileSync(join(bare, "etc/hosts"), "127.0.0.1 localhost\n::1 localhost\n");
  must("cp", ["/etc/resolv.conf", join(bare, "etc/resolv.conf")]);
  must("mount", ["-t", "proc", "proc", join(bare, "proc")]);
  must("mount", ["--rbind", "/dev", join(bare, "dev")]);
}

async function tryService(bare) {
  const service = spawn("chroot", [bare, "sh", "-c", "cd /app && exec npm run dev"], { env: plain, detached: true });
  let said = "";
  for (const stream of [service.stdout, service.stderr]) stream.on("data", (part) => (said += part));
  try {
    await until(() => said.includes("Ctrl-C ends all of it."), {
      dead: () => service.exitCode !== null,
      said: () => said,
    });
    const [, demo = ""] = /Token of the owner[^\n]*\n\s*DEMO=(\S+)/.exec(said) ?? [];
    const [, printed = ""] = /This streams an answer:\s*(.*?)\n\n/s.exec(said) ?? [];
    mustStream(within(bare, printed, demo), "the printed example");
    examples(bare, demo);
  } finally {
    const ended = new Promise((resolve) => service.once("exit", resolve));
    if (service.exitCode === null && process.kill(-service.pid, "SIGINT")) await ended;
  }
}

/** Runs the README's examples in order, in one shell, and compares what they print. */
function examples(bare, demo) {
  const [, section] = readFileSync(join(root, "README.md"), "utf8").split(/^## Examples$/m);
  const blocks = [...(section ?? "").split(/^## /m)[0].matchAll(/```(\w*)\n(.*?)```/gs)].map(([, kind, text]) => ({
    kind,
    text,
  }));
  let before = "";
  for (const [at, { kind, text }] of blocks.entries()) {
    if (kind !== "sh") continue;
    const output = within(bare, `${before}\n${text}`, demo);
    before += assignments(text);
    const next = blocks[at + 1];
    if (next?.kind === "json") mustHold(lastJson(output), JSON.parse(next.text), text);
    if (next?.kind === "") mustStream(output, text);
    process.stdout.write(`ok  ${text.split("\n")[0]}\n`);
  }
}

/** The variable assignments of an example, for later ones. */
function assignments(text) {
  return text
    .split("\n")
    .filter((line) => /^[A-Z]+=/.test(line))
    .map((line) => `${line}\n`)
    .join("");
}

/** Everything that the README shows must be printed with the same values; ids, addresses and times differ. */
function mustHold(found, shown, where) {
  for (const [name, value] of Object.entries(shown)) {
    const there = found?.[name];
    if (there === undefined) throw new Unready(`${where}\nprinted no ${name}.`);
    if (typeof value === "object" && value !== null) mustHold(there, value, where);
    else if (!/(Id|Uid|At|start|end|bookingNonce)$/.test(name) && there !== value)
      throw new Unready(`${where}\nprinted ${name} = ${there}, not ${value}.`);
  }
}

function mustStream(output, where) {
  const types = [...output.matchAll(/^data: \{"type":"([\w-]+)"/gm)].map(([, type]) => type);
  if (types[0] !== "start" || types.at(-1) !== "finish" || !output.includes("data: [DONE]"))
    throw new Unready(`${where}\nprinted no whole stream: ${types.join(", ")}`);
}

function lastJson(output) {
  return JSON.parse(output.slice(output.lastIndexOf('\n{"') + 1));
}

function tryTests(bare) {
  const { status } = spawnSync("chroot", [bare, "sh", "-c", "cd /app && npm test"], { env: plain, stdio: "inherit" });
  if (status !== 0) throw new Unready("npm test did not pass.");
}

/** The output of a script in the root. */
function within(bare, text, demo) {
  const prelude = `set -e\ncd /app\ncurl() { command curl -sS -w '\\n' "$@"; }`;
  const options = { env: { ...plain, DEMO: demo }, input: `${prelude}\n${text}\n`, encoding: "utf8" };
  const { status, stdout, stderr } = spawnSync("chroot", [bare, "bash"], options);
  if (status !== 0) throw new Unready(`${text}\nfailed: ${stderr}${stdout}`);
  return `\n${stdout}`;
}

function must(program, words) {
  const { status } = spawnSync(program, words, { stdio: ["ignore", 2, 2] });
  if (status !== 0) throw new Unready(`${program} ${words.join(" ")} failed.`);
}

async function until(isThere, { dead, said }) {
  for (const end = Date.now() + TIMEOUT_MS; !isThere(); ) {
    if (dead() || Date.now() > end) throw new Unready(`npm run dev was not ready:\n${said()}`);
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}
