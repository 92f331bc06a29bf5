import { Buffer } from "node:buffer";
import { lookup as systemLookup } from "node:dns";
import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { Agent, buildConnector, request } from "undici";
import type { Env } from "./env.ts";
import { Fail } from "./errors.ts";

type Settings = Pick<Env, "production" | "OUTBOUND_ALLOW_HOSTS">;
type Resolved = { address: string; family: number }[];
type LookupDone = (error: Error | null, addresses: Resolved) => void;

/** Resolves a name to all of its addresses, in the form of `dns.lookup`. */
export type Lookup = (hostname: string, options: { all: true }, done: LookupDone) => void;

/** A call to the outside. */
export interface OutboundCall {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
  /** Ms for the whole call, body included; 15 s when left out. */
  patience?: number;
  /** Most bytes of the answer's body; 1 MB when left out. */
  limit?: number;
  /** What happens beyond the limit: the call fails (left out), or the rest is dropped. */
  beyond?: "fail" | "drop";
  /** How many redirects are followed; none when left out. Credentials never leave their origin. */
  redirects?: number;
  /** True where the address is a setting of the operator and not a user's word: then nothing is guarded. */
  trusted?: boolean;
  signal?: AbortSignal;
}

/** What came back. */
export interface OutboundAnswer {
  status: number;
  headers: Record<string, string>;
  body: Buffer;
  /** The address that answered, after redirects. */
  url: string;
}

const patience = 15_000;
const largest = 1_048_576;

/**
 * Calls to addresses outside. Those that a user may name are checked where the connection is made, literal and resolved alike,
 * so that neither a name, nor a redirect, nor a second resolution leads to an address that isn't public (issue 7, 6).
 */
export class Outbound {
  readonly #settings: Settings;
  readonly #lookup: Lookup;
  readonly #guarded: Agent;
  readonly #trusted = new Agent({ connect: { timeout: 10_000 } });

  constructor(settings: Settings, lookup: Lookup = systemLookup as unknown as Lookup) {
    this.#settings = settings;
    this.#lookup = lookup;
    this.#guarded = new Agent({ connect: this.#connector() });
  }

  /** Makes a call; `address_not_allowed` for an address that is refused, a plain error where the network fails. */
  async request(address: string, call: OutboundCall = {}): Promise<OutboundAnswer> {
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(new Error("No answer in time.")), call.patience ?? patience);
    const give = () => stop.abort(call.signal?.reason);
    call.signal?.addEventListener("abort", give, { once: true });
    try {
      return await this.#follow(call.trusted ? new URL(address) : this.#admitted(address), call, stop.signal);
    } finally {
      clearTimeout(timer);
      call.signal?.removeEventListener("abort", give);
    }
  }

  /** Refuses an address by what can be seen of it, and by what its name means now; a name that means nothing yet is let pass. */
  async check(address: string): Promise<void> {
    const url = this.#admitted(address);
    if (this.#isExempt(url.hostname, url) || isIP(bare(url.hostname))) return;
    const found = await new Promise<Resolved>((resolve) =>
      this.#lookup(url.hostname, { all: true }, (error, addresses) => resolve(error ? [] : addresses)),
    );
    this.#mustBePublic(found);
  }

  async close(): Promise<void> {
    await Promise.all([this.#guarded.destroy(), this.#trusted.destroy()]);
  }

  async #follow(url: URL, call: OutboundCall, signal: AbortSignal): Promise<OutboundAnswer> {
    const answer = await this.#once(url, call, signal);
    const next = answer.headers.location;
    if (![301, 302, 303, 307, 308].includes(answer.status) || !next || !call.redirects || !URL.canParse(next, url))
      return answer;
    const { href } = new URL(next, url);
    const target = call.trusted ? new URL(href) : this.#admitted(href);
    const headers = target.origin === url.origin ? call.headers : withoutCredentials(call.headers);
    return this.#follow(target, { ...call, ...(headers ? { headers } : {}), redirects: call.redirects - 1 }, signal);
  }

  async #once(url: URL, call: OutboundCall, signal: AbortSignal): Promise<OutboundAnswer> {
    const answer = await request(url, {
      dispatcher: call.trusted ? this.#trusted : this.#guarded,
      method: (call.method ?? "GET") as "GET",
      headers: call.headers ?? {},
      body: call.body ?? null,
      // Never held back: undici 7 ends the process where a server hangs up while its answer is held (nodejs/undici#5360).
      highWaterMark: (call.limit ?? largest) + 1,
      signal,
    });
    const headers = Object.entries(answer.headers).map(([name, value]) => [name, String(value)]);
    const body = await capped(answer.body, call.limit ?? largest, call.beyond ?? "fail");
    return { status: answer.statusCode, headers: Object.fromEntries(headers), body, url: url.href };
  }

  /** The parsed address, if its scheme and host may be called. */
  #admitted(address: string): URL {
    const url = URL.canParse(address) ? new URL(address) : undefined;
    if (!url || !["http:", "https:"].includes(url.protocol)) throw refused("It is not an http or https address.");
    if (url.username !== "" || url.password !== "") throw refused("It holds credentials.");
    if (this.#isExempt(url.hostname, url)) return url;
    const host = bare(url.hostname);
    if (isIP(host)) this.#mustBePublic([{ address: host, family: isIP(host) }]);
    if (this.#settings.production && isLocalName(host)) throw refused("It is not a public address.");
    if (url.protocol === "http:" && !this.#isLocal(host)) throw refused("Only https is allowed.");
    return url;
  }

  #connector(): buildConnector.connector {
    const resolving = buildConnector({
      timeout: 10_000,
      lookup: ((hostname: string, _options: object, done: LookupDone) => this.#resolve(hostname, done)) as never,
    });
    const exempt = buildConnector({ timeout: 10_000 });
    return (options, done) => {
      const port = options.port || (options.protocol === "https:" ? "443" : "80");
      if (this.#allows(options.hostname, port)) return exempt(options, done);
      const host = bare(options.hostname);
      // A literal address is never looked up.
      const fault = isIP(host) ? this.#fault([{ address: host, family: isIP(host) }]) : undefined;
      return fault ? done(fault, null) : resolving(options, done);
    };
  }

  #resolve(hostname: string, done: LookupDone): void {
    this.#lookup(hostname, { all: true }, (error, addresses) => {
      const fault = error ?? this.#fault(addresses);
      done(fault ?? null, fault ? [] : addresses);
    });
  }

  #mustBePublic(addresses: Resolved): void {
    const fault = this.#fault(addresses);
    if (fault) throw fault;
  }

  #fault(addresses: Resolved): Fail | undefined {
    const may = ({ address }: { address: string }): boolean =>
      isPublic(address) || (!this.#settings.production && isLoopback(address));
    return addresses.every(may) ? undefined : refused("It is not a public address.");
  }

  #isLocal(host: string): boolean {
    return !this.#settings.production && (isLocalName(host) || isLoopback(host));
  }

  #isExempt(hostname: string, url: URL): boolean {
    return this.#allows(hostname, url.port || (url.protocol === "https:" ? "443" : "80"));
  }

  #allows(hostname: string, port: string): boolean {
    return this.#settings.OUTBOUND_ALLOW_HOSTS.includes(`${hostname}:${port}`);
  }
}

/** True for addresses of the public internet. IPv6 counts only where it is given out, and not where it wraps IPv4. */
export function isPublic(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  if (parsed.range() !== "unicast") return false;
  return parsed.kind() === "ipv4" || (parsed as ipaddr.IPv6).match(givenOut);
}

const givenOut: [ipaddr.IPv6, number] = [ipaddr.IPv6.parse("2000::"), 3];

function isLoopback(address: string): boolean {
  return ipaddr.isValid(address) && ipaddr.process(address).range() === "loopback";
}

/** Names that mean loopback whatever a resolver says (RFC 6761). */
const isLocalName = (host: string): boolean => /^(.+\.)?localhost\.?$/.test(host);

/** A host as it is dialled: IPv6 without its brackets. */
const bare = (hostname: string): string => hostname.replace(/^\[|\]$/g, "");

function refused(why: string): Fail {
  return new Fail("address_not_allowed", { detail: why });
}

const credentials = /^(authorization|cookie|proxy-authorization)$/i;

function withoutCredentials(headers: Record<string, string> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !credentials.test(name)));
}

async function capped(
  body: AsyncIterable<Uint8Array> & { destroy(): unknown },
  limit: number,
  beyond: "fail" | "drop",
): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of body) {
    parts.push(part);
    size += part.length;
    if (size > limit) break;
  }
  if (size > limit) body.destroy();
  if (size > limit && beyond === "fail") throw new Error(`The answer is larger than ${limit} bytes.`);
  return Buffer.concat(parts).subarray(0, limit);
}
