import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import type { Env } from "../../platform/env.ts";
import { Fail } from "../../platform/errors.ts";
import { parseJson } from "../../platform/json.ts";
import type { OutboundAnswer } from "../../platform/outbound.ts";
import type { CredentialRef, Runtime } from "../../platform/runtime.ts";
import { perConnection } from "../../store/connections.ts";
import { keys } from "../../store/keys.ts";
import { accessToken } from "./access-tokens.ts";
import type { OAuthSettings, ProviderAccount } from "./providers/provider.ts";

/** One request to a provider's API. */
interface AuthorisedCall {
  method?: string;
  url: string;
  headers?: Record<string, string>;
  /** The JSON body. */
  json?: unknown;
}

/** The account to call for, and the settings to refresh its tokens with. */
interface AuthorisedParty {
  holder: CredentialRef;
  settings: OAuthSettings;
}

/** The API of a provider: its OAuth settings, the URL of a path, and headers of every call. */
interface ProviderApi {
  settings(env: Env): OAuthSettings | undefined;
  url(env: Env, path: string): string;
  headers?: Record<string, string>;
}

/** One call of a provider's API on behalf of an account. */
export type ApiCall = Omit<AuthorisedCall, "url"> & { path: string };

/** Returns a function that calls an API; it throws `provider_not_configured` if the installation no longer has the provider's client. */
export function apiCaller(
  api: ProviderApi,
): (runtime: Runtime, account: ProviderAccount, call: ApiCall) => Promise<OutboundAnswer> {
  return async (runtime, { handle, credential }, { path, ...call }) => {
    const settings = api.settings(runtime.env);
    if (settings === undefined) throw new Fail("provider_not_configured");
    const party = { holder: { handle, credentialId: credential.credentialId }, settings };
    const headers = { ...call.headers, ...api.headers };
    return callProvider(runtime, party, { ...call, headers, url: api.url(runtime.env, path) });
  };
}

/** True if the resource does not exist any more. */
export function isGone({ status }: { status: number }): boolean {
  return status === 404 || status === 410;
}

/** Bytes of one response: pages of events are long. */
const MAX_ANSWER_BYTES = 8 * 1_048_576;
/** Longest rate limit in ms that a call waits out; beyond it the caller retries later. */
const SHORT_PAUSE_MS = 3_000;
/** Ms over which calls that wait together are spread. */
const MAX_SPREAD_MS = 1_000;
/** Longest pause in ms that a provider may impose. */
const MAX_PAUSE_MS = 86_400_000;
const MAX_ATTEMPTS = 3;

/**
 * Calls a provider's API with an access token. After a 401 the token is refreshed and the call repeated once. A rate limit (429, or the
 * equivalents of Google and Microsoft) applies to all processes: a call waits out a short one, and throws `service_unavailable` with the
 * seconds for a longer one. Returns any other response. `integration_revoked`, `integration_not_found`.
 */
export async function callProvider(
  runtime: Runtime,
  party: AuthorisedParty,
  call: AuthorisedCall,
): Promise<OutboundAnswer> {
  for (let tries = 1; ; tries++) {
    await waitForPause(runtime, party.holder);
    const answer = await inLane(runtime.redis, party.holder, () => callOnce(runtime, party, call));
    if (!isLimited(answer)) return answer;
    const ms = pauseOf(answer, tries);
    await pause(runtime, party.holder, ms);
    if (tries === MAX_ATTEMPTS) throw limited(ms);
  }
}

/** The JSON of a successful response; throws for any other. */
export function responseJson<T>({ status, body, url }: OutboundAnswer): T {
  if (status >= 200 && status <= 299) return body.length === 0 ? ({} as T) : parseJson<T>(body);
  throw new Error(`${new URL(url).host} answered ${status}: ${body.subarray(0, 300).toString("utf8")}`);
}

/** Concurrent calls per account in one process: Microsoft allows four per mailbox. */
const MAX_CONCURRENT_CALLS = 4;

interface Lane {
  running: number;
  waiting: (() => void)[];
}
const lanesOf = perConnection(() => new Map<string, Lane>());

/** Runs work once fewer than `MAX_CONCURRENT_CALLS` are running for the account. */
async function inLane<T>(redis: Redis, { handle, credentialId }: CredentialRef, work: () => Promise<T>): Promise<T> {
  const name = `${handle}/${credentialId}`;
  const all = lanesOf(redis);
  const lane = all.get(name) ?? { running: 0, waiting: [] };
  all.set(name, lane);
  if (lane.running >= MAX_CONCURRENT_CALLS) await new Promise<void>((resolve) => lane.waiting.push(resolve));
  else lane.running += 1;
  try {
    return await work();
  } finally {
    // The next one takes over the place of this one.
    const next = lane.waiting.shift();
    if (next) next();
    else if (--lane.running === 0) all.delete(name);
  }
}

async function callOnce(runtime: Runtime, party: AuthorisedParty, call: AuthorisedCall): Promise<OutboundAnswer> {
  const { holder, settings } = party;
  const token = await accessToken(runtime, holder, { settings });
  const answer = await callWithToken(runtime, token, call);
  if (answer.status !== 401) return answer;
  return callWithToken(runtime, await accessToken(runtime, holder, { settings, refused: token }), call);
}

/** Calls a provider's API with a token: also with a new one, before the account exists. */
export function callWithToken({ outbound }: Runtime, token: string, call: AuthorisedCall): Promise<OutboundAnswer> {
  const { method = "GET", url, json } = call;
  const headers = {
    ...call.headers,
    authorization: `Bearer ${token}`,
    accept: "application/json",
    ...(json === undefined ? {} : { "content-type": "application/json" }),
  };
  const body = json === undefined ? {} : { body: JSON.stringify(json) };
  return outbound.request(url, { method, headers, ...body, trusted: true, limit: MAX_ANSWER_BYTES });
}

/** Google sends 403 with a reason, Microsoft also 503 with the seconds. */
function isLimited({ status, headers, body }: OutboundAnswer): boolean {
  if (status === 429 || (status === 503 && headers["retry-after"] !== undefined)) return true;
  return status === 403 && /"(?:user)?rateLimitExceeded"|"quotaExceeded"/i.test(body.toString("utf8"));
}

/** Ms to wait: as the provider says, in seconds or as a date, else growing with each attempt. */
function pauseOf({ headers }: OutboundAnswer, tries: number): number {
  const retryAfter = headers["retry-after"] ?? "";
  const seconds = /^\d+$/.test(retryAfter) ? Number(retryAfter) * 1000 : Date.parse(retryAfter) - Date.now();
  const asked = Number.isNaN(seconds) ? 2 ** tries * 250 * (1 + Math.random()) : seconds;
  return Math.ceil(Math.min(MAX_PAUSE_MS, Math.max(1, asked)));
}

async function pause({ redis }: Runtime, { handle, credentialId }: CredentialRef, ms: number): Promise<void> {
  await redis.set(keys.providerPause(handle, credentialId), "1", "PX", ms);
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
