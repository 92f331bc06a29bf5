import type { Runtime } from "../platform/runtime.ts";
import { deliveryAt, resubscribe, unsubscribe } from "./feedback.ts";
import { deliveryIn } from "./return-path.ts";
import { findSuppression } from "./suppressions.ts";

/** What the unsubscribe page shows; undefined for a link that the service has not made, or whose message is gone. */
export interface UnsubscribeVisit {
  link:
    | {
        recipient: string;
        /** Display name of the sender, else its address. */
        from: string;
        state: "subscribed" | "unsubscribed" | "resubscribed";
        /** True where the recipient alone decides: bounces, complaints and the owner's own wish stay. */
        canUndo: boolean;
      }
    | undefined;
}

/** What a link is about, as it is now. Opening it changes nothing: programs that look into mails open links too. */
export async function visitUnsubscribe(runtime: Runtime, { token }: { token: string }): Promise<UnsubscribeVisit> {
  const at = deliveryIn(runtime.env, token);
  const found = at && (await deliveryAt(runtime, at));
  if (found === undefined) return { link: undefined };
  const { handle, recipient, message } = found;
  const suppression = await findSuppression(runtime, handle, recipient);
  const state = suppression ? "unsubscribed" : "subscribed";
  const from = message.fromEmail.replace(/ <[^<>]*>$/, "");
  return { link: { recipient, from, state, canUndo: suppression?.source === "UNSUBSCRIBE" } };
}

/** Unsubscribes the recipient at once (RFC 8058): no login, no question; or takes back what its link did. Again is no change. */
export async function answerUnsubscribe(
  runtime: Runtime,
  { token, undo }: { token: string; undo?: string | undefined },
): Promise<UnsubscribeVisit> {
  const at = deliveryIn(runtime.env, token);
  if (at) await (undo ? resubscribe(runtime, at) : unsubscribe(runtime, at, "link"));
  const { link } = await visitUnsubscribe(runtime, { token });
  return { link: link && undo && link.state === "subscribed" ? { ...link, state: "resubscribed" } : link };
}
