import { randomBytes } from "node:crypto";
import * as core from "../core/assistant/face.ts";
import * as shape from "../schemas/assistant.ts";
import { wordsOf } from "../schemas/languages.ts";
import { nothing } from "../schemas/schema.ts";
import { Html, html, htmlDocument, htmlView } from "./html.ts";
import type { Request } from "./request.ts";
import { anyone, type Row, route, type View } from "./route.ts";

const page = "/v2/public/pages/:handle/:pageSlug";
const eventStream = {
  types: ["text/event-stream"],
  schema: {
    type: "string",
    description: "Each `data:` line is a chunk, the last one `[DONE]`.",
    contentSchema: { $ref: "#/components/schemas/ChatChunk" },
  },
  example: ': open\n\nid: 1\ndata: {"type":"start","messageId":"run_5j8lt5AI3B9LojA2iSehjO"}\n\n…\n\ndata: [DONE]\n\n',
};
/** The assistant writes its own log line, so that no visitor's question is logged. */
const unlogged = { logged: false, errorLogName: "assistant" as const };
const throttled = { guard: core.admitQuestion, ...unlogged };
const gated = { subject: core.mustBeOpen, ...unlogged };

/** The anonymous assistant of a page, and the form inside the widget's sandboxed frame. */
export const assistantRows: Row[] = [
  route(`POST ${page}/agentic-question`, anyone, shape.question, core.askQuestion, {
    ...throttled,
    returns: shape.questionAnswer,
    description:
      "Answers one question as one object. A question that is declined or cannot be answered is a 200 without evidence. The chat route streams the same answer; this route is the legacy contract and stays available for clients that do not stream.",
    failures: ["not_found", "question_too_long"],
  }),
  route(`POST ${page}/agentic-chat`, anyone, shape.chatRequest, core.chat, {
    ...throttled,
    limit: 1_048_576,
    // Old messages are never refused, however many they are: only the last ones are read.
    maxValues: 524_288,
    summary: "Chat with a page",
    description:
      "Streams the answer to the latest user message in the UI message stream protocol of the AI SDK. Each `data:` line is a `ChatChunk`; the last line is `data: [DONE]`. A failure after the start is an `error` chunk. With `resumable: true` and an `id` of at least 16 characters the answer can be resumed for 10 minutes.",
    failures: ["not_found", "question_too_long"],
    produces: eventStream,
  }),
  route(`GET ${page}/agentic-chat/:chatId/stream`, anyone, shape.chatStream, core.resumeChat, {
    ...gated,
    summary: "Resume the answer of a chat",
    description:
      "Replays the latest answer of the chat, from the start or after `Last-Event-ID`, and follows it to its end. Answers 204 if there is nothing to replay. Answers are kept for 10 minutes; the chat id is the capability.",
    failures: ["not_found"],
    produces: eventStream,
    empty: { 204: "Nothing to replay" },
  }),
  route(`DELETE ${page}/agentic-chat/:chatId/stream`, anyone, nothing, core.stopChat, {
    ...gated,
    summary: "Stop the answer of a chat",
    description: "Ends the generation at once. It is no error if none is running.",
    failures: ["not_found"],
  }),
  route(`GET ${page}/lead-sections/:sectionId/form`, anyone, nothing, core.readLeadForm, {
    ...gated,
    view: (form, request) => leadFormView(form, pageOrigins(form, request)),
    summary: "Get the form of a lead section",
    description:
      "The document of the widget's sandboxed frame, kept for 24 h. Its content security policy lets only page origins frame it.",
    failures: ["not_found"],
    produces: { types: ["text/html"], example: "<!doctype html>…" },
  }),
];

/** A document that runs only its own script and that only the given origins may frame (docs/reference.md, "Form frame"). */
export function leadFormView(form: core.StoredForm, origins: string[]): View {
  const nonce = randomBytes(16).toString("base64url");
  const policy = [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src 'nonce-${nonce}'`,
    "form-action 'none'",
    "base-uri 'none'",
    `frame-ancestors ${origins.join(" ")}`,
  ];
  return htmlView(document(form, nonce), policy, { headers: { "Referrer-Policy": "no-referrer" } });
}

/** The origins that show the page: the frame's own host, which may be a custom domain, the service's and the handle's. */
function pageOrigins(form: core.LeadForm, { runtime }: Request): string[] {
  const named = [runtime.env.BASE_URL, form.pageUrl].map((address) => new URL(address).origin);
  return ["'self'", ...new Set(named)];
}

/** The script comes before the form, so that the button works as soon as it is visible. */
function document({ fields, submitLabel, language = "en" }: core.StoredForm, nonce: string): string {
  const title = wordsOf(language).widget.form;
  const form = new Html(core.formHtml(fields, submitLabel, true) ?? "");
  return htmlDocument({
    language,
    title,
    styles: [],
    head: [
      ...["page.css", "lead-form.css"].map(
        (file) => html`<link rel="stylesheet" href="/assets/${file}" nonce="${nonce}">`,
      ),
      html`<script src="/assets/lead-form.js" nonce="${nonce}"></script>`,
    ],
    body: html`<main><h1 class="svc-unseen">${title}</h1>${form}</main>`,
  });
}
