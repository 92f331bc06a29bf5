import type { Runtime } from "../platform/runtime.ts";
import { deliveryAt, unsubscribe } from "./feedback.ts";
import { deliveryIn } from "./return-path.ts";

/** What the unsubscribe page shows; undefined for a link that the service has not made, or whose message is gone. */
export type UnsubscribeVisit = { link: { recipient: string; from: string; done: boolean } | undefined };

/** What a link is about. Opening it changes nothing: programs that look into mails open links too. */
export async function visitUnsubscribe(runtime: Runtime, { token }: { token: string }): Promise<UnsubscribeVisit> {
  const at = deliveryIn(runtime.env, token);
  const found = at && (await deliveryAt(runtime, at));
  return { link: found && { recipient: found.recipient, from: found.message.fromEmail, done: false } };
}

/** Unsubscribes the recipient at once (RFC 8058): no login, no question. Again is no change. */
export async function confirmUnsubscribe(runtime: Runtime, input: { token: string }): Promise<UnsubscribeVisit> {
  const visit = await visitUnsubscribe(runtime, input);
  const at = deliveryIn(runtime.env, input.token);
  if (visit.link === undefined || at === undefined) return visit;
  await unsubscribe(runtime, at, "link");
  return { link: { ...visit.link, done: true } };
}
