import { resealSigningKey } from "../account/face.ts";
import { resealIdentity } from "../email/face.ts";
import type { Store } from "../platform/runtime.ts";
import { resealCredentials } from "../scheduling/face.ts";
import { keys } from "../store/keys.ts";
import { scanKeys } from "../store/redis.ts";
import { resealWebhooks } from "../webhooks/face.ts";

/**
 * Seals again everything that SECRET_KEY_PREVIOUS sealed, while the service runs. Afterwards no stored value needs the previous key. An
 * interrupted run can be repeated; a complete one changes nothing more. Returns the number of changed secrets of each kind.
 */
export async function resealAll(store: Store) {
  const done = { signingKeys: Number(await resealSigningKey(store)), identities: 0, webhooks: 0, credentials: 0 };
  for await (const at of identities(store)) done.identities += Number(await resealIdentity(store, at));
  for await (const found of store.redis.sscanStream(keys.handles, { count: 500 }) as AsyncIterable<string[]>)
    for (const handle of found) {
      done.webhooks += await resealWebhooks(store, handle);
      done.credentials += await resealCredentials(store, handle);
    }
  return done;
}

async function* identities({ redis }: Store): AsyncGenerator<{ domain: string; account: string }> {
  for await (const found of scanKeys(redis, keys.emailIdentity("*", "*")))
    for (const key of found) {
      const [, domain = "", account = ""] = /\{(.*)\}:(.*)$/.exec(key) ?? [];
      yield { domain, account };
    }
}
