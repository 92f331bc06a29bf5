import { randomUUID } from "node:crypto";
import Koa, { type Context } from "koa";
import compress from "koa-compress";
import { settingsOf } from "../core/account/face.ts";
import { type AuditEntry, recordWrite } from "../core/operations/face.ts";
import { Fail } from "../core/platform/errors.ts";
import { networkOf } from "../core/platform/network.ts";
import { jsonOf, outcomeOf } from "../core/platform/outcome.ts";
import type { Caller, Runtime } from "../core/platform/runtime.ts";
import { bodyDigest } from "../core/store/idempotency.ts";
import { isRedisAway } from "../core/store/redis.ts";
import { admit } from "./access.ts";
import { readBody } from "./body.ts";
import { MIN_COMPRESSED } from "./coded.ts";
import { dashboard, isDashboard } from "./dashboard.ts";
import { failureView } from "./failure-view.ts";
import { mayBePageHost, movedPage, pageHost } from "./hosts.ts";
import { checkInput } from "./input.ts";
import { Metrics } from "./metrics.ts";
import { asFail, problemReply } from "./problem.ts";
import { type HttpReply, sendReply } from "./reply.ts";
import { AppRequest, headerFields } from "./request.ts";
import { hasQuery, type Row, type View } from "./route.ts";
import { type RouteMatch, Routes } from "./routes.ts";
import { rows } from "./rows.ts";
import { type StreamEvent, sendStream } from "./stream.ts";

/** The Koa application: request id, one catch, CORS, page hosts, the queue board, and the rows. */
export function buildApp(runtime: Runtime): Koa {
  // Only the last forwarded address is trusted: the proxy adds it.
  const app = new Koa({ proxy: runtime.env.TRUST_PROXY, maxIpsCount: 1 });
  const metrics = new Metrics(runtime);
  const { LOGIN_BUILTIN, LOGIN_URL } = runtime.env;
  const table = rows(metrics, LOGIN_BUILTIN ? new URL(LOGIN_URL).pathname : undefined);
  const routes = new Routes(table);
  app.use(compress({ threshold: MIN_COMPRESSED, zstd: false, deflate: false }));
  const isSecure = runtime.env.production && runtime.env.BASE_URL.startsWith("https:");
  app.use((ctx) => {
    // HTTPS only, from now on (RFC 6797).
    if (isSecure) ctx.set("Strict-Transport-Security", "max-age=31536000");
    return answer(runtime, metrics, ctx, () => handle(runtime, routes, ctx));
  });
  return app;
}

/** Handles one request. It is one function because each layer of middleware costs as much as the access check. */
async function handle(runtime: Runtime, routes: Routes, ctx: Context): Promise<HttpReply | undefined> {
  // A request for "http://" has no path.
  if (!ctx.path) throw new Fail("not_found");
  const { origin } = ctx.req.headers;
  // A cache must not answer a page of another origin with a response that lacks the permission.
  ctx.vary("Origin");
  const allowed = origin ? allowOrigins(runtime, routes, ctx, origin) : undefined;
  if (allowed) return allowed;
  if (mayBePageHost(runtime, ctx)) await pageHost(runtime, ctx);
  if (isDashboard(ctx.path)) return dashboard(runtime, ctx);
  const found = routes.find(ctx.path, ctx.method);
  if (found === undefined) return unmatched(routes, ctx);
  return movedPage(runtime, found, ctx) ?? serve(runtime, found, ctx);
}

/** The one place that assigns the request id, catches, counts and logs. */
async function answer(
  runtime: Runtime,
  metrics: Metrics,
  ctx: Context,
  handle: () => Promise<HttpReply | undefined>,
): Promise<void> {
  const started = performance.now();
  ctx.state.requestId = requestId(ctx.req.headers["x-request-id"]);
  try {
    const reply = await handle();
    if (reply) sendReply(ctx, reply);
  } catch (error) {
    await fail(runtime, ctx, error);
  }
  const took = performance.now() - started;
  const { requestId: id, row } = ctx.state as { requestId: string; row?: Row };
  const [{ method = "" }, { statusCode: status }] = [ctx.req, ctx.res];
  metrics.request(row, method, status, took);
  if (row?.logged === false) return;
  runtime.log.info(
    { requestId: id, method, route: row?.path, status, tookMs: Math.round(took) },
    "http.request.completed",
  );
}

function requestId(given: string | string[] | undefined): string {
  return typeof given === "string" && /^[A-Za-z0-9._-]{1,64}$/.test(given) ? given : randomUUID();
}

async function fail(runtime: Runtime, ctx: Context, error: unknown): Promise<void> {
  const known = asFail(error);
  if (known.status >= 500) logFailure(runtime, ctx, known);
  if (ctx.headerSent) return void ctx.res.destroy();
  const reply = problemReply(known, ctx.state.requestId, challengeOf(runtime, ctx));
  const page = await failurePage(runtime, ctx, known);
  sendReply(ctx, page ? replyOfView({ ...page, headers: { ...reply.headers, ...page.headers } }) : reply);
}

/** Logs an internal failure; rows with an `errorLogName` log that name only. */
function logFailure({ log }: Runtime, { state }: Context, known: Fail): void {
  const { requestId, row } = state as { requestId: string; row?: Row };
  const isDefect = known.code === "internal_error";
  const cause = (known.cause ?? known) as Error;
  if (row?.errorLogName && isDefect) log.error({}, `${row.errorLogName}.request.failed`);
  else if (row?.errorLogName) log.warn({}, `${row.errorLogName}.request.unavailable`);
  else if (isDefect) log.error({ requestId, error: cause?.stack }, "http.request.failed");
  else log.warn({ requestId, error: cause.message }, "http.request.unavailable");
}

function challengeOf(runtime: Runtime, { state }: Context): Record<string, string> | undefined {
  return (state.row as Row | undefined)?.challenge?.(runtime, state.parameters);
}

/** An HTML page for a failure, if the row serves people, a page is missing or the client prefers HTML. */
async function failurePage(runtime: Runtime, ctx: Context, known: Fail): Promise<View | undefined> {
  const { row, pageHost } = ctx.state as { row?: Row; pageHost?: string };
  const isPage = prefersHtml(ctx) || (pageHost !== undefined && known.status === 404);
  if (!row?.errorView && !isPage) return undefined;
  const asked = new AppRequest(runtime, ctx, await languageOfHandle(runtime, ctx, known));
  return row?.errorView?.(known, asked) ?? (isPage ? failureView(known, asked) : undefined);
}

/** True if a browser is waiting: the client prefers HTML to JSON, or submits a form. */
function prefersHtml(ctx: Context): boolean {
  ctx.vary("Accept");
  const sends = /^(application\/x-www-form-urlencoded|multipart\/form-data)\b/i.test(ctx.get("content-type"));
  if (ctx.method !== "GET" && ctx.method !== "HEAD" && !(ctx.method === "POST" && sends)) return false;
  return ctx.accepts("application/json", "application/problem+json", "text/html") === "text/html";
}

/** The language of the handle that a failed request names; undefined if Redis is unavailable. */
async function languageOfHandle({ redis }: Runtime, { state }: Context, known: Fail): Promise<string | null> {
  const { handle = state.handle } = (state.parameters ?? {}) as Record<string, string>;
  if (handle === undefined || known.code === "service_unavailable") return null;
  try {
    return (await settingsOf(redis, handle)).language;
  } catch (error) {
    if (isRedisAway(error)) return null;
    throw error;
  }
}

/**
 * Allows any origin to call public rows, without credentials, and the application's origin to call all others (docs/reference.md, "CORS").
 * Returns the reply to a preflight request.
 */
function allowOrigins(runtime: Runtime, routes: Routes, ctx: Context, origin: string): HttpReply | undefined {
  const method = ctx.method === "OPTIONS" ? ctx.get("access-control-request-method") : ctx.method;
  if (method === "") return undefined;
  const row = routes.find(ctx.path, method)?.row;
  const isPublic = row ? row.access.kind === "open" : ctx.path.startsWith("/v2/public/");
  const allowed = isPublic ? "*" : origin === new URL(runtime.env.APP_URL).origin ? origin : undefined;
  if (allowed)
    ctx.set({
      "Access-Control-Allow-Origin": allowed,
      "Access-Control-Expose-Headers": "X-Request-Id, Retry-After, Idempotency-Replayed",
    });
  if (ctx.method !== "OPTIONS") return undefined;
  if (row === undefined) return unmatched(routes, ctx);
  return { status: 204, headers: allowed ? preflight(method) : {} };
}

function preflight(method: string): Record<string, string> {
  return {
    "Access-Control-Allow-Methods": method,
    "Access-Control-Allow-Headers":
      "authorization, content-type, idempotency-key, last-event-id, mcp-method, mcp-name, mcp-protocol-version, x-request-id",
    "Access-Control-Max-Age": "600",
  };
}

/** Runs a row: access, guard, input, function, presenter. */
async function serve(runtime: Runtime, { row, parameters }: RouteMatch, ctx: Context): Promise<HttpReply | undefined> {
  ctx.state.row = row;
  ctx.state.parameters = parameters;
  // A closed connection has no address any more.
  const address = clientAddress(runtime, ctx);
  const admitted = await admit(runtime, row.access, {
    authorization: ctx.req.headers.authorization ?? "",
    handle: parameters.handle,
  });
  const caller: Caller = {
    requestId: ctx.state.requestId,
    ...admitted,
    // Read on demand: most rows don't ask for it.
    get network() {
      return networkOf(address);
    },
  };
  if (row.guard) await row.guard(runtime, parameters, caller);
  const input = await inputOf(ctx, row, { parameters, caller }).catch((error) => throwInputError(runtime, ctx, error));
  const result = await row.run(runtime, input as never, caller);
  if (isWrite(row)) void recordWrite(runtime, auditEntryOf(row, parameters, { caller, result }));
  return replyOf(runtime, row, ctx, result);
}

/** Merges body, query, header fields and path into one checked input. The idempotency key goes to the caller. */
async function inputOf(
  ctx: Context,
  row: Row,
  { parameters, caller }: { parameters: Record<string, string>; caller: Caller },
): Promise<unknown> {
  Object.assign(caller, idempotency(ctx));
  const body = hasQuery(row) ? ctx.query : await readBody(ctx, row);
  if (caller.idempotencyKey !== undefined) caller.bodyDigest = bodyDigest(body);
  return checkInput(row, { ...body, ...headerValues(ctx, row), ...parameters });
}

/** Throws the failure of the path's subject if there is one, else the error of the input. */
async function throwInputError(runtime: Runtime, { state }: Context, error: unknown): Promise<never> {
  const { row, parameters } = state as RouteMatch;
  await row.subject?.(runtime, parameters);
  throw error;
}

/** Koa reads forwarded addresses even without a trusted proxy. */
function clientAddress({ env }: Runtime, ctx: Context): string {
  return env.TRUST_PROXY ? ctx.ip : (ctx.req.socket.remoteAddress ?? "");
}

/** True if the request belongs in the audit stream of its handle. */
function isWrite({ access, method, isReadOnly = false }: Row): boolean {
  return access.kind === "handle" && method !== "GET" && !isReadOnly;
}

/** The audited id: the one in the path, else the one that the row reads from its result. */
function auditEntryOf(
  row: Row,
  { handle = "", ...named }: RouteMatch["parameters"],
  done: { caller: Caller; result: unknown },
): AuditEntry {
  const subject = Object.values(named).join("/") || (row.wrote?.(done.result as never) ?? "");
  return { handle, userId: done.caller.userId ?? "", route: `${row.method} ${row.path}`, subject };
}

/** Inputs that come from the header alone. They are undefined without the field, whatever the body contains. */
function headerValues(ctx: Context, { headerInputs = [] }: Row): Record<string, string | undefined> {
  return Object.fromEntries(headerInputs.map((name) => [name, headerFields[name](ctx) || undefined]));
}

function idempotency(ctx: Context): { idempotencyKey?: string } {
  const key = String(ctx.req.headers["idempotency-key"] ?? "");
  if (key.length > 255)
    throw new Fail("invalid_request", {
      errors: [{ path: "/Idempotency-Key", message: "is longer than 255 characters" }],
    });
  return key === "" ? {} : { idempotencyKey: key };
}

/** The reply for a result; undefined if a stream has already been sent. */
async function replyOf(runtime: Runtime, row: Row, ctx: Context, result: unknown): Promise<HttpReply | undefined> {
  if (isStream(result) && !row.view) {
    await sendStream(ctx, result);
    return undefined;
  }
  const kind = outcomeOf(result);
  if (kind === "replayed") ctx.set("Idempotency-Replayed", "true");
  if (result === undefined) return { status: 204, headers: row.headers ?? {} };
  const status = kind === "created" && row.created ? row.created : (row.status ?? 200);
  if (row.page && prefersHtml(ctx)) return replyOfView(await row.page(result as never, new AppRequest(runtime, ctx)));
  if (row.view) return replyOfView(await row.view(result as never, new AppRequest(runtime, ctx)), status, row.headers);
  const headers = { "Cache-Control": "no-store", ...row.headers, "Content-Type": "application/json; charset=utf-8" };
  return { status, headers, body: jsonOf(result as object) };
}

function isStream(result: unknown): result is AsyncIterable<StreamEvent> {
  return typeof result === "object" && result !== null && Symbol.asyncIterator in result;
}

/** A view as a reply. */
function replyOfView(view: View, status = 200, headers?: Row["headers"]): HttpReply {
  const all = { ...headers, ...view.headers, "Content-Type": view.type };
  return { status: view.status ?? status, headers: all, body: view.body };
}

function unmatched(routes: Routes, ctx: Context): never {
  const methods = routes.methods(ctx.path);
  if (methods.length === 0) throw new Fail("not_found");
  ctx.set("Allow", methods.join(", "));
  throw new Fail("method_not_allowed");
}
