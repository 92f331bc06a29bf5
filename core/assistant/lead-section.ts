import { type LeadSection, MAX_QUESTION_LENGTH } from "../../schemas/assistant.ts";
import { languages, type Words, wordsOf } from "../../schemas/languages.ts";
import { isActive } from "../account/face.ts";
import { figuresBeyond, holdsWords, type Wish } from "../engines/answers/answers.ts";
import { runEnding } from "../engines/relay/relay.ts";
import type { PagePath } from "../pages/face.ts";
import { clip, oneLine } from "../platform/characters.ts";
import { digestOf } from "../platform/digest.ts";
import { asObject } from "../platform/json.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { leadForm, storeLeadForm } from "./lead-form.ts";
import type { AnswerRequest } from "./messages.ts";
import { proposalPrompt } from "./prompt.ts";

/** The input of a lead section. */
export interface LeadMaterial {
  sectionId: string;
  pageSlug: string;
  question: string;
  /** The visitor's wish; contact if it is unclear. */
  wish: Wish | undefined;
  /** The language of the question. */
  language: string;
  /** The answer as the visitor sees it. */
  answer: string;
  evidenceTitles: string[];
  retrievalMode: string;
  /** A model's proposal; untrusted: each part is checked and falls back to the standard one. */
  proposal?: unknown;
  /** Follow-up questions of the answer. */
  followUps?: string[];
}

type View = LeadSection["dynamicView"];
type ChatPath = PagePath & { chatId: string };

/** Seconds for which a chat remembers that it has shown its section. */
const SHOWN_TTL_SECONDS = 86_400;
/** Ms within which a model must propose a section; otherwise the standard one is shown. */
const PROPOSAL_TIMEOUT_MS = 6000;

/** UTF-16 units of a line and of a sentence of the section, and of the answer in its context. */
const MAX_LINE_LENGTH = 80;
const MAX_SENTENCE_LENGTH = 240;
const MAX_ANSWER_LENGTH = 4000;
const MAX_TITLES = 10;
const STEPS = { min: 3, max: 4 };
const SIGNALS = { min: 2, max: 4 };
const CHIPS = { min: 1, max: 4 };

const ACCENTS: readonly View["visualAccent"][] = ["signal", "launch", "support", "proof"];
const STANDARD_ACCENT: Record<Wish, View["visualAccent"]> = {
  quote: "signal",
  demo: "launch",
  contact: "support",
  purchase: "proof",
};
const STANDARD_FIELDS: Record<Wish, (keyof Words["leadSection"]["fields"])[]> = {
  demo: ["email", "name", "company", "phone"],
  quote: ["email", "name", "company", "message"],
  purchase: ["email", "name", "phone", "message"],
  contact: ["email", "name", "phone", "message"],
};
/** An option may be a number or a range. */
const NUMBERS = /[\p{L}\p{N}]/u;
/** Markup, handlers, URL schemes and entities: no line of the section needs them. */
const MARKUP =
  /[<>{}\\]|\]\(|!\[|&(?:#|\w+;)|\bon\w+\s*=|\b(?:javascript|vbscript|data|file|blob)\s*:|:\/\/|\bstyle\s*=|\/\//i;
/** Data that no lead form may ask for, in every language: a model may write in any. */
const SENSITIVE = Object.values(languages).flatMap(({ leadSection }) => leadSection.sensitive);

/** The lead section, once per chat, for visitors who want contact, a quote, a demo, an individual price or a purchase. */
export async function leadSectionFor(
  runtime: Runtime,
  request: AnswerRequest,
  {
    runId,
    signal,
    ...shown
  }: Omit<LeadMaterial, "sectionId" | "pageSlug" | "question"> & { runId: string; signal: AbortSignal },
): Promise<LeadSection | undefined> {
  if (request.sectionShown || !(await isActive(runtime.redis, request.handle))) return undefined;
  if (!(await isFirst(runtime, request, runId))) return undefined;
  const { handle, pageSlug, question } = request;
  const material = { ...shown, sectionId: runtime.id("sec_"), pageSlug, question };
  const section = composeLeadSection({ ...material, proposal: await propose(runtime, material, signal) });
  // Erased while the model wrote, it has no form either.
  if (!(await isActive(runtime.redis, handle))) return undefined;
  const { sectionId, fields, submitLabel } = section;
  await storeLeadForm(runtime, { handle, pageSlug, sectionId }, { fields, submitLabel, language: shown.language });
  return section;
}

/** Lets a chat show its section again: the visitor asks for the answer again that may have had it. */
export async function forgetLeadSection({ redis }: Runtime, chat: ChatPath): Promise<void> {
  await redis.del(sectionKey(chat));
}

/** True for the first answer of a chat that shows its section; an earlier one that broke off before its end has shown none. */
async function isFirst({ redis }: Runtime, chat: ChatPath, runId: string): Promise<boolean> {
  const key = sectionKey(chat);
  const earlier = await redis.set(key, runId, "EX", SHOWN_TTL_SECONDS, "NX", "GET");
  // Its own if the reply was lost, or if the worker of an earlier attempt died.
  if (earlier === null || earlier === runId) return true;
  const ending = await runEnding(redis, earlier);
  if (typeof ending === "string" || ending.end === "done") return false;
  // Of two answers that find this at once, one replaces it.
  return (await redis.set(key, runId, "EX", SHOWN_TTL_SECONDS, "GET")) === earlier;
}

function sectionKey({ handle, pageSlug, chatId }: ChatPath): string {
  return keys.chatSection(handle, pageSlug, digestOf(chatId));
}

/** A model's unchecked proposal; undefined if it fails, since there is a standard section. */
async function propose({ model }: Runtime, material: LeadMaterial, signal: AbortSignal): Promise<unknown> {
  if (model.writer === undefined) return undefined;
  const { messages, schema } = proposalPrompt(material);
  const limited = AbortSignal.any([signal, AbortSignal.timeout(PROPOSAL_TIMEOUT_MS)]);
  return model.writer.propose(messages, schema, limited).catch(() => undefined);
}

/** The output of the tool `renderLeadQualificationSection`, within its documented limits. */
export function composeLeadSection(material: LeadMaterial): LeadSection {
  const { wish = "contact" } = material;
  const phrases = wordsOf(material.language).leadSection;
  const proposed = asObject(material.proposal);
  const check = new Check(material);
  const submitLabel = check.line(proposed.submitLabel, phrases.submit);
  const standard = STANDARD_FIELDS[wish].map((key) => ({ key, label: phrases.fields[key] }));
  const generated = list(proposed.fields).flatMap((field) => check.field(field));
  const { fields, html } = leadForm([...standard, ...generated], submitLabel);
  return {
    sectionId: material.sectionId,
    collapsedTitle: check.line(proposed.collapsedTitle, phrases.title[wish]),
    collapsedBody: check.sentence(proposed.collapsedBody, phrases.body),
    html,
    fields,
    submitLabel,
    // Always the service's own text: no model decides what the visitor is told about sent data.
    contextDisclosure: phrases.disclosure,
    dynamicView: view(material, asObject(proposed.dynamicView), check),
    leadContext: leadContext(material),
  };
}

function view(material: LeadMaterial, proposed: Record<string, unknown>, check: Check): View {
  const { wish = "contact" } = material;
  const phrases = wordsOf(material.language).leadSection;
  const path = asObject(proposed.recommendedPath);
  const accent = ACCENTS.find((name) => name === proposed.visualAccent);
  return {
    headline: check.line(proposed.headline, phrases.headline[wish]),
    subhead: check.sentence(proposed.subhead, phrases.subhead),
    recommendedPath: {
      label: check.line(path.label, phrases.path.label),
      body: check.sentence(path.body, phrases.path.body),
    },
    momentumSteps: check.steps(proposed.momentumSteps, phrases.steps),
    fitSignals: check.lines(proposed.fitSignals, SIGNALS, standardSignals(material, check)),
    questionChips: check.lines(proposed.questionChips, CHIPS, standardChips(material, check)),
    visualAccent: accent ?? STANDARD_ACCENT[wish],
  };
}

/** Facts that the visitor can check: their question and the sources of its answer. */
function standardSignals({ question, evidenceTitles, language }: LeadMaterial, check: Check): string[] {
  const { signals } = wordsOf(language).leadSection;
  const asked = check.clean(question, MAX_LINE_LENGTH);
  const titles = check.clean(evidenceTitles.slice(0, 3).join(", "), MAX_LINE_LENGTH);
  return [
    asked === "" ? signals.goesAlong : signals.question.replace("{question}", () => asked),
    ...(titles === "" ? [] : [signals.titles.replace("{titles}", () => titles)]),
    signals.form,
  ];
}

function standardChips({ followUps = [] }: LeadMaterial, check: Check): string[] {
  return followUps
    .map((question) => check.clean(question, MAX_SENTENCE_LENGTH))
    .filter((question) => question !== "")
    .slice(0, CHIPS.max);
}

function leadContext(material: LeadMaterial): LeadSection["leadContext"] {
  return {
    pageSlug: material.pageSlug,
    visitorQuestion: [...material.question].slice(0, MAX_QUESTION_LENGTH).join(""),
    visibleAnswerText: clip(material.answer, MAX_ANSWER_LENGTH),
    evidenceTitles: material.evidenceTitles.slice(0, MAX_TITLES).map(oneLine),
    retrievalMode: material.retrievalMode,
  };
}

/** Checks a proposal part by part: plain text without claims that the conversation doesn't support. */
class Check {
  readonly #material: LeadMaterial;

  constructor(material: LeadMaterial) {
    this.#material = material;
  }

  line(proposed: unknown, standard: string): string {
    return this.#text(proposed, MAX_LINE_LENGTH) || standard;
  }

  sentence(proposed: unknown, standard: string): string {
    return this.#text(proposed, MAX_SENTENCE_LENGTH) || standard;
  }

  lines(proposed: unknown, { min, max }: { min: number; max: number }, standard: string[]): string[] {
    const lines = list(proposed)
      .map((line) => this.#text(line, MAX_SENTENCE_LENGTH))
      .filter((line) => line !== "");
    return lines.length < min ? standard : lines.slice(0, max);
  }

  steps(proposed: unknown, standard: View["momentumSteps"]): View["momentumSteps"] {
    const steps = list(proposed)
      .map(asObject)
      .map(({ title, body }) => ({
        title: this.#text(title, MAX_LINE_LENGTH),
        body: this.#text(body, MAX_SENTENCE_LENGTH),
      }))
      .filter(({ title, body }) => title !== "" && body !== "");
    return steps.length < STEPS.min ? standard : steps.slice(0, STEPS.max);
  }

  /** A generated field is never required: a model's question must not block a visitor. */
  field(proposed: unknown): unknown[] {
    const field = asObject(proposed);
    const label = this.#text(field.label, MAX_LINE_LENGTH);
    const options = list(field.options).map((option) =>
      typeof option === "string" ? this.clean(option, MAX_LINE_LENGTH, NUMBERS) : "",
    );
    const isFit = label !== "" && !options.includes("") && typeof field.key === "string" && !isSensitive(field.key);
    return isFit ? [{ ...field, label, required: false, options }] : [];
  }

  /** The text, or "" if it contains anything that a form doesn't need. */
  clean(text: string, length: number, holds = /\p{L}/u): string {
    const line = clip(oneLine(text), length);
    const reaches = figuresBeyond(line, "", this.#material.language).some((figure) =>
      /^(?:mail|link|phone) /.test(figure),
    );
    return reaches || MARKUP.test(line) || isSensitive(line) || !holds.test(line) ? "" : line;
  }

  #text(proposed: unknown, length: number): string {
    if (typeof proposed !== "string" || proposed.length > length * 4) return "";
    const { question, answer, evidenceTitles, language } = this.#material;
    const line = this.clean(proposed, length);
    // The visitor's own numbers and dates ("50 people") may be repeated, but a price only if the answer names it.
    const asked = figuresBeyond(question, "", language);
    const open = figuresBeyond(line, [answer, ...evidenceTitles].join("\n"), language);
    const isKnown = (figure: string) =>
      /^(?:number|date) /.test(figure) && (asked.includes(figure) || !/\d/.test(line));
    return open.every(isKnown) ? line : "";
  }
}

function isSensitive(text: string): boolean {
  const spaced = text.replace(/(\p{Ll})(\p{Lu})/gu, "$1 $2");
  return holdsWords(spaced, SENSITIVE);
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value.slice(0, 20) : [];
}
