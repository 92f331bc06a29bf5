/**
 * A typed client at work: a page, a question, a lead, a mail and a booking. `npm run client -- docs/api.d.ts` writes the types;
 * `test/client.test.ts` checks this file against them and runs it.
 */
import createClient from "openapi-fetch";
import type { paths } from "./api.d.ts";

/** Where the service is, who its owner is, and what the owner may send. */
export interface Account {
  url: string;
  token: string;
  handle: string;
  senderId: string;
  templateId: string;
}

/** Does what an owner and a visitor do, and returns what came of it. A failure is thrown with the problem's detail. */
export async function walk({ url, token, handle, senderId, templateId }: Account) {
  const owner = createClient<paths>({ baseUrl: url, headers: { authorization: `Bearer ${token}` } });
  const visitor = createClient<paths>({ baseUrl: url });
  const path = { handle, pageSlug: "pricing", eventSlug: "intro" };

  const content = "<h1>Prices</h1><p>The small plan costs 12 EUR a month.</p>";
  const { page } = need(
    await owner.POST("/v2/handles/{handle}/pages", {
      params: { path },
      body: { pageSlug: "pricing", title: "Prices", status: "PUBLISHED", content },
    }),
  );
  const answer = need(
    await visitor.POST("/v2/public/pages/{handle}/{pageSlug}/agentic-question", {
      params: { path },
      body: { question: "What does the small plan cost?" },
    }),
  );
  const { lead } = need(
    await visitor.POST("/v2/public/handles/{handle}/leads", {
      params: { path },
      body: { email: "ada@example.com", name: "Ada Lovelace", pageSlug: "pricing" },
    }),
  );
  const { message } = need(
    await owner.POST("/v2/handles/{handle}/email/messages", {
      params: { path },
      body: {
        ...{ senderId, templateId, purpose: "TRANSACTIONAL_API", to: ["ada@example.com"] },
        ...{ variables: { name: "Ada" }, consentAttestation: true },
      },
    }),
  );

  const monday = { day: 1, startTime: "09:00", endTime: "12:00" };
  const body = { scheduleId: "office", timeZone: "Europe/Berlin", weeklyAvailability: [monday] };
  need(await owner.POST("/v2/handles/{handle}/scheduling/schedules", { params: { path }, body }));
  const eventType = { slug: "intro", title: "Intro", durationMinutes: 30 };
  need(await owner.POST("/v2/handles/{handle}/scheduling/event-types", { params: { path }, body: eventType }));
  const [start, end] = [1, 14].map((days) => new Date(Date.now() + days * 86_400_000).toISOString()) as [
    string,
    string,
  ];
  const { slots } = need(
    await visitor.GET("/v2/public/scheduling/{handle}/{eventSlug}/slots", { params: { path, query: { start, end } } }),
  );
  const [slot] = slots;
  if (slot === undefined) throw new Error("There is no free slot.");
  const attendee = { name: "Ada Lovelace", email: "ada@example.com" };
  const { booking } = need(
    await visitor.POST("/v2/public/scheduling/{handle}/{eventSlug}/bookings", {
      params: { path, header: { "Idempotency-Key": "ada-intro" } },
      body: { slot, attendee },
    }),
  );
  return { page, answer, lead, message, booking };
}

/** The data of an answer, or its problem as an error. */
function need<T>({ data, error }: { data?: T; error?: { detail?: string } }): T {
  if (data === undefined) throw new Error(error?.detail ?? "No answer.");
  return data;
}
