import type { ValidateFunction } from "ajv";
import type { Scope } from "../schemas/account.ts";
import type { ErrorCode } from "../schemas/errors.ts";
import type { Words } from "../schemas/languages.ts";
import type { Schema } from "../schemas/schema.ts";
import type { Env } from "../core/platform/env.ts";
import type { Fail } from "../core/platform/errors.ts";
import type { Caller, Role, Runtime } from "../core/platform/runtime.ts";

/** Who may call. There is no default: every row names one. */
export type Access =
  | { kind: "open" }
  | { kind: "user" }
  | {
      kind: "handle";
      role: Role;
      scopes?: readonly string[];
      /** The address that tokens may be issued for (RFC 8707), where the route is such a resource. */
      resource?: (env: Env, handle: string) => string;
    }
  | { kind: "metrics" };

/** No token is read; unknown input is dropped, any origin may call. */
export const anyone: Access = { kind: "open" };
/** Any signed-in user. */
export const user: Access = { kind: "user" };
/** A session whose user has at least this role on the path's handle. */
export const creator: Access = { kind: "handle", role: "CREATOR" };
export const operator: Access = { kind: "handle", role: "OPERATOR" };
export const owner: Access = { kind: "handle", role: "OWNER" };
/** The same, or a personal access token with one of the scopes. */
export const creatorOrToken = (...scopes: string[]): Access => ({ kind: "handle", role: "CREATOR", scopes });
/** METRICS_TOKEN as bearer; open where none is set outside production. */
export const metrics: Access = { kind: "metrics" };

export type Method = "GET" | "POST" | "PUT" | "DELETE";

/** What a presenter makes of a result where that is not JSON. A stream or bytes may be the body. */
export interface View {
  type: string;
  body: string | Uint8Array | AsyncIterable<string>;
  status?: number;
  headers?: Record<string, string | string[]>;
}

/** A success that is no JSON, for the OpenAPI document. */
export interface Produced {
  types: readonly string[];
  schema?: Record<string, unknown>;
  example: unknown;
}

/** How the request came, for presenters and for the few functions that speak about addresses. */
export interface Request {
  runtime: Runtime;
  origin: string;
  host: string;
  method: string;
  /** What the path names. */
  parameters: Readonly<Record<string, string>>;
  /** Path and query as they were asked for. */
  address: string;
  /** Path of the page that the request's path names, on the host where the visitor is. */
  pagePath: string | undefined;
  /** Path of the page whose form was sent, if it is on the same host. */
  formPage: string | undefined;
  /** Words for failures of this route, where those of the code don't fit. */
  said: Partial<Record<ErrorCode, keyof Words["failures"]>>;
  header(name: string): string;
  /**
   * Of the languages that have words, that which the visitor likes best (RFC 9110, 12.5.4), else the fallback, else English. Without a
   * fallback a failure falls back to the language of the handle that it is about.
   */
  language(fallback?: string | null): string;
}

/** A row as agents know it. */
export interface Tool {
  name: string;
  /** What a personal access token needs. */
  scope: Scope;
  /** What it is for and what comes back, in sentences that an agent chooses by. */
  description: string;
  /** Fields of listed items that stay away: they can be long, and another tool reads them. */
  omits?: readonly string[];
}

/** Columns that most rows leave out. */
export interface Columns<R> {
  /** Status of success; 200 when left out, 204 where the result is nothing. */
  status: number;
  /** Status if the result was created (`outcome(result, "created")`). */
  created: number;
  /** Largest body in bytes; 1 MB for owners, 64 KB for the public. */
  limit: number;
  /** Content types that the body may have besides JSON; `raw` gives the function `{ body: bytes, headers }`. */
  accepts: "json" | "form" | "raw";
  /** Runs before the body is read: throttle and gate. Gets the path parameters. */
  guard: (runtime: Runtime, parameters: Record<string, string>, caller: Caller) => Promise<unknown>;
  /** Fails where what the path names is not there, which outranks whatever is wrong with the body or the query. */
  subject: (runtime: Runtime, parameters: Record<string, string>) => Promise<unknown>;
  /** Makes something other than JSON of the result. */
  view: (result: R, request: Request) => View | Promise<View>;
  /** What a browser gets for a form post that prefers HTML, where others get JSON. */
  page: (result: R, request: Request) => View | Promise<View>;
  /** What everyone gets instead of a problem document, where a route is made for people alone; nothing leaves it at that. */
  errorView: (fail: Fail, request: Request) => View | undefined;
  /** Words for failures of this route, where those of the code don't fit. */
  said: Partial<Record<ErrorCode, keyof Words["failures"]>>;
  /** Parameters of `WWW-Authenticate` besides those of the failure itself. */
  challenge: (runtime: Runtime, parameters: Record<string, string>) => Record<string, string>;
  /** Headers of every success. */
  headers: Record<string, string>;
  /** False where the function writes its own log line, with fewer fields. */
  logged: boolean;
  /** True for a POST that changes nothing of the owner's: the audit stream holds writes alone. */
  isReadOnly: boolean;
  /** The id of what it wrote, for the audit stream: needed by a POST whose path names nothing below the handle. */
  wrote: (result: R) => string;
  /** The log's name for a failure of which nothing else may stand there: `assistant` makes `assistant.request.failed`. */
  errorLogName: string;
  /** Header fields, `:method`, `:authority` and `:language` that become input, field to input name; body and query never give it. */
  headerInputs: Record<string, string>;
  /** True where the header `Idempotency-Key` counts. */
  idempotent: boolean;
  /** How the request is signed instead of carrying a token: a security scheme of the OpenAPI document. */
  signed: "standardWebhooks" | "stripe";
  /** Shape of the success body, for the OpenAPI document. */
  returns: Schema<unknown>;
  /** What a success is where it is no JSON. */
  produces: Produced;
  /** When a success has no body (204) though others have one. */
  nothing: string;
  /** Bodies of a `raw` row by their content type. */
  consumes: Record<string, Schema<unknown>>;
  /** An imperative of a few words: "Create a page". */
  summary: string;
  /** What it does beyond its summary, in whole sentences (Markdown), for the OpenAPI document and the tools. */
  description: string;
  /** The codes of its own failures; those of access, input, idempotency and versions follow from the other columns. */
  failures: readonly ErrorCode[];
  /** Left out of the OpenAPI document. */
  hidden: boolean;
  /** The row is also a tool for agents (docs/reference.md, "MCP"). */
  tool: Tool;
}

/** One route of the service. */
export interface Row extends Partial<Columns<never>> {
  method: Method;
  path: string;
  access: Access;
  input: Schema<unknown>;
  run: (runtime: Runtime, input: never, caller: Caller) => unknown;
  /** The compiled check of the input, made at the first request. */
  check?: ValidateFunction;
  /** True where the input has words that are folded; known when the check is compiled. */
  folds?: boolean;
}

/**
 * A row: line, access, input, function. Path parameters, query (GET and DELETE) and body become one closed input, and the path
 * wins. A promise becomes JSON, an async iterable becomes server-sent events, nothing becomes 204.
 */
export function route<I, R>(
  line: `${Method} /${string}`,
  access: Access,
  input: Schema<I>,
  run: (runtime: Runtime, input: I, caller: Caller) => R,
  more: Partial<Columns<Awaited<R>>> = {},
): Row {
  const [method, path] = line.split(" ") as [Method, string];
  return { method, path, access, input, run: run as Row["run"], ...(more as Partial<Columns<never>>) };
}
