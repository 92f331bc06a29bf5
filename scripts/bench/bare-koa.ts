import { Buffer } from "node:buffer";
import { createServer } from "node:http";
import process from "node:process";
import Router from "@koa/router";
import Koa from "koa";

interface Body {
  path: string;
  type: string;
  coding?: string;
  /** The bytes, in base64. */
  body: string;
}

/** Koa and its router alone, with given bodies: the cost of the framework before a service does anything. */
const { BENCH_PORT: port, BENCH_BODIES: bodies = "[]" } = process.env;
const router = new Router();
for (const { path, type, coding, body } of JSON.parse(bodies) as Body[]) {
  const bytes = Buffer.from(body, "base64");
  const sent = coding ? bytes : bytes.toString();
  router.get(path, (ctx) => {
    ctx.type = type;
    if (coding) ctx.set("Content-Encoding", coding);
    ctx.body = sent;
  });
}
const app = new Koa();
app.use(router.routes());
createServer(app.callback()).listen(Number(port), "127.0.0.1", () => process.stdout.write("bare.ready\n"));
