import { isAgentEnabled, throttleTag } from "../account/face.ts";
import { Fail } from "../platform/errors.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { takeToken } from "../store/throttle.ts";

/** Throttle and gate of the two assistant routes, before the body is read: `rate_limited`, or one `not_found` for every reason. */
export async function admitQuestion(runtime: Runtime, page: Record<string, string>): Promise<void> {
  const { PUBLIC_PAGE_AGENT_RATE: rate, PUBLIC_PAGE_AGENT_BURST: burst } = runtime.env;
  const tag = await throttleTag(runtime.redis, page.handle ?? "");
  await Promise.all([takeToken(runtime, { name: "assistant", tag, rate, burst }), mustBeOpen(runtime, page)]);
}

/** The gate alone: the handle has the assistant and the page is published, or `not_found`. */
export async function mustBeOpen(
  runtime: Runtime,
  { handle = "", pageSlug = "" }: Record<string, string>,
): Promise<void> {
  const [enabled, status] = await Promise.all([
    isAgentEnabled(runtime, handle),
    runtime.redis.hget(keys.page(handle, pageSlug), "status"),
  ]);
  if (!enabled || status !== "PUBLISHED") throw new Fail("not_found");
}
