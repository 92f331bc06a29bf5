import type { HandleAccess } from "../core/account/face.ts";
import type { Fail } from "../core/platform/errors.ts";
import type { Caller, Runtime } from "../core/platform/runtime.ts";
import type { Scope } from "../schemas/account.ts";
import type { ErrorCode } from "../schemas/errors.ts";
import { documented, handle, type Input, object, propertiesOf, type Schema, string } from "../schemas/schema.ts";
import type { FailureTexts, Request } from "./request.ts";

/** Who may call. There is no default: every row names its access. */
export type Access = { kind: "public" } | { kind: "user" } | ({ kind: "handle" } & HandleAccess) | { kind: "metrics" };

/** No token is read, unknown input is dropped, and any origin may call. */
export const anyone: Access = { kind: "public" };
export const user: Access = { kind: "user" };
/** A session whose user has at least this role on the path's handle. */
export const creator: Access = { kind: "handle", role: "CREATOR" };
export const operator: Access = { kind: "handle", role: "OPERATOR" };
/** METRICS_TOKEN as bearer; public if none is set outside production. */
export const metrics: Access = { kind: "metrics" };

type Method = "GET" | "POST" | "PUT" | "DELETE";

/** A response. The body may be a stream or bytes. */
export interface View {
  type?: string;
  body?: string | Uint8Array | AsyncIterable<string>;
  status?: number;
  headers?: Record<string, string | string[]>;
}

export interface ToolColumn {
  name: string;
  /** The scope that a personal access token needs. */
  scope: Scope;
  /** What the tool is for and what it returns, so that an agent can choose it. */
  description: string;
  /** Optional fields that listed items omit: they can be long, and another tool returns them. */
  omits?: readonly string[];
}

/** Optional columns of a row. */
interface Columns<R> {
  /** Status of success; default 200, or 204 for an undefined result. */
  status: number;
  /** Status for a created result (`withOutcome(result, "created")`). */
  created: number;
  /** Largest body in bytes; default 1 MB for owners, 64 KB for the public. */
  limit: number;
  /** Most values in a body; default 50,000. */
  maxValues: number;
  /** A body type that is accepted besides JSON; rows for browsers and those with a `page` have it. */
  accepts: "form";
  /** Refuses or limits strangers before the body is read, with the path parameters: `not_found`, `rate_limited`. */
  guard: (runtime: Runtime, parameters: Record<string, string>, caller: Caller) => Promise<unknown>;
  /** Throws if the path's subject does not exist; that failure wins over any error of body or query. */
  subject: (runtime: Runtime, parameters: Record<string, string>) => Promise<unknown>;
  /** Renders the result as something other than JSON. */
  view: (result: R, request: Request) => View | Promise<View>;
  /** Renders the result for a browser that submits a form and prefers HTML; others get JSON. */
  page: (result: R, request: Request, input: object) => View | Promise<View>;
  /** Renders failures of a route that only people use; undefined falls back to the problem document. */
  errorView: (fail: Fail, request: Request) => View | undefined;
  /** Failure texts of this route, if those of the code don't fit. */
  failureTexts: FailureTexts;
  /** Further parameters of `WWW-Authenticate`. */
  challenge: (runtime: Runtime, parameters: Record<string, string>) => Record<string, string>;
  /** True for a page that only the browser itself opens: scripts of no other origin may read it. */
  isNavigated: boolean;
  /** Headers of every successful response. */
  headers: Record<string, string>;
  /** False if the function writes its own, shorter log line. */
  logged: boolean;
  /** True for a POST that changes no data of the owner; the audit stream records writes only. */
  isReadOnly: boolean;
  /** The id of the result, for a POST whose path has no id of it: the audit stream records it, and `Location` leads to it. */
  createdId: (result: R) => string;
  /** Who wrote to which handle on a page for browsers, whose path and header name neither; undefined if nothing was written. */
  audited: (result: R) => { userId: string; handle: string } | undefined;
  /** The only thing logged about a failure: `assistant` makes `assistant.request.failed`. */
  errorLogName: "assistant";
  /** True if the route honours `Idempotency-Key`. */
  idempotent: boolean;
  /** The security scheme of a route whose requests are signed and carry no token. */
  signed: "standardWebhooks" | "stripe";
  /** Schema of the success body, for the OpenAPI document. */
  returns: Schema<unknown>;
  /** A success that is not JSON. */
  produces: { types: readonly string[]; schema?: Record<string, unknown>; example: unknown };
  /** When it answers without content, by status. */
  empty: Record<number, string>;
  /** Schemas of a raw body, by content type. The function gets `{ body, headers }`, the body as an async iterable of its bytes. */
  consumes: Record<string, Schema<unknown>>;
  /** A short imperative, if the words of the function's name are not: "Create a page" is derived from `createPage`. */
  summary: string;
  /** What it does beyond its summary, in full sentences (Markdown), for the OpenAPI document and the tools. */
  description: string;
  /** Its own failure codes; those of access, path, input, idempotency and versions follow from the other columns. */
  failures: readonly ErrorCode[];
  /** Its tag in the OpenAPI document, if it is not that of its table. */
  tag: string;
  /** Omitted from the OpenAPI document. */
  hidden: boolean;
  /** The row is also a tool for agents (docs/reference.md, "MCP"). */
  tool: ToolColumn;
}

export interface Row extends Partial<Columns<never>> {
  method: Method;
  path: string;
  access: Access;
  input: Schema<unknown>;
  run: (runtime: Runtime, input: never, caller: Caller) => unknown;
}

/** True if the input comes from the query instead of a body. */
export function hasQuery({ method }: Row): boolean {
  return method === "GET" || method === "DELETE";
}

type Line = `${Method} /${string}`;
/** Names of the parameters in a path: `"handle" | "pageSlug"` for `/p/:handle/:pageSlug`. */
type Names<L> = L extends `${string}:${infer N}/${infer Rest}`
  ? N | Names<Rest>
  : L extends `${string}:${infer N}`
    ? N
    : never;

/**
 * A row: line, access, input, function. Path parameters, query (GET and DELETE) and body become one closed input; the path wins. A promise
 * becomes JSON, an async iterable becomes server-sent events, undefined becomes 204.
 */
export function route<L extends Line, I, R>(
  line: L,
  access: Access,
  input: Schema<I>,
  run: (runtime: Runtime, input: Input<Names<L>, Schema<NoInfer<I>>>, caller: Caller) => R,
  more: Partial<Columns<Awaited<R>>> = {},
): Row {
  const [method, path] = line.split(" ") as [Method, string];
  const row = { method, path, access, input: withPath(path, input), run: run as Row["run"] };
  return { ...row, ...(more.page && { accepts: "form" }), ...(more as Partial<Columns<never>>) };
}

export function pathNames(path: string): string[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name]) => name as string);
}

/** A handle in a path: the access checks it, and a malformed one is unknown to public rows. */
const anyHandle = documented(string(), handle);

/** The input with the path's parameters, which come first: any text, unless the input says more than that it ignores one. */
function withPath(path: string, { additionalProperties, ...input }: Schema<unknown>): Schema<unknown> {
  const own = Object.entries(propertiesOf(input)).filter(([, property]) => !property.readOnly);
  const forms: Record<string, Schema<unknown>> = { handle: anyHandle, ...Object.fromEntries(own) };
  const parameters = Object.fromEntries(pathNames(path).map((name) => [name, forms[name] ?? string()]));
  return object({ ...parameters, ...propertiesOf(input), ...parameters }, { additionalProperties });
}

/** A row for browsers: anyone may open it or send its form, a view renders its result, and the OpenAPI document omits it. */
export function page<L extends Line, I, R>(
  line: L,
  input: Schema<I>,
  run: (runtime: Runtime, input: Input<Names<L>, Schema<NoInfer<I>>>, caller: Caller) => R,
  view: Columns<Awaited<R>>["view"],
  more: Partial<Columns<Awaited<R>>> = {},
): Row {
  return route(line, anyone, input, run, { view, hidden: true, accepts: "form", ...more });
}
