import { createServer } from "node:http";
import process from "node:process";
import Router from "@koa/router";
import Koa from "koa";

/** Koa and its router alone, with given bodies: the cost of the framework before a service does anything. */
const { BENCH_PORT: port, BENCH_BODIES: bodies = "[]" } = process.env;
const router = new Router();
for (const { path, type, body } of JSON.parse(bodies) as { path: string; type: string; body: string }[])
  router.get(path, (ctx) => {
    ctx.type = type;
    ctx.body = body;
  });
const app = new Koa();
app.use(router.routes());
createServer(app.callback()).listen(Number(port), "127.0.0.1", () => process.stdout.write("bare.ready\n"));
