import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import process from "node:process";
import { Redis } from "ioredis";
import Koa from "koa";
import { koaBody } from "koa-body";

/** Koa with a body parser that writes the body into a hash: the least that storing a lead costs. */
const { BENCH_PORT: port, REDIS_URL: url = "" } = process.env;
const redis = new Redis(url, { enableAutoPipelining: true });
const app = new Koa();
app.use(koaBody());
app.use(async (ctx) => {
  const leadId = randomUUID();
  await redis.hset(`bare-lead:${leadId}`, { version: 1, json: JSON.stringify(ctx.request.body) });
  ctx.status = 202;
  ctx.body = { lead: { leadId, status: "ACCEPTED" } };
});
createServer(app.callback()).listen(Number(port), "127.0.0.1", () => process.stdout.write("bare.ready\n"));
