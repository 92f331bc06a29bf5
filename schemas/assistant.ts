import {
  anything,
  array,
  boolean,
  documented,
  type Infer,
  id,
  nullable,
  object,
  oneOf,
  optional,
  type Schema,
  string,
} from "./schema.ts";

/** Most code points of a visitor's question (docs/reference.md, "Questions"). */
export const MAX_QUESTION_LENGTH = 500;
/** Most messages of a chat that are read; earlier ones are ignored (docs/reference.md, "Questions"). */
export const lastMessages = 40;

const path = { handle: string(), pageSlug: string() };

/** `POST …/agentic-question`. Length is checked in code points by the function, for its own error code. */
export const question = object({ ...path, question: string() });

/** A part of a message: only texts are read. */
export const chatPart = object({ type: string(), text: optional(string()) });
/** A message of a chat as the AI SDK's client sends it. */
export const chatMessage = object({
  id: optional(string()),
  role: oneOf("user", "assistant"),
  parts: array(chatPart),
});

/** `POST …/agentic-chat` as the AI SDK's client sends it. Messages are read one by one: the history is untrusted. */
export const chatRequest = object({
  ...path,
  id: optional(string({ maxLength: 256 })),
  messages: documented(array(anything), array(chatMessage, { minItems: 1 })),
  resumable: optional(boolean),
  trigger: optional(anything),
});

/** `GET …/agentic-chat/{chatId}/stream`. */
export const chatStream = object({ ...path, chatId: string(), lastEventId: optional(string({ maxLength: 20 })) });

/** `DELETE …/agentic-chat/{chatId}/stream`. */
export const stoppedChat = object({ ...path, chatId: string() });

/** `GET …/lead-sections/{sectionId}/form`. */
export const leadFormPath = object({ ...path, sectionId: string() });

export const evidenceCard = object({
  title: string(),
  snippet: string(),
  sourceType: oneOf("page", "kb_doc"),
  sourceUrl: nullable(string()),
});
export type EvidenceCard = Infer<typeof evidenceCard>;

export const ctaCard = object({ label: string(), actionType: oneOf("link"), href: string() });
export type CtaCard = Infer<typeof ctaCard>;

/** The answer of the JSON route (docs/reference.md, "Answers"). */
export const questionAnswer = object({
  answerMarkdown: string(),
  evidenceCards: array(evidenceCard),
  ctaCards: array(ctaCard),
  followUps: array(string()),
  degraded: boolean,
  retrievalMode: string(),
  modelId: string(),
});
export type QuestionAnswer = Infer<typeof questionAnswer>;

/** One step of a lead section. */
export const step = object({ title: string(), body: string() });

/** The texts around the form of a lead section. */
export const dynamicView = object({
  headline: string(),
  subhead: string(),
  recommendedPath: object({ label: string(), body: string() }),
  momentumSteps: array(step, { minItems: 3, maxItems: 4 }),
  fitSignals: array(string(), { minItems: 2, maxItems: 4 }),
  questionChips: array(string(), { maxItems: 4 }),
  visualAccent: oneOf("signal", "launch", "support", "proof"),
});

export const formField = object({
  key: id,
  label: string(),
  type: oneOf("text", "email", "tel", "textarea", "select"),
  required: boolean,
  options: optional(array(string())),
});
export type FormField = Infer<typeof formField>;

/** The output of the tool `renderLeadQualificationSection`. */
export const leadSection = object({
  sectionId: id,
  collapsedTitle: string(),
  collapsedBody: string(),
  html: string(),
  fields: array(formField, { maxItems: 8 }),
  submitLabel: string(),
  contextDisclosure: string(),
  dynamicView,
  leadContext: object({
    pageSlug: string(),
    visitorQuestion: string(),
    visibleAnswerText: string(),
    evidenceTitles: array(string()),
    retrievalMode: string(),
  }),
});
export type LeadSection = Infer<typeof leadSection>;

/** One card of the tool `renderProductivityLessonCards`. */
export const lessonCard = object({
  lessonId: string(),
  title: string(),
  category: string(),
  summary: string(),
  whenToUse: array(string()),
  steps: array(string()),
  tryNow: string(),
  relatedTactics: array(string()),
  sourceDisclosure: string(),
});
export type LessonCard = Infer<typeof lessonCard>;

const chunk = (type: string, more: Record<string, Schema<unknown>> = {}): Schema<unknown> =>
  object({ type: string({ const: type }), ...more });
const tool = { toolCallId: string(), providerExecuted: optional(boolean) };
const toolName = oneOf("renderLeadQualificationSection", "renderProductivityLessonCards");
const source = { sourceId: string(), title: string() };

/** One `data:` line of the chat stream: a chunk of the AI SDK's UI message stream. */
export const chatChunk: Schema<unknown> = {
  anyOf: [
    chunk("start", {
      messageId: string(),
      messageMetadata: object({ chatId: string(), modelId: string(), retrievalMode: string(), degraded: boolean }),
    }),
    chunk("start-step"),
    chunk("text-start", { id: string() }),
    chunk("text-delta", { id: string(), delta: string() }),
    chunk("text-end", { id: string() }),
    chunk("source-url", { ...source, url: string({ format: "uri" }) }),
    chunk("source-document", { ...source, mediaType: string() }),
    chunk("data-evidence", { data: object({ cards: array(evidenceCard) }) }),
    chunk("data-cta", { data: object({ cards: array(ctaCard) }) }),
    chunk("data-follow-ups", { data: object({ questions: array(string()) }) }),
    chunk("tool-input-available", { ...tool, toolName, input: object({}) }),
    chunk("tool-output-available", { ...tool, output: { anyOf: [leadSection, object({ cards: array(lessonCard) })] } }),
    chunk("finish-step"),
    chunk("finish"),
    chunk("error", { errorText: string() }),
    chunk("abort"),
  ],
};
