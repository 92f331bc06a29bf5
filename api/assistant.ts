import { admitQuestion, askQuestion, chat, mustBeOpen, resumeChat, stopChat } from "../core/assistant/face.ts";
import { chatRequest, chatStream, question, questionAnswer, stoppedChat } from "../schemas/assistant.ts";
import { anyone, type Row, route } from "./route.ts";

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
const asked = { guard: admitQuestion, ...unlogged };
const resumed = { guard: mustBeOpen, ...unlogged };

/** The anonymous assistant of a page. */
export const assistantRows: Row[] = [
  route(`POST ${page}/agentic-question`, anyone, question, askQuestion, {
    ...asked,
    returns: questionAnswer,
    summary: "Ask a question",
    description:
      "Answers one question as one object. A question that is declined or cannot be answered is a 200 without evidence. The chat route streams the same answer; this route stays available for clients that do not.",
    failures: ["not_found", "rate_limited", "question_too_long"],
  }),
  route(`POST ${page}/agentic-chat`, anyone, chatRequest, chat, {
    ...asked,
    limit: 1_048_576,
    summary: "Chat with a page",
    description:
      "Streams the answer to the latest user message in the UI message stream protocol of the AI SDK. Each `data:` line is a `ChatChunk`; the last line is `data: [DONE]`. A failure after the start is an `error` chunk. With `resumable: true` and an `id` of at least 16 characters the answer can be resumed for 10 minutes.",
    failures: ["not_found", "rate_limited", "question_too_long"],
    produces: eventStream,
  }),
  route(`GET ${page}/agentic-chat/:chatId/stream`, anyone, chatStream, resumeChat, {
    ...resumed,
    headerInputs: ["lastEventId"],
    summary: "Resume the answer of a chat",
    description:
      "Replays the latest answer of the chat, from the start or after `Last-Event-ID`, and follows it to its end. Answers 204 if there is nothing to replay. Answers are kept for 10 minutes; the chat id is the capability.",
    failures: ["not_found"],
    produces: eventStream,
    nothing: "Nothing to replay",
  }),
  route(`DELETE ${page}/agentic-chat/:chatId/stream`, anyone, stoppedChat, stopChat, {
    ...resumed,
    summary: "Stop the answer of a chat",
    description: "Ends the generation at once. It is no error if none is running.",
    failures: ["not_found"],
  }),
];
