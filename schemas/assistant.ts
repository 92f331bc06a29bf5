import * as s from "./schema.ts";

/** Most code points of a visitor's question (docs/reference.md, "Questions"). */
export const MAX_QUESTION_LENGTH = 500;
/** Most messages of a chat that are read; earlier ones are ignored (docs/reference.md, "Questions"). */
export const LAST_MESSAGES = 40;

/** `POST …/agentic-question`. Length is checked in code points by the function, for its own error code. */
export const question = s.object({ question: s.string(), closed: s.optional(s.anything) });

/** A part of a message: only texts are read. */
const chatPart = s.component("ChatPart", { type: s.string(), text: s.optional(s.string()) });
/** A message of a chat as the AI SDK's client sends it. */
const chatMessage = s.component("ChatMessage", {
  id: s.optional(s.string()),
  role: s.oneOf("user", "assistant"),
  parts: s.array(chatPart),
});

/** `POST …/agentic-chat` as the AI SDK's client sends it. Messages are read one by one: the history is untrusted. */
export const chatRequest = s.object({
  id: s.optional(s.string({ maxLength: 256 })),
  messages: s.documented(s.array(s.anything), s.array(chatMessage, { minItems: 1 })),
  resumable: s.optional(s.boolean),
  trigger: s.optional(s.anything),
});

export const chatStream = s.object({ lastEventId: s.optional(s.string({ maxLength: 20 })) });

const evidenceCard = s.component("EvidenceCard", {
  title: s.string(),
  snippet: s.string(),
  sourceType: s.oneOf("page", "kb_doc"),
  sourceUrl: s.nullable(s.string()),
});
export type EvidenceCard = s.Infer<typeof evidenceCard>;

const ctaCard = s.component("CtaCard", { label: s.string(), actionType: s.oneOf("link"), href: s.string() });
export type CtaCard = s.Infer<typeof ctaCard>;

/** The answer of the JSON route (docs/reference.md, "Answers"). */
export const questionAnswer = s.component("QuestionAnswer", {
  answerMarkdown: s.string(),
  evidenceCards: s.array(evidenceCard),
  ctaCards: s.array(ctaCard),
  followUps: s.array(s.string()),
  degraded: s.boolean,
  retrievalMode: s.string(),
  modelId: s.string(),
});
export type QuestionAnswer = s.Infer<typeof questionAnswer>;

const step = s.component("LeadSectionStep", { title: s.string(), body: s.string() });

/** The texts around the form of a lead section. */
export const dynamicView = s.object({
  headline: s.string(),
  subhead: s.string(),
  recommendedPath: s.object({ label: s.string(), body: s.string() }),
  momentumSteps: s.array(step, { minItems: 3, maxItems: 4 }),
  fitSignals: s.array(s.string(), { minItems: 2, maxItems: 4 }),
  questionChips: s.array(s.string(), { maxItems: 4 }),
  visualAccent: s.oneOf("signal", "launch", "support", "proof"),
});

const formField = s.component("FormField", {
  key: s.id,
  label: s.string(),
  type: s.oneOf("text", "email", "tel", "textarea", "select"),
  required: s.boolean,
  options: s.optional(s.array(s.string())),
});
export type FormField = s.Infer<typeof formField>;

/** The output of the tool `renderLeadQualificationSection`. */
const leadSection = s.component("LeadSection", {
  sectionId: s.id,
  collapsedTitle: s.string(),
  collapsedBody: s.string(),
  html: s.string(),
  fields: s.array(formField, { maxItems: 8 }),
  submitLabel: s.string(),
  contextDisclosure: s.string(),
  dynamicView,
  leadContext: s.object({
    pageSlug: s.string(),
    visitorQuestion: s.string(),
    visibleAnswerText: s.string(),
    evidenceTitles: s.array(s.string()),
    retrievalMode: s.string(),
  }),
});
export type LeadSection = s.Infer<typeof leadSection>;

/** One card of the tool `renderProductivityLessonCards`. */
const lessonCard = s.component("LessonCard", {
  lessonId: s.string(),
  title: s.string(),
  category: s.string(),
  summary: s.string(),
  whenToUse: s.array(s.string()),
  steps: s.array(s.string()),
  tryNow: s.string(),
  relatedTactics: s.array(s.string()),
  sourceDisclosure: s.string(),
});
export type LessonCard = s.Infer<typeof lessonCard>;

const chunk = (type: string, more: Record<string, s.Schema<unknown>> = {}): s.Schema<unknown> =>
  s.object({ type: s.string({ const: type }), ...more });
const tool = { toolCallId: s.string(), providerExecuted: s.optional(s.boolean) };
const toolName = s.oneOf("renderLeadQualificationSection", "renderProductivityLessonCards");
const source = { sourceId: s.string(), title: s.string() };

/** One `data:` line of the chat stream: a chunk of the AI SDK's UI message stream. */
export const chatChunk: s.Schema<unknown> = s.named("ChatChunk", {
  anyOf: [
    chunk("start", {
      messageId: s.string(),
      messageMetadata: s.object({
        chatId: s.string(),
        modelId: s.string(),
        retrievalMode: s.string(),
        degraded: s.boolean,
      }),
    }),
    chunk("start-step"),
    chunk("text-start", { id: s.string() }),
    chunk("text-delta", { id: s.string(), delta: s.string() }),
    chunk("text-end", { id: s.string() }),
    chunk("source-url", { ...source, url: s.string({ format: "uri" }) }),
    chunk("source-document", { ...source, mediaType: s.string() }),
    chunk("data-evidence", { data: s.object({ cards: s.array(evidenceCard) }) }),
    chunk("data-cta", { data: s.object({ cards: s.array(ctaCard) }) }),
    chunk("data-follow-ups", { data: s.object({ questions: s.array(s.string()) }) }),
    chunk("tool-input-available", { ...tool, toolName, input: s.object({}) }),
    chunk("tool-output-available", {
      ...tool,
      output: { anyOf: [leadSection, s.object({ cards: s.array(lessonCard) })] },
    }),
    chunk("finish-step"),
    chunk("finish"),
    chunk("error", { errorText: s.string() }),
    chunk("abort"),
  ],
});
