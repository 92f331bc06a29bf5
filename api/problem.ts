import { STATUS_CODES } from "node:http";
import { Fail } from "../core/platform/errors.ts";
import { isRedisAway } from "../core/store/redis.ts";
import type { View } from "./route.ts";

/** Converts any error to a Fail: other errors become `service_unavailable` if Redis is away, else `internal_error`. */
export function asFail(error: unknown): Fail {
  if (error instanceof Fail) return error;
  if (isRedisAway(error)) return new Fail("service_unavailable", { retryAfter: 2 }, error);
  return new Fail("internal_error", {}, error);
}

/** A failure as a problem document (RFC 9457, docs/reference.md, "Errors"); `challenge` adds parameters to `WWW-Authenticate`. */
export function problemView(fail: Fail, requestId: string, challenge: Record<string, string> = {}): View {
  const { errors, retryAfter, more } = fail.details;
  const { status, code } = fail;
  const body = {
    type: "about:blank",
    title: STATUS_CODES[status] ?? "Error",
    status,
    code,
    detail: fail.sentence,
    requestId,
    ...(errors ? { errors } : {}),
    ...more,
  };
  const headers = { ...headersOf(status, retryAfter), ...authenticate(fail, challenge) };
  return { type: "application/problem+json", status, headers, body: JSON.stringify(body) };
}

function headersOf(status: number, retryAfter: number | undefined): Record<string, string> {
  const wait = retryAfter ?? (status === 429 || status === 503 ? 1 : undefined);
  return {
    "Cache-Control": "no-store",
    ...(wait === undefined ? {} : { "Retry-After": String(Math.max(1, Math.ceil(wait))) }),
  };
}

/** The challenge of the failure, else that of RFC 6750 (section 3), which has at least one parameter: the error of the token, if one was sent. */
function authenticate({ status, code, details }: Fail, more: Record<string, string>): Record<string, string> {
  if (status !== 401 && code !== "insufficient_scope") return {};
  if (details.challenge) return { "WWW-Authenticate": details.challenge };
  const { scope = more.scope } = details;
  const parameters = { ...(code === "missing_bearer_token" ? {} : { error: code }), ...more, ...(scope && { scope }) };
  const written = Object.entries(parameters).map(([name, value]) => `${name}="${value}"`);
  return { "WWW-Authenticate": `Bearer ${written.join(", ") || 'realm="api"'}` };
}
