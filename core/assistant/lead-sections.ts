import type { LeadSection } from "../../schemas/assistant.ts";
import { sha256 } from "../platform/digest.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { storeLeadSection } from "./lead-forms.ts";
import { composeLeadSection, type LeadMaterial } from "./lead-section.ts";
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
  { signal, ...shown }: Omit<LeadMaterial, "sectionId" | "pageSlug" | "question"> & { signal: AbortSignal },
): Promise<LeadSection | undefined> {
  if (asked.sectionShown || !(await isFirst(runtime, asked))) return undefined;
  const { handle, pageSlug, question } = asked;
  const material = { ...shown, sectionId: runtime.id("sec_"), pageSlug, question };
  const section = composeLeadSection({ ...material, proposal: await propose(runtime, material, signal) });
  await storeLeadSection(runtime, { handle, pageSlug, section, language: shown.language });
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
async function propose({ model }: Runtime, material: LeadMaterial, signal: AbortSignal): Promise<unknown> {
  if (model.writer === undefined) return undefined;
  const { messages, schema } = proposalPrompt(material);
  const limited = AbortSignal.any([signal, AbortSignal.timeout(proposesWithin)]);
  return model.writer.propose(messages, schema, limited).catch(() => undefined);
}
