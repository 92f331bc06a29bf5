/**
 * Adds the optional platform packages that npm omitted to the lock file, so that `npm ci` accepts it on every machine. npm writes only what
 * its registry can show, and a mirror often lacks the packages of other platforms.
 */
import { readFile, writeFile } from "node:fs/promises";

const file = new URL("../package-lock.json", import.meta.url);
const platform =
  /(aix|android|darwin|freebsd|linux|netbsd|openbsd|openharmony|sunos|win32)-(arm64|arm|ia32|loong64|mips64el|ppc64|riscv64|s390x|x64)(?:-(glibc|musl))?$/;

const lock = JSON.parse(await readFile(file, "utf8"));
const missing = Object.entries(lock.packages).flatMap(([place, entry]) => absent(lock.packages, place, entry));
for (const { name, version, dev } of missing) lock.packages[`node_modules/${name}`] = entryOf(name, version, dev);
lock.packages = Object.fromEntries(
  Object.entries(lock.packages).sort(([one], [other]) => one.localeCompare(other, "en")),
);
if (missing.length > 0) await writeFile(file, `${JSON.stringify(lock, null, 2)}\n`);
process.stdout.write(`${missing.length} optional packages added to package-lock.json\n`);

/** The optional dependencies of an entry that the lock file lacks. */
function absent(packages, place, entry) {
  const names = Object.entries(entry.optionalDependencies ?? {});
  return names
    .filter(([name]) => !served(packages, place, name))
    .map(([name, version]) => ({ name, version, dev: entry.dev }));
}

/** Searches from the entry's folder upwards, as Node does. */
function served(packages, place, name) {
  const above = place.split("node_modules/").map((_, at, parts) => parts.slice(0, at + 1).join("node_modules/"));
  return above.some(
    (folder) => `${folder === "" || folder.endsWith("/") ? folder : `${folder}/`}node_modules/${name}` in packages,
  );
}

function entryOf(name, version, dev) {
  const found = platform.exec(name);
  if (!found || !/^\d/.test(version))
    throw new Error(`No platform can be read from ${name}@${version}; add its entry by hand.`);
  const [, os, cpu, libc] = found;
  return { version, cpu: [cpu], ...(dev ? { dev } : {}), ...(libc ? { libc: [libc] } : {}), optional: true, os: [os] };
}
