import { handleSession } from "../core/account/face.ts";
import { Fail } from "../core/platform/errors.ts";
import type { Caller, Runtime } from "../core/platform/runtime.ts";
import { sameText } from "../core/platform/sealing.ts";
import type { Access } from "./route.ts";

/** Checks the row's access and returns the caller: 401, then 403, before anything else is read (docs/reference.md, "Order of checks"). */
export async function admit(
  runtime: Runtime,
  access: Access,
  request: Record<"authorization" | "handle", string>,
): Promise<Partial<Caller>> {
  if (access.kind === "public") return {};
  if (access.kind === "metrics") return admitOperator(runtime, request.authorization);
  const token = bearer(request.authorization);
  if (access.kind === "user") return runtime.sessions.check(token);
  return handleSession(runtime, access, { token, handle: request.handle });
}

function bearer(authorization: string): string {
  const [, token] = /^Bearer +(\S+)$/i.exec(authorization) ?? [];
  if (token !== undefined) return token;
  throw new Fail(/^Bearer +\S/i.test(authorization) ? "invalid_token" : "missing_bearer_token");
}

function admitOperator({ env }: Runtime, authorization: string): Partial<Caller> {
  if (env.METRICS_TOKEN === undefined && !env.production) return {};
  if (env.METRICS_TOKEN === undefined) throw new Fail("not_found");
  if (!sameText(bearer(authorization), env.METRICS_TOKEN)) throw new Fail("invalid_token");
  return {};
}
