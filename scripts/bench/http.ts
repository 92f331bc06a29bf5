import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import process from "node:process";
import { buffer } from "node:stream/consumers";
import { createHandle } from "../../core/account/handles.ts";
import { openRuntime } from "../../core/open.ts";
import { readEnv } from "../../core/platform/env.ts";
import { publishPage } from "../../fixtures/pages.ts";
import { freePort } from "../../fixtures/ports.ts";
import { startRedis } from "../../fixtures/redis.ts";
import { tokenFor } from "../../fixtures/session.ts";
import type { BenchRow } from "./figures.ts";
import { flood, requestText } from "./loads.ts";
import { endProcess, program } from "./programs.ts";

/** Ms of one round, and of the warm-up before the first. */
const RUN_MS = 500;
const warmsUpFor = 2500;
/** Rounds of each case, alternating between both sides; the median of their ratios counts. */
const rounds = 8 * Number(process.env.BENCH_ROUNDS ?? 4);

/** Requests per second of reads through the whole stack, next to bare Koa that sends the same bytes. All sides are separate processes. */
export async function bench(): Promise<BenchRow[]> {
  const redis = await startRedis();
  const children: ChildProcess[] = [];
  try {
    const web = await freePort();
    const env = readEnv({ REDIS_URL: redis.url, BASE_URL: `http://127.0.0.1:${web}`, LOG_LEVEL: "silent" });
    const token = await furnish(env);
    await program(children, "dist/api/server.js", { REDIS_URL: redis.url, BASE_URL: env.BASE_URL, PORT: String(web) });
    const reads = await Promise.all(cases.map((one) => asked(web, one, token)));
    const bare = await freePort();
    await program(children, "scripts/bench/bare-koa.ts", {
      BENCH_PORT: String(bare),
      BENCH_BODIES: JSON.stringify(reads),
    });
    const rows: BenchRow[] = [];
    for (const [at, one] of cases.entries()) rows.push(await compare(one, { web, bare, head: reads[at]?.head ?? "" }));
    return rows;
  } finally {
    await Promise.all(children.map((child) => endProcess(child)));
    await redis.stop();
  }
}

interface Case {
  name: string;
  path: string;
  signedIn?: boolean;
  /** Content coding that the request accepts. */
  coding?: string;
}

const cases: Case[] = [
  { name: "page", path: "/p/acme/pricing" },
  { name: "page in German", path: "/p/acme/preise" },
  { name: "asset, compressed", path: "/assets/public-page-agent.js", coding: "br" },
  { name: "public JSON", path: "/v2/public/pages/acme/pricing/access-check" },
  { name: "owner's JSON", path: "/v2/handles/acme/pages/pricing", signedIn: true },
];

/** Creates a handle with a page; returns its owner's token. */
async function furnish(env: ReturnType<typeof readEnv>): Promise<string> {
  const runtime = await openRuntime(env);
  await createHandle(runtime, { handle: "acme", account: "acct_acme", owner: "user_1", assistant: true });
  const paragraph = "<p>The small plan costs 12 EUR a month and holds three projects with ten people each.</p>";
  const content = `<main><h1>Prices</h1>${paragraph.repeat(40)}</main>`;
  const page = { handle: "acme", pageSlug: "pricing", title: "Prices", content };
  await publishPage(runtime, page);
  await publishPage(runtime, { ...page, pageSlug: "preise", title: "Preise", language: "de" });
  const token = await tokenFor({ ...runtime, env }, { userId: "user_1", seconds: 3600 });
  await runtime.close();
  return token;
}

/** One response of the service, for the bare side to send, and the request for it. */
async function asked(port: number, { path, signedIn, coding }: Case, token: string) {
  const headers = {
    ...(signedIn ? { authorization: `Bearer ${token}` } : {}),
    ...(coding ? { "accept-encoding": coding } : {}),
  };
  const [answer] = (await once(get({ host: "127.0.0.1", port, path, headers }), "response")) as [IncomingMessage];
  if (answer.statusCode !== 200) throw new Error(`${path} answered ${answer.statusCode}`);
  return {
    path,
    type: answer.headers["content-type"] as string,
    coding: answer.headers["content-encoding"],
    body: (await buffer(answer)).toString("base64"),
    head: requestText(`GET ${path}`, headers),
  };
}

async function compare(
  { name }: Case,
  { web, bare, head }: { web: number; bare: number; head: string },
): Promise<BenchRow> {
  await flood(web, () => head, warmsUpFor);
  await flood(bare, () => head, warmsUpFor);
  const seen: { own: number; other: number }[] = [];
  for (let round = 0; round < rounds; round++)
    seen.push({ other: await flood(bare, () => head, RUN_MS), own: await flood(web, () => head, RUN_MS) });
  seen.sort((one, other) => one.own / one.other - other.own / other.other);
  const { own, other } = seen[rounds >> 1] as (typeof seen)[0];
  const baseline = `${Math.round(own)}/s, bare Koa ${Math.round(other)}/s`;
  return { name: `${name} / bare Koa`, value: own / other, unit: "", bar: ">= 0.6", baseline };
}
