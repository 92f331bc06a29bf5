import { isAgentEnabled, takeHandleToken } from "../account/face.ts";
import type { PagePath } from "../pages/face.ts";
import { Fail } from "../platform/errors.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";

/** Throttle and gate of the two assistant routes, before the body is read: `rate_limited`, or one `not_found` for every reason. */
export async function admitQuestion(runtime: Runtime, page: Record<string, string>): Promise<void> {
  const { PUBLIC_PAGE_AGENT_RATE: rate, PUBLIC_PAGE_AGENT_BURST: burst } = runtime.env;
  const [, open] = await Promise.all([
    takeHandleToken(runtime, page.handle ?? "", { name: "assistant", rate, burst }),
    isOpen(runtime, page),
  ]);
  if (!open) throw new Fail("not_found");
}

/** The gate alone: `not_found` unless the handle has the assistant and the page is published. */
export async function mustBeOpen(runtime: Runtime, page: Partial<PagePath>): Promise<void> {
  if (!(await isOpen(runtime, page))) throw new Fail("not_found");
}

async function isOpen(runtime: Runtime, { handle = "", pageSlug = "" }: Partial<PagePath>): Promise<boolean> {
  const [enabled, status] = await Promise.all([
    isAgentEnabled(runtime, handle),
    runtime.redis.hget(keys.page(handle, pageSlug), "status"),
  ]);
  return enabled && status === "PUBLISHED";
}
