import { createServer, type Server } from "node:http";
import process from "node:process";
import { clearInterval, setInterval } from "node:timers";
import { setTimeout as sleep } from "node:timers/promises";
import type { Runtime } from "../core/platform/runtime.ts";
import { DRAIN_MS, failStartup, type StopSignal, shutdown, startProcess } from "../core/process.ts";
import { buildApp } from "./app.ts";

/**
 * Ms for which a stopping process still accepts connections, so that balancers notice and no kept-alive connection breaks under a request.
 */
const DRAIN_DELAY_MS = 2000;
/**
 * Ms of silence after which a connection is closed: a client that doesn't read its responses would keep them in memory. Longer than any
 * request takes to be answered.
 */
const SILENCE_TIMEOUT_MS = 60_000;

const { runtime, stopSignal } = await startProcess("web", process.env);
if (runtime.env.production && !runtime.env.TRUST_PROXY)
  runtime.log.warn(
    { advice: "Set TRUST_PROXY=1 behind a proxy: without it, all visitors share the proxy's address and its limits." },
    "web.proxy_untrusted",
  );
const server = listen(runtime);
void stopSignal.then((signal) => shutdown("web", runtime, () => stop(signal)));

function listen({ env, shutdownController, log }: Runtime): Server {
  const handler = buildApp(runtime).callback();
  const server = createServer(
    { requestTimeout: 30_000, headersTimeout: 15_000, keepAliveTimeout: 72_000 },
    (req, res) => {
      if (shutdownController.signal.aborted) res.setHeader("Connection", "close");
      void handler(req, res);
    },
  );
  server.timeout = SILENCE_TIMEOUT_MS;
  server.once("error", (error) => void failStartup("web", log, error));
  return server.listen(env.PORT, () => {
    log.info({ port: env.PORT }, "web.ready");
    log.flush();
  });
}

/**
 * Stops without failing a request. First `/readyz` answers 503 and each connection closes after its response, so that balancers drain this
 * process. Then the server stops listening. Running requests finish; longer streams end with an error chunk, so that readers resume at
 * another process. SIGINT skips the waiting.
 */
async function stop(signal: StopSignal): Promise<void> {
  const waits = signal === "SIGTERM";
  await sleep(waits ? DRAIN_DELAY_MS : 0);
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  // Connections that were busy until now would otherwise stay open for their next request.
  const closing = setInterval(() => server.closeIdleConnections(), 50);
  await Promise.race([closed, sleep(waits ? DRAIN_MS : 0)]);
  await runtime.relay.close();
  await closed;
  clearInterval(closing);
}
