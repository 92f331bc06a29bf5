import { type LeadSection, MAX_QUESTION_LENGTH } from "../../schemas/assistant.ts";
import { type Words, wordsOf } from "../../schemas/languages.ts";
import { figuresBeyond, type Wish } from "../engines/answers/answers.ts";
import { clip, fold, oneLine } from "../platform/characters.ts";
import { membersOf } from "../platform/json.ts";
import { leadForm } from "./lead-form-html.ts";

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

/** UTF-16 units of one line of the section. */
const LINE = 80;
const SENTENCE = 240;
const ANSWER_LENGTH = 4000;
const MAXIMUM_TITLES = 10;
const STEPS = { least: 3, most: 4 };
const SIGNALS = { least: 2, most: 4 };
const CHIPS = { least: 1, most: 4 };

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
/** Data that no lead form may ask for. */
const SENSITIVE =
  /\b(?:pass ?words?|passcodes?|passwort\w*|kennwort\w*|mots? de passe|contrasenas?|wachtwoord\w*|senhas?|pins?|tans?|credit ?cards?|card numbers?|kreditkarte\w*|carte (?:bancaire|bleue|de credit)|tarjetas?|cvv|cvc|iban|bank accounts?|account numbers?|kontonummer\w*|ssn|social security|sozialversicherung\w*|passports?|reisepass\w*|ausweis\w*|tax ids?|steuer ?id|api keys?|tokens?|secrets?|birth ?dates?|date of birth|geburtsdatum|mother s maiden|driver s licen[cs]e|one time codes?|verification codes?|otp)\b/;

/** The output of the tool `renderLeadQualificationSection`, within its documented limits. */
export function composeLeadSection(material: LeadMaterial): LeadSection {
  const { wish: intent = "contact" } = material;
  const phrases = wordsOf(material.language).leadSection;
  const proposed = membersOf(material.proposal);
  const check = new Check(material);
  const parts = { intent, phrases, proposed, check };
  const submitLabel = check.line(proposed.submitLabel, phrases.submit);
  const { fields, html } = leadForm(formFields(parts), submitLabel);
  return {
    sectionId: material.sectionId,
    collapsedTitle: check.line(proposed.collapsedTitle, phrases.title[intent]),
    collapsedBody: check.sentence(proposed.collapsedBody, phrases.body),
    html,
    fields,
    submitLabel,
    // Always the service's own text: no model decides what the visitor is told about sent data.
    contextDisclosure: phrases.disclosure,
    dynamicView: view(material, parts),
    leadContext: leadContext(material),
  };
}

/** The material of a section's parts. */
interface SectionParts {
  intent: Wish;
  phrases: Words["leadSection"];
  proposed: Record<string, unknown>;
  check: Check;
}

function formFields({ intent, phrases, proposed, check }: SectionParts): unknown[] {
  const { fields } = phrases;
  const native = STANDARD_FIELDS[intent].map((key) => ({ key, label: fields[key], required: key === "email" }));
  return [...native, ...list(proposed.fields).flatMap((field) => check.field(field))];
}

function view(material: LeadMaterial, parts: SectionParts): View {
  const { intent, phrases, check } = parts;
  const proposed = membersOf(parts.proposed.dynamicView);
  const path = membersOf(proposed.recommendedPath);
  const accent = ACCENTS.find((name) => name === proposed.visualAccent);
  return {
    headline: check.line(proposed.headline, phrases.headline[intent]),
    subhead: check.sentence(proposed.subhead, phrases.subhead),
    recommendedPath: {
      label: check.line(path.label, phrases.path.label),
      body: check.sentence(path.body, phrases.path.body),
    },
    momentumSteps: check.steps(proposed.momentumSteps, phrases.steps),
    fitSignals: check.lines(proposed.fitSignals, SIGNALS, standardSignals(material, parts)),
    questionChips: check.lines(proposed.questionChips, CHIPS, standardChips(material, check)),
    visualAccent: accent ?? STANDARD_ACCENT[intent],
  };
}

/** Facts that the visitor can check: their question and the sources of its answer. */
function standardSignals({ question, evidenceTitles }: LeadMaterial, { phrases, check }: SectionParts): string[] {
  const asked = check.clean(question, LINE);
  const titles = check.clean(evidenceTitles.slice(0, 3).join(", "), LINE);
  return [
    asked === "" ? phrases.signals.goesAlong : phrases.signals.question.replace("{question}", () => asked),
    ...(titles === "" ? [] : [phrases.signals.titles.replace("{titles}", () => titles)]),
    phrases.signals.form,
  ];
}

function standardChips({ followUps = [] }: LeadMaterial, check: Check): string[] {
  return followUps
    .map((question) => check.clean(question, SENTENCE))
    .filter((question) => question !== "")
    .slice(0, CHIPS.most);
}

function leadContext(material: LeadMaterial): LeadSection["leadContext"] {
  return {
    pageSlug: material.pageSlug,
    visitorQuestion: [...material.question].slice(0, MAX_QUESTION_LENGTH).join(""),
    visibleAnswerText: clip(material.answer, ANSWER_LENGTH),
    evidenceTitles: material.evidenceTitles.slice(0, MAXIMUM_TITLES).map(oneLine),
    retrievalMode: material.retrievalMode,
  };
}

/** Checks a proposal part by part: plain text without claims that the conversation doesn't support. */
class Check {
  readonly #shown: string;
  readonly #asked: string;
  readonly #language: string;

  /** The visitor's own numbers ("50 people") may be repeated, but a price only if the answer names it. */
  constructor({ question, answer, evidenceTitles, language }: LeadMaterial) {
    this.#shown = [answer, ...evidenceTitles].join("\n");
    this.#asked = question;
    this.#language = language;
  }

  line(proposed: unknown, standard: string): string {
    return this.#text(proposed, LINE) || standard;
  }

  sentence(proposed: unknown, standard: string): string {
    return this.#text(proposed, SENTENCE) || standard;
  }

  lines(proposed: unknown, { least, most }: { least: number; most: number }, standard: string[]): string[] {
    const lines = list(proposed)
      .map((line) => this.#text(line, SENTENCE))
      .filter((line) => line !== "");
    return lines.length < least ? standard : lines.slice(0, most);
  }

  steps(proposed: unknown, standard: View["momentumSteps"]): View["momentumSteps"] {
    const steps = list(proposed)
      .map(membersOf)
      .map(({ title, body }) => ({ title: this.#text(title, LINE), body: this.#text(body, SENTENCE) }))
      .filter(({ title, body }) => title !== "" && body !== "");
    return steps.length < STEPS.least ? standard : steps.slice(0, STEPS.most);
  }

  /** A generated field is never required: a model's question must not block a visitor. */
  field(proposed: unknown): unknown[] {
    const field = membersOf(proposed);
    const label = this.#text(field.label, LINE);
    const options = list(field.options).map((option) =>
      typeof option === "string" ? this.clean(option, LINE, NUMBERS) : "",
    );
    const isFit = label !== "" && !options.includes("") && !SENSITIVE.test(spaced(String(field.key)));
    return isFit ? [{ ...field, label, required: false, options }] : [];
  }

  /** The text, or "" if it contains anything that a form doesn't need. */
  clean(text: string, length: number, holds = /\p{L}/u): string {
    const line = clip(oneLine(text), length);
    const reaches = figuresBeyond(line, "", this.#language).some((figure) => /^(?:mail|link|phone) /.test(figure));
    return reaches || MARKUP.test(line) || SENSITIVE.test(spaced(line)) || !holds.test(line) ? "" : line;
  }

  #text(proposed: unknown, length: number): string {
    if (typeof proposed !== "string" || proposed.length > length * 4) return "";
    const line = this.clean(proposed, length);
    const asked = figuresBeyond(this.#asked, "", this.#language);
    const open = figuresBeyond(line, this.#shown, this.#language);
    const isKnown = (figure: string) => figure.startsWith("number ") && (asked.includes(figure) || !/\d/.test(line));
    return open.every(isKnown) ? line : "";
  }
}

function spaced(text: string): string {
  return fold(text.replace(/(\p{Ll})(\p{Lu})/gu, "$1 $2")).replace(/[^\p{L}\p{M}\p{N}]+/gu, " ");
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value.slice(0, 20) : [];
}
