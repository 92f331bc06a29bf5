import { randomBytes } from "node:crypto";
import type { ChaosTown } from "./town.ts";

/** Part of every made-up name, so that the audit finds leftovers. */
export const floodMark = "flood-";
/** Concurrent visitors. */
const senders = 20;

/** Sends made-up names of all lengths to the public routes, as fast as they respond. */
export async function flood({ url }: ChaosTown, lasts: number): Promise<void> {
  const until = Date.now() + lasts;
  const send = async (): Promise<void> => {
    while (Date.now() < until) await (await madeUp(url())).text();
  };
  await Promise.all(Array.from({ length: senders }, send));
}

function madeUp(base: string): Promise<Response> {
  const name = floodMark + randomBytes(8).toString("hex");
  const handle = Math.random() < 0.5 ? name : name.padEnd(7000, "h");
  const lead = post({ email: `${name}@example.com`, pageSlug: name });
  const requests: [path: string, init?: RequestInit][] = [
    [`/v2/public/handles/${handle}/leads`, lead],
    [`/v2/public/handles/${handle}/leads/${name}/verify`, post({ code: "123456" })],
    [`/v2/public/pages/${handle}/${name}/agentic-question`, post({ question: name })],
    [`/v2/public/pages/${handle}/${name}/agentic-chat/${name}/stream`],
    [`/v2/public/pages/${handle}/${name}/access-check?access=${name}`],
    [`/v2/public/pages/${handle}/${name}/checkout`, post({})],
    [
      `/v2/public/scheduling/${handle}/${name}/bookings`,
      { ...lead, headers: { ...lead.headers, "idempotency-key": name } },
    ],
    [
      `/v2/public/scheduling/${handle}/${name}/slots?start=2027-03-01T00:00:00Z&end=2027-03-02T00:00:00Z&timeZone=${name}`,
    ],
    [`/oauth/assistant/desktop/redeem`, post({ attemptId: name, deviceProofVerifier: name })],
    [`/v2/public/email/unsubscribe/${name}`, { method: "POST" }],
  ];
  const [path, init] = requests[Math.floor(Math.random() * requests.length)] as (typeof requests)[number];
  return fetch(base + path, init);
}

function post(body: object): RequestInit & { headers: Record<string, string> } {
  return { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
}
