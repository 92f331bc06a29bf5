import type { Buffer } from "node:buffer";
import type { Stripe } from "stripe";
import { batchesOf } from "../../../platform/batches.ts";
import { Fail } from "../../../platform/errors.ts";
import { asObject } from "../../../platform/json.ts";
import type { Runtime } from "../../../platform/runtime.ts";
import { fetchBy } from "../oauth.ts";
import type { Provider } from "./provider.ts";

type Caller = Pick<Runtime, "env" | "outbound">;

/** An order for a hosted checkout of a connected account. */
interface CheckoutOrder {
  account: string;
  title: string;
  amountMinor: number;
  currency: string;
  /** Returned with every event of this payment. */
  metadata: Record<string, string>;
  successUrl: string;
  cancelUrl: string;
  /** Real seconds since 1970 at which the page closes, at least 30 minutes ahead. */
  expiresAt?: number;
  /** The same key returns the same session. */
  idempotencyKey?: string;
}

/** A checkout session; the payment is its id, since nothing is expanded. */
export type CheckoutSession = Stripe.Checkout.Session & { payment_intent: string | null };

/** A webhook event; `account` is the connected account. */
export interface StripeEvent {
  type: string;
  /** Seconds since 1970. */
  created?: number;
  account?: string;
  data: { object: CheckoutSession & { status?: string | null; refunded?: boolean } };
}

/** Stripe: accounts connect by OAuth (Connect); calls use the platform's key. */
export const stripe: Provider = {
  oauth(env) {
    const { STRIPE_CLIENT_ID: clientId = "", STRIPE_SECRET_KEY: clientSecret = "", STRIPE_CONNECT_BASE: base } = env;
    const urls = { authorize: `${base}/oauth/authorize`, token: `${base}/oauth/token` };
    const api = env.STRIPE_API_BASE;
    return { clientId, clientSecret, ...urls, api, scope: "read_write", login: "post", parameters: {} };
  },
  async connect(_runtime, { answer }) {
    return { account: answer.stripe_user_id as string, secret: null };
  },
  async disconnect(caller, { account }) {
    // A checkout that stays open can be paid, but not refunded.
    await expireSessions(caller, account).catch(() => undefined);
    const connection = { client_id: caller.env.STRIPE_CLIENT_ID ?? "", stripe_user_id: account };
    await (await clientOf(caller)).oauth.deauthorize(connection);
  },
};

/** Most open checkouts that a disconnection looks for: those of pages stay open for a day; and how many it closes at a time. */
const MAX_OPEN = 1000;
const CLOSED_AT_ONCE = 50;

/** Closes the open checkouts that were opened here, as far as the provider answers. */
async function expireSessions(caller: Caller, stripeAccount: string): Promise<void> {
  const { sessions } = (await clientOf(caller)).checkout;
  const open: Stripe.Checkout.Session[] = [];
  const listed = sessions.list({ status: "open", limit: 100 }, { stripeAccount });
  // The listed ones are closed, even if a later page of the list fails.
  await listed.autoPagingEach((session) => open.push(session) < MAX_OPEN).catch(() => undefined);
  const own = open.filter(({ metadata }) => metadata?.handle !== undefined);
  for (const some of batchesOf(own, CLOSED_AT_ONCE))
    await Promise.allSettled(some.map(({ id }) => sessions.expire(id, {}, { stripeAccount })));
}

/** Opens a checkout session; `payment_provider_not_connected` if the account can't take this price. Throws if the provider fails. */
export async function openSession(caller: Caller, order: CheckoutOrder): Promise<CheckoutSession> {
  const { account, title, amountMinor, currency, metadata, successUrl, cancelUrl, expiresAt, idempotencyKey } = order;
  const price = { currency: currency.toLowerCase(), unit_amount: amountMinor, product_data: { name: title } };
  const session: Stripe.Checkout.SessionCreateParams = {
    mode: "payment",
    success_url: successUrl,
    cancel_url: cancelUrl,
    line_items: [{ quantity: 1, price_data: price }],
    ...(expiresAt === undefined ? {} : { expires_at: expiresAt }),
    ...(metadata.bookingUid ? { client_reference_id: metadata.bookingUid } : {}),
    metadata,
    // A payment copies its metadata to its charges, which refund events are about.
    payment_intent_data: { metadata },
  };
  const { sessions } = (await clientOf(caller)).checkout;
  try {
    const options = { stripeAccount: account, ...(idempotencyKey ? { idempotencyKey } : {}) };
    return (await sessions.create(session, options)) as CheckoutSession;
  } catch (error) {
    // The price is too small, say, its currency unknown, or the account is not ready or has withdrawn its grant.
    const { statusCode, code = statusCode } = error as Stripe.errors.StripeError;
    if (statusCode !== 400 && statusCode !== 403) throw failureOf(error);
    const detail = `The payment provider does not accept the price or the account (${code}).`;
    throw new Fail("payment_provider_not_connected", { detail }, error);
  }
}

/** The current checkout session; undefined if the account doesn't have it. Throws if the provider fails. */
export async function readSession(
  caller: Caller,
  stripeAccount: string,
  session: string,
): Promise<CheckoutSession | undefined> {
  const { sessions } = (await clientOf(caller)).checkout;
  try {
    return (await sessions.retrieve(session, {}, { stripeAccount })) as CheckoutSession;
  } catch (error) {
    if ((error as Stripe.errors.StripeError).statusCode === 404) return undefined;
    throw failureOf(error);
  }
}

/** Closes a checkout session; does nothing if that is over or out of reach. Throws if the provider fails. */
export async function closeSession(caller: Caller, stripeAccount: string, session: string): Promise<void> {
  const { sessions } = (await clientOf(caller)).checkout;
  await sessions.expire(session, {}, { stripeAccount }).catch((error: Stripe.errors.StripeError) => {
    if (![400, 403, 404].includes(error.statusCode ?? 0)) throw failureOf(error);
  });
}

/** Refunds a payment; idempotent. Returns the refund's status, `succeeded` if it was already refunded, and its second. */
export async function refund(
  caller: Caller,
  stripeAccount: string,
  { intent, key, metadata }: { intent: string; key: string; metadata: Record<string, string> },
): Promise<{ status: string | null; created?: number }> {
  const { refunds } = await clientOf(caller);
  try {
    return await refunds.create({ payment_intent: intent, metadata }, { stripeAccount, idempotencyKey: key });
  } catch (error) {
    if ((error as Stripe.errors.StripeError).code === "charge_already_refunded") return { status: "succeeded" };
    throw failureOf(error);
  }
}

/** The failure of the connection, if it failed: Stripe's own says no more than that. */
function failureOf(error: unknown): unknown {
  const { detail } = error as Partial<Stripe.errors.StripeError>;
  return detail instanceof Error ? detail : error;
}

/** True for the event that a payment was refunded in full. */
export function isRefunded({ type, data: { object } }: StripeEvent): boolean {
  if (type === "charge.refunded") return object.refunded === true;
  return /^(?:refund\.(?:created|updated)|charge\.refund\.updated)$/.test(type) && object.status === "succeeded";
}

/** True for the event that a refund failed or was cancelled. */
export function isRefundFailed({ type, data: { object } }: StripeEvent): boolean {
  return /refund\.(?:failed|updated)$/.test(type) && /^(?:failed|canceled)$/.test(object.status ?? "");
}

/** True for a failure, or its cause, that the account is closed to the platform. */
export function isRevoked(error: unknown): boolean {
  const cause = error instanceof Fail ? error.cause : error;
  return (cause as Partial<Stripe.errors.StripeError> | undefined)?.statusCode === 403;
}

/** The event of a signed request; `invalid_request` for a wrong or old signature and for a malformed event. */
export async function readEvent({ env }: Caller, body: Buffer, signature: string): Promise<StripeEvent> {
  const { webhooks } = (await import("stripe")).Stripe;
  const reading = webhooks.constructEventAsync(body, signature, env.STRIPE_WEBHOOK_SECRET ?? "");
  const event: unknown = await reading.catch((error: Error) => {
    const isSigned = error instanceof SyntaxError;
    const detail = isSigned ? "The body cannot be parsed." : "The signature is invalid or too old.";
    throw new Fail("invalid_request", { detail }, error);
  });
  const { type, data } = asObject(event) as Partial<StripeEvent>;
  if (typeof type !== "string" || typeof data?.object !== "object" || data.object === null)
    throw new Fail("invalid_request", { detail: "The body is not a known event." });
  return event as StripeEvent;
}

/** Stripe's own client with the platform's key, over our connections. It is large, so it is loaded at the first call. */
async function clientOf({ env, outbound }: Caller): Promise<Stripe> {
  const { Stripe: Client } = await import("stripe");
  const send = fetchBy(outbound);
  const httpClient = Client.createFetchHttpClient(async (url, init) => {
    const [, host, path] = /^https:\/\/(api|connect)\.stripe\.com(.*)/.exec(String(url)) ?? [];
    const answer = await send(`${host === "api" ? env.STRIPE_API_BASE : env.STRIPE_CONNECT_BASE}${path}`, init);
    const message = `Stripe answered ${answer.status}.`;
    // The error of a parser would quote the answer, and errors are logged.
    const body = asObject(await answer.json().catch(() => Promise.reject(new Error(message))));
    if (answer.status === 200 && Object.keys(body).length > 0) return Response.json(body);
    // The client takes every answer without an `error` for a success, even one with the status 403, and never ends with a mere value.
    return Response.json({ error: { message, ...asObject(body.error) } }, { status: answer.status });
  });
  return new Client(env.STRIPE_SECRET_KEY ?? "", { httpClient, maxNetworkRetries: 0, telemetry: false });
}
