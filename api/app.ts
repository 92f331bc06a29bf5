import { randomUUID } from "node:crypto";
import { Readable } from "node:stream";
import Koa, { type Context } from "koa";
import { type AuditEntry, recordWrite } from "../core/audit.ts";
import { Fail } from "../core/errors.ts";
import { bodyDigest } from "../core/idempotency.ts";
import { jsonOf, outcomeOf } from "../core/outcome.ts";
import type { Caller, Runtime } from "../core/runtime.ts";
import { admit } from "./access.ts";
import { readBody } from "./body.ts";
import { dashboard, isDashboard } from "./dashboard.ts";
import { checkInput } from "./input.ts";
import { Metrics } from "./metrics.ts";
import { pageHost } from "./hosts.ts";
import { missingPage } from "./page-view.ts";
import { asFail, problem } from "./problem.ts";
import type { Request, Row, View } from "./route.ts";
import { Routes } from "./routes.ts";
import { rows } from "./rows.ts";
import { type StreamEvent, sendStream } from "./stream.ts";

/** The Koa application: request id, one catch, CORS, page hosts, the queue board, and the rows. */
export function buildApp(runtime: Runtime): Koa {
  // Of the addresses that were forwarded only the proxy's own, the last, can be believed.
  const app = new Koa({ proxy: runtime.env.TRUST_PROXY, maxIpsCount: 1 });
  const metrics = new Metrics(runtime);
  const { LOGIN_BUILTIN, LOGIN_URL } = runtime.env;
  const table = rows(metrics, LOGIN_BUILTIN ? new URL(LOGIN_URL).pathname : undefined);
  const routes = new Routes(table, (row, ctx) => serve(runtime, row, ctx));
  app.use((ctx) => answer(runtime, metrics, ctx, () => handle(runtime, routes, ctx)));
  return app;
}

/** The way of a request; one function, since each layer of middleware costs as much as the access check. */
async function handle(runtime: Runtime, routes: Routes, ctx: Context): Promise<void> {
  if (ctx.get("origin") !== "" && allowOrigins(runtime, routes, ctx)) return;
  await pageHost(runtime, ctx);
  if (isDashboard(ctx.path)) return dashboard(runtime, ctx);
  await routes.serve(ctx, async () => unmatched(routes, ctx));
}

/** The one place that names the request, catches, counts and logs. */
async function answer(runtime: Runtime, metrics: Metrics, ctx: Context, serve: () => Promise<void>): Promise<void> {
  const started = performance.now();
  ctx.state.requestId = requestId(ctx.get("x-request-id"));
  ctx.set({ "X-Request-Id": ctx.state.requestId, "X-Content-Type-Options": "nosniff" });
  try {
    await serve();
  } catch (error) {
    fail(runtime, ctx, error);
  }
  const took = performance.now() - started;
  const row = ctx.state.row as Row | undefined;
  metrics.request(row, ctx.method, ctx.status, took);
  if (row?.logged === false) return;
  runtime.log.info(
    {
      requestId: ctx.state.requestId,
      method: ctx.method,
      route: row?.path,
      status: ctx.status,
      tookMs: Math.round(took),
    },
    "request",
  );
}

function requestId(given: string): string {
  return /^[A-Za-z0-9._-]{1,64}$/.test(given) ? given : randomUUID();
}

function fail(runtime: Runtime, ctx: Context, error: unknown): void {
  const known = asFail(error);
  const { requestId } = ctx.state;
  if (known.code === "internal_error")
    runtime.log.error({ requestId, error: (error as Error)?.stack }, "request.failed");
  else if (known.status >= 500)
    runtime.log.warn({ requestId, error: ((known.cause ?? known) as Error).message }, "request.unavailable");
  if (ctx.headerSent) return void ctx.res.destroy();
  const shown = viewOf(runtime, ctx, known);
  if (shown) {
    present(ctx, shown);
    return;
  }
  const row = ctx.state.row as Row | undefined;
  const { status, headers, body } = problem(known, ctx.state.requestId, row?.challenge?.(runtime, ctx.params));
  ctx.status = status;
  ctx.set(headers);
  ctx.body = JSON.stringify(body);
}

/** What a person sees of a failure, where the row or the host is made for people. */
function viewOf(runtime: Runtime, ctx: Context, known: Fail): View | undefined {
  const row = ctx.state.row as Row | undefined;
  if (row?.failed) return row.failed(known, new Asked(runtime, ctx));
  return ctx.state.pageHost && known.status === 404 ? missingPage() : undefined;
}

/**
 * Public rows may be called from any page, without credentials; all others from the application's origin (contract 1). True where
 * the request was a preflight, which ends here.
 */
function allowOrigins(runtime: Runtime, routes: Routes, ctx: Context): boolean {
  const method = ctx.method === "OPTIONS" ? ctx.get("access-control-request-method") : ctx.method;
  const origin = ctx.get("origin");
  if (method === "") return false;
  const row = routes.find(ctx.path, method);
  ctx.vary("Origin");
  const isPublic = row ? row.access.kind === "open" : ctx.path.startsWith("/v2/public/");
  const allowed = isPublic ? "*" : origin === new URL(runtime.env.APP_URL).origin ? origin : undefined;
  if (allowed)
    ctx.set({
      "Access-Control-Allow-Origin": allowed,
      "Access-Control-Expose-Headers": "X-Request-Id, Retry-After, Idempotency-Replayed",
    });
  if (ctx.method !== "OPTIONS") return false;
  if (row === undefined) unmatched(routes, ctx);
  if (allowed) ctx.set(preflight(method));
  ctx.status = 204;
  return true;
}

function preflight(method: string): Record<string, string> {
  return {
    "Access-Control-Allow-Methods": method,
    "Access-Control-Allow-Headers":
      "authorization, content-type, idempotency-key, last-event-id, mcp-method, mcp-name, mcp-protocol-version, x-request-id",
    "Access-Control-Max-Age": "600",
  };
}

/** A row at work: access, guard, input, function, presenter. */
async function serve(runtime: Runtime, row: Row, ctx: Context): Promise<void> {
  ctx.state.row = row;
  const parameters = harmless(ctx.params as Record<string, string>);
  const admitted = await admit(runtime, row.access, {
    authorization: ctx.get("authorization"),
    handle: parameters.handle,
  });
  const caller: Caller = { requestId: ctx.state.requestId, address: ctx.ip, ...idempotency(ctx), ...admitted };
  if (row.guard) await row.guard(runtime, parameters, caller);
  const body = await given(ctx, row);
  if (caller.idempotencyKey !== undefined) caller.bodyDigest = bodyDigest(body);
  const input = checkInput(row, { ...body, ...taken(ctx, row), ...parameters });
  const result = await row.run(runtime, input as never, caller);
  if (row.access.kind === "handle" && row.method !== "GET")
    void recordWrite(runtime, entryOf(row, parameters, { caller, result }));
  await send(runtime, row, ctx, result);
}

/** A handle with a brace is as unknown as any other, and never becomes part of a key: it would cut the key's tag in two. */
function harmless(parameters: Record<string, string>): Record<string, string> {
  return /[{}]/.test(parameters.handle ?? "") ? { ...parameters, handle: "-" } : parameters;
}

/** What was written: the thing that the path names, else the id in the answer. */
function entryOf(
  row: Row,
  { handle = "", ...named }: Record<string, string>,
  done: { caller: Caller; result: unknown },
): AuditEntry {
  const [made = {}] = Object.values((done.result ?? {}) as object);
  const [, id] = Object.entries(made as object).find(([name]) => /(Id|Slug|Uid)$/.test(name)) ?? [];
  const subject = Object.values(named).join("/") || String(id ?? "");
  return { handle, userId: done.caller.userId ?? "", route: `${row.method} ${row.path}`, subject };
}

async function given(ctx: Context, row: Row): Promise<Record<string, unknown>> {
  return row.method === "GET" || row.method === "DELETE" ? { ...ctx.query } : readBody(ctx, row);
}

function taken(ctx: Context, row: Row): Record<string, string> {
  const fields = Object.entries(row.takes ?? {}).map(([field, name]) => [name, ctx.get(field)]);
  return Object.fromEntries(fields.filter(([, value]) => value !== ""));
}

function idempotency(ctx: Context): { idempotencyKey?: string } {
  const key = ctx.get("idempotency-key");
  if (key.length > 255)
    throw new Fail("invalid_request", {
      errors: [{ path: "/Idempotency-Key", message: "is longer than 255 characters" }],
    });
  return key === "" ? {} : { idempotencyKey: key };
}

async function send(runtime: Runtime, row: Row, ctx: Context, result: unknown): Promise<void> {
  const kind = outcomeOf(result);
  if (row.headers) ctx.set(row.headers);
  if (kind === "replayed") ctx.set("Idempotency-Replayed", "true");
  if (isStream(result) && !row.view) return sendStream(ctx, result);
  ctx.status = result === undefined ? 204 : kind === "created" && row.created ? row.created : (row.status ?? 200);
  if (result === undefined) return;
  if (row.view) return present(ctx, await row.view(result as never, new Asked(runtime, ctx)));
  ctx.set({ "Cache-Control": "no-store", ...row.headers });
  ctx.type = "application/json; charset=utf-8";
  ctx.body = jsonOf(result as object);
}

function isStream(result: unknown): result is AsyncIterable<StreamEvent> {
  return typeof result === "object" && result !== null && Symbol.asyncIterator in result;
}

function present(ctx: Context, view: View): void {
  if (view.status) ctx.status = view.status;
  if (view.headers) ctx.set(view.headers);
  ctx.type = view.type;
  // Only where somebody asks: what Koa compares is a copy of all headers.
  if (ctx.get("if-none-match") !== "" && ctx.fresh) ctx.status = 304;
  else
    ctx.body =
      typeof view.body === "string" || view.body instanceof Uint8Array ? bytesOf(view.body) : Readable.from(view.body);
}

function bytesOf(body: string | Uint8Array): string | Buffer {
  return typeof body === "string" ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength);
}

/** A request as presenters ask about it: most of them ask nothing. */
class Asked implements Request {
  readonly runtime: Runtime;
  readonly #ctx: Context;

  constructor(runtime: Runtime, ctx: Context) {
    this.runtime = runtime;
    this.#ctx = ctx;
  }

  get origin(): string {
    return this.#ctx.origin;
  }

  get host(): string {
    return this.#ctx.host;
  }

  header(name: string): string {
    return this.#ctx.get(name);
  }
}

function unmatched(routes: Routes, ctx: Context): void {
  const methods = routes.methods(ctx.path);
  if (methods.length === 0) throw new Fail("not_found");
  ctx.set("Allow", methods.join(", "));
  throw new Fail("method_not_allowed");
}
