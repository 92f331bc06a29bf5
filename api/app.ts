import { randomUUID } from "node:crypto";
import Koa, { type Context } from "koa";
import { findHandle, settingsOf } from "../core/account/face.ts";
import { recordWrite } from "../core/operations/face.ts";
import { Fail, invalid } from "../core/platform/errors.ts";
import { networkOf } from "../core/platform/network.ts";
import { jsonOf, outcomeOf } from "../core/platform/outcome.ts";
import type { Caller, RunChunk, Runtime } from "../core/platform/runtime.ts";
import { bodyDigest } from "../core/store/idempotency.ts";
import { isRedisAway } from "../core/store/redis.ts";
import { admit } from "./access.ts";
import { readBody, readQuery } from "./body.ts";
import { dashboard, isDashboard } from "./dashboard.ts";
import { failureView } from "./failure-view.ts";
import { movedPage, pageHost, settleHost } from "./hosts.ts";
import { checkInput } from "./input.ts";
import { Metrics } from "./metrics.ts";
import { asFail, problemView } from "./problem.ts";
import { sendView } from "./reply.ts";
import { headerFields, headerInputs, mayBePageHost, Request } from "./request.ts";
import { hasQuery, type Row, type View } from "./route.ts";
import { type RouteMatch, RowRouter } from "./router.ts";
import { rows } from "./rows.ts";
import { sendStream } from "./stream.ts";

/** What is known of a request so far: its id, the row that serves it, and the page host that it names. */
interface State extends Partial<RouteMatch> {
  requestId: string;
  pageHost?: string;
  handle?: string;
  /** The id of what it has created. */
  createdId?: string | undefined;
}

/** Codes of the errors of a connection that the client has closed, or on which it doesn't speak HTTP. */
const clientFaults = /^(ECONNRESET|EPIPE|ERR_STREAM_PREMATURE_CLOSE|HPE_.*)$/;

/** The Koa application: request id, one catch, CORS, page hosts, the queue board, and the rows. */
export function buildApp(runtime: Runtime): Koa {
  const { env, log } = runtime;
  // Only the last forwarded address is trusted: the proxy adds it.
  const app = new Koa({ proxy: env.TRUST_PROXY, maxIpsCount: 1 });
  const metrics = new Metrics(runtime);
  const routes = new RowRouter(rows(metrics, env.LOGIN_BUILTIN ? new URL(env.LOGIN_URL).pathname : undefined));
  // HTTPS only, from now on (RFC 6797).
  const isSecure = env.production && env.BASE_URL.startsWith("https:");
  const secure: Record<string, string> = isSecure ? { "Strict-Transport-Security": "max-age=31536000" } : {};
  // A cache must not answer a page of another origin with a response that lacks the permission, nor one host with the pages of another that a
  // stranger has named: proxies pass the field on.
  const vary = `Accept-Encoding, Origin${env.TRUST_PROXY ? ", X-Forwarded-Host" : ""}`;
  const common = { ...secure, "X-Content-Type-Options": "nosniff", Vary: vary };
  // A response that broke off after its start. Koa would print all of them.
  app.on("error", (error: NodeJS.ErrnoException, { state }: Context) => {
    if (!clientFaults.test(error.code ?? "")) logFailure(runtime, state as State, asFail(error));
  });
  // It is one function because each layer of middleware costs as much as the access check.
  app.use(async (ctx) => {
    const started = performance.now();
    const state = ctx.state as State;
    state.requestId = requestId(ctx.req.headers["x-request-id"]);
    ctx.set({ ...common, "X-Request-Id": state.requestId });
    await handle(runtime, routes, ctx).catch((error) => fail(runtime, ctx, error));
    const took = performance.now() - started;
    const [{ method = "" }, { statusCode: status }] = [ctx.req, ctx.res];
    metrics.request(state.row, method, status, took);
    const line = { requestId: state.requestId, method, route: state.row?.path, status, tookMs: Math.round(took) };
    if (state.row?.logged !== false) log.info(line, "http.request.completed");
  });
  return app;
}

function requestId(given: string | string[] | undefined): string {
  return typeof given === "string" && /^[A-Za-z0-9._-]{1,64}$/.test(given) ? given : randomUUID();
}

async function handle(runtime: Runtime, routes: RowRouter, ctx: Context): Promise<void> {
  settleHost(ctx.req);
  // A request for "foo://bar" has no path.
  if (!ctx.path) throw new Fail("not_found");
  if (ctx.req.headers.origin && allowOrigin(runtime, routes, ctx)) return;
  if (mayBePageHost(runtime, ctx)) await pageHost(runtime, ctx);
  if (isDashboard(ctx.path)) return dashboard(runtime, ctx);
  const found = routes.find(ctx.path, ctx.method) ?? throwUnmatched(routes, ctx);
  const moved = movedPage(runtime, found, ctx);
  if (moved) sendView(ctx, moved);
  else await serve(runtime, found, ctx);
  if (ctx.status === 201) locate(routes, ctx);
}

function throwUnmatched(routes: RowRouter, ctx: Context): never {
  const methods = routes.methods(ctx.path);
  if (methods.length === 0) throw new Fail("not_found");
  ctx.set("Allow", methods.join(", "));
  throw new Fail("method_not_allowed");
}

/**
 * Allows any origin to call public rows, without credentials, and the application's origin to call all others (docs/reference.md, "CORS").
 * True for a preflight request, which has its reply then.
 */
function allowOrigin({ env }: Runtime, routes: RowRouter, ctx: Context): boolean {
  const isPreflight = ctx.method === "OPTIONS";
  const method = isPreflight ? ctx.get("access-control-request-method") : ctx.method;
  if (method === "") return false;
  const row = routes.find(ctx.path, method)?.row;
  const isPublic = row ? row.access.kind === "public" : ctx.path.startsWith("/v2/public/");
  const origin = ctx.get("origin");
  const isAllowed = !row?.isNavigated && (isPublic || origin === new URL(env.APP_URL).origin);
  if (isAllowed) {
    ctx.set("Access-Control-Allow-Origin", isPublic ? "*" : origin);
    ctx.set("Access-Control-Expose-Headers", "X-Request-Id, Retry-After, Idempotency-Replayed");
  }
  if (isPreflight && row === undefined) throwUnmatched(routes, ctx);
  if (isPreflight) sendView(ctx, { status: 204, headers: isAllowed ? preflight(method) : {} });
  return isPreflight;
}

function preflight(method: string): Record<string, string> {
  return {
    "Access-Control-Allow-Methods": method,
    "Access-Control-Allow-Headers":
      "authorization, content-type, idempotency-key, last-event-id, mcp-method, mcp-name, mcp-protocol-version, x-request-id",
    "Access-Control-Max-Age": "600",
  };
}

/** Names the address of what a POST has created (RFC 9110, section 9.3.3), if it can be read there. */
function locate(routes: RowRouter, ctx: Context): void {
  const { createdId = "" } = ctx.state as State;
  const address = `${ctx.path.replace(/\/$/, "")}/${encodeURIComponent(createdId)}`;
  if (createdId !== "" && routes.find(address, "GET")) ctx.set("Location", address);
}

/** Runs a row: access, guard, input, function, presenter. */
async function serve(runtime: Runtime, { row, parameters }: RouteMatch, ctx: Context): Promise<void> {
  const state = Object.assign(ctx.state as State, { row, parameters });
  // A closed connection has no address any more. Koa reads forwarded addresses even without a trusted proxy.
  const address = runtime.env.TRUST_PROXY ? ctx.ip : (ctx.req.socket.remoteAddress ?? "");
  const { authorization = "" } = ctx.req.headers;
  const { handle = "" } = parameters;
  const enter = () => admit(runtime, row.access, { authorization, handle });
  const caller: Caller = { requestId: state.requestId, ...(await enter()), network: networkOf(address) };
  await row.guard?.(runtime, parameters, caller);
  const enterAgain = async (): Promise<void> => {
    await enter();
    // Not for every late body, which would take a second token.
    const isGone = handle !== "" && !(await findHandle(runtime.redis, handle))?.active;
    if (isGone) await row.guard?.(runtime, parameters, caller);
  };
  const { input, result } = await run(runtime, ctx, { row, parameters, caller, enterAgain }).catch(async (error) => {
    // The failure of the path's subject wins over that of the input, some of which only the function checks.
    if (asFail(error).status < 500) await row.subject?.(runtime, parameters);
    throw error;
  });
  const writer = isWrite(row) ? { handle, userId: caller.userId ?? "" } : row.audited?.(result as never);
  state.createdId = row.createdId?.(result as never);
  if (writer) void recordWrite(runtime, { ...auditEntry(row, parameters, state.createdId), ...writer });
  if (isStream(result) && !row.view) await sendStream(ctx, result);
  else sendView(ctx, await viewOf(runtime, ctx, { row, input, result }));
}

/** Ms after which a body is late. An erasure waits a little longer for the writes of requests that have entered. */
const LATE_BODY_MS = 400;

/** Runs a row. Access is checked again after a late body: its handle may be erased by then. */
async function run(
  runtime: Runtime,
  ctx: Context,
  { row, enterAgain, ...more }: RouteMatch & { caller: Caller; enterAgain: () => Promise<void> },
): Promise<{ input: unknown; result: unknown }> {
  const since = performance.now();
  const input = await inputOf(ctx, row, more);
  if (performance.now() - since > LATE_BODY_MS) await enterAgain();
  return { input, result: await row.run(runtime, input as never, more.caller) };
}

/** Merges body, query, header fields and path into one checked input. The idempotency key goes to the caller. */
async function inputOf(
  ctx: Context,
  row: Row,
  { parameters, caller }: { parameters: Record<string, string>; caller: Caller },
): Promise<unknown> {
  const key = row.idempotent ? ctx.get("idempotency-key") : "";
  if (key.length > 255) throw invalid("/Idempotency-Key", "is longer than 255 characters");
  const body = hasQuery(row) ? readQuery(ctx) : await readBody(ctx, row);
  if (key !== "") Object.assign(caller, { idempotencyKey: key, bodyDigest: bodyDigest(body) });
  const input: Record<string, unknown> = { ...body };
  // These come from the header alone: without the field they are absent, whatever the body contains.
  for (const name of headerInputs(row.input)) input[name] = headerFields[name](ctx) || undefined;
  return checkInput(row, Object.assign(input, parameters));
}

/** True if the request belongs in the audit stream of its handle. */
function isWrite({ access, method, isReadOnly = false }: Row): boolean {
  return access.kind === "handle" && method !== "GET" && !isReadOnly;
}

/**
 * The audited ids: those in the path, unless it is an address, which an erasure must find, or a link's token, which acts for its owner; then
 * the one that the row reads from its result.
 */
function auditEntry(
  row: Row,
  { handle: _, email: _address, token: _token, ...named }: RouteMatch["parameters"],
  createdId: string | undefined,
) {
  const ids = [...Object.values(named), createdId];
  const subject = ids.filter(Boolean).join("/");
  return { route: `${row.method} ${row.path}`, subject };
}

/** The response with a result: a page for a form of a browser, the row's view, or JSON. */
async function viewOf(
  runtime: Runtime,
  ctx: Context,
  { row, input, result }: { row: Row; input: unknown; result: unknown },
): Promise<View> {
  const kind = outcomeOf(result);
  if (kind === "replayed") ctx.set("Idempotency-Replayed", "true");
  if (result === undefined) return { status: 204, headers: row.headers ?? {} };
  if (row.page && prefersHtml(ctx)) return row.page(result as never, new Request(runtime, ctx), input as object);
  const status = kind === "created" && row.created ? row.created : (row.status ?? 200);
  if (row.view) {
    const view = await row.view(result as never, new Request(runtime, ctx));
    return { status, ...view, headers: { ...row.headers, ...view.headers } };
  }
  const headers = { "Cache-Control": "no-store", ...row.headers };
  return { type: "application/json; charset=utf-8", status, headers, body: jsonOf(result as object) };
}

function isStream(result: unknown): result is AsyncIterable<RunChunk> {
  return typeof result === "object" && result !== null && Symbol.asyncIterator in result;
}

/** The one place that turns errors into responses. */
async function fail(runtime: Runtime, ctx: Context, error: unknown): Promise<void> {
  const failure = asFail(error);
  const { requestId, row, parameters = {} } = ctx.state as State;
  if (failure.status >= 500) logFailure(runtime, ctx.state as State, failure);
  if (ctx.headerSent) return void ctx.res.destroy();
  const problem = problemView(failure, requestId, row?.challenge?.(runtime, parameters));
  const page = await failurePage(runtime, ctx, failure);
  sendView(ctx, page ? { ...page, headers: { ...problem.headers, ...page.headers } } : problem);
}

/** Logs an internal failure; rows with an `errorLogName` log that name only. */
function logFailure({ log }: Runtime, { requestId, row }: State, failure: Fail): void {
  const isDefect = failure.code === "internal_error";
  const cause = (failure.cause ?? failure) as Error;
  if (row?.errorLogName && isDefect) log.error({}, `${row.errorLogName}.request.failed`);
  else if (row?.errorLogName) log.warn({}, `${row.errorLogName}.request.unavailable`);
  else if (isDefect) log.error({ requestId, error: cause?.stack }, "http.request.failed");
  else log.warn({ requestId, error: cause.message }, "http.request.unavailable");
}

/** An HTML page for a failure, if the row serves people, a page is missing or the client prefers HTML. */
async function failurePage(runtime: Runtime, ctx: Context, failure: Fail): Promise<View | undefined> {
  const { row, pageHost } = ctx.state as State;
  const isPage = prefersHtml(ctx) || (pageHost !== undefined && failure.status === 404);
  if (!row?.errorView && !isPage) return undefined;
  const request = new Request(runtime, ctx, await languageOfHandle(runtime, ctx.state as State, failure));
  const view = row?.errorView?.(failure, request) ?? (isPage ? failureView(failure, request) : undefined);
  // A client that takes no HTML gets the problem document, from a route for people too.
  return view?.type?.startsWith("text/html") && !ctx.accepts("text/html") ? undefined : view;
}

/** True if a browser is waiting: the client prefers HTML to JSON, or submits a form. */
function prefersHtml(ctx: Context): boolean {
  ctx.vary("Accept");
  const sends = /^(application\/x-www-form-urlencoded|multipart\/form-data)\b/i.test(ctx.get("content-type"));
  if (ctx.method !== "GET" && ctx.method !== "HEAD" && !(ctx.method === "POST" && sends)) return false;
  return ctx.accepts("application/json", "application/problem+json", "text/html") === "text/html";
}

/** The language of the handle that a failed request names; null if Redis is unavailable. */
async function languageOfHandle({ redis }: Runtime, state: State, failure: Fail): Promise<string | null> {
  const { handle = state.handle } = state.parameters ?? {};
  if (handle === undefined || failure.code === "service_unavailable") return null;
  try {
    return (await settingsOf(redis, handle)).language;
  } catch (error) {
    if (isRedisAway(error)) return null;
    throw error;
  }
}
