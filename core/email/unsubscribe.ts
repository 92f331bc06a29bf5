import type { Runtime } from "../platform/runtime.ts";
import { deliveryAt, resubscribe, unsubscribe } from "./feedback.ts";
import { deliveryIn } from "./return-path.ts";
import { findSuppression } from "./suppressions.ts";

/** The contents of the unsubscribe page; undefined for a link that the service didn't issue, or whose message is gone. */
export interface UnsubscribeVisit {
  link:
    | {
        recipient: string;
        /** Display name of the sender, else its address. */
        from: string;
        state: "subscribed" | "unsubscribed" | "resubscribed";
        /** True if the recipient can undo it: bounces, complaints and the owner's suppressions stay. */
        canUndo: boolean;
      }
    | undefined;
}

/** The current state behind a link. Opening it changes nothing, since mail scanners open links too. */
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

/** Unsubscribes the recipient at once (RFC 8058), without a login or a question, or undoes that. Idempotent. */
export async function answerUnsubscribe(
  runtime: Runtime,
  { token, undo }: { token: string; undo?: string | undefined },
): Promise<UnsubscribeVisit> {
  const at = deliveryIn(runtime.env, token);
  if (at) await (undo ? resubscribe(runtime, at) : unsubscribe(runtime, at, "link"));
  const { link } = await visitUnsubscribe(runtime, { token });
  return { link: link && undo && link.state === "subscribed" ? { ...link, state: "resubscribed" } : link };
}
