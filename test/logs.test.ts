import { Buffer } from "node:buffer";
import t from "tap";
import { spawnService } from "../fixtures/processes.ts";
import { startRedis } from "../fixtures/redis.ts";
import { eventually } from "../fixtures/service.ts";
import { type ApiCall, asker, fillHandle, makeHandles } from "../fixtures/settled-handle.ts";
import { startMailServer } from "../fixtures/smtp.ts";
import { startReceiver } from "../fixtures/webhook-receiver.ts";

/** Part of every value that no log may contain: it could be a word of a question or a part of an address. */
const mark = "zq7marked";
const root = "/v2/handles/acme";
const PAGE_PATH = "/v2/public/pages/acme/index";

t.test("a mixed life at level debug leaves no secret, question, content or person in any log", async (t) => {
  const redis = await startRedis();
  t.teardown(() => redis.stop());
  const mail = await startMailServer(t);
  mail.refuseRecipient = (address) => {
    if (address.includes("refused")) return { code: 550, words: `5.1.1 no ${address}` };
    return address.includes("later") ? { code: 451, words: `4.7.1 wait, ${address}` } : undefined;
  };
  const receiver = await startReceiver(
    t,
    (response, count) => void response.writeHead(count % 3 === 0 ? 500 : 204).end(mark),
  );
  const secrets = {
    SECRET_KEY: Buffer.from(`${mark}${"x".repeat(23)}`).toString("base64"),
    METRICS_TOKEN: `${mark}-metrics`,
  };
  const { url, web, worker, env } = await spawnService(t, redis, {
    ...secrets,
    LOG_LEVEL: "debug",
    LOGIN_BUILTIN: "1",
    SMTP_URL: mail.url,
    PUBLIC_PAGE_AGENT_ENABLED: "1",
    EMAIL_FEEDBACK_SECRET: `whsec_${Buffer.from(mark).toString("base64")}`,
    STRIPE_CLIENT_ID: "ca_1",
    STRIPE_SECRET_KEY: `${mark}-stripe`,
    STRIPE_WEBHOOK_SECRET: `${mark}-notices`,
    STRIPE_API_BASE: "http://127.0.0.1:1",
    STRIPE_CONNECT_BASE: "http://127.0.0.1:1",
  });
  const token = await makeHandles(env, ["acme"]);
  const owner = asker(() => url, token);
  await fillHandle(owner, "acme", {
    page: `<h1>${mark} plans</h1><p>The ${mark} plan costs 12 EUR.</p>`,
    document: `# ${mark} hours\n\nThe ${mark} shop is open from nine to five.`,
    hook: `${receiver.url}?key=${mark}`,
  });
  const secret = await live(
    owner,
    asker(() => url),
  );
  await eventually(() => mail.mails.length >= 4 && receiver.received.length >= 3);
  t.equal((await asker(() => url, `${mark}-metrics`)("GET", "/metrics")).status, 200);
  await Promise.all([web.end(), worker.end()]);
  const logs = [web.stdout, web.stderr, worker.stdout, worker.stderr].join("\n");
  t.match(logs, /"route":"\/v2\/handles\/:handle\/pages"/, "the requests are in the log");
  const lines = logs.split("\n").filter((line) => line.toLowerCase().includes(mark));
  t.same(lines, []);
  for (const [name, value] of Object.entries({ ...secrets, token, "personal access token": secret }))
    t.notOk(logs.includes(value), `no ${name}`);
});

/** Everything that carries what isn't the operators' business, also in ways that fail. Returns a personal access token. */
async function live(owner: ApiCall, visitor: ApiCall): Promise<string> {
  const question = `Which ${mark} plan is the cheapest?`;
  const messages = [{ role: "user", parts: [{ type: "text", text: question }] }];
  await visitor("POST", `${PAGE_PATH}/agentic-question`, { question });
  await visitor("POST", `${PAGE_PATH}/agentic-question`, { question: `Contact me about ${mark}, an offer please` });
  await visitor("POST", `${PAGE_PATH}/agentic-question`, { question: `${mark} `.repeat(100) });
  await visitor("POST", `${PAGE_PATH}/agentic-chat`, { id: `chat-${mark}-0123456789`, messages, resumable: true });
  await visitor("GET", `${PAGE_PATH}/agentic-chat/chat-${mark}-0123456789/stream`);
  await visitor("POST", `${PAGE_PATH}/agentic-chat`, `{"messages": "${mark}`);
  await owner("POST", `${root}/knowledge/query`, { query: `${mark} hours` });
  await owner("POST", `${root}/agent/strategy/retrieve`, { query: `${mark} hours` });
  const lead = {
    email: `ann.${mark}@far.example`,
    name: mark,
    phone: mark,
    message: mark,
    pageSlug: "index",
    campaignId: "cmp_spring",
  };
  await visitor("POST", "/v2/public/handles/acme/leads", lead);
  await visitor("POST", "/v2/public/handles/acme/leads", {
    ...lead,
    email: `refused.${mark}@far.example`,
    [`x${mark}`]: mark,
  });
  await visitor("POST", "/v2/public/handles/acme/leads", { email: `${mark} no address` });
  await owner("GET", `${root}/leads?q=${mark}`);
  const message = {
    senderId: "sender_main",
    purpose: "TRANSACTIONAL_API",
    templateId: "tmpl_hello",
    consentAttestation: true,
  };
  const to = [`bob.${mark}@far.example`, `refused.two.${mark}@far.example`, `later.${mark}@far.example`];
  await owner("POST", `${root}/email/messages`, { ...message, to, variables: { name: mark }, idempotencyKey: mark });
  await owner("DELETE", `${root}/email/suppressions/${mark}@far.example`);
  await book(visitor);
  await visitor("POST", "/login", `email=${mark}@far.example`, { "content-type": "application/x-www-form-urlencoded" });
  await visitor("GET", `/v2/public/email/unsubscribe/${mark}`);
  await visitor("POST", "/oauth/assistant/desktop/start", { deviceProofChallenge: mark, deviceName: mark });
  await owner("POST", `${root}/scheduling/integrations/caldav/credentials`, {
    serverUrl: "http://127.0.0.1:1/",
    username: mark,
    password: mark,
  });
  const { state = "" } = (await owner("POST", `${root}/scheduling/integrations/stripe/oauth/start`)).body as {
    state?: string;
  };
  await owner("POST", `${root}/scheduling/integrations/stripe/oauth/callback`, { code: mark, state });
  await visitor("GET", `/p/acme/index?access=${mark}`, undefined, {
    cookie: `session=${mark}`,
    authorization: `Bearer ${mark}`,
  });
  await owner("PUT", `${root}/pages/index`, { content: `<script>${mark}</script>` });
  const made = await owner("POST", "/v2/account/tokens", { name: mark, scopes: ["agent.strategy.read"] });
  return (made.body as unknown as { token: { secret: string } }).token.secret;
}

/** Booked, booked again where it is taken, cancelled with a reason. */
async function book(visitor: ApiCall): Promise<void> {
  const talk = "/v2/public/scheduling/acme/talk";
  const [start, end] = [1, 2].map((days) => new Date(Date.now() + days * 86_400_000).toISOString());
  const { slots } = (await visitor("GET", `${talk}/slots?start=${start}&end=${end}`)).body as unknown as {
    slots: object[];
  };
  const body = { attendee: { name: mark, email: `eve.${mark}@far.example` }, slot: slots[3], answers: { topic: mark } };
  const booked = await visitor("POST", `${talk}/bookings`, body, { "idempotency-key": mark });
  await visitor("POST", `${talk}/bookings`, body);
  const { bookingUid } = booked.body as unknown as { bookingUid: string };
  await visitor("POST", `${talk}/bookings/${bookingUid}/cancel`, { cancellationReason: mark });
}
