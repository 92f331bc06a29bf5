import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { attachDomain } from "../../core/account/domains.ts";
import { createHandle } from "../../core/account/handles.ts";
import { putSender } from "../../core/email/senders.ts";
import { createTemplate } from "../../core/email/templates.ts";
import type { Runtime } from "../../core/platform/runtime.ts";
import type { Purpose } from "../../schemas/email.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
/** Ms of one round of requests, and the number of connections, each of which sends again as soon as it has a response. */
const RUN_MS = 2500;
const clients = 32;

/** A mail as the benches ask for it. */
export const mail = {
  senderId: "sender_main",
  purpose: "TRANSACTIONAL_API",
  templateId: "tmpl_main",
  variables: { name: "Ann" },
} as const;

/** Creates a handle that can send, from `noreply@{handle}.example`; its owner is `user_1`. */
export async function furnish(
  runtime: Runtime,
  handle: string,
  { html, purpose }: { html: string; purpose: Purpose },
): Promise<void> {
  const [account, domain] = [`acct_${handle}`, `${handle}.example`];
  await createHandle(runtime, { handle, account, owner: "user_1", assistant: true });
  await attachDomain(runtime, { account, domain, ready: true });
  await putSender(runtime, {
    ...{ handle, domain, senderId: mail.senderId },
    localPart: "noreply",
    displayName: "Acme",
    purposes: [purpose],
  });
  await createTemplate(runtime, {
    ...{ handle, html, templateId: mail.templateId },
    name: "Main",
    subject: "Hello {{name}}",
  });
}

/** Starts a program of dist/ and waits until it logs that it is ready. */
export async function program(
  children: ChildProcess[],
  path: string,
  settings: Record<string, string>,
): Promise<ChildProcess> {
  const child = spawn(process.execPath, [path], {
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

/** Ends a process and waits for it; does nothing if it has ended. */
export async function endProcess(child: ChildProcess, signal: "SIGTERM" | "SIGKILL" = "SIGTERM"): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill(signal);
  await once(child, "exit");
}

/** Responses per second of the accept route or its comparison; every response is a 202. */
export async function load(port: number, path: string, { token, ms = RUN_MS }: { token: string; ms?: number }) {
  let answers = 0;
  const sockets = Array.from({ length: clients }, () => connect({ port, host: "127.0.0.1", noDelay: true }));
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
  const begun = performance.now();
  for (const socket of sockets) {
    const ask = () => socket.write(requestText(path, token));
    socket.on("data", (bytes) => {
      const head = bytes.toString("latin1", 0, 40);
      if (!head.startsWith("HTTP/1.1 202")) throw new Error(bytes.toString("latin1"));
      answers++;
      ask();
    });
    ask();
  }
  await new Promise((resolve) => setTimeout(resolve, ms));
  for (const socket of sockets) socket.destroy();
  return (answers * 1000) / (performance.now() - begun);
}

let asked = 0;

function requestText(path: string, token: string): string {
  const one = asked++;
  const body = JSON.stringify({
    ...mail,
    to: [`a${one}@far.example`],
    consentAttestation: true,
    idempotencyKey: `k${one}`,
  });
  const head = [
    `POST ${path} HTTP/1.1`,
    "Host: 127.0.0.1",
    "Content-Type: application/json",
    `Authorization: Bearer ${token}`,
  ];
  return `${[...head, `Content-Length: ${body.length}`].join("\r\n")}\r\n\r\n${body}`;
}
