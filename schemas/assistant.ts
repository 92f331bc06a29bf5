import { anything, array, boolean, id, type Infer, nullable, object, oneOf, optional, string } from "./schema.ts";

/** Most code points of a visitor's question (specification "Limits"). */
export const longestQuestion = 500;
/** Messages of a chat that count; earlier ones are ignored (contract 5). */
export const lastMessages = 40;

const path = { handle: string(), pageSlug: string() };

/** `POST …/agentic-question`. Length is checked in code points by the function, for its own error code. */
export const question = object({ ...path, question: string() });

/** `POST …/agentic-chat`: what the AI SDK's client sends. Messages are read one by one, for history is the client's word. */
export const chatRequest = object({
  ...path,
  id: optional(string({ maxLength: 256 })),
  messages: array(anything),
  resumable: optional(boolean),
});

/** `GET|DELETE …/agentic-chat/{chatId}/stream`. */
export const chatStream = object({
  ...path,
  chatId: string({ maxLength: 256 }),
  lastEventId: optional(string({ maxLength: 20 })),
});

/** `GET …/lead-sections/{sectionId}/form`. */
export const leadFormPath = object({ ...path, sectionId: string({ maxLength: 128 }) });

export const evidenceCard = object({
  title: string(),
  snippet: string(),
  sourceType: oneOf("page", "kb_doc"),
  sourceUrl: nullable(string()),
});
export type EvidenceCard = Infer<typeof evidenceCard>;

export const ctaCard = object({ label: string(), actionType: oneOf("link"), href: string() });
export type CtaCard = Infer<typeof ctaCard>;

/** The answer of the JSON route (specification "Question answer"). */
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

const step = object({ title: string(), body: string() });

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
  dynamicView: object({
    headline: string(),
    subhead: string(),
    recommendedPath: object({ label: string(), body: string() }),
    momentumSteps: array(step, { minItems: 3, maxItems: 4 }),
    fitSignals: array(string(), { minItems: 2, maxItems: 4 }),
    questionChips: array(string()),
    visualAccent: oneOf("signal", "launch", "support", "proof"),
  }),
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
