import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type ModelServer, startModelServer } from "../../fixtures/model-server.ts";
import { freePort } from "../../fixtures/ports.ts";
import { type HostileDav, startHostileDav } from "../../fixtures/providers/hostile-dav.ts";
import { type RedisPair, startPair } from "../../fixtures/redis-pair.ts";
import { asker, fillHandle, makeHandles } from "../../fixtures/settled-handle.ts";
import { type MailServer, startMailServer } from "../../fixtures/smtp.ts";
import { Member } from "./member.ts";

/** An event that the webhook receiver got. */
interface WebhookReceipt {
  id: string;
  type: string;
  bookingUid: string;
}

/** The webhook receiver: it accepts events, hangs, or fails. */
interface Hook {
  url: string;
  told: WebhookReceipt[];
  mood: "takes" | "hangs" | "fails";
}

/** The handle whose calendar server is hostile; the load doesn't use it. */
export const victim = "victim";

/** The effect of one attack of the calendar server on the processes and the account. */
export interface CalendarAttack {
  name: string;
  /** Ms of the slowest `/healthz` of any web process during the attack, and its limit. */
  healthMs: number;
  limitMs: number;
  /** Status and detail of the account afterwards. */
  account: { status: string; detail?: string };
}

/** A whole installation on loopback with the servers around it; everything can fail. */
export interface ChaosTown {
  redis: RedisPair;
  mail: MailServer;
  model: ModelServer;
  hook: Hook;
  dav: HostileDav;
  webs: Member[];
  workers: Member[];
  env: Record<string, string>;
  handles: string[];
  token: string;
  /** URLs of the web processes. */
  urls: string[];
  /** Their URLs in turn. */
  url(): string;
  /** Ms after which each web process could write again, for each failover of Redis. */
  recoveries: number[];
  /** The effect of each attack by the calendar server. */
  calendarAttacks: CalendarAttack[];
  close(): Promise<void>;
}

const page = "<h1>Plans</h1><p>The small plan costs 12 EUR a month. The large plan costs 40 EUR a month.</p>";
const document = "# Hours\n\nThe shop is open from nine to five on weekdays.";
const plenty = "1000000";

/**
 * Starts everything: two web and two worker processes from dist/, Redis with a replica and `appendfsync always`, and two handles with data.
 */
export async function openChaosTown(more: Record<string, string> = {}): Promise<ChaosTown> {
  const around = {
    mail: await startMailServer(undefined),
    model: await startModelServer({ reply: () => "The small plan costs 12 EUR a month.", everyMs: 30 }),
    hook: await startHook(),
    dav: await startHostileDav(),
  };
  const ports = [await freePort(), await freePort()];
  const redis = await startPair({ appendonly: true });
  const env = { ...settings(around), ...redis.env, ...more };
  const [webs, workers] = [
    ports.map((port, at) => new Member(`web ${at + 1}`, "api/server.js", { ...env, PORT: String(port) })),
    [1, 2].map((at) => new Member(`worker ${at}`, "workers/main.js", env)),
  ];
  const handles = ["acme", "beta"];
  const token = await makeHandles(env, [...handles, victim]);
  await Promise.all([...webs, ...workers].map((member) => member.start()));
  let turn = 0;
  const urls = ports.map((port) => `http://127.0.0.1:${port}`);
  const url = (): string => urls[turn++ % urls.length] as string;
  for (const handle of handles) await fillHandle(asker(url, token), handle, { page, document, hook: around.hook.url });
  return {
    ...around,
    webs,
    workers,
    env,
    handles,
    token,
    urls,
    url,
    redis,
    recoveries: [],
    calendarAttacks: [],
    async close() {
      await Promise.all([...webs, ...workers].map((member) => member.end("SIGKILL")));
      around.dav.close();
      await Promise.all([around.mail.close(), around.model.close(), around.hook.close(), redis.stop()]);
    },
  };
}

function settings({ mail, model }: Pick<ChaosTown, "mail" | "model">): Record<string, string> {
  return {
    BASE_URL: "http://town.test",
    SMTP_URL: mail.url,
    OLLAMA_HOST: model.url,
    PUBLIC_PAGE_AGENT_MODEL_ID: "scripted:chat",
    EMBEDDING_MODEL_ID: "scripted:embed",
    PUBLIC_PAGE_AGENT_ENABLED: "1",
    PUBLIC_PAGE_AGENT_RATE: plenty,
    PUBLIC_PAGE_AGENT_BURST: plenty,
    PUBLIC_LEADS_RATE: plenty,
    PUBLIC_LEADS_BURST: plenty,
    PUBLIC_BOOKINGS_BURST: "0",
    PUBLIC_BOOKINGS_PER_ATTENDEE: "0",
    EMAIL_QUOTA_PER_DAY: plenty,
  };
}

async function startHook(): Promise<Hook & { close(): Promise<void> }> {
  const hook: Hook = { url: "", told: [], mood: "takes" };
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    if (hook.mood === "hangs") return;
    if (hook.mood === "takes") hook.told.push(toldIn(String(request.headers["webhook-id"]), body));
    answer(response, hook.mood === "takes" ? 204 : 500);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  hook.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return Object.assign(hook, { close });
}

function answer(response: ServerResponse, status: number): void {
  response.writeHead(status).end();
}

function toldIn(id: string, body: string): WebhookReceipt {
  const { type, data } = JSON.parse(body) as { type: string; data: { booking?: { bookingUid: string } } };
  return { id, type, bookingUid: data.booking?.bookingUid ?? "" };
}
