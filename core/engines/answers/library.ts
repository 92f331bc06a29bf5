import { LRUCache } from "lru-cache";
import { fold } from "../../platform/characters.ts";
import { grammarOf, languageOf, primaryLanguage, stem, stopWords } from "../../platform/languages.ts";
import { lazyByKey } from "../../platform/lazy.ts";
import { plainText } from "../../platform/markdown.ts";
import { unitsNamedIn } from "./figures.ts";
import { isCommon, isSlipOf, type Likeness, likenessOf } from "./matching.ts";
import { isUnit } from "./measures.ts";
import { isNegated, isUniversal } from "./phrases.ts";
import type { Question, Subject } from "./question.ts";
import { rangedTermsIn } from "./ranges.ts";
import { type Section, type Source, sectionsOf, type Unit, unitsOf } from "./sections.ts";
import { holdsShape, type Shape } from "./shapes.ts";
import { compoundParts, termsIn } from "./words.ts";

/** A unit that matches a question. */
export interface Hit {
  unit: Unit;
  score: number;
  /** The share of the question, by weight, that the unit and its surroundings contain, 0 to 1. */
  share: number;
  /** The weightiest word of the question that is absent from the section, as a share of the rarest word's weight. */
  missing: number;
  /** It contains one of the requested shapes, or a word for one; undefined if none is requested. */
  isShaped: boolean | undefined;
}

/** The id of the visitor's page, and the sections that an embedding finds near the question. */
export interface QuestionContext {
  here?: string | undefined;
  near?: ReadonlySet<Section>;
}

/** Weights of the terms of a unit and of its surroundings. */
export type Strengths = ReadonlyMap<string, number>;

interface Reading {
  unit: Unit;
  strengths: Strengths;
  /** The shapes that were looked for. */
  shapes: Map<Shape, boolean>;
}

/** A word of a question, or a requested shape with the words for it. */
interface Part {
  words: readonly Likeness[];
  weight: number;
  shape?: Shape;
  isName?: boolean;
}

/** The weight of a word in the title of a source. All constants here were chosen on seven sets of questions together (`npm run bench -- answers`). */
const TITLE = 0.4;

/** Factors of a word that is absent from the library, and of an everyday word. */
const ABSENT = 0.7;
const COMMON = 0.45;

/** What an absent name tells more than another absent word, relative to the rarest word. */
const NAME = 0.6;

/** The weight of the requested shape, relative to the rarest word. */
const SHAPE = 0.37;
/** The least strength of a word for a shape, which then counts as much as its form. */
const NAMED = 0.5;
/** The factor of a shape in the sentence before or after. */
const BESIDE = 0.7;
/** The shapes that may be in any sentence before, and those in no other sentence: figures there are mostly of something else. */
const BEFORE: ReadonlySet<Shape> = new Set(["amount", "duration", "count"]);
const OWN: ReadonlySet<Shape> = new Set(["clock", "time", "things"]);

/** Bonuses for the visitor's page, the question's language, and a near embedding. */
const OWN_PAGE = 0.1;
const OWN_LANGUAGE = 0.05;
const NEAR = 0.15;

/** Sections that are read for a question, and for one that has no word of the library, such as "When?". */
const MAX_SECTIONS_READ = 40;
const MAX_SECTIONS_SCANNED = 400;
const MAX_SECTIONS = 20_000;

/** All public text of a handle, with an index of its words. */
export class Library {
  readonly sections: Section[] = [];
  readonly #languages = new Set<string>();
  /** By term: the sections that contain it, by their index, with the term's weight there. */
  readonly #postings = new Map<string, Map<number, number>>();
  readonly #likeness = new LRUCache<string, Likeness>({
    max: 2000,
    memoMethod: (key) => {
      const [language = "", ...forms] = key.split(" ");
      return likenessOf(forms, this.#postings, [language, ...this.#languages]);
    },
  });
  /**
   * The terms of the latest titles, headings and names of columns; blocks that follow each other mostly have the same ones. Without it, a
   * hostile text of 128 KB takes four times as long.
   */
  readonly #terms = new LRUCache<string, string[]>({
    max: 100,
    memoMethod: (key) => rangedTermsIn(key.slice(key.indexOf(" ")), key.slice(0, key.indexOf(" "))),
  });
  /** The units of a section with the weights of their terms. */
  readonly readingsOf = lazyByKey((section: Section): readonly Reading[] =>
    unitsOf(section).map((unit) => ({
      unit,
      strengths: this.#strengthsIn(unit),
      shapes: new Map<Shape, boolean>(),
    })),
  );

  /** Reads one section per step, so that the caller can pause. */
  *read(sources: Iterable<Source>): Generator<void> {
    for (const source of sources) {
      const text = () => source.blocks.map((block) => block.text).join("\n");
      const language = source.language ? primaryLanguage(source.language) : languageOf(text());
      for (const blocks of sectionsOf(source.blocks)) {
        if (this.sections.length >= MAX_SECTIONS) return;
        this.#add({ source, language, at: this.sections.length, blocks });
        yield;
      }
    }
  }

  /** The sections that match a question, the best first. */
  rank(question: Question, context: QuestionContext = {}): Section[] {
    return this.#rank(this.#partsOf(question), question, context);
  }

  /** The units of the best sections, the best first. */
  hits(question: Question, context: QuestionContext = {}): Hit[] {
    const parts = this.#partsOf(question);
    const isUnknown = parts.every(({ shape, words }) => shape || words[0]!.size === 0);
    const sections =
      isUnknown && parts.some(({ shape }) => shape)
        ? this.#first(context)
        : this.#rank(parts, question, context).slice(0, MAX_SECTIONS_READ);
    return sections
      .flatMap((section) => this.#hitsIn(section, parts, this.#lead(section, question, context)))
      .sort((one, other) => other.score - one.score);
  }

  /** The terms of the library that match a word. */
  likenessOf({ forms }: Pick<Subject, "forms">, language: string): Likeness {
    return this.#likeness.memo([language, ...forms].join(" "));
  }

  #rank(parts: readonly Part[], question: Question, context: QuestionContext): Section[] {
    const scores = new Map([...(context.near ?? [])].map(({ at }) => [at, 0]));
    for (const { words, weight } of parts.filter(({ shape }) => !shape)) {
      const held = new Map<number, number>();
      for (const [term, near] of words[0]!)
        for (const [at, strength] of this.#postings.get(term)!)
          held.set(at, Math.max(held.get(at) ?? 0, strength * near));
      for (const [at, strength] of held) scores.set(at, (scores.get(at) ?? 0) + weight * strength);
    }
    return [...scores]
      .map(([at, score]) => ({ section: this.sections[at]!, score }))
      .map(({ section, score }) => ({ section, score: score * this.#lead(section, question, context) }))
      .sort((one, other) => other.score - one.score)
      .map(({ section }) => section);
  }

  /** The sections of the visitor's page and the first of the others. */
  #first({ here }: QuestionContext): Section[] {
    const own = this.sections.filter(({ source }) => source.id === here);
    return [...new Set([...own, ...this.sections])].slice(0, MAX_SECTIONS_SCANNED);
  }

  #hitsIn(section: Section, parts: readonly Part[], lead: number): Hit[] {
    const readings = this.readingsOf(section);
    const total = parts.reduce((sum, { weight }) => sum + weight, 0) || 1;
    const held = parts.map((part) => readings.map((_, at) => heldAt(readings, at, part)));
    const telling = ({ shape, weight, isName }: Part) => (shape ? 0 : weight + (isName ? NAME * this.rarest : 0));
    const absent = parts.map((part, at) => telling(part) * (1 - Math.max(...held[at]!)));
    const missing = Math.max(0, ...absent) / this.rarest;
    return readings.map(({ unit }, at) => {
      const share = parts.reduce((sum, { weight }, part) => sum + weight * held[part]![at]!, 0) / total;
      const shaped = parts.flatMap(({ shape }, part) => (shape ? [held[part]![at]! > 0] : []));
      const isShaped = shaped.length === 0 ? undefined : shaped.includes(true);
      return { unit, score: lead * share, share, missing, isShaped };
    });
  }

  #partsOf({ subjects, asks, language }: Question): Part[] {
    const words = subjects
      .flatMap((subject) => this.#halvesOf(subject, language))
      .map((subject) => ({ subject, likeness: this.likenessOf(subject, language) }))
      .filter(({ subject, likeness }) => likeness.size > 0 || !isSlipOf(subject.text, stopWords(language)))
      .map(({ subject, likeness }): Part => {
        const { isName } = subject;
        return { words: [likeness], weight: this.weightOf(subject, likeness), isName };
      });
    const shapes = asks.map(({ shape, words }) => ({
      shape,
      words: words.map((word) => this.likenessOf(word, language)),
      weight: this.rarest * SHAPE,
    }));
    return [...words, ...shapes];
  }

  /** The two words of a compound that the library has apart: "Wednesday" and "afternoon" of "woensdagmiddag". */
  #halvesOf(subject: Subject, language: string): Subject[] {
    if (!grammarOf(language).isCompounding || subject.forms.some((form) => this.#postings.has(form))) return [subject];
    const found = compoundParts(subject.text, (part) => this.#postings.has(fold(stem(part, language))));
    return found?.map((text) => ({ ...subject, text, forms: [fold(stem(text, language))] })) ?? [subject];
  }

  /** The weight of a word, from 0 to `rarest`: the rarer, the higher. */
  weightOf({ isCommon }: Pick<Subject, "isCommon">, likeness: Likeness): number {
    const usual = isCommon ? COMMON : 1;
    if (likeness.size === 0) return usual * this.rarest * ABSENT;
    let [same, related] = [0, 0];
    for (const [term, near] of likeness) {
      const count = this.#postings.get(term)!.size;
      if (near === 1) same += count;
      else related = Math.max(related, count * near);
    }
    return usual * Math.log(1 + this.sections.length / Math.max(1, same, related));
  }

  /** The weight of a word that is in one section. */
  get rarest(): number {
    return Math.log(1 + Math.max(1, this.sections.length));
  }

  #lead(section: Section, question: Question, { here, near }: QuestionContext): number {
    const isHere = here !== undefined && section.source.id === here;
    const isSpoken = section.language === question.language;
    return 1 + (isHere ? OWN_PAGE : 0) + (isSpoken ? OWN_LANGUAGE : 0) + (near?.has(section) ? NEAR : 0);
  }

  #add(section: Section): void {
    const { at, blocks } = section;
    this.sections.push(section);
    this.#languages.add(section.language);
    for (const block of blocks)
      for (const [term, strength] of this.#strengthsIn({ section, block, introductions: [], text: block.text })) {
        const posting = this.#postings.get(term) ?? new Map<number, number>();
        this.#postings.set(term, posting.set(at, Math.max(posting.get(at) ?? 0, strength)));
      }
  }

  /** The weights of the terms of a text of a block; what stands around it counts as much as the text, except for the title. */
  #strengthsIn({ section, block, introductions, text }: Omit<Unit, "start" | "at">): Strengths {
    const { headings, columns = [] } = block;
    const { source, language } = section;
    const termsOf = (line: string) => this.#terms.memo(`${language} ${line}`);
    const strengths = new Map(termsOf(source.title).map((term) => [term, TITLE]));
    const around = [...headings, ...columns, ...introductions.map((one) => one.text)].flatMap(termsOf);
    for (const term of [...around, ...rangedTermsIn(plainText(text), language)]) strengths.set(term, 1);
    return strengths;
  }
}

/** How well terms match a word of the question, 0 to 1. */
export function strengthOf(strengths: Strengths, likeness: Likeness): number {
  let best = 0;
  const [few, many] = strengths.size < likeness.size ? [strengths, likeness] : [likeness, strengths];
  for (const [term, strength] of few) best = Math.max(best, strength * (many.get(term) ?? 0));
  return best;
}

/** How much of a part of the question a unit contains, 0 to 1. */
function heldAt(readings: readonly Reading[], at: number, { words, shape }: Part): number {
  if (!shape) return strengthOf(readings[at]!.strengths, words[0]!);
  const isShaped = (reading?: Reading) => reading !== undefined && isOfShape(reading, shape, words);
  if (isShaped(readings[at])) return 1;
  if (OWN.has(shape)) return 0;
  const isBeside = (reading: Reading | undefined, isAny: boolean) =>
    isShaped(reading) && (isAny || namesNothing(reading!, words));
  return isBeside(readings[at + 1], shape !== "age") || isBeside(readings[at - 1], BEFORE.has(shape)) ? BESIDE : 0;
}

/** True for "He is 54 years old" and "Minimum age: 12", not for "It is for children from 4 to 11 years". */
function namesNothing({ unit: { text, section } }: Reading, words: readonly Likeness[]): boolean {
  const { language } = section;
  const isPlain = (term: string) => /^\p{N}/u.test(term) || isUnit(term, language) || isCommon(term, language);
  return termsIn(text, language).every((term) => isPlain(term) || words.some((likeness) => likeness.get(term) === 1));
}

/** True if a unit contains a shape, or a word for it. "Find" of "where can I find you" is said of many things. */
function isOfShape(reading: Reading, shape: Shape, words: readonly Likeness[]): boolean {
  if (isHeld(reading, shape)) return true;
  if (shape === "place" || (shape === "age" && !mayTellAge(reading))) return false;
  return words.some((likeness) => strengthOf(reading.strengths, likeness) > NAMED);
}

/** True for "16 or older", "no age limit" and "for all ages", not for "the Old Mill". */
function mayTellAge(reading: Reading): boolean {
  const { text, section } = reading.unit;
  return isHeld(reading, "things") || isNegated(text, section.language) || isUniversal(text, section.language);
}

function isHeld({ unit, shapes }: Reading, shape: Shape): boolean {
  const isPrice = () => shape === "amount" && isPriced(unit);
  const isKnown = shapes.get(shape) ?? (holdsShape(unit.text, shape, unit.section.language) || isPrice());
  shapes.set(shape, isKnown);
  return isKnown;
}

/** True for a row with a number whose caption or columns name the currency, such as "Fares in pounds". */
function isPriced({ block: { cells = [], columns = [] }, introductions }: Unit): boolean {
  if (!cells.slice(1).some((cell) => /^\d[\d.,]*$/.test(cell))) return false;
  const names = [...introductions.map(({ text }) => text), ...columns].join(" ; ");
  return unitsNamedIn(names).some((unit) => unit !== "%");
}
