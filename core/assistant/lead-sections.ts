import type { LeadSection } from "../../schemas/assistant.ts";
import type { Question } from "../engines/answers/answers.ts";
import { sha256 } from "../platform/digest.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { storeLeadSection } from "./lead-forms.ts";
import { composeLeadSection } from "./lead-section.ts";
import type { AnswerRequest } from "./messages.ts";
import { proposalPrompt } from "./prompt.ts";

/** Seconds for which a chat remembers that it has shown its section. */
const remembered = 86_400;
/** Ms within which a model must propose a section; otherwise the standard one is shown. */
const proposesWithin = 6000;

/** The lead section, once per chat, for visitors who want contact, a quote, a demo, an individual price or a purchase. */
export async function leadSectionFor(
  runtime: Runtime,
  asked: AnswerRequest,
  shown: {
    text: string;
    question: Question;
    evidenceTitles: string[];
    followUps: string[];
    mode: string;
    signal: AbortSignal;
  },
): Promise<LeadSection | undefined> {
  if (asked.sectionShown || !(await isFirst(runtime, asked))) return undefined;
  const proposal = await propose(runtime, asked, shown);
  const section = composeLeadSection({
    sectionId: runtime.id("sec_"),
    pageSlug: asked.pageSlug,
    question: asked.question,
    wish: shown.question.wish,
    language: shown.question.language,
    answer: shown.text,
    evidenceTitles: shown.evidenceTitles,
    followUps: shown.followUps,
    retrievalMode: shown.mode,
    proposal,
  });
  const { handle, pageSlug } = asked;
  await storeLeadSection(runtime, { handle, pageSlug, section, language: shown.question.language });
  return section;
}

async function isFirst({ redis }: Runtime, { handle, pageSlug, chatId }: AnswerRequest): Promise<boolean> {
  const chat = sha256(chatId).toString("base64url");
  return (await redis.set(keys.chatSection(handle, pageSlug, chat), "1", "EX", remembered, "NX")) === "OK";
}

/** A model's unchecked proposal; undefined if it fails, since there is a standard section. */
async function propose(
  { model }: Runtime,
  asked: AnswerRequest,
  shown: { text: string; question: Question; signal: AbortSignal },
): Promise<unknown> {
  if (model.writer === undefined) return undefined;
  const { messages, schema } = proposalPrompt({
    question: asked.question,
    answer: shown.text,
    language: shown.question.language,
  });
  const signal = AbortSignal.any([shown.signal, AbortSignal.timeout(proposesWithin)]);
  return model.writer.propose(messages, schema, signal).catch(() => undefined);
}
