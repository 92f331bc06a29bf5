import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import process from "node:process";
import Koa from "koa";
import { buildApp } from "../../api/app.ts";
import { createHandle } from "../../core/account/handles.ts";
import { tokenFor } from "../../fixtures/session.ts";
import { readEnv } from "../../core/platform/env.ts";
import { openRuntime } from "../../core/open.ts";

/** What a server of this bench tells when it can be asked. */
export interface Ready {
  port: number;
  token: string;
}

const roles: Record<string, () => Promise<{ listener: RequestListener; token: string }>> = { koa: bareKoa, service };
const { listener, token } = await (roles[process.argv[2] ?? ""] as (typeof roles)[string])();
const server = createServer(listener).listen(0, "127.0.0.1", () => {
  process.send?.({ port: (server.address() as AddressInfo).port, token } satisfies Ready);
});

/** The least that Koa can do for the same answer. */
async function bareKoa(): Promise<{ listener: RequestListener; token: string }> {
  const app = new Koa();
  const body = {
    user: { userId: "user_bench", email: "user@example.com" },
    handles: [{ handle: "bench", role: "OWNER" }],
    entitlements: ["assistant"],
  };
  app.use((ctx) => {
    ctx.body = body;
  });
  return { listener: app.callback(), token: "" };
}

async function service(): Promise<{ listener: RequestListener; token: string }> {
  const runtime = await openRuntime(readEnv({ REDIS_URL: process.env.BENCH_REDIS, LOG_LEVEL: "warn" }));
  await createHandle(runtime, {
    handle: "bench",
    account: "acct_bench",
    owner: "user_bench",
    email: "user@example.com",
    assistant: true,
  });
  const token = await tokenFor(runtime, { userId: "user_bench", seconds: 3600 });
  return { listener: buildApp(runtime).callback(), token };
}
