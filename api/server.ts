import { createServer, type Server } from "node:http";
import process from "node:process";
import { clearInterval, setInterval, setTimeout } from "node:timers";
import { setTimeout as sleep } from "node:timers/promises";
import { readEnv } from "../core/env.ts";
import { flushLog, openLog, openRuntime } from "../core/open.ts";
import type { Runtime } from "../core/runtime.ts";
import { buildApp } from "./app.ts";

/** Ms in which a process must have stopped after SIGTERM (contract 2), with some room. */
const stopsWithin = 24_000;
/** Ms for which a process that was told to go still answers: balancers notice, and no kept connection is cut under a request. */
const lingersFor = 2000;
/** Ms in which answers that were under way end by themselves. */
const finishesWithin = 5000;

const env = read();
const log = openLog(env);
const runtime = await open();
const server = listen(runtime);
process.once("SIGTERM", () => void stop(1));
process.once("SIGINT", () => void stop(0));
process.on("unhandledRejection", (error) =>
  log.error({ error: (error as Error)?.stack ?? String(error) }, "unhandled"),
);

function read(): ReturnType<typeof readEnv> {
  try {
    return readEnv(process.env);
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    return process.exit(1);
  }
}

/** A process that can't reach Redis at its start says so and goes; whoever runs it starts it again. */
async function open(): Promise<Runtime> {
  try {
    return await openRuntime(env, log);
  } catch (error) {
    log.fatal({ error: (error as Error).message }, "web.not_started");
    return process.exit(1);
  }
}

function listen({ env, going }: Runtime): Server {
  const handler = buildApp(runtime).callback();
  const server = createServer(
    { requestTimeout: 30_000, headersTimeout: 15_000, keepAliveTimeout: 72_000 },
    (req, res) => {
      if (going.signal.aborted) res.setHeader("Connection", "close");
      void handler(req, res);
    },
  );
  return server.listen(env.PORT, () => ready(env.PORT));
}

/** Operators and scripts wait for this line, so it doesn't wait for others. */
function ready(port: number): void {
  log.info({ port }, "web.ready");
  log.flush();
}

/**
 * Goes without a failed request: `/readyz` says 503 and each connection closes after its answer, so that balancers turn away;
 * then no new connection is taken; what is under way may end, and streams that go on for longer end with an error chunk, so
 * that their readers come back elsewhere.
 */
async function stop(patience: number): Promise<void> {
  log.info("web.stopping");
  log.flush();
  runtime.going.abort();
  setTimeout(() => process.exit(1), stopsWithin).unref();
  await sleep(lingersFor * patience);
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  // Connections that were busy until now would be kept for their next request.
  const closing = setInterval(() => server.closeIdleConnections(), 50);
  await Promise.race([closed, sleep(finishesWithin * patience)]);
  await runtime.relay.close();
  await closed;
  clearInterval(closing);
  await runtime.close();
  await flushLog(log);
  process.exit(0);
}
