import { attachDomain } from "../../core/account/domains.ts";
import { createHandle } from "../../core/account/handles.ts";
import { putSender } from "../../core/email/senders.ts";
import { createTemplate } from "../../core/email/templates.ts";
import type { Runtime } from "../../core/platform/runtime.ts";
import type { Purpose } from "../../schemas/email.ts";
import { flood, requestText } from "./loads.ts";

/** Ms of one round of requests. */
const RUN_MS = 2500;

/** A mail as the benches ask for it. */
export const mail = {
  senderId: "sender_main",
  purpose: "TRANSACTIONAL_API",
  templateId: "tmpl_main",
  variables: { name: "Ann" },
} as const;

/** Creates a handle that can send, from `noreply@{handle}.example`; its owner is `user_1`. */
export async function furnish(
  runtime: Runtime,
  handle: string,
  { html, purpose }: { html: string; purpose: Purpose },
): Promise<void> {
  const [account, domain] = [`acct_${handle}`, `${handle}.example`];
  await createHandle(runtime, { handle, account, owner: "user_1", assistant: true });
  await attachDomain(runtime, { account, domain, ready: true });
  await putSender(runtime, {
    ...{ handle, domain, senderId: mail.senderId },
    localPart: "noreply",
    displayName: "Acme",
    purposes: [purpose],
  });
  await createTemplate(runtime, {
    ...{ handle, html, templateId: mail.templateId },
    name: "Main",
    subject: "Hello {{name}}",
  });
}

let asked = 0;

/** Responses per second of the accept route or its comparison. */
export function load(port: number, path: string, { token, ms = RUN_MS }: { token: string; ms?: number }) {
  const headers = { "content-type": "application/json", authorization: `Bearer ${token}` };
  const text = () => {
    const one = asked++;
    const sent = { ...mail, to: [`a${one}@far.example`], consentAttestation: true, idempotencyKey: `k${one}` };
    return requestText(`POST ${path}`, headers, JSON.stringify(sent));
  };
  return flood(port, text, ms);
}
