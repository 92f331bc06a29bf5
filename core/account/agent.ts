import type { Runtime } from "../platform/runtime.ts";
import { coalesce } from "../store/coalesce.ts";
import { keys } from "../store/keys.ts";
import { accountOf } from "./handles.ts";

/**
 * True if the anonymous assistant is enabled for a handle: by the global switch, the list of handles, or the account's entitlement
 * `marketing_tools`. Always false for an unknown or inactive handle.
 */
export async function isAgentEnabled({ redis, env }: Runtime, handle: string): Promise<boolean> {
  const account = await accountOf(redis, handle);
  if (account === undefined) return false;
  const [status, entitled] = await coalesce(redis, `agent ${handle}`, () =>
    Promise.all([
      redis.hget(keys.handle(handle), "status"),
      redis.hexists(keys.account(account), "entitlement:marketing_tools"),
    ]),
  );
  const listed = env.PUBLIC_PAGE_AGENT_ENABLED || env.PUBLIC_PAGE_AGENT_ALLOWED_HANDLES.includes(handle);
  return status === "ACTIVE" && (listed || entitled === 1);
}
