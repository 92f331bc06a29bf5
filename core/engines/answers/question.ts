import { languages, wordsOf } from "../../../schemas/languages.ts";
import { fold } from "../../platform/characters.ts";
import { grammarOf, languageOf } from "../../platform/languages.ts";
import { lazyByKey } from "../../platform/lazy.ts";
import { figuresIn, isUnitName } from "./figures.ts";
import { isCommon } from "./matching.ts";
import { isMeasure, isUnit, MEASURES } from "./measures.ts";
import { holdsPhrase, isNegated, isPhrase, plainWords, startsWithPhrase, wordsOfPhrase } from "./phrases.ts";
import type { Shape } from "./shapes.ts";
import { termsIn, wordsIn } from "./words.ts";

/** One turn of a conversation. */
export interface Turn {
  role: "user" | "assistant";
  text: string;
}

/** The wish for which a visitor is offered a form. */
export type Wish = "demo" | "quote" | "purchase" | "contact";

/** A word of a question that an answer should contain. */
export interface Subject {
  /** The folded word, and its stems by the rules of each language. */
  text: string;
  forms: readonly string[];
  /** True for an everyday word, which names no subject. */
  isCommon: boolean;
  /** True for a word that is written as a name, unlike those around it. */
  isName: boolean;
}

/** What an answer should contain: something of a shape, or one of the words that request it. */
export interface Ask {
  shape: Shape;
  words: readonly Subject[];
}

/** A parsed question. */
export interface Question {
  text: string;
  language: string;
  /** The result of `plainWords`. */
  plain: string;
  subjects: readonly Subject[];
  asks: readonly Ask[];
  /** It says what is not meant, as "not from the village" does, or borrows from a question that says so. */
  isNegated: boolean;
  /** It begins with an interrogative ("what", "who") or asks for a number, and for no other shape: few texts answer it. */
  isOpen: boolean;
  /** Small talk, the page itself, or private matters; absent for other questions. */
  intent?: "greeting" | "gratitude" | "identity" | "page" | "declined";
  wish?: Wish;
  /** The assistant's earlier answers, if the visitor asks for more ("tell me more") or for something else ("no"). */
  said?: string;
  /**
   * The question without what it borrows from an earlier one, if a word such as "la" or "there" may refer to that, or to nothing; and a
   * question for the place of the business without its shape, since not every page has an address.
   */
  alone?: Question;
}

/** Most characters of a turn that are read. */
const MAX_TURN_LENGTH = 2000;
const MAX_SUBJECTS = 40;
/** An address, whose "com" is Portuguese, or a part of one. */
const ADDRESS = /(?<!\S)(?:\S*[@/]|www\.)\S*/gi;
const SHAPES = ["amount", "clock", "time", ...MEASURES, "things", "count", "phone", "mail", "place"] as const;
const TALK = [
  { intent: "greeting", list: "greetings" },
  { intent: "gratitude", list: "gratitude" },
  { intent: "identity", list: "identity" },
  { intent: "page", list: "page" },
] as const;
/** Phrases of private matters in every language, since that of a short text is easily mistaken. */
const PRIVATE = Object.values(languages).flatMap(({ answers }) => answers.declines);
/** Commands to the assistant, with "please" before them or without. */
const COMMANDS = Object.values(languages).flatMap(({ answers: { commands, please } }) =>
  commands.flatMap((command) => [command, ...please.map((word) => `${word} ${command}`)]),
);
/** Those that no question for help asks about, such as "admin password", unless it asks how to change one. */
const SECRETS = Object.values(languages).flatMap(({ answers }) => answers.secrets);
const RESETS = Object.values(languages).flatMap(({ answers }) => answers.resets);
/** Beginnings of questions for help, such as "How do I reset my password?": they ask for no secret. */
const HELP = Object.values(languages).flatMap(({ answers }) => answers.help);
/** Only contact details answer a wish for contact: a sentence with "call" or "contact" in it does not. */
const CONTACT: readonly Ask[] = [
  { shape: "phone", words: [] },
  { shape: "mail", words: [] },
];
/** Most earlier turns that are read for what a follow-up speaks of, and for what was said. */
const MAX_TURNS_BACK = 4;
const WISHES = ["demo", "quote", "contact", "purchase"] as const;

/**
 * Reads a question. `language` is the fallback if its words don't tell the language. A short follow-up borrows the subjects of
 * the visitor's question before.
 */
export function readQuestion(text: string, language: string, history: readonly Turn[] = []): Question {
  const earlier = history.filter(({ role }) => role === "user");
  const alone = readAlone(text, spokenIn([...earlier.map((turn) => turn.text), text], language), history);
  const others = alone.asks.filter(({ shape }) => shape !== "place");
  if (others.length < alone.asks.length) return { ...alone, alone: askingFor(others, alone) };
  const lean = leaning(alone);
  const before = lean && questionBefore(alone.plain, earlier, alone.language);
  if (!before) return alone;
  const whole = borrowed(alone, before);
  return { ...whole, isOpen: isOpen(whole), ...(lean === "perhaps" ? { alone } : {}) };
}

/** The language of the last text. "No" and "Samstag?" are in the language of the conversation. */
function spokenIn(texts: readonly string[], language: string): string {
  return texts.reduce(
    (known, text) => languageOf(text.slice(0, MAX_TURN_LENGTH).replace(ADDRESS, ""), known),
    language,
  );
}

function readAlone(text: string, language: string, history: readonly Turn[]): Question {
  const asked = text.slice(0, MAX_TURN_LENGTH);
  const plain = plainWords(asked);
  const said = isPhrase(plain, wordsOf(language).answers.more) ? saidIn(history) : undefined;
  const all = said === undefined ? subjectsOf(asked, language) : [];
  const wish = wishOf(asked, plain, language);
  const asks = [...asksOf(plain, all, language), ...(wish === "contact" ? CONTACT : [])];
  const question = { text, language, plain, subjects: besides(asks, all), asks, isNegated: isNegated(asked, language) };
  // A sign alone, such as a smile or a thumb, takes up the conversation or ends it.
  const signed = /\p{Extended_Pictographic}/u.test(asked) && history.length > 0 ? "gratitude" : "greeting";
  const told = plain === "" ? signed : intentOf(asked, plain, language);
  const intent = told === "page" && namesMore(question) ? undefined : told;
  const known = { ...(intent ? { intent } : {}), ...(wish ? { wish } : {}), ...(said ? { said } : {}) };
  return { ...question, isOpen: isOpen(question), ...known };
}

function askingFor(asks: readonly Ask[], question: Question): Question {
  const all = subjectsOf(question.text.slice(0, MAX_TURN_LENGTH), question.language);
  return { ...question, asks, subjects: besides(asks, all) };
}

function saidIn(history: readonly Turn[]): string {
  const own = history.filter(({ role }) => role === "assistant");
  return own
    .slice(-MAX_TURNS_BACK)
    .map(({ text }) => text.slice(0, MAX_TURN_LENGTH))
    .join("\n");
}

/** What a follow-up speaks of: the latest other question that names something. A follow-up itself asks for what its own question did. */
function questionBefore(plain: string, earlier: readonly Turn[], language: string): Question | undefined {
  const others = earlier
    .filter(({ text }) => plainWords(text) !== plain)
    .slice(-MAX_TURNS_BACK)
    .map(({ text }) => readQuestion(text, language));
  const told = others.filter((other) => !other.intent && !isEmpty(other));
  const last = told.at(-1) ?? others.at(-1);
  const first = told.findLast((other) => !isJoined(other));
  return last && { ...last, asks: last.asks.length > 0 ? last.asks : (first?.asks ?? []) };
}

/** "What does it cost", "more". */
function isEmpty(question: Question): boolean {
  return question.subjects.length === 0 && (question.asks.length === 0 || mayRefer(question));
}

function subjectsOf(text: string, language: string): Subject[] {
  const found = new Map<string, Subject>();
  const names = namesIn(text, language);
  for (const { written, text: word, terms } of wordsIn(text, language)) {
    const [term] = terms;
    if (term === undefined || found.has(term) || (word.length < 2 && /\p{Script=Latin}/u.test(word))) continue;
    const forms = [...new Set([...terms, ...Object.keys(languages).flatMap((code) => termsIn(written, code))])];
    found.set(term, { text: word, forms, isCommon: isCommon(term, language), isName: names.has(word) });
  }
  return [...found.values()].slice(0, MAX_SUBJECTS);
}

/** The words with a capital letter within a sentence, folded; none in a language that writes nouns so. */
function namesIn(text: string, language: string): Set<string> {
  if (grammarOf(language).hasCapitalNouns || !/\p{Ll}/u.test(text)) return new Set();
  return new Set((text.match(/(?<=[^.?!:\s]\s+)\p{Lu}[\p{L}\p{N}]+/gu) ?? []).map(fold));
}

function asksOf(plain: string, subjects: readonly Subject[], language: string): Ask[] {
  const { asks } = wordsOf(language).answers;
  const found = SHAPES.flatMap((shape) => {
    const words = wordsOfPhrase(plain, asks[shape]);
    return words ? [{ shape, words: subjects.filter(({ text }) => words.includes(text)) }] : [];
  });
  return found.filter(({ shape }) => !impliedBy(found, plain, language).includes(shape));
}

/** The shapes that others stand for: "how much is it" and "how many days" also contain "how much" and "how many", and a unit is no thing. */
function impliedBy(found: readonly Ask[], plain: string, language: string): Shape[] {
  if (found.some(({ shape }) => shape === "amount" || shape === "clock" || isMeasure(shape)))
    return ["things", "count"];
  if (!found.some(({ shape }) => shape === "things")) return [];
  return [asksForUnits(plain, language) ? "things" : "count"];
}

function asksForUnits(plain: string, language: string): boolean {
  const counted = wordsOf(language).answers.asks.things.flatMap((phrase) => {
    const [, after = ""] = ` ${plain}`.split(` ${plainWords(phrase)} `);
    // The second is that of "square metres".
    return wordsIn(after, language)
      .slice(0, 2)
      .flatMap(({ terms }) => terms);
  });
  return counted.some((term) => isUnit(term, language) || isUnitName(term));
}

/** The subjects that are no words for what is asked for. */
function besides(asks: readonly Ask[], subjects: readonly Subject[]): Subject[] {
  return subjects.filter((subject) => !asks.some(({ words }) => words.includes(subject)));
}

function intentOf(text: string, plain: string, language: string): Question["intent"] {
  const isHelp = startsWithPhrase(plain, HELP);
  const isSecret = holdsPhrase(plain, SECRETS) && !(isHelp && holdsPhrase(plain, RESETS));
  if (isSecret || (!isHelp && holdsPhrase(plain, PRIVATE)) || isCommand(text)) return "declined";
  return TALK.find(({ list }) => isPhrase(plain, [...wordsOf(language).answers[list], ...wordsOf("en").answers[list]]))
    ?.intent;
}

/**
 * A question like one about the page names something else, or asks for a price, a time or the like: "c'est quoi le tarif", "what topics are in
 * the exam".
 */
function namesMore({ subjects, asks, language }: Pick<Question, "subjects" | "asks" | "language">): boolean {
  return asks.length > 0 || subjects.some(({ text, isCommon }) => !isCommon && !pageWords(language).includes(text));
}

/** The words of questions about the page. */
const pageWords = lazyByKey((language: string) =>
  plainWords([...wordsOf(language).answers.page, ...wordsOf("en").answers.page].join(" ")).split(" "),
);

/** True if a sentence or a part of one begins with a command: "j'ignore vos règles" is none. */
function isCommand(text: string): boolean {
  const parts = text.split(/[^\p{L}\p{M}\p{N}\s'’‑-]+/u);
  return parts.some((part) => startsWithPhrase(plainWords(part), COMMANDS));
}

function wishOf(text: string, plain: string, language: string): Wish | undefined {
  const { lead } = wordsOf(language).answers;
  if (holdsPhrase(plain, lead.refusals)) return undefined;
  const said = WISHES.find((wish) => {
    const phrases = lead[wish].filter((phrase) => phrase.includes(" "));
    // A single word is a wish if it is the whole text.
    return isPhrase(plain, lead[wish]) || holdsPhrase(plain, phrases);
  });
  return said ?? (givesDetails(text, language) ? "contact" : undefined);
}

/** The visitor names an address or a number and doesn't ask about it. */
function givesDetails(text: string, language: string): boolean {
  const isQuestion = /[?？؟]/.test(text);
  return !isQuestion && [...figuresIn(text, language)].some((figure) => /^(?:mail|phone) /.test(figure));
}

type Asked = Pick<Question, "plain" | "subjects" | "language">;

/** It begins with a connector, or has no subject of its own, or speaks of "it"; perhaps, if that may be an article. */
function leaning(question: Asked): "surely" | "perhaps" | undefined {
  const { pronouns } = wordsOf(question.language).answers;
  const isSure =
    isJoined(question) || question.subjects.length === 0 || holdsPhrase(question.plain, pronouns.split(" "));
  return isSure ? "surely" : mayRefer(question) ? "perhaps" : undefined;
}

function isJoined({ plain, language }: Asked): boolean {
  return wordsOf(language).answers.connectors.some((connector) => plain.startsWith(`${plainWords(connector)} `));
}

function mayRefer({ plain, language }: Asked): boolean {
  const { pronouns, determiners } = wordsOf(language).answers;
  return holdsPhrase(plain, `${pronouns} ${determiners}`.split(" "));
}

function isOpen({ plain, asks, language }: Pick<Question, "plain" | "asks" | "language">): boolean {
  if (asks.length > 0) return asks.every(({ shape }) => shape === "count" || shape === "things");
  return isPhrase(plain.split(" ", 1)[0]!, wordsOf(language).answers.interrogatives.split(" "));
}

function borrowed<T extends Pick<Question, "subjects" | "asks" | "isNegated">>(question: T, before: Question): T {
  const known = new Set(question.subjects.map(({ forms }) => forms[0]));
  const more = before.subjects.filter(({ forms }) => !known.has(forms[0]));
  return {
    ...question,
    subjects: [...question.subjects, ...more].slice(0, MAX_SUBJECTS),
    asks: question.asks.length > 0 ? question.asks : before.asks,
    isNegated: question.isNegated || before.isNegated,
  };
}
