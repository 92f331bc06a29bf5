import type { Buffer } from "node:buffer";
import { setTimeout as sleep } from "node:timers/promises";
import { Fail } from "../../platform/errors.ts";
import { retryAfterMs } from "../../platform/exchange.ts";
import { asObject, parseJson } from "../../platform/json.ts";
import { type OutboundResponse, outboundFailure } from "../../platform/outbound.ts";
import type { CredentialRef, Runtime } from "../../platform/runtime.ts";
import { keys } from "../../store/keys.ts";
import { accessToken, type TokenHolder } from "./access-tokens.ts";
import { MAX_INSTANCES } from "./busy-objects.ts";
import type { ProviderGrant } from "./providers/provider.ts";
import { CalendarServerError, type Refusals } from "./server-error.ts";

/** One call of an API. */
export interface ApiCall {
  method?: string;
  path: string;
  headers?: Record<string, string>;
  /** The JSON body. */
  json?: unknown;
}

/** Bytes of one response: pages of events are long. */
const MAX_ANSWER_BYTES = 8 * 1_048_576;
/** Most pages of one listing: a provider that repeats empty pages would never end. */
const MAX_PAGES = 500;
/** Ms after which a listing is abandoned, between two of its pages. */
const LISTING_TIMEOUT_MS = 600_000;
/** Longest rate limit in ms that a call waits out; beyond it the caller retries later. */
const SHORT_PAUSE_MS = 3_000;
/** Ms over which calls that wait together are spread. */
const MAX_SPREAD_MS = 1_000;
const MAX_ATTEMPTS = 3;
/** Statuses of a resource that does not exist any more. */
export const GONE = [404, 410];

/** A provider's API, called on behalf of an account. */
export class AccountApi {
  readonly #holder: TokenHolder;
  readonly #refusals: Refusals;

  /** `provider_not_configured` if the installation no longer has the provider's client. */
  constructor(holder: TokenHolder, refusals: Refusals = {}) {
    if (holder.settings.clientId === "") throw new Fail("provider_not_configured");
    this.#holder = holder;
    this.#refusals = refusals;
  }

  /** The JSON of a successful response; throws for any other. */
  async call<T = unknown>(call: ApiCall): Promise<T> {
    return responseJson<T>(await this.send(call), this.#refusals);
  }

  /** The same, but undefined for a response with one of these statuses. */
  async find<T = unknown>(call: ApiCall, absent: readonly number[] = GONE): Promise<T | undefined> {
    const answer = await this.send(call);
    return absent.includes(answer.status) ? undefined : responseJson<T>(answer, this.#refusals);
  }

  /**
   * The items of all pages, and the last page; undefined for a response with one of these statuses. `read` returns the items of a page, and
   * the path of the next one. Throws for an endless listing, and for a response without items: an empty one would free all busy times.
   */
  async list<P, T>(
    first: string,
    read: (page: P) => { items: T[] | undefined; next: string | undefined },
    absent: readonly number[] = [],
  ): Promise<{ items: T[]; last: P } | undefined> {
    const items: T[] = [];
    const [until, seen] = [Date.now() + LISTING_TIMEOUT_MS, new Set<string>()];
    let path = first;
    while (items.length <= MAX_INSTANCES && seen.size < MAX_PAGES && !seen.has(path) && Date.now() < until) {
      seen.add(path);
      const page = await this.find<P>({ path }, absent);
      if (page === undefined) return undefined;
      const { items: some, next } = read(page);
      if (!Array.isArray(some)) throw new Error("The provider did not answer with a listing.");
      for (const item of some) items.push(item);
      if (!next) return { items, last: page };
      path = next;
    }
    throw new Error("The calendar has too many events, or its pages have no end.");
  }

  /**
   * Any response. After a 401 the token is refreshed and the call repeated once. A rate limit (429, or the equivalents of Google and
   * Microsoft) applies to all processes: a call waits out a short one, and throws `service_unavailable` with the seconds for a longer one.
   * `integration_revoked`, `integration_not_found`.
   */
  async send(call: ApiCall): Promise<OutboundResponse> {
    const { runtime, account } = this.#holder;
    for (let tries = 1; ; tries++) {
      await waitForPause(runtime, account);
      const answer = await this.#sendOnce(call);
      if (!isLimited(answer)) return answer;
      // As the provider says, else growing with each attempt.
      const asked = retryAfterMs(answer.headers["retry-after"], Date.now());
      const ms = Math.ceil(asked || 2 ** tries * 250 * (1 + Math.random()));
      await runtime.redis.set(keys.providerPause(account.handle, account.credentialId), "1", "PX", ms);
      if (tries === MAX_ATTEMPTS) throw limited(ms);
    }
  }

  async #sendOnce(call: ApiCall): Promise<OutboundResponse> {
    const token = await accessToken(this.#holder);
    const answer = await this.#sendWith(token, call);
    return answer.status === 401 ? this.#sendWith(await accessToken(this.#holder, token), call) : answer;
  }

  #sendWith(token: string, { method = "GET", path, headers, json }: ApiCall): Promise<OutboundResponse> {
    const body = json === undefined ? {} : { body: JSON.stringify(json) };
    const type = json === undefined ? {} : { "content-type": "application/json" };
    const { runtime, settings } = this.#holder;
    return runtime.outbound.request(`${settings.api}${path}`, {
      method,
      headers: { ...headers, ...settings.headers, ...type, ...authorised(token) },
      ...body,
      trusted: true,
      maxBytes: MAX_ANSWER_BYTES,
    });
  }
}

/** The JSON at a URL for a new grant, before its account exists. */
export async function getWithGrant<T>({ outbound }: Runtime, { tokens }: ProviderGrant, url: string): Promise<T> {
  const headers = authorised(tokens.accessToken);
  return responseJson<T>(await outbound.request(url, { headers, trusted: true, maxBytes: MAX_ANSWER_BYTES }));
}

/** True if the resource does not exist any more. */
export function isGone({ status }: { status: number }): boolean {
  return GONE.includes(status);
}

function authorised(token: string): Record<string, string> {
  return { authorization: `Bearer ${token}`, accept: "application/json" };
}

/** The JSON of a successful response, `{}` for an empty one; throws for any other, for the owner to read if `refusals` has its status. */
function responseJson<T>({ status, body, url }: OutboundResponse, refusals: Refusals = {}): T {
  if (status >= 200 && status <= 299) return body.length === 0 ? ({} as T) : parseJson<T>(body);
  const message = `${new URL(url).host} answered ${status}${errorCodeIn(body)}.`;
  const reason = refusals[status];
  throw outboundFailure(reason ? new CalendarServerError(reason, message) : new Error(message));
}

/** The error code in a response, for the log. Sentences of providers quote what was sent. */
function errorCodeIn(body: Buffer): string {
  try {
    const { error, code } = asObject(parseJson(body));
    const { status, code: own, errors } = asObject(error);
    // Google's code is the status again, so its reason comes first.
    const { reason } = asObject(Array.isArray(errors) ? errors[0] : undefined);
    const found = [status, reason, own, error, code].find((one) => /^[\w.-]{1,64}$/.test(String(one ?? "")));
    return found === undefined ? "" : ` (${found})`;
  } catch {
    // A page for people has no code.
    return "";
  }
}

/** Google sends 403 with a reason, Microsoft also 503 with the seconds. */
function isLimited({ status, headers, body }: OutboundResponse): boolean {
  if (status === 429 || (status === 503 && headers["retry-after"] !== undefined)) return true;
  return status === 403 && /"(?:user)?rateLimitExceeded"|"quotaExceeded"/i.test(body.toString("utf8"));
}

/** Calls that waited together would be limited again if they came back together. */
async function waitForPause({ redis }: Runtime, { handle, credentialId }: CredentialRef): Promise<void> {
  const left = await redis.pttl(keys.providerPause(handle, credentialId));
  if (left > SHORT_PAUSE_MS) throw limited(left);
  if (left > 0) await sleep(left + Math.min(left, MAX_SPREAD_MS) * Math.random());
}

function limited(ms: number): Fail {
  return new Fail("service_unavailable", {
    retryAfter: Math.ceil(ms / 1000),
    detail: "The provider is limiting requests.",
  });
}
