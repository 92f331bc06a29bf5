import { askQuestion, chat, resumeChat, stopChat } from "../core/assistant/chat.ts";
import { admitVisitor, mustBeOpen } from "../core/assistant/gate.ts";
import { chatRequest, chatStream, question, questionAnswer } from "../schemas/assistant.ts";
import { open, type Row, route } from "./route.ts";

const page = "/v2/public/pages/:handle/:pageSlug";
/** The assistant writes its own log line: nothing else may be known of a visitor's question. */
const unseen = { logged: false, failsAs: "assistant" };
const asked = { guard: admitVisitor, ...unseen };
const resumed = { guard: mustBeOpen, ...unseen };

/** The anonymous assistant of a page. */
export const assistantRows: Row[] = [
  route(`POST ${page}/agentic-question`, open, question, askQuestion, {
    ...asked,
    returns: questionAnswer,
    summary: "Ask a question",
  }),
  route(`POST ${page}/agentic-chat`, open, chatRequest, chat, {
    ...asked,
    limit: 1_048_576,
    summary: "Chat with a page",
  }),
  route(`GET ${page}/agentic-chat/:chatId/stream`, open, chatStream, resumeChat, {
    ...resumed,
    takes: { "last-event-id": "lastEventId" },
    summary: "Resume the answer of a chat",
  }),
  route(`DELETE ${page}/agentic-chat/:chatId/stream`, open, chatStream, stopChat, {
    ...resumed,
    summary: "Stop the answer of a chat",
  }),
];
