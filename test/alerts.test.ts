import t from "tap";
import { keys } from "../core/store/keys.ts";
import { mastersOf } from "../core/store/redis.ts";
import { makeSending, startMailing } from "../fixtures/email.ts";
import { eventually, startService } from "../fixtures/service.ts";
import { startMailServer } from "../fixtures/smtp.ts";
import { sourceText } from "../fixtures/sources.ts";

/** Labels that Prometheus itself adds, and words of its language. */
const ofPrometheus = ["up"];
const language =
  /^(sum|rate|histogram_quantile|by|le|min|max|delta|predict_linear|queue|job|state|kind|status|web|generation|reason|route|and|increase)$/;

const expressions = [...sourceText("docs/alerts.yml").matchAll(/^ +expr: (.*)$/gm)].map(
  ([, expression]) => expression ?? "",
);

/** Names in an expression, without what stands in braces, brackets and quotes. */
function metricsIn(expression: string): string[] {
  const bare = expression.replace(/\{[^}]*\}|\[[^\]]*\]|by \([^)]*\)/g, " ");
  return (bare.match(/[a-z_]{2,}[a-z0-9_]*/g) ?? []).filter((word) => !language.test(word));
}

t.test("every metric of the alerts exists, with the labels that they name", async (t) => {
  const { visitor } = await startService(t, { workers: ["knowledge"] });
  await visitor.get("/v2/handles/acme/pages").expect(401);
  const { text: shown } = await visitor.get("/metrics").expect(200);
  const names = new Set(expressions.flatMap(metricsIn));
  t.ok(names.size > 5);
  for (const name of names)
    t.ok(ofPrometheus.includes(name) || new RegExp(`^${name}[{ ]`, "m").test(shown), `${name} is in /metrics`);
  t.match(shown, /^http_requests_total\{[^}]*status="401"/m);
  t.match(shown, /^queue_jobs\{queue="generation",state="waiting"\} 0$/m);
  t.match(shown, /^queue_served\{queue="knowledge"\} 1$/m);
  t.match(shown, /^queue_served\{queue="email"\} 0$/m);
  t.match(shown, /^redis_kind\{kind="(plain|module|cluster)"\} 1$/m);
});

t.test("/readyz and the metrics tell which knowledge index is serving", async (t) => {
  const { visitor, runtime } = await startService(t);
  const { kind } = runtime.index;
  await eventually(async () => (await runtime.index.status()).serving === kind);
  t.match((await visitor.get("/readyz").expect(200)).body, { knowledgeIndex: { kind, serving: kind } });
  const { text: shown } = await visitor.get("/metrics").expect(200);
  t.match(shown, new RegExp(`^knowledge_index\\{kind="${kind}",serving="${kind}"\\} 1$`, "m"));
  t.match(shown, /^knowledge_index_fallbacks_total\{reason="building"\} 0$/m);
});

t.test("Redis memory and its limit are reported, and the age of an unswept outbox grows", async (t) => {
  const { visitor, runtime } = await startService(t);
  const limits = mastersOf(runtime.redis).map((server) => server.config("SET", "maxmemory", "100mb"));
  await Promise.all(limits);
  const policy = (name: string) =>
    Promise.all(mastersOf(runtime.redis).map((server) => server.config("SET", "maxmemory-policy", name)));
  await runtime.queues.register("acme");
  const read = async (): Promise<string> => (await visitor.get("/metrics").expect(200)).text;
  const shown = await read();
  t.match(shown, /^redis_memory_bytes\{server="[\d.:]+",kind="used"\} [1-9]/m);
  t.match(shown, /^redis_memory_bytes\{server="[\d.:]+",kind="limit"\} 104857600$/m);
  t.match(shown, /^redis_evicts\{server="[\d.:]+"\} 0$/m);
  await policy("allkeys-lru");
  t.match(await read(), /^redis_evicts\{server="[\d.:]+"\} 1$/m);
  await policy("noeviction");
  await eventually(async () => Number(/^outbox_age_seconds (.*)$/m.exec(await read())?.[1]) > 0.05);
  t.equal(await runtime.queues.sweep(-1000), 0);
  t.match(await read(), /^outbox_age_seconds 0$/m);
});

t.test("the metrics tell that Redis came back without the service's data", async (t) => {
  const { visitor, runtime } = await startService(t);
  const read = async (): Promise<string> => (await visitor.get("/metrics").expect(200)).text;
  t.match(await read(), /^redis_data_lost 0$/m);
  await runtime.redis.del(keys.signingKey);
  t.match(await read(), /^redis_data_lost 1$/m);
});

t.test("the metrics count attempts to send a mail by their outcome", async (t) => {
  const mail = await startMailServer(t);
  const service = await startMailing(t, mail.url, { workers: ["email"] });
  const { send, until } = await makeSending(service);
  const counted = async (words: string): Promise<boolean> =>
    (await service.visitor.get("/metrics").expect(200)).text.includes(`\nmail_attempts_total{outcome=${words}\n`);
  t.ok(await counted('"SENT"} 0'));
  await until(await send(["ann@far.example", "ben@far.example"]), "SENT");
  await eventually(() => counted('"SENT"} 2'));
  mail.refuseRecipient = () => ({ code: 554, words: "5.7.1 Your network is listed" });
  await until(await send(["cem@far.example"]), "FAILED");
  await eventually(() => counted('"FAILED"} 1'));
  mail.refuseRecipient = () => ({ code: 451, words: "4.7.1 Greylisted" });
  await until(await send(["dan@far.example"]), "DEFERRED");
  await eventually(() => counted('"DEFERRED"} 1'));
  t.ok(await counted('"SENT"} 2'));
});

t.test("routes that wait for a model don't count as slow", (t) => {
  const slow = expressions.find((one) => one.includes("http_request_seconds_bucket")) ?? "";
  const asking = "/v2/public/pages/:handle/:pageSlug/agentic";
  t.same(routesLike(/route!~"([^"]+)"/.exec(slow)?.[1]), [
    `${asking}-chat`,
    `${asking}-chat/:chatId/stream`,
    `${asking}-question`,
  ]);
  t.end();
});

t.test("the calls that providers sign count as refused, among all of them", (t) => {
  const patterns = [...expressions.join("\n").matchAll(/route=~"([^"]+)"/g)].map(([, pattern]) => pattern);
  t.equal(patterns.length, 2);
  for (const pattern of patterns)
    t.same(routesLike(pattern), ["/v2/email/feedback", "/v2/email/inbound", "/v2/public/providers/stripe/webhook"]);
  t.end();
});

/** The routes that a pattern of Prometheus matches, which is anchored. */
function routesLike(pattern: string | undefined): string[] {
  const whole = new RegExp(`^(?:${pattern})$`);
  const words = sourceText("fixtures/routes.txt").split(/\s+/);
  return [...new Set(words.filter((word) => whole.test(word)))].sort();
}

t.test("each alert has a name, a severity and a sentence", (t) => {
  const rules = sourceText("docs/alerts.yml")
    .split(/^ +- alert: /m)
    .slice(1);
  t.equal(rules.length, expressions.length);
  for (const rule of rules) {
    const [name = ""] = rule.split("\n");
    t.match(rule, /severity: (page|ticket)/, name);
    t.match(rule, /summary: \S.{20,}/, name);
  }
  t.end();
});
