import { Buffer } from "node:buffer";
import { createHmac } from "node:crypto";
import type { Env } from "../../../platform/env.ts";
import { Fail } from "../../../platform/errors.ts";
import { parseJson, parseSignedBody } from "../../../platform/json.ts";
import type { Runtime } from "../../../platform/runtime.ts";
import { sameText } from "../../../platform/sealing.ts";
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

/** A checkout session. */
export interface CheckoutSession {
  id: string;
  url: string | null;
  payment_status: string;
  payment_intent: string | null;
  amount_total: number | null;
  currency: string | null;
  /** What the payer entered; null until then. */
  customer_details?: { email: string | null } | null;
  metadata: Record<string, string> | null;
}

/** A webhook event; `account` is the connected account. */
export interface StripeEvent {
  id: string;
  type: string;
  /** Seconds since 1970. */
  created?: number;
  account?: string;
  data: { object: CheckoutSession & { status?: string | null; refunded?: boolean } };
}

/** Tolerated clock difference in seconds. */
const TOLERANCE_SECONDS = 300;

/** Stripe: accounts connect by OAuth (Connect); calls use the platform's key. */
export const stripe: Provider = {
  oauth(env) {
    const { STRIPE_CLIENT_ID: clientId, STRIPE_SECRET_KEY: clientSecret, STRIPE_CONNECT_BASE: base } = env;
    if (!clientId || !clientSecret) return undefined;
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
    const form = { client_id: caller.env.STRIPE_CLIENT_ID ?? "", stripe_user_id: account };
    await call(caller, "POST /oauth/deauthorize", { base: caller.env.STRIPE_CONNECT_BASE, form });
  },
};

/** Closes the open checkouts that were opened here, as far as the provider answers. */
async function expireSessions(caller: Caller, account: string): Promise<void> {
  const list = "GET /v1/checkout/sessions?status=open&limit=100";
  const { data } = await call<{ data: CheckoutSession[] }>(caller, list, { account });
  const own = data.filter(({ metadata }) => metadata?.handle !== undefined);
  const expire = ({ id }: CheckoutSession) =>
    call(caller, `POST /v1/checkout/sessions/${id}/expire`, { account, form: {} });
  await Promise.allSettled(own.map(expire));
}

/** Opens a checkout session; `payment_provider_not_connected` if the account can't take this price. Throws if the provider fails. */
export async function openSession(caller: Caller, order: CheckoutOrder): Promise<CheckoutSession> {
  const { account, title, amountMinor, currency, metadata, successUrl, cancelUrl, expiresAt } = order;
  const item = "line_items[0]";
  const form: Record<string, string> = {
    mode: "payment",
    success_url: successUrl,
    cancel_url: cancelUrl,
    [`${item}[quantity]`]: "1",
    [`${item}[price_data][currency]`]: currency.toLowerCase(),
    [`${item}[price_data][unit_amount]`]: String(amountMinor),
    [`${item}[price_data][product_data][name]`]: title,
    ...(expiresAt === undefined ? {} : { expires_at: String(expiresAt) }),
    ...(metadata.bookingUid ? { client_reference_id: metadata.bookingUid } : {}),
    ...fieldsOf("metadata", metadata),
    // A payment copies its metadata to its charges, which refund events are about.
    ...fieldsOf("payment_intent_data[metadata]", metadata),
  };
  try {
    return await call(caller, "POST /v1/checkout/sessions", { account, form, key: order.idempotencyKey });
  } catch (error) {
    // The price is too small, say, its currency unknown, or the account is not ready or has withdrawn its grant.
    if (!(error instanceof StripeError && (error.status === 400 || isRevoked(error)))) throw error;
    const detail = `The payment provider does not accept the price or the account (${error.code ?? error.status}).`;
    throw new Fail("payment_provider_not_connected", { detail }, error);
  }
}

/** The current checkout session; undefined if the account doesn't have it. Throws if the provider fails. */
export async function readSession(
  caller: Caller,
  account: string,
  session: string,
): Promise<CheckoutSession | undefined> {
  try {
    return await call<CheckoutSession>(caller, `GET /v1/checkout/sessions/${session}`, { account });
  } catch (error) {
    if (error instanceof StripeError && error.status === 404) return undefined;
    throw error;
  }
}

/** Refunds a payment; idempotent. Returns the refund's status, `succeeded` if it was already refunded, and its second. */
export async function refund(
  caller: Caller,
  account: string,
  { intent, key, metadata }: { intent: string; key: string; metadata: Record<string, string> },
): Promise<{ status: string; created?: number }> {
  const form = { payment_intent: intent, ...fieldsOf("metadata", metadata) };
  try {
    return await call(caller, "POST /v1/refunds", { account, form, key });
  } catch (error) {
    if (error instanceof StripeError && error.code === "charge_already_refunded") return { status: "succeeded" };
    throw error;
  }
}

function fieldsOf(group: string, values: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [`${group}[${name}]`, value]));
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
  return cause instanceof StripeError && cause.status === 403;
}

/** The event of a signed request; `invalid_request` for a wrong or old signature and for a malformed event. */
export function readEvent(env: Env, body: Buffer, signature: string): StripeEvent {
  const parts = signature.split(",").map((part) => part.trim().split("=") as [string, string?]);
  const timestamp = parts.find(([name]) => name === "t")?.[1] ?? "";
  const secret = env.STRIPE_WEBHOOK_SECRET;
  const expected = createHmac("sha256", secret ?? "")
    .update(Buffer.concat([Buffer.from(`${timestamp}.`), body]))
    .digest("hex");
  const isKnown = parts.some(([name, value]) => name === "v1" && value !== undefined && sameText(value, expected));
  const isFresh = Math.abs(Date.now() / 1000 - Number(timestamp)) <= TOLERANCE_SECONDS;
  if (!secret || !isKnown || !isFresh)
    throw new Fail("invalid_request", { detail: "The signature is invalid or too old." });
  const event = parseSignedBody(body) as Partial<StripeEvent> | null;
  if (typeof event?.type !== "string" || typeof event.data?.object !== "object" || event.data.object === null)
    throw new Fail("invalid_request", { detail: "The body is not a known event." });
  return event as StripeEvent;
}

/** An error response of the provider. */
class StripeError extends Error {
  readonly status: number;
  readonly code: string | undefined;

  constructor(status: number, { message = "", code }: { message?: string; code?: string } = {}) {
    super(`Stripe answered ${status}: ${message}`);
    this.status = status;
    this.code = code;
  }
}

/** Calls an API with the platform's key, on behalf of an account if there is one. */
async function call<T>(
  { env, outbound }: Caller,
  line: string,
  asked: { base?: string; account?: string; form?: Record<string, string>; key?: string | undefined },
): Promise<T> {
  const { base = env.STRIPE_API_BASE, account, form, key } = asked;
  const [method, path] = line.split(" ") as [string, string];
  const answer = await outbound.request(`${base}${path}`, {
    method,
    trusted: true,
    headers: {
      authorization: `Bearer ${env.STRIPE_SECRET_KEY}`,
      ...(account === undefined ? {} : { "stripe-account": account }),
      ...(form ? { "content-type": "application/x-www-form-urlencoded" } : {}),
      ...(key ? { "idempotency-key": key } : {}),
    },
    ...(form ? { body: new URLSearchParams(form).toString() } : {}),
  });
  const parsed = parseJson<T & { error?: { message?: string; code?: string } }>(answer.body);
  if (answer.status === 200) return parsed;
  throw new StripeError(answer.status, parsed.error);
}
