import { Buffer } from "node:buffer";
import { join } from "node:path";
import t from "tap";
import { readEnv } from "../core/platform/env.ts";

t.test("an invalid setting is refused by name, with the expected form", (t) => {
  const bad = {
    PORT: "80.5",
    WORKER_QUEUES: "email,emial",
    SECRET_KEY: "!".repeat(43),
    SECRET_KEY_PREVIOUS: "c2hvcnQ=",
    BASE_URL: "localhost:8080",
    LOGIN_BUILTIN: "perhaps",
    REDIS_SENTINELS: "one:26379,two:port",
    DNS_SERVERS: "127.0.0.1,not a server",
    OUTBOUND_ALLOW_HOSTS: "127.0.0.1:80,localhost",
    TEST_CLOCK: "5",
    TEST_CLOCK_RATE: "0",
  };
  for (const [name, value] of Object.entries(bad))
    t.throws(() => readEnv({ [name]: value }), { message: new RegExp(`^Invalid settings: ${name} [^;]+$`) }, name);
  try {
    readEnv(bad);
    t.fail("was taken");
  } catch (error) {
    for (const name of Object.keys(bad)) t.match((error as Error).message, `${name} `, "all are named at once");
  }
  t.end();
});

t.test("what would fail at its first use is refused at the start, with an example", (t) => {
  const file = join(t.testdir({ "no-set.json": '{"keys":{}}', "no.json": "keys" }), "/");
  const refused: Record<string, string[]> = {
    PORT: ["65536", "-1"],
    LOG_LEVEL: ["loud"],
    AUTH_JWKS_FILE: [`${file}none.json`, `${file}no-set.json`, `${file}no.json`],
    AUTH_JWKS_URL: ["https://user:secret@signer.example/keys", "signer.example"],
    LOGIN_MAIL_FROM: ["acme", "a b@acme.example", "a@acme.example, b@acme.example", "Acme <acme>", "a@acme..example"],
    OLLAMA_HOST: ["http://", "two words", "host:port", "ftp://host"],
    EMAIL_FEEDBACK_SECRET: ["whsec_", "whsec_a", "short", "whsec_a b!", "=="],
    BASE_URL: ["https://a.example/path", "https://u:p@a.example", "https://a.example?q=1", "https://a.example/#top"],
    APP_URL: ["https://u:p@a.example/app", "https://a.example/app?q=1"],
    GOOGLE_API_BASE: ["https://u:p@a.example"],
    PUBLIC_DOMAIN: ["..", ".a.example", "-", "a.example:99999", "127.0.0.1", "a.example/path"],
    MAIL_MX_HOST: ["10 mx.example", "mx.example:25"],
    MAIL_SPF_INCLUDE: ["include:spf.example", "spf..example"],
    REDIS_URL: ["redis://host/first", "redis://:100%@host", "redis://:a#b@host"],
    BOUNCE_IMAP_URL: ["imaps://user:100%@host", "imaps://user:secret@host/100%"],
    SMTP_URL: [
      "host:25",
      "smtp://",
      "smtp://host?rateLimit=some",
      "smtp://host?maxMessages=some",
      "smtp://host?rateLimit=0.5",
      "smtp://host?maxConnections=0",
      "smtp://host?sendTimeout=Infinity",
    ],
    DNS_SERVERS: ["127.0.0.1:99999"],
    OUTBOUND_ALLOW_HOSTS: ["127.0.0.1:65536"],
    PUBLIC_PAGE_AGENT_ALLOWED_HANDLES: ["acme,Acme", "a_b"],
    PUBLIC_PAGE_AGENT_BURST: ["0.5", "Infinity"],
    PUBLIC_LEADS_RATE: ["1e-9", "-1"],
    PUBLIC_SCHEDULING_BURST: ["0"],
    TEST_CLOCK_RATE: ["1e300"],
    METRICS_TOKEN: ["two words"],
  };
  for (const [name, values] of Object.entries(refused))
    for (const value of values)
      t.throws(
        () => readEnv({ [name]: value, AUTH_ISSUER: "https://signer.example" }),
        { message: new RegExp(`^Invalid settings: ${name} [^;]+$`) },
        `${name}=${value}`,
      );
  t.end();
});

t.test("a provider whose settings are incomplete is refused in production, with what is missing", (t) => {
  const production = { NODE_ENV: "production", BASE_URL: "https://a.example", REDIS_URL: "redis://host" };
  const start = (more: Record<string, string>) =>
    readEnv({ ...production, SECRET_KEY: "A".repeat(43), STRIPE_WEBHOOK_SECRET: undefined, ...more });
  const refused: [given: Record<string, string>, sentence: string][] = [
    [{ GOOGLE_CLIENT_ID: "a" }, "GOOGLE_CLIENT_SECRET is required with GOOGLE_CLIENT_ID"],
    [{ ZOOM_CLIENT_SECRET: "a", ZOOM_CLIENT_ID: " " }, "ZOOM_CLIENT_ID is required with ZOOM_CLIENT_SECRET"],
    [
      { STRIPE_SECRET_KEY: "a" },
      "STRIPE_CLIENT_ID is required with STRIPE_SECRET_KEY; STRIPE_WEBHOOK_SECRET is required with STRIPE_SECRET_KEY",
    ],
  ];
  for (const [given, sentence] of refused)
    t.throws(() => start(given), { message: `Invalid settings: ${sentence}` }, sentence);
  t.ok(start({ MICROSOFT_CLIENT_ID: "a", MICROSOFT_CLIENT_SECRET: "b" }));
  t.ok(readEnv({ GOOGLE_CLIENT_ID: "a" }), "in development a part may be tried");
  t.end();
});

t.test("addresses are read in one form", (t) => {
  const { BASE_URL, LOGIN_URL, APP_URL, PUBLIC_DOMAIN, MAIL_MX_HOST, OUTBOUND_ALLOW_HOSTS, LOGIN_MAIL_FROM } = readEnv({
    BASE_URL: "HTTPS://Service.Example:443/",
    LOGIN_URL: "https://login.example/in?tenant=one",
    APP_URL: "https://app.example/console/",
    PUBLIC_DOMAIN: "Pages.Example.:8443",
    MAIL_MX_HOST: "MX.Example.",
    OUTBOUND_ALLOW_HOSTS: "LOCALHOST:80",
    LOGIN_MAIL_FROM: "hello@localhost",
  });
  t.same([BASE_URL, LOGIN_URL], ["https://service.example", "https://login.example/in?tenant=one"]);
  t.same([APP_URL, PUBLIC_DOMAIN], ["https://app.example/console", "pages.example:8443"]);
  t.same([MAIL_MX_HOST, OUTBOUND_ALLOW_HOSTS], ["mx.example", ["localhost:80"]]);
  t.same(LOGIN_MAIL_FROM, { name: "", address: "hello@localhost" });
  for (const OLLAMA_HOST of ["0.0.0.0", ":11434", "host:11434", "[::1]:11434", "https://host/ollama"])
    t.equal(readEnv({ OLLAMA_HOST }).OLLAMA_HOST, OLLAMA_HOST);
  const SMTP_URL = "smtps://user:100%@host:465?maxConnections=5&maxMessages=Infinity&rateLimit=0&pool=true";
  t.equal(readEnv({ SMTP_URL }).SMTP_URL, SMTP_URL);
  for (const EMAIL_FEEDBACK_SECRET of ["whsec_c2VjcmV0", "c2VjcmV0LQ==", "c2VjcmV0LQ", "whsec_a-_b"])
    t.equal(readEnv({ EMAIL_FEEDBACK_SECRET }).EMAIL_FEEDBACK_SECRET, EMAIL_FEEDBACK_SECRET);
  t.end();
});

t.test("valid settings are read, and an empty one counts as absent", (t) => {
  const key = "ZGV2ZWxvcG1lbnQtZGV2ZWxvcG1lbnQtZGV2ZWxvcG0=";
  const env = readEnv({
    PORT: "",
    WORKER_QUEUES: " email, webhooks,",
    SECRET_KEY: key,
    TEST_CLOCK: "2026-03-01T09:00:00+01:00",
    TRUST_PROXY: "yes",
    DNS_SERVERS: "::1, [::1]:53,resolver.internal,127.0.0.1:5353",
    OUTBOUND_ALLOW_HOSTS: "localhost:80,[::1]:8080",
  });
  t.same(env.DNS_SERVERS, ["::1", "[::1]:53", "resolver.internal", "127.0.0.1:5353"]);
  t.same(env.OUTBOUND_ALLOW_HOSTS, ["localhost:80", "[::1]:8080"]);
  t.match(env, { PORT: 8080, WORKER_QUEUES: ["email", "webhooks"], SECRET_KEY: key, TRUST_PROXY: true });
  t.equal(env.TEST_CLOCK, Date.UTC(2026, 2, 1, 8));
  t.same(readEnv({ WORKER_QUEUES: "" }).WORKER_QUEUES, []);
  t.end();
});

t.test("spaces around a value are no part of it, and one in quotes is refused", (t) => {
  const settings = { NODE_ENV: "production\r\n", BASE_URL: " ", METRICS_TOKEN: "secret\n", EMAIL_QUOTA_PER_DAY: " " };
  t.throws(() => readEnv(settings), {
    message: "Invalid settings: BASE_URL is required; SECRET_KEY is required; REDIS_URL is missing",
  });
  const { METRICS_TOKEN, EMAIL_QUOTA_PER_DAY, PORT } = readEnv({ ...settings, NODE_ENV: "\t", PORT: "\n" });
  t.same(
    { METRICS_TOKEN, EMAIL_QUOTA_PER_DAY, PORT },
    { METRICS_TOKEN: "secret", EMAIL_QUOTA_PER_DAY: 10_000, PORT: 8080 },
  );
  for (const value of ['"production"', "'production'"])
    t.throws(() => readEnv({ NODE_ENV: value }), { message: "Invalid settings: NODE_ENV must not be in quotes" });
  const { LOGIN_MAIL_FROM } = readEnv({ LOGIN_MAIL_FROM: '"Acme" <a@acme.example>' });
  t.same(LOGIN_MAIL_FROM, { name: "Acme", address: "a@acme.example" }, "quotes of a part stay");
  t.end();
});

t.test("Redis is found by its address or by Sentinels, which need the name of their master", (t) => {
  const sentinels = "one, two.example:26380,[::1]:5000";
  const env = readEnv({ NODE_ENV: "development", REDIS_SENTINELS: sentinels, REDIS_SENTINEL_MASTER: "main" });
  t.same(env.REDIS_SENTINELS, [
    { host: "one", port: 26379 },
    { host: "two.example", port: 26380 },
    { host: "::1", port: 5000 },
  ]);
  const refused: [Record<string, string>, string][] = [
    [{ REDIS_SENTINELS: sentinels }, "REDIS_SENTINEL_MASTER is required"],
    [{ REDIS_SENTINEL_MASTER: "main" }, "REDIS_SENTINELS is required"],
    [
      { REDIS_SENTINELS: "one", REDIS_SENTINEL_MASTER: "main", REDIS_CLUSTER: "1" },
      "REDIS_SENTINELS can't be combined with REDIS_CLUSTER",
    ],
    [{ REDIS_SENTINELS: "user@one", REDIS_SENTINEL_MASTER: "main" }, "REDIS_SENTINELS must be a list"],
    [{ REDIS_SENTINELS: "one/path", REDIS_SENTINEL_MASTER: "main" }, "REDIS_SENTINELS must be a list"],
    [{ REDIS_SENTINELS: ":26379", REDIS_SENTINEL_MASTER: "main" }, "REDIS_SENTINELS must be a list"],
    [{ REDIS_SENTINELS: "é", REDIS_SENTINEL_MASTER: "main" }, "REDIS_SENTINELS must be a list"],
  ];
  for (const [settings, message] of refused) t.throws(() => readEnv(settings), { message: new RegExp(message) });
  t.throws(() => readEnv({ NODE_ENV: "production" }), { message: /REDIS_URL is missing/ });
  const production = { NODE_ENV: "production", REDIS_SENTINELS: "one", REDIS_SENTINEL_MASTER: "main" };
  t.throws(() => readEnv(production), { message: /^(?!.*REDIS)/ }, "Sentinels are enough");
  t.end();
});

t.test("production has no defaults for what it depends on, and no test clock", (t) => {
  const faults = (settings: Record<string, string>): string[] => {
    try {
      return [readEnv({ NODE_ENV: "production", ...settings }).NODE_ENV];
    } catch (error) {
      return (error as Error).message.slice("Invalid settings: ".length).split("; ");
    }
  };
  t.same(faults({}), ["BASE_URL is required", "SECRET_KEY is required", "REDIS_URL is missing"]);
  const needed = {
    ...{ BASE_URL: "https://service.example", REDIS_URL: "redis://one" },
    SECRET_KEY: Buffer.alloc(32, 7).toString("base64"),
  };
  t.same(faults(needed), ["production"]);
  const clock = { TEST_CLOCK: "2026-03-01", TEST_CLOCK_RATE: "2" };
  const refused = ["TEST_CLOCK is refused in production", "TEST_CLOCK_RATE is refused in production"];
  t.same(faults({ ...needed, ...clock }), refused);
  t.match(faults({ ...needed, SECRET_KEY: "short" }), [/^SECRET_KEY must be/], "a malformed one is named once");
  t.equal(faults({ ...needed, BASE_URL: "short", SECRET_KEY: "short", REDIS_URL: "short" }).length, 3);
  t.end();
});
