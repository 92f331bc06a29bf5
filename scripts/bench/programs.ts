import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import process from "node:process";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Starts a program of dist/ or a script, adds it to `children`, and waits until it says that it is ready. */
export async function program(
  children: ChildProcess[],
  path: string,
  settings: Record<string, string>,
  words: string[] = [],
): Promise<ChildProcess> {
  const child = spawn(process.execPath, [...loaderFor(path), path, ...words], {
    cwd: root,
    env: { ...process.env, ...settings, LOG_LEVEL: "info" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  await new Promise<void>((resolve, reject) => {
    child.stdout.on("data", (said) => String(said).includes(".ready") && resolve());
    child.once("exit", (code) => reject(new Error(`${path} ended with ${code}.`)));
  });
  return child;
}

/** Starts a script of this folder that sends messages, and returns it with its first one. */
export async function messenger<T>(
  children: ChildProcess[],
  file: string,
  settings: Record<string, string>,
  words: string[],
): Promise<[ChildProcess, T]> {
  const path = fileURLToPath(new URL(file, import.meta.url));
  const child = fork(path, words, { execArgv: loaderFor(path), env: { ...process.env, ...settings } });
  children.push(child);
  const ended = once(child, "exit").then(() => undefined);
  const first = await Promise.race([once(child, "message"), ended]);
  if (first === undefined) throw new Error(`${file} ${words[0]} ended without a message.`);
  return [child, first[0] as T];
}

/** Ends a process and waits for it; does nothing if it has ended. */
export async function endProcess(child: ChildProcess, signal: "SIGTERM" | "SIGKILL" = "SIGTERM"): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill(signal);
  await once(child, "exit");
}

function loaderFor(path: string): string[] {
  return path.endsWith(".ts") ? ["--import", "tsx"] : [];
}
