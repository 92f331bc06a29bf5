import type { StoredCredential } from "../../schemas/integrations.ts";
import { type CheckoutSession, isRevoked } from "../engines/calendars/calendars.ts";
import { Fail, unavailable } from "../platform/errors.ts";
import type { Runtime } from "../platform/runtime.ts";
import { credentialRecords } from "../scheduling/face.ts";

/** The connected account that receives a handle's payments: the newest. */
export async function paymentAccount(runtime: Runtime, handle: string): Promise<StoredCredential | undefined> {
  return (await paymentAccounts(runtime, handle)).at(-1);
}

/** All connected accounts that receive a handle's payments, the newest last. */
export async function paymentAccounts(runtime: Runtime, handle: string): Promise<StoredCredential[]> {
  return (await credentialRecords.all(runtime, handle)).filter(({ providerKey }) => providerKey === "stripe");
}

/** The result of a call on behalf of an account. If that is closed to us, it becomes degraded, and healthy by its next success. */
export async function trackHealth<T>(
  runtime: Runtime,
  { handle, account }: { handle: string; account: string },
  calling: Promise<T>,
): Promise<T> {
  const note = async (failure?: Fail): Promise<void> => {
    const known = (await paymentAccounts(runtime, handle)).find((one) => one.account === account);
    if (known) await runtime.credentials.updateHealth({ handle, credentialId: known.credentialId }, failure);
  };
  try {
    const result = await calling;
    await note();
    return result;
  } catch (error) {
    if (isRevoked(error)) await note(new Fail("integration_revoked"));
    throw error;
  }
}

/** The address of an open checkout session; `service_unavailable` for one that is closed. */
export function checkoutUrl({ url }: CheckoutSession): string {
  if (!url) throw new Fail("service_unavailable", { retryAfter: 5, detail: "The checkout session is closed." });
  return url;
}

/** Logs that the provider failed, and throws `service_unavailable`. */
export function checkoutFailed({ log }: Runtime, handle: string, error: Error): never {
  log.warn({ handle, error: error.message }, "payment.checkout_failed");
  throw unavailable(error, "The payment provider is not responding.");
}
