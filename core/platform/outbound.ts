import { promises } from "node:dns";
import { isIP } from "node:net";
import { callbackify } from "node:util";
import ipaddr from "ipaddr.js";
import { Agent } from "undici";
import type { Env } from "./env.ts";
import { invalid } from "./errors.ts";
import { exchange, type Limits, type ServerResponse } from "./exchange.ts";

type Settings = Pick<Env, "production" | "OUTBOUND_ALLOW_HOSTS">;
type Resolved = { address: string; family: number }[];

/** Resolves a host name to all its addresses. */
export type Lookup = (hostname: string) => Promise<Resolved>;

/** An outbound request. It takes at most 15 s, and fails beyond 1 MB of response, unless its own limits say something else. */
export interface OutboundCall extends Partial<Limits> {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
  /** Redirects to follow; default none. Credentials never leave their origin. */
  redirects?: number;
  /** True if the address comes from the operator's settings and not from a user. Then nothing is checked. */
  trusted?: boolean;
}

export interface OutboundResponse extends ServerResponse {
  /** The final address, after redirects. */
  url: string;
}

/** An address that may not be called, and why, in a sentence that begins with "It". `atInput` replaces that by the input that named it. */
export class AddressRefused extends Error {
  override readonly name = "AddressRefused";
}

/** Awaits a request to an address that the caller gave at this input. A refused address becomes `invalid_request` at the input. */
export async function atInput<T>(path: string, calling: Promise<T>): Promise<T> {
  try {
    return await calling;
  } catch (error) {
    throw error instanceof AddressRefused ? invalid(path, error.message.slice(3, -1), error) : error;
  }
}

const failures = new WeakSet<object>();

/** True for the failure of a call to another server: its code may be that of a failed connection to Redis. */
export function isOutboundFailure(error: Error): boolean {
  return failures.has(error);
}

/** Marks an error as the failure of such a call, for an answer that can't be used. */
export function outboundFailure<E extends Error>(failure: E): E {
  failures.add(failure);
  return failure;
}

const TIMEOUT_MS = 15_000;
const CONNECT_TIMEOUT_MS = 10_000;
const MAX_BYTES = 1_048_576;
/** Ms for which a server may ask to keep an idle connection. */
const MAX_IDLE_MS = 5_000;
/** Ms for the first answer of a name server, and rounds; the wait doubles with each. */
const DNS_OPTIONS = { timeout: 2500, tries: 2 };

/**
 * Asks name servers past the system's resolver, which can ask for two names at a time: silent servers of users' names would hold up all
 * others. IPv6 comes first: without a route its attempts fail at once, and only the last address may use the whole time to connect.
 */
export function lookupBy(resolver: Pick<promises.Resolver, "resolve4" | "resolve6">): Lookup {
  return async (hostname) => {
    if (isLocalName(hostname)) return promises.lookup(hostname, { all: true });
    const [v6, v4] = await Promise.allSettled([resolver.resolve6(hostname), resolver.resolve4(hostname)]);
    const found = [v6, v4].flatMap((one) => (one.status === "fulfilled" ? one.value : []));
    if (found.length === 0) throw v4.status === "rejected" ? v4.reason : noAddress(hostname);
    return found.map((address) => ({ address, family: isIP(address) }));
  };
}

/** Node resolves an alias of a name without addresses to an empty list. The error is that of a name without addresses. */
function noAddress(hostname: string): Error {
  return Object.assign(new Error(`queryA ENODATA ${hostname}`), { code: "ENODATA" });
}

/**
 * Requests to external addresses. Of addresses that a user may name, literal ones are checked before each request and redirect, and names
 * where the connection is made, so that no name, redirect or second resolution (DNS rebinding) reaches a non-public address.
 */
export class Outbound {
  readonly #settings: Settings;
  readonly #lookup: Lookup;
  readonly #guarded: Agent;
  readonly #trusted = new Agent({ connect: { timeout: CONNECT_TIMEOUT_MS } });

  constructor(settings: Settings, lookup = lookupBy(new promises.Resolver(DNS_OPTIONS))) {
    this.#settings = settings;
    this.#lookup = lookup;
    const connect = { timeout: CONNECT_TIMEOUT_MS, lookup: callbackify(this.#publicAddresses.bind(this)) as never };
    this.#guarded = new Agent({ connect, keepAliveMaxTimeout: MAX_IDLE_MS });
  }

  /** Sends a request. Throws `AddressRefused` for a refused address, and a plain error for a network failure. */
  async request(address: string, call: OutboundCall = {}): Promise<OutboundResponse> {
    const until = Date.now() + (call.timeoutMs ?? TIMEOUT_MS);
    const parse = (text: string): URL => (call.trusted ? new URL(text) : this.#admitted(text));
    let url = parse(address);
    let headers = call.headers ?? {};
    for (let left = call.redirects ?? 0; ; left--) {
      const answer = await this.#send(url, { ...call, headers, timeoutMs: until - Date.now() });
      const next = left > 0 ? redirectOf(url, answer) : undefined;
      if (next === undefined) return { ...answer, url: url.href };
      const target = parse(next);
      if (target.origin !== url.origin) headers = withoutCredentials(headers);
      url = target;
    }
  }

  /** Throws for an address that is refused by its form or by its current resolution; a name that doesn't resolve yet passes. */
  async check(address: string): Promise<void> {
    const url = this.#admitted(address);
    if (this.#isExempt(url) || isIP(bare(url.hostname))) return;
    await this.#publicAddresses(url.hostname).catch((error: Error) => {
      if (error instanceof AddressRefused) throw error;
    });
  }

  async close(): Promise<void> {
    await Promise.all([this.#guarded.destroy(), this.#trusted.destroy()]);
  }

  #send(url: URL, { method = "GET", headers, body, ...call }: OutboundCall): Promise<ServerResponse> {
    const dispatcher = call.trusted || this.#isExempt(url) ? this.#trusted : this.#guarded;
    const path = `${url.pathname}${url.search}`;
    const request = { origin: url.origin, path, method: method as "GET", body: body ?? null };
    const limits: Limits = { timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES, beyond: "fail", ...call };
    const whole = { ...request, headers: { "accept-encoding": "identity", ...headers } };
    return exchange(dispatcher, whole, limits).catch((error: Error) => {
      failures.add(error);
      throw error;
    });
  }

  /** The parsed address, if scheme and host are allowed. */
  #admitted(address: string): URL {
    const url = URL.canParse(address) ? new URL(address) : undefined;
    if (!url || !["http:", "https:"].includes(url.protocol))
      throw new AddressRefused("It is not an http or https address.");
    if (url.username !== "" || url.password !== "") throw new AddressRefused("It holds credentials.");
    if (this.#isExempt(url)) return url;
    const host = bare(url.hostname);
    if (isIP(host)) this.#mustBePublic(host);
    if (this.#settings.production && isLocalName(host)) throw new AddressRefused("It is not a public address.");
    if (url.protocol === "http:" && !this.#isLocal(host)) throw new AddressRefused("It must be an https address.");
    return url;
  }

  async #publicAddresses(hostname: string): Promise<Resolved> {
    const found = await this.#lookup(hostname);
    for (const { address } of found) this.#mustBePublic(address);
    return found;
  }

  #mustBePublic(address: string): void {
    const isAllowed = isPublicAddress(address) || (!this.#settings.production && isLoopback(address));
    if (!isAllowed) throw new AddressRefused("It is not a public address.");
  }

  #isLocal(host: string): boolean {
    return !this.#settings.production && (isLocalName(host) || isLoopback(host));
  }

  #isExempt({ protocol, hostname, port }: Pick<URL, "protocol" | "hostname" | "port">): boolean {
    const number = port || (protocol === "https:" ? "443" : "80");
    return this.#settings.OUTBOUND_ALLOW_HOSTS.includes(`${hostname}:${number}`);
  }
}

/**
 * True for addresses of the public internet. IPv6 must be from an allocated range, and may embed IPv4 only as NAT64 does, through which
 * an IPv6 network reaches all servers of IPv4 (RFC 6052, section 2.1).
 */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  if (parsed instanceof ipaddr.IPv4) return parsed.range() === "unicast";
  if (parsed.match(NAT64)) return isPublicAddress(parsed.toByteArray().slice(12).join("."));
  return parsed.range() === "unicast" && parsed.match(ALLOCATED);
}

const NAT64 = ipaddr.IPv6.parseCIDR("64:ff9b::/96");
const ALLOCATED = ipaddr.IPv6.parseCIDR("2000::/3");

function isLoopback(address: string): boolean {
  return ipaddr.isValid(address) && ipaddr.process(address).range() === "loopback";
}

/** Names that are always loopback (RFC 6761). */
const isLocalName = (host: string): boolean => /^(.+\.)?localhost\.?$/.test(host);

/** The host without the brackets of IPv6. */
const bare = (hostname: string): string => hostname.replace(/^\[|\]$/g, "");

function redirectOf(from: URL, { status, headers: { location } }: ServerResponse): string | undefined {
  if (!location || ![301, 302, 303, 307, 308].includes(status) || !URL.canParse(location, from)) return undefined;
  return new URL(location, from).href;
}

function withoutCredentials(headers: Record<string, string>): Record<string, string> {
  const credentials = /^(authorization|cookie|proxy-authorization)$/i;
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !credentials.test(name)));
}
