/**
 * Every setting of the service (docs/reference.md, "Processes"). `readEnv` reports every missing or malformed setting at once.
 * Only the two entry points pass the environment of the process.
 */

import { Buffer } from "node:buffer";
import { readFileSync } from "node:fs";
import { queueNames } from "../../schemas/jobs.ts";

type SettingReader<T> = (value: string | undefined) => T;

/** Thrown by a reader; `readEnv` adds the name of the variable. */
class Malformed extends Error {}

const table = {
  NODE_ENV: text("development"),
  PORT: whole(8080, 0, 65535),
  LOG_LEVEL: choice("info", "fatal", "error", "warn", "info", "debug", "trace", "silent"),
  DATA_DIR: text(".data"),
  TRUST_PROXY: flag,
  WORKER_QUEUES: names(...queueNames),

  REDIS_URL: maybe(redis),
  REDIS_SENTINELS: servers,
  REDIS_SENTINEL_MASTER: maybe(text("")),
  REDIS_SENTINEL_USERNAME: maybe(text("")),
  REDIS_SENTINEL_PASSWORD: maybe(text("")),
  REDIS_SENTINEL_TLS: flag,
  REDIS_CLUSTER: flag,
  REDIS_TLS_INSECURE: flag,

  BASE_URL: maybe(origin),
  APP_URL: maybe(base()),
  LOGIN_URL: maybe(page),
  PUBLIC_DOMAIN: maybe(domain),

  AUTH_JWKS_URL: maybe(web),
  AUTH_JWKS_FILE: maybe(keySetFile),
  AUTH_ISSUER: maybe(text("")),
  AUTH_AUDIENCE: maybe(text("")),
  LOGIN_BUILTIN: flag,
  LOGIN_MAIL_FROM: maybe(mailbox),
  SECRET_KEY: maybe(secretKey),
  SECRET_KEY_PREVIOUS: maybe(secretKey),

  PUBLIC_PAGE_AGENT_ENABLED: flag,
  PUBLIC_PAGE_AGENT_ALLOWED_HANDLES: handles,
  PUBLIC_PAGE_AGENT_MODEL_ID: maybe(text("")),
  PUBLIC_PAGE_AGENT_RATE: rate(20),
  PUBLIC_PAGE_AGENT_BURST: burst(40),
  PUBLIC_LEADS_RATE: rate(20),
  PUBLIC_LEADS_BURST: burst(40),
  PUBLIC_SCHEDULING_RATE: maybe(rate(1)),
  PUBLIC_SCHEDULING_BURST: maybe(burst(1)),
  // Visitors' bookings, moves and cancellations per network and handle and hour; 0 for no limit.
  PUBLIC_BOOKINGS_RATE: whole(30, 0, 1_000_000),
  PUBLIC_BOOKINGS_BURST: whole(20, 0, 1_000_000),
  // Future bookings per attendee address on a handle; 0 for no limit.
  PUBLIC_BOOKINGS_PER_ATTENDEE: whole(10, 0, 1_000_000),
  GENERATION_CONCURRENCY: whole(32, 1, 10_000),
  OLLAMA_HOST: maybe(modelServer),
  EMBEDDING_MODEL_ID: maybe(text("")),

  SMTP_URL: maybe(mailServer),
  MAIL_MX_HOST: host("mx.localhost"),
  MAIL_SPF_INCLUDE: host("spf.localhost"),
  EMAIL_REGION: text("default"),
  EMAIL_FEEDBACK_SECRET: maybe(signingSecret),
  BOUNCE_IMAP_URL: maybe(encoded("imap:", "imaps:")),
  DNS_SERVERS: hosts(/^(?:[\w.-]+|[\da-f:.]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i),
  EMAIL_QUOTA_PER_DAY: whole(10_000, 0, Number.MAX_SAFE_INTEGER),

  GOOGLE_CLIENT_ID: maybe(text("")),
  GOOGLE_CLIENT_SECRET: maybe(text("")),
  GOOGLE_AUTH_BASE: base("https://accounts.google.com"),
  GOOGLE_TOKEN_BASE: base("https://oauth2.googleapis.com"),
  GOOGLE_API_BASE: base("https://www.googleapis.com"),
  MICROSOFT_CLIENT_ID: maybe(text("")),
  MICROSOFT_CLIENT_SECRET: maybe(text("")),
  MICROSOFT_LOGIN_BASE: base("https://login.microsoftonline.com"),
  MICROSOFT_GRAPH_BASE: base("https://graph.microsoft.com"),
  ZOOM_CLIENT_ID: maybe(text("")),
  ZOOM_CLIENT_SECRET: maybe(text("")),
  ZOOM_OAUTH_BASE: base("https://zoom.us"),
  ZOOM_API_BASE: base("https://api.zoom.us"),
  STRIPE_CLIENT_ID: maybe(text("")),
  STRIPE_SECRET_KEY: maybe(text("")),
  STRIPE_WEBHOOK_SECRET: maybe(text("")),
  STRIPE_CONNECT_BASE: base("https://connect.stripe.com"),
  STRIPE_API_BASE: base("https://api.stripe.com"),

  OUTBOUND_ALLOW_HOSTS: hosts(/^(?:[\w.-]+|\[[\da-f:.]+\]):\d{1,5}$/i),
  METRICS_TOKEN: maybe(bearerToken),
  TEST_CLOCK: maybe(instant),
  TEST_CLOCK_RATE: maybe(real(1, 1e-6, 1e6)),
} satisfies Record<string, SettingReader<unknown>>;

type EnvValues = { [K in keyof typeof table]: ReturnType<(typeof table)[K]> };
type Addresses = ReturnType<typeof addresses>;

/** The settings and what follows from them: `production`, addresses that default to the local server, and the hosts of these (no ports). */
export interface Env extends Omit<EnvValues, keyof Addresses>, Readonly<Addresses> {
  readonly production: boolean;
}

/** Reads all settings. Throws one Error whose one-line message names everything that is wrong. */
export function readEnv(record: Record<string, string | undefined>): Env {
  const wrong: string[] = [];
  const given = Object.fromEntries(Object.keys(table).map((name) => [name, record[name]?.trim() || undefined]));
  const entries = Object.entries(table).map(([name, read]) => {
    try {
      return [name, read(unquoted(given[name]))];
    } catch (error) {
      if (!(error instanceof Malformed)) throw error;
      wrong.push(`${name} ${error.message}`);
      return [name, undefined];
    }
  });
  const read = Object.fromEntries(entries) as EnvValues;
  wrong.push(...contradictions(read, given));
  if (wrong.length > 0) throw new Error(`Invalid settings: ${wrong.join("; ")}`);
  return { ...read, ...addresses(read), production: read.NODE_ENV === "production" };
}

/** Quotes of a shell or of a .env file, which some platforms pass on, are no part of any value. */
function unquoted(value: string | undefined): string | undefined {
  if (/^(["']).*\1$/s.test(value ?? "")) throw new Malformed("must not be in quotes");
  return value;
}

/** Faults of well-formed settings. Redis is given by its address or by Sentinels; a cluster finds its masters itself. */
function contradictions(read: EnvValues, given: Record<string, string | undefined>): string[] {
  const production = read.NODE_ENV === "production";
  const hasSentinels = (read.REDIS_SENTINELS ?? []).length > 0;
  const { REDIS_SENTINEL_MASTER: master } = read;
  const faults: [isWrong: unknown, sentence: string][] = [
    [production && !given.BASE_URL, "BASE_URL is required"],
    [production && !given.SECRET_KEY, "SECRET_KEY is required"],
    [production && read.TEST_CLOCK !== undefined, "TEST_CLOCK is refused in production"],
    [production && read.TEST_CLOCK_RATE !== undefined, "TEST_CLOCK_RATE is refused in production"],
    [(read.AUTH_JWKS_URL ?? read.AUTH_JWKS_FILE) && !read.AUTH_ISSUER, "AUTH_ISSUER is required with a key set"],
    [production && !given.REDIS_URL && !hasSentinels, "REDIS_URL is missing"],
    [hasSentinels && !master, "REDIS_SENTINEL_MASTER is required with REDIS_SENTINELS"],
    [!hasSentinels && master, "REDIS_SENTINELS is required with REDIS_SENTINEL_MASTER"],
    [hasSentinels && read.REDIS_CLUSTER, "REDIS_SENTINELS can't be combined with REDIS_CLUSTER"],
  ];
  return faults.flatMap(([isWrong, sentence]) => (isWrong ? [sentence] : []));
}

function addresses(read: EnvValues) {
  const base = read.BASE_URL ?? `http://localhost:${read.PORT}`;
  const [app, login] = [read.APP_URL ?? base, read.LOGIN_URL ?? `${base}/login`];
  const ownHosts: ReadonlySet<string> = new Set([base, app, login].map((address) => new URL(address).hostname));
  const redis = read.REDIS_URL ?? "redis://127.0.0.1:6379";
  const secret = read.SECRET_KEY ?? Buffer.alloc(32, "development").toString("base64");
  return { SECRET_KEY: secret, REDIS_URL: redis, BASE_URL: base, APP_URL: app, LOGIN_URL: login, ownHosts };
}

function text(fallback: string): SettingReader<string> {
  return (value) => value ?? fallback;
}

function maybe<T>(reader: SettingReader<T>): SettingReader<T | undefined> {
  return (value) => (value === undefined ? undefined : reader(value));
}

function flag(value = "no"): boolean {
  if (/^(1|true|yes)$/i.test(value)) return true;
  if (/^(0|false|no)$/i.test(value)) return false;
  throw new Malformed("must be one of 1, true, yes, 0, false, no");
}

function whole(fallback: number, least: number, most: number): SettingReader<number> {
  return (value) => {
    const parsed = value === undefined ? fallback : Number(value);
    if (Number.isInteger(parsed) && parsed >= least && parsed <= most) return parsed;
    throw new Malformed(`must be an integer from ${least} to ${most}`);
  };
}

function real(fallback: number, least: number, most: number): SettingReader<number> {
  return (value) => {
    const parsed = value === undefined ? fallback : Number(value);
    if (parsed >= least && parsed <= most) return parsed;
    throw new Malformed(`must be a number from ${least} to ${most}`);
  };
}

/** Tokens of a bucket a second. */
function rate(fallback: number): SettingReader<number> {
  return real(fallback, 0.001, 1e9);
}

/** Most tokens of a bucket: with less than a whole one it would refuse everything. */
function burst(fallback: number): SettingReader<number> {
  return real(fallback, 1, 1e9);
}

function choice<const V extends string>(fallback: V, ...values: V[]): SettingReader<V> {
  return (value) => {
    const found = values.find((one) => one === (value ?? fallback));
    if (found === undefined) throw new Malformed(`must be one of ${values.join(", ")}`);
    return found;
  };
}

/** Comma-separated words, restricted to `known` if it is given. */
function names(...known: string[]): SettingReader<string[]> {
  return (value) => {
    const given = (value ?? "").split(",").map((name) => name.trim());
    const read = given.filter((name) => name !== "");
    const unknown = read.find((name) => known.length > 0 && !known.includes(name));
    if (unknown !== undefined) throw new Malformed(`contains ${unknown}, which is not one of ${known.join(", ")}`);
    return read;
  };
}

function handles(value: string | undefined): string[] {
  const read = names()(value);
  const wrong = read.find((one) => !/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(one));
  if (wrong !== undefined) throw new Malformed(`contains ${wrong}, which is not the name of a handle such as acme`);
  return read;
}

/** Comma-separated hosts with ports, of a form, in lower case. */
function hosts(form: RegExp): SettingReader<string[]> {
  return (value) => {
    const read = names()(value?.toLowerCase());
    const isPort = (port = "") => Number(port) <= 65535;
    if (read.every((one) => form.test(one) && isPort(/:(\d+)$/.exec(one)?.[1]))) return read;
    throw new Malformed("must be a list such as host:port,host:port");
  };
}

/** Comma-separated Sentinels, as `host` or `host:port`; their usual port is 26379. */
function servers(value: string | undefined): { host: string; port: number }[] {
  return names()(value).map((name) => {
    const { hostname = "", port = "" } = URL.canParse(`tcp://${name}`) ? new URL(`tcp://${name}`) : {};
    if (!name.startsWith(hostname) || !/^(:\d+)?$/.test(name.slice(hostname.length)) || hostname === "")
      throw new Malformed("must be a list such as host:port,host:port");
    return { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port || 26379) };
  });
}

/** An http address, without a slash at its end, that paths are appended to. */
function base(fallback?: string): SettingReader<string> {
  return (value) => {
    const given = page(value ?? fallback);
    if (given.includes("?")) throw new Malformed("must have no query");
    return given;
  };
}

/** The service's own address: its pages refer to each other from the root of their host. */
function origin(value: string | undefined): string {
  const { origin, pathname } = new URL(base()(value));
  if (pathname !== "/") throw new Malformed("must have no path");
  return origin;
}

function page(value: string | undefined): string {
  return web(value).replace(/\/+$/, "");
}

/** An http address. Requests don't carry the credentials of one. */
function web(value: string | undefined): string {
  const given = url("http:", "https:")(value);
  const { username, password } = new URL(given);
  if (username + password !== "") throw new Malformed("must have no credentials");
  return given;
}

/** A model server as its client reads it: an address, or only a host, a port or both. */
function modelServer(given = ""): string {
  const host = given.replace(/^:/, "127.0.0.1:");
  url("http:", "https:")(host.includes("://") ? host : `http://${host}`);
  return given;
}

/** A mail server, perhaps with numbers as parameters (`core/engines/mail/smtp.ts`). Without a connection or time it would get no mail. */
function mailServer(value: string | undefined): string {
  const given = url("smtp:", "smtps:")(value);
  for (const [name, text] of new URL(given).searchParams) {
    const isNumber = /^(maxConnections|sendTimeout)$/.test(name) ? /^0*[1-9]\d*$/ : /^\d+$/;
    if (/^(max|rate)|Timeout$/.test(name) && !isNumber.test(text))
      throw new Malformed(`must have a number for ${name}, such as smtp://host?${name}=10`);
  }
  return given;
}

/** Redis, perhaps with the number of a database. */
function redis(value: string | undefined): string {
  const given = encoded("redis:", "rediss:")(value);
  if (!/^\/?\d*$/.test(new URL(given).pathname)) throw new Malformed("must be a URL such as redis://host:6379/0");
  return given;
}

/** A URL whose user and password have escaped special characters. */
function encoded(first: string, second: string): SettingReader<string> {
  return (value) => {
    const given = url(first, second)(value);
    if (/%(?![\da-f]{2})/i.test(given)) throw new Malformed("must have special characters escaped, such as %25 for %");
    return given;
  };
}

function url(first: string, second: string): SettingReader<string> {
  return (value) => {
    const given = value ?? "";
    const parsed = URL.canParse(given) ? new URL(given) : undefined;
    const isKind = parsed && [first, second].includes(parsed.protocol) && parsed.hostname !== "";
    if (isKind && !given.includes("#")) return given;
    throw new Malformed(`must be a URL such as ${first}//host`);
  };
}

const LABEL = "[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?";
const HOST = new RegExp(`^${LABEL}(?:\\.${LABEL})*$`);

/** A host name in lower case, without the dot that ends an absolute one. */
function host(fallback = ""): SettingReader<string> {
  return (value = fallback) => {
    const name = value.toLowerCase().replace(/\.$/, "");
    if (HOST.test(name)) return name;
    throw new Malformed("must be a host name such as mail.example.com");
  };
}

/** A host name, perhaps with a port, whose subdomains are hosts too. */
function domain(value = ""): string {
  const [name, port = ""] = value.split(/(?=:\d+$)/);
  const read = host()(name) + port;
  if (URL.canParse(`http://acme.${read}`)) return read;
  throw new Malformed("must be a domain such as example.com");
}

/** An address, perhaps with the name of its owner. */
function mailbox(value = ""): { name: string; address: string } {
  const [, , name = "", address = value] = /^("?)([^"<>]*)\1 *<([^<>]*)>$/.exec(value) ?? [];
  const [, local, of] = /^([^\s"(),:;<>@[\\\]]{1,64})@(.+)$/.exec(address) ?? [];
  if (local && HOST.test(of?.toLowerCase() ?? "")) return { name: name.trim(), address };
  throw new Malformed("must be an address such as noreply@example.com or Acme <noreply@example.com>");
}

/** A secret of Standard Webhooks: base64, usually after `whsec_`. */
function signingSecret(value = ""): string {
  const [letters = ""] = /^[\w+/-]{2,}(?=={0,2}$)/.exec(value.replace(/^whsec_/, "")) ?? [];
  if (letters !== "" && letters.length % 4 !== 1) return value;
  throw new Malformed("must be base64, such as whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
}

/** A file with a JSON Web Key Set (RFC 7517, section 5), which is read again later. */
function keySetFile(path = ""): string {
  try {
    if (Array.isArray(JSON.parse(readFileSync(path, "utf8")).keys)) return path;
  } catch {
    // It can't be read or is no JSON.
  }
  throw new Malformed('must be a readable file with a key set such as {"keys":[]}');
}

function secretKey(value: string | undefined): string {
  if (value !== undefined && /^[\w+/-]{43}=?$/.test(value)) return value;
  throw new Malformed("must be 32 bytes in base64");
}

function bearerToken(value = ""): string {
  if (/\s/.test(value)) throw new Malformed("must have no spaces");
  return value;
}

function instant(value: string | undefined): number {
  const parsed = Date.parse(value ?? "");
  if (Number.isNaN(parsed) || !/^\d{4}-\d\d-\d\d/.test(value ?? "")) throw new Malformed("is not an instant");
  return parsed;
}
