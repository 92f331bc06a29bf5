import type { StoredEventType } from "../../schemas/scheduling.ts";
import { Fail } from "../platform/errors.ts";
import type { Runtime } from "../platform/runtime.ts";
import type { BookableEvent } from "./catalog.ts";

/** The price of a booking; null if it is free. `payment_provider_not_connected` without price or provider. */
export async function priceOf(
  runtime: Pick<Runtime, "payments">,
  { handle, event }: BookableEvent,
): Promise<{ amountMinor: number; currency: string } | null> {
  const { enabled, amountMinor, currency } = event.payment;
  if (!enabled) return null;
  const problem = await paymentProblem(runtime, handle, event);
  if (problem !== null || !amountMinor || !currency) throw new Fail("payment_provider_not_connected");
  return { amountMinor, currency };
}

/** Why an event type can't take its payment, so that every booking would be refused; null if it can. */
export async function paymentProblem(
  { payments }: Pick<Runtime, "payments">,
  handle: string,
  { payment }: Pick<StoredEventType, "payment">,
): Promise<"payment_provider_not_connected" | "price_missing" | null> {
  if (!payment.enabled) return null;
  if (!(await payments?.isConnected(handle))) return "payment_provider_not_connected";
  return payment.amountMinor && payment.currency ? null : "price_missing";
}
