/**
 * A typed client that calls nearly every operation, as one owner and one visitor would. `test/client-walk.test.ts` checks this file
 * against the types of the document, runs it, and checks every answer against the document.
 */
import createClient, { type Middleware } from "openapi-fetch";
import type { paths } from "./api.d.ts";

/** One answer, with its operation. */
export interface Answered {
  method: string;
  /** The path as the document writes it. */
  path: string;
  status: number;
  type: string;
  text: string;
}

/** Where the service is, whose handle it is, and the world around it. */
export interface World {
  url: string;
  token: string;
  handle: string;
  /** An address that takes webhooks. */
  hook: string;
  /** A challenge and its verifier (RFC 7636). */
  proof: { challenge: string; verifier: string };
  /** The six digits that were mailed to an address. */
  codeOf: (address: string) => Promise<string>;
  onAnswer: (answered: Answered) => void;
}

/** Does it all, in an order in which each step has what it needs. A failure is thrown. */
export async function walk({ url, token, handle, hook, proof, codeOf, onAnswer }: World): Promise<void> {
  const listen: Middleware = {
    async onResponse({ request: { method }, response, schemaPath: path }) {
      const text = await response.clone().text();
      onAnswer({ method, path, status: response.status, type: response.headers.get("content-type") ?? "", text });
    },
  };
  const owner = createClient<paths>({ baseUrl: url, headers: { authorization: `Bearer ${token}` } });
  const visitor = createClient<paths>({ baseUrl: url });
  owner.use(listen);
  visitor.use(listen);
  const own = { params: { path: { handle } } };
  const at = <P extends object>(more: P) => ({ params: { path: { handle, ...more } } });

  // account
  need(await owner.GET("/v2/account/assistant/me"));
  need(await owner.GET("/v2/account/sessions"));
  need(await owner.GET("/v2/account/tokens"));
  const made = need(await owner.POST("/v2/account/tokens", { body: { name: "CI", scopes: ["agent.pages.read"] } }));
  need(await owner.DELETE("/v2/account/tokens/{tokenId}", { params: { path: { tokenId: made.token.tokenId } } }));
  need(await owner.PUT("/v2/handles/{handle}/settings", { ...own, body: { displayName: "Acme Ltd" } }));
  need(await owner.GET("/v2/handles/{handle}/settings", own));
  const start = { deviceProofChallenge: proof.challenge };
  const { attemptId } = need(await visitor.POST("/oauth/assistant/desktop/start", { body: start }));
  need(await owner.POST("/oauth/assistant/desktop/authorize", { body: { attemptId, decision: "allow" } }));
  const redemption = { attemptId, deviceProofVerifier: proof.verifier };
  need(await visitor.POST("/oauth/assistant/desktop/redeem", { body: redemption }));
  need(await owner.POST("/v2/account/domains", { body: { domain: "acme.example", handle } }));
  need(await owner.GET("/v2/account/domains"));
  const domain = { params: { path: { domain: "acme.example" } } };
  need(await owner.GET("/v2/account/domains/{domain}/email-identity", domain));
  need(await owner.POST("/v2/account/domains/{domain}/email-identity/reconcile", domain));

  // pages and knowledge
  const content = "<h1>Prices</h1><p>The small plan costs 12 EUR a month.</p>";
  const newPage = { pageSlug: "pricing", title: "Prices", content, verifyLeads: true };
  need(await owner.POST("/v2/handles/{handle}/pages", { ...own, body: newPage }));
  need(await owner.POST("/v2/handles/{handle}/pages", { ...own, body: { pageSlug: "old", title: "Old" } }));
  const page = at({ pageSlug: "pricing" });
  need(await owner.PUT("/v2/handles/{handle}/pages/{pageSlug}", { ...page, body: { description: "What it costs" } }));
  need(await owner.POST("/v2/handles/{handle}/pages/{pageSlug}/publish", page));
  need(await owner.GET("/v2/handles/{handle}/pages/{pageSlug}", page));
  need(await owner.GET("/v2/handles/{handle}/pages/{pageSlug}/purchases", page));
  need(await owner.GET("/v2/handles/{handle}/pages", own));
  need(await owner.DELETE("/v2/handles/{handle}/pages/{pageSlug}", at({ pageSlug: "old" })));
  need(await visitor.GET("/v2/public/pages/{handle}/{pageSlug}/access-check", page));
  const buyer = { email: "ada@example.com" };
  need(await visitor.POST("/v2/public/pages/{handle}/{pageSlug}/access-mail", { ...page, body: buyer }));
  const newDocument = { title: "Refunds", content: "You get your money back within 30 days." };
  const tagged = { ...newDocument, containerTags: ["public-page-agent", "strategy", "worked_examples"] };
  const { document } = need(await owner.POST("/v2/handles/{handle}/knowledge/documents", { ...own, body: tagged }));
  const read = at({ documentId: document.documentId });
  need(await owner.PUT("/v2/handles/{handle}/knowledge/documents/{documentId}", { ...read, body: { topic: "money" } }));
  need(await owner.GET("/v2/handles/{handle}/knowledge/documents/{documentId}", read));
  need(await owner.GET("/v2/handles/{handle}/knowledge/documents", own));
  need(await owner.POST("/v2/handles/{handle}/knowledge/query", { ...own, body: { query: "money back" } }));
  const strategy = { ...own, body: { query: "money back" } };
  const { contextId } = need(await owner.POST("/v2/handles/{handle}/agent/strategy/retrieve", strategy));
  need(await owner.GET("/v2/handles/{handle}/agent/strategy/context/{contextId}", at({ contextId })));

  // assistant
  const question = "Do I get my money back?";
  need(await visitor.POST("/v2/public/pages/{handle}/{pageSlug}/agentic-question", { ...page, body: { question } }));
  const messages = [{ id: "m1", role: "user" as const, parts: [{ type: "text" as const, text: question }] }];
  const chatting = { ...page, body: { id: "chat1", messages }, parseAs: "text" } as const;
  need(await visitor.POST("/v2/public/pages/{handle}/{pageSlug}/agentic-chat", chatting));
  const chat = { ...at({ pageSlug: "pricing", chatId: "chat1" }), parseAs: "text" } as const;
  need(await visitor.GET("/v2/public/pages/{handle}/{pageSlug}/agentic-chat/{chatId}/stream", chat));
  need(await visitor.DELETE("/v2/public/pages/{handle}/{pageSlug}/agentic-chat/{chatId}/stream", chat));
  const rpc = { jsonrpc: "2.0", id: 1, method: "tools/list" } as const;
  const accept = { headers: { accept: "application/json, text/event-stream" }, parseAs: "text" } as const;
  need(await owner.POST("/mcp/{handle}/mcp", { ...own, ...accept, body: rpc }));

  // webhooks
  const { webhook } = need(await owner.POST("/v2/handles/{handle}/webhooks", { ...own, body: { url: hook } }));
  const endpoint = at({ webhookId: webhook.webhookId });
  need(await owner.GET("/v2/handles/{handle}/webhooks/{webhookId}", endpoint));
  need(await owner.GET("/v2/handles/{handle}/webhooks", own));
  need(await owner.POST("/v2/handles/{handle}/webhooks/{webhookId}/rotate-secret", endpoint));
  need(await owner.POST("/v2/handles/{handle}/webhooks/{webhookId}/test", endpoint));
  const sent = await until(async () => {
    const list = need(await owner.GET("/v2/handles/{handle}/webhooks/{webhookId}/deliveries", endpoint));
    return list.deliveries.find(({ status }) => status === "SUCCEEDED");
  });
  const delivery = at({ webhookId: webhook.webhookId, deliveryId: sent.deliveryId });
  need(await owner.POST("/v2/handles/{handle}/webhooks/{webhookId}/deliveries/{deliveryId}/redeliver", delivery));
  const { webhook: other } = need(
    await owner.POST("/v2/handles/{handle}/scheduling/webhooks", { ...own, body: { url: hook } }),
  );
  need(await owner.DELETE("/v2/handles/{handle}/webhooks/{webhookId}", at({ webhookId: other.webhookId })));

  // email
  const purposes = ["TRANSACTIONAL_API", "PRODUCT_NOTIFICATION", "LEAD_VERIFICATION", "CALENDAR"] as const;
  const senderBody = { domain: `${handle}.example`, localPart: "hello", displayName: "Acme" } as const;
  const sender = { ...at({ senderId: "sender_hello" }), body: { ...senderBody, purposes: [...purposes] } };
  need(await owner.PUT("/v2/handles/{handle}/email/senders/{senderId}", sender));
  need(await owner.GET("/v2/handles/{handle}/email/senders", own));
  const newTemplate = { templateId: "tmpl_hi", name: "Hi", subject: "Hi {{name}}", html: "<p>Hi {{name}}</p>" };
  need(await owner.POST("/v2/handles/{handle}/email/templates", { ...own, body: newTemplate }));
  const template = at({ templateId: "tmpl_hi" });
  const change = { ...template, body: { subject: "Hello {{name}}" } };
  need(await owner.PUT("/v2/handles/{handle}/email/templates/{templateId}", change));
  need(await owner.GET("/v2/handles/{handle}/email/templates/{templateId}", template));
  const version = at({ templateId: "tmpl_hi", version: "1" });
  need(await owner.GET("/v2/handles/{handle}/email/templates/{templateId}/versions/{version}", version));
  need(await owner.GET("/v2/handles/{handle}/email/templates", own));
  const preview = { ...template, body: { variables: { name: "Ada" } } };
  need(await owner.POST("/v2/handles/{handle}/email/templates/{templateId}/preview", preview));
  const mail = { senderId: "sender_hello", templateId: "tmpl_hi", purpose: "TRANSACTIONAL_API" } as const;
  const send = async (to: string) => {
    const body = { ...mail, to: [to], variables: { name: "Ada" }, consentAttestation: true } as const;
    return need(await owner.POST("/v2/handles/{handle}/email/messages", { ...own, body: { ...body, to: [to] } }))
      .message;
  };
  const { messageId } = await send("ada@example.com");
  need(await owner.GET("/v2/handles/{handle}/email/messages/{messageId}", at({ messageId })));
  need(await owner.GET("/v2/handles/{handle}/email/messages", own));
  const query = { recipient: "ada@example.com" };
  need(await owner.GET("/v2/handles/{handle}/email/events", { params: { path: { handle }, query } }));
  const deferred = await send("later@example.com");
  const waiting = at({ messageId: deferred.messageId });
  await until(async () => {
    const { message } = need(await owner.GET("/v2/handles/{handle}/email/messages/{messageId}", waiting));
    return message.status === "DEFERRED" ? message : undefined;
  });
  need(await owner.POST("/v2/handles/{handle}/email/messages/{messageId}/cancel", waiting));
  const email = "no@example.com";
  need(await owner.POST("/v2/handles/{handle}/email/suppressions", { ...own, body: { email } }));
  need(await owner.GET("/v2/handles/{handle}/email/suppressions", own));
  need(await owner.DELETE("/v2/handles/{handle}/email/suppressions/{email}", at({ email })));

  // campaigns and leads
  const campaignId = "cmp_spring";
  need(await owner.POST("/v2/handles/{handle}/campaigns", { ...own, body: { campaignId, name: "Spring" } }));
  need(await owner.GET("/v2/handles/{handle}/campaigns", own));
  const campaign = at({ campaignId });
  const newRule = { trigger: "LEAD_CAPTURED", templateId: "tmpl_hi", senderId: "sender_hello" } as const;
  const ruleBody = { ...newRule, variableMappings: { name: "email" } };
  const { rule } = need(
    await owner.POST("/v2/handles/{handle}/campaigns/{campaignId}/email-rules", { ...campaign, body: ruleBody }),
  );
  const ruled = at({ campaignId, ruleId: rule.ruleId });
  need(await owner.GET("/v2/handles/{handle}/campaigns/{campaignId}/email-rules", campaign));
  need(
    await owner.PUT("/v2/handles/{handle}/campaigns/{campaignId}/email-rules/{ruleId}", {
      ...ruled,
      body: { enabled: false },
    }),
  );
  const captured = { email: "grace@example.com", name: "Grace", pageSlug: "pricing", campaignId };
  const { lead } = need(await visitor.POST("/v2/public/handles/{handle}/leads", { ...own, body: captured }));
  const oneLead = at({ leadId: lead.leadId });
  const body = { code: await codeOf("grace@example.com") };
  need(await visitor.POST("/v2/public/handles/{handle}/leads/{leadId}/verify", { ...oneLead, body }));
  const about = { params: { ...ruled.params, query: { leadId: lead.leadId } } };
  need(await owner.GET("/v2/handles/{handle}/campaigns/{campaignId}/email-rules/{ruleId}/preview", about));
  need(await owner.DELETE("/v2/handles/{handle}/campaigns/{campaignId}/email-rules/{ruleId}", ruled));
  const conversion = { leadId: lead.leadId, campaignId, value: 12, currency: "EUR" };
  need(await owner.POST("/v2/handles/{handle}/conversions", { ...own, body: conversion }));
  need(await owner.GET("/v2/handles/{handle}/leads/{leadId}", oneLead));
  need(await owner.GET("/v2/handles/{handle}/leads", own));
  need(await owner.GET("/v2/handles/{handle}/leads/export", { ...own, parseAs: "text" }));
  need(await owner.DELETE("/v2/handles/{handle}/leads/{leadId}", oneLead));

  // scheduling
  const always = [0, 1, 2, 3, 4, 5, 6].map((day) => ({ day, startTime: "00:00", endTime: "24:00" }));
  const schedule = { scheduleId: "office", timeZone: "Europe/Berlin", weeklyAvailability: always };
  need(await owner.POST("/v2/handles/{handle}/scheduling/schedules", { ...own, body: schedule }));
  need(
    await owner.POST("/v2/handles/{handle}/scheduling/schedules", {
      ...own,
      body: { ...schedule, scheduleId: "spare" },
    }),
  );
  need(await owner.GET("/v2/handles/{handle}/scheduling/schedules/{scheduleId}", at({ scheduleId: "office" })));
  need(await owner.GET("/v2/handles/{handle}/scheduling/schedules", own));
  need(await owner.DELETE("/v2/handles/{handle}/scheduling/schedules/{scheduleId}", at({ scheduleId: "spare" })));
  const typed = async (slug: string) => {
    const body = { slug, title: slug, durationMinutes: 30, scheduleId: "office", confirmationRequired: true };
    return need(await owner.POST("/v2/handles/{handle}/scheduling/event-types", { ...own, body })).eventType;
  };
  const [intro, spare] = [await typed("intro"), await typed("spare")];
  const eventType = at({ eventTypeId: intro.eventTypeId });
  need(
    await owner.PUT("/v2/handles/{handle}/scheduling/event-types/{eventTypeId}", {
      ...eventType,
      body: { description: "A first talk" },
    }),
  );
  need(await owner.GET("/v2/handles/{handle}/scheduling/event-types/{eventTypeId}", eventType));
  need(await owner.GET("/v2/handles/{handle}/scheduling/event-types", own));
  need(
    await owner.DELETE(
      "/v2/handles/{handle}/scheduling/event-types/{eventTypeId}",
      at({ eventTypeId: spare.eventTypeId }),
    ),
  );
  need(await visitor.GET("/v2/public/scheduling/{handle}", own));
  const event = { handle, eventSlug: "intro" };
  need(await visitor.GET("/v2/public/scheduling/{handle}/{eventSlug}", { params: { path: event } }));
  const [from, to] = [2, 4].map((days) => new Date(Date.now() + days * 86_400_000).toISOString()) as [string, string];
  const range = { params: { path: event, query: { start: from, end: to } } };
  const { slots } = need(await visitor.GET("/v2/public/scheduling/{handle}/{eventSlug}/slots", range));
  const book = async (n: number) => {
    const slot = slots[2 * n];
    if (slot === undefined) throw new Error("There is no free slot.");
    const params = { path: event, header: { "Idempotency-Key": `walk-${n}` } };
    const body = { slot, attendee: { name: "Ada", email: "ada@example.com" } };
    return need(await visitor.POST("/v2/public/scheduling/{handle}/{eventSlug}/bookings", { params, body })).bookingUid;
  };
  const uids = [await book(0), await book(1), await book(2), await book(3)] as const;
  const bookings = uids.map((bookingUid) => at({ bookingUid }));
  const [confirmed, declined, cancelled, moved] = bookings as [
    (typeof bookings)[0],
    (typeof bookings)[0],
    (typeof bookings)[0],
    (typeof bookings)[0],
  ];
  need(await owner.POST("/v2/handles/{handle}/scheduling/bookings/{bookingUid}/confirm", confirmed));
  need(await owner.POST("/v2/handles/{handle}/scheduling/bookings/{bookingUid}/sync", confirmed));
  need(await owner.POST("/v2/handles/{handle}/scheduling/bookings/{bookingUid}/decline", declined));
  need(await owner.POST("/v2/handles/{handle}/scheduling/bookings/{bookingUid}/cancel", cancelled));
  need(await owner.GET("/v2/handles/{handle}/scheduling/bookings/{bookingUid}", moved));
  need(await owner.GET("/v2/handles/{handle}/scheduling/bookings", own));
  const visited = { params: { path: { ...event, bookingUid: uids[3] } } };
  need(await visitor.GET("/v2/public/scheduling/{handle}/{eventSlug}/bookings/{bookingUid}", visited));
  const file = { ...visited, parseAs: "text" } as const;
  need(await visitor.GET("/v2/public/scheduling/{handle}/{eventSlug}/bookings/{bookingUid}/calendar.ics", file));
  const later = slots[12];
  const move = { params: { path: event }, body: { bookingUid: uids[3], ...(later ? { slot: later } : {}) } };
  need(await visitor.POST("/v2/public/scheduling/{handle}/{eventSlug}/reschedule", move));
  need(await visitor.POST("/v2/public/scheduling/{handle}/{eventSlug}/bookings/{bookingUid}/cancel", visited));
  const { feed } = need(await owner.POST("/v2/handles/{handle}/scheduling/calendar-feed", own));
  need(await owner.GET("/v2/handles/{handle}/scheduling/calendar-feed", own));
  const feedFile = { ...at({ file: feed.url.split("/").at(-1) ?? "" }), parseAs: "text" } as const;
  need(await visitor.GET("/v2/public/calendars/{handle}/{file}", feedFile));
  need(await owner.DELETE("/v2/handles/{handle}/scheduling/calendar-feed", own));
  need(await owner.GET("/v2/handles/{handle}/scheduling/integrations", own));
  const provider = at({ providerKey: "google" });
  need(await owner.POST("/v2/handles/{handle}/scheduling/integrations/{providerKey}/oauth/start", provider));

  // the end
  need(await owner.DELETE("/v2/handles/{handle}/knowledge/documents/{documentId}", read));
  need(await owner.DELETE("/v2/account/sessions/{sessionId}", { params: { path: { sessionId: "current" } } }));
}

/** The data of an answer, or its problem as an error. */
function need<T>({ data, error, response }: { data?: T; error?: unknown; response: Response }): T {
  if (!response.ok) throw new Error(`${response.status} ${response.url}: ${JSON.stringify(error)}`);
  return data as T;
}

/** Asks until there is an answer, for ten seconds. */
async function until<T>(look: () => Promise<T | undefined>): Promise<T> {
  for (const end = Date.now() + 10_000; Date.now() < end; await new Promise((done) => setTimeout(done, 100))) {
    const seen = await look();
    if (seen !== undefined) return seen;
  }
  throw new Error("It did not happen in ten seconds.");
}
