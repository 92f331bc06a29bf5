/**
 * Every setting of the service (docs/reference.md, "Processes"). `readEnv` reports every missing or malformed setting at once.
 * Only the two entry points pass the environment of the process.
 */

import { Buffer } from "node:buffer";
import { queueNames } from "../../schemas/jobs.ts";
import * as setting from "./setting-readers.ts";

const table = {
  NODE_ENV: setting.text("development"),
  PORT: setting.whole(8080, 0, 65535),
  LOG_LEVEL: setting.choice("info", "fatal", "error", "warn", "info", "debug", "trace", "silent"),
  DATA_DIR: setting.text(".data"),
  TRUST_PROXY: setting.flag,
  WORKER_QUEUES: setting.names(...queueNames),

  REDIS_URL: setting.maybe(setting.redis),
  REDIS_SENTINELS: setting.servers,
  REDIS_SENTINEL_MASTER: setting.maybe(setting.text("")),
  REDIS_SENTINEL_USERNAME: setting.maybe(setting.text("")),
  REDIS_SENTINEL_PASSWORD: setting.maybe(setting.text("")),
  REDIS_SENTINEL_TLS: setting.flag,
  REDIS_CLUSTER: setting.flag,
  REDIS_TLS_INSECURE: setting.flag,

  BASE_URL: setting.maybe(setting.origin),
  APP_URL: setting.maybe(setting.base()),
  LOGIN_URL: setting.maybe(setting.page),
  PUBLIC_DOMAIN: setting.maybe(setting.domain),

  AUTH_JWKS_URL: setting.maybe(setting.web),
  AUTH_JWKS_FILE: setting.maybe(setting.keySetFile),
  AUTH_ISSUER: setting.maybe(setting.text("")),
  AUTH_AUDIENCE: setting.maybe(setting.text("")),
  LOGIN_BUILTIN: setting.flag,
  LOGIN_MAIL_FROM: setting.maybe(setting.mailbox),
  SECRET_KEY: setting.maybe(setting.secretKey),
  SECRET_KEY_PREVIOUS: setting.maybe(setting.secretKey),

  PUBLIC_PAGE_AGENT_ENABLED: setting.flag,
  PUBLIC_PAGE_AGENT_ALLOWED_HANDLES: setting.handles,
  PUBLIC_PAGE_AGENT_MODEL_ID: setting.maybe(setting.text("")),
  PUBLIC_PAGE_AGENT_RATE: setting.rate(20),
  PUBLIC_PAGE_AGENT_BURST: setting.burst(40),
  PUBLIC_LEADS_RATE: setting.rate(20),
  PUBLIC_LEADS_BURST: setting.burst(40),
  PUBLIC_SCHEDULING_RATE: setting.maybe(setting.rate(1)),
  PUBLIC_SCHEDULING_BURST: setting.maybe(setting.burst(1)),
  // Visitors' bookings, moves and cancellations per network and handle and hour; 0 for no limit.
  PUBLIC_BOOKINGS_RATE: setting.whole(30, 0, 1_000_000),
  PUBLIC_BOOKINGS_BURST: setting.whole(20, 0, 1_000_000),
  // Future bookings per attendee address on a handle; 0 for no limit.
  PUBLIC_BOOKINGS_PER_ATTENDEE: setting.whole(10, 0, 1_000_000),
  GENERATION_CONCURRENCY: setting.whole(32, 1, 10_000),
  OLLAMA_HOST: setting.maybe(setting.modelServer),
  EMBEDDING_MODEL_ID: setting.maybe(setting.text("")),

  SMTP_URL: setting.maybe(setting.mailServer),
  MAIL_MX_HOST: setting.host("mx.localhost"),
  MAIL_SPF_INCLUDE: setting.host("spf.localhost"),
  EMAIL_REGION: setting.text("default"),
  EMAIL_FEEDBACK_SECRET: setting.maybe(setting.signingSecret),
  BOUNCE_IMAP_URL: setting.maybe(setting.encoded("imap:", "imaps:")),
  DNS_SERVERS: setting.hosts(/^(?:[\w.-]+|[\da-f:.]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i),
  EMAIL_QUOTA_PER_DAY: setting.whole(10_000, 0, Number.MAX_SAFE_INTEGER),

  GOOGLE_CLIENT_ID: setting.maybe(setting.text("")),
  GOOGLE_CLIENT_SECRET: setting.maybe(setting.text("")),
  GOOGLE_AUTH_BASE: setting.base("https://accounts.google.com"),
  GOOGLE_TOKEN_BASE: setting.base("https://oauth2.googleapis.com"),
  GOOGLE_API_BASE: setting.base("https://www.googleapis.com"),
  MICROSOFT_CLIENT_ID: setting.maybe(setting.text("")),
  MICROSOFT_CLIENT_SECRET: setting.maybe(setting.text("")),
  MICROSOFT_LOGIN_BASE: setting.base("https://login.microsoftonline.com"),
  MICROSOFT_GRAPH_BASE: setting.base("https://graph.microsoft.com"),
  ZOOM_CLIENT_ID: setting.maybe(setting.text("")),
  ZOOM_CLIENT_SECRET: setting.maybe(setting.text("")),
  ZOOM_OAUTH_BASE: setting.base("https://zoom.us"),
  ZOOM_API_BASE: setting.base("https://api.zoom.us"),
  STRIPE_CLIENT_ID: setting.maybe(setting.text("")),
  STRIPE_SECRET_KEY: setting.maybe(setting.text("")),
  STRIPE_WEBHOOK_SECRET: setting.maybe(setting.text("")),
  STRIPE_CONNECT_BASE: setting.base("https://connect.stripe.com"),
  STRIPE_API_BASE: setting.base("https://api.stripe.com"),

  OUTBOUND_ALLOW_HOSTS: setting.hosts(/^(?:[\w.-]+|\[[\da-f:.]+\]):\d{1,5}$/i),
  METRICS_TOKEN: setting.maybe(setting.bearerToken),
  TEST_CLOCK: setting.maybe(setting.instant),
  TEST_CLOCK_RATE: setting.maybe(setting.real(1, 1e-6, 1e6)),
} satisfies Record<string, setting.SettingReader<unknown>>;

type EnvValues = { [K in keyof typeof table]: ReturnType<(typeof table)[K]> };
type Addresses = ReturnType<typeof addresses>;

/** The settings and what follows from them: `production`, addresses that default to the local server, and the hosts of these (no ports). */
export interface Env extends Omit<EnvValues, keyof Addresses>, Readonly<Addresses> {
  readonly production: boolean;
}

/** Reads all settings. Throws one Error whose one-line message names everything that is wrong. */
export function readEnv(record: RawSettings): Env {
  const wrong: string[] = [];
  const given = Object.fromEntries(Object.keys(table).map((name) => [name, record[name]?.trim() || undefined]));
  const entries = Object.entries(table).map(([name, read]) => {
    try {
      return [name, read(unquoted(given[name]))];
    } catch (error) {
      if (!(error instanceof setting.Malformed)) throw error;
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
  if (/^(["']).*\1$/s.test(value ?? "")) throw new setting.Malformed("must not be in quotes");
  return value;
}

/** The settings as they were given, by name. */
type RawSettings = Record<string, string | undefined>;

/** Settings of which a production installation has all or none: with some of them a provider would fail at its first use. */
const providerSettings = [
  ["GOOGLE_CLIENT_ID", "GOOGLE_CLIENT_SECRET"],
  ["MICROSOFT_CLIENT_ID", "MICROSOFT_CLIENT_SECRET"],
  ["ZOOM_CLIENT_ID", "ZOOM_CLIENT_SECRET"],
  ["STRIPE_CLIENT_ID", "STRIPE_SECRET_KEY", "STRIPE_WEBHOOK_SECRET"],
];

/** Names the settings that a group lacks, if it has some. */
function missingOf(group: string[], given: RawSettings): string[] {
  const first = group.find((name) => given[name]);
  const missing = group.filter((name) => first && !given[name]);
  return missing.map((name) => `${name} is required with ${first}`);
}

/** Faults of well-formed settings. Redis is given by its address or by Sentinels; a cluster finds its masters itself. */
function contradictions(read: EnvValues, given: RawSettings): string[] {
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
  return [
    ...faults.flatMap(([isWrong, sentence]) => (isWrong ? [sentence] : [])),
    ...(production ? providerSettings.flatMap((group) => missingOf(group, given)) : []),
  ];
}

function addresses(read: EnvValues) {
  const base = read.BASE_URL ?? `http://localhost:${read.PORT}`;
  const [app, login] = [read.APP_URL ?? base, read.LOGIN_URL ?? `${base}/login`];
  const ownHosts: ReadonlySet<string> = new Set([base, app, login].map((address) => new URL(address).hostname));
  const redis = read.REDIS_URL ?? "redis://127.0.0.1:6379";
  const secret = read.SECRET_KEY ?? Buffer.alloc(32, "development").toString("base64");
  return { SECRET_KEY: secret, REDIS_URL: redis, BASE_URL: base, APP_URL: app, LOGIN_URL: login, ownHosts };
}
