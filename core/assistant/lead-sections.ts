import type { LeadSection } from "../../schemas/assistant.ts";
import type { Question } from "../engines/answers/answers.ts";
import { sha256 } from "../platform/digest.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { storeLeadSection } from "./lead-forms.ts";
import { composeLeadSection } from "./lead-section.ts";
import type { AnswerRequest } from "./messages.ts";
import { proposalPrompt } from "./prompt.ts";

type ChatPlace = Pick<AnswerRequest, "handle" | "pageSlug" | "chatId">;

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

/** Lets a chat show its section again: the visitor asks for the answer again that may have had it. */
export async function forgetLeadSection({ redis }: Runtime, chat: ChatPlace): Promise<void> {
  await redis.del(sectionKey(chat));
}

async function isFirst({ redis }: Runtime, chat: ChatPlace): Promise<boolean> {
  return (await redis.set(sectionKey(chat), "1", "EX", remembered, "NX")) === "OK";
}

function sectionKey({ handle, pageSlug, chatId }: ChatPlace): string {
  return keys.chatSection(handle, pageSlug, sha256(chatId).toString("base64url"));
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
