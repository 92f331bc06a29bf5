import { createServer, type Server } from "node:http";
import process from "node:process";
import { clearInterval, setInterval } from "node:timers";
import { setTimeout as sleep } from "node:timers/promises";
import { answersEndWithin, endWhenTold, notStarted, sayReady, startProcess } from "../core/process.ts";
import type { Runtime } from "../core/platform/runtime.ts";
import { buildApp } from "./app.ts";

/** Ms for which a process that was told to go still answers: balancers notice, and no kept connection is cut under a request. */
const lingersFor = 2000;

const runtime = await startProcess("web", process.env);
if (runtime.env.production && !runtime.env.TRUST_PROXY)
  runtime.log.warn(
    { advice: "Set TRUST_PROXY=1 behind a proxy: without it, all visitors share the proxy's address and its limits." },
    "web.proxy_not_trusted",
  );
const server = listen(runtime);
endWhenTold("web", runtime, stop);

function listen({ env, going, log }: Runtime): Server {
  const handler = buildApp(runtime).callback();
  const server = createServer(
    { requestTimeout: 30_000, headersTimeout: 15_000, keepAliveTimeout: 72_000 },
    (req, res) => {
      if (going.signal.aborted) res.setHeader("Connection", "close");
      void handler(req, res);
    },
  );
  server.once("error", (error) => notStarted("web", log, error));
  return server.listen(env.PORT, () => sayReady(log, "web.ready", { port: env.PORT }));
}

/**
 * Goes without a failed request: `/readyz` says 503 and each connection closes after its answer, so that balancers turn away;
 * then no new connection is taken; what is under way may end, and streams that go on for longer end with an error chunk, so
 * that their readers come back elsewhere.
 */
async function stop(patience: number): Promise<void> {
  await sleep(lingersFor * patience);
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  // Connections that were busy until now would be kept for their next request.
  const closing = setInterval(() => server.closeIdleConnections(), 50);
  await Promise.race([closed, sleep(answersEndWithin * patience)]);
  await runtime.relay.close();
  await closed;
  clearInterval(closing);
}
