// Over 300 lines: the index of words and the readings of its sections share their private tables.
import { LRUCache } from "lru-cache";
import { fold } from "../../platform/characters.ts";
import { languageOf, primaryLanguage, stem, stopWords } from "../../platform/languages.ts";
import { plainText } from "../../platform/markdown.ts";
import type { Block } from "./blocks.ts";
import { isSlipOf, type Likeness, likenessOf } from "./matching.ts";
import type { Question, Subject } from "./question.ts";
import { type Section, type Source, sectionsOf, type Unit, unitsOf } from "./sections.ts";
import { holdsShape, type Shape } from "./shapes.ts";
import { compoundParts, isCompounding, termsIn } from "./words.ts";

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
  /** Its heading contains a subject of the question. */
  isHeaded: boolean;
}

/** The id of the visitor's page, and the sections that an embedding finds near the question. */
export interface Place {
  here?: string | undefined;
  near?: ReadonlySet<Section>;
}

/** Weights of the terms of a unit and of its surroundings. */
export type Strengths = ReadonlyMap<string, number>;

interface Reading {
  unit: Unit;
  strengths: Strengths;
  /** The terms of its heading. */
  heading: readonly string[];
  /** The shapes that were looked for. */
  shapes: Map<Shape, boolean>;
}

/** Terms of the title, the headings, the names of columns and the lead-in of a block. */
interface Surroundings {
  strengths: Strengths;
  heading: readonly string[];
}

interface Wanted {
  likeness: Likeness;
  weight: number;
}

interface AskedShape {
  shape: Shape;
  words: readonly Likeness[];
  weight: number;
}

/** The weight of a word in the title of a source. All constants here were chosen on seven sets of questions together (`npm run bench -- answers`). */
const TITLE = 0.4;

/** Factors of a word that is absent from the library, and of an everyday word. */
const ABSENT = 0.7;
const COMMON = 0.45;

/** The weight of the requested shape, relative to a word of the question. */
const SHAPE = 0.6;
/** The least strength of a word for a shape, which then counts as much as its form. */
const NAMED = 0.5;
/** The least likeness between a word of the question and a word of a heading. */
const HEADS = 0.75;
/** The factor of a shape in the sentence before or after. */
const BESIDE = 0.7;

/** Bonuses for the visitor's page, the question's language, a heading with a subject, and a near embedding. */
const OWN_PAGE = 0.1;
const OWN_LANGUAGE = 0.05;
const HEADED = 0.1;
const NEAR = 0.15;
const SHAPELESS = 0.7;

/** Sections that are read for a question, and for one that has no word of the library, such as "When?". */
const MAX_SECTIONS_READ = 40;
const MAX_SECTIONS_SCANNED = 400;
const MAX_SECTIONS = 20_000;

/** All public text of a handle, with an index of its words. */
export class Library {
  readonly sections: Section[] = [];
  /** By term: pairs of a section's index and the term's weight there. */
  readonly #postings = new Map<string, number[]>();
  readonly #readings = new WeakMap<Section, Reading[]>();
  readonly #likeness = new LRUCache<string, Likeness>({ max: 2000 });
  /** Those of the latest blocks. */
  readonly #surroundings = new LRUCache<string, Surroundings>({ max: 4 });

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
  rank(question: Question, place: Place = {}): Section[] {
    return this.#rank(this.#wanted(question), question, place);
  }

  /** The units of the best sections, the best first. */
  hits(question: Question, place: Place = {}): Hit[] {
    const wanted = this.#wanted(question);
    const asks = this.#asks(question, wanted);
    const onlyShape = asks.length > 0 && wanted.every(({ likeness }) => likeness.size === 0);
    const sections = onlyShape ? this.#first(place) : this.#rank(wanted, question, place).slice(0, MAX_SECTIONS_READ);
    const found = sections.flatMap((section) => {
      const lead = this.#lead(section, question, place);
      return this.#hitsIn(section, { wanted, asks }).map((hit) => ({ ...hit, score: hit.score * lead }));
    });
    return found.sort((one, other) => other.score - one.score);
  }

  /** The units of a section with the weights of their terms. */
  strengthsOf(section: Section): readonly { unit: Unit; strengths: Strengths }[] {
    return this.#readingsOf(section);
  }

  /** The terms of the library that match a word. */
  likenessOf({ forms }: Pick<Subject, "forms">, language: string): Likeness {
    const key = `${language} ${forms.join(" ")}`;
    const known = this.#likeness.get(key);
    if (known) return known;
    const found = likenessOf(forms, this.#postings, language);
    this.#likeness.set(key, found);
    return found;
  }

  #rank(wanted: readonly Wanted[], question: Question, place: Place): Section[] {
    const scores = new Map<number, number>();
    for (const { likeness, weight } of wanted) {
      const held = new Map<number, number>();
      for (const [term, near] of likeness) {
        const posting = this.#postings.get(term)!;
        for (let pair = 0; pair < posting.length; pair += 2) {
          const [at, strength] = [posting[pair]!, posting[pair + 1]! * near];
          if (strength > (held.get(at) ?? 0)) held.set(at, strength);
        }
      }
      for (const [at, strength] of held) scores.set(at, (scores.get(at) ?? 0) + weight * strength);
    }
    for (const { at } of place.near ?? []) scores.set(at, scores.get(at) ?? 0);
    return [...scores]
      .map(([at, score]) => ({
        section: this.sections[at]!,
        score: score * this.#lead(this.sections[at]!, question, place),
      }))
      .sort((one, other) => other.score - one.score)
      .map(({ section }) => section);
  }

  /** The sections of the visitor's page and the first of the others. */
  #first({ here }: Place): Section[] {
    const own = this.sections.filter(({ source }) => source.id === here);
    return [...new Set([...own, ...this.sections])].slice(0, MAX_SECTIONS_SCANNED);
  }

  #hitsIn(section: Section, { wanted, asks }: { wanted: readonly Wanted[]; asks: readonly AskedShape[] }): Hit[] {
    const readings = this.#readingsOf(section);
    const rows = readings.map((reading, at) => ({
      reading,
      held: wanted.map(({ likeness }) => strengthOf(reading.strengths, likeness)),
      shaped: asks.map((ask) => shapedAt(readings, at, ask)),
    }));
    const whole = wanted.map((_, at) => Math.max(...rows.map(({ held }) => held[at]!)));
    const missing = Math.max(0, ...whole.map((held, at) => (1 - held) * wanted[at]!.weight)) / this.rarest;
    const parts = [...wanted, ...asks];
    const total = parts.reduce((sum, { weight }) => sum + weight, 0) || 1;
    return rows.map(({ reading, held, shaped }) => {
      const share = [...held, ...shaped].reduce((sum, strength, at) => sum + strength * parts[at]!.weight, 0) / total;
      const isShaped = asks.length === 0 ? undefined : shaped.some((one) => one > 0);
      const isHeaded = wanted.some(({ likeness }) =>
        reading.heading.some((term) => (likeness.get(term) ?? 0) >= HEADS),
      );
      const score = share * (isShaped === false ? SHAPELESS : 1) * (isHeaded ? 1 + HEADED : 1);
      return { unit: reading.unit, score, share, missing, isShaped, isHeaded };
    });
  }

  #wanted({ subjects, language }: Question): Wanted[] {
    const parts = subjects.flatMap((subject) => this.#partsOf(subject, language));
    return parts.flatMap((subject) => {
      const likeness = this.likenessOf(subject, language);
      if (likeness.size === 0 && isSlipOf(subject.text, stopWords(language))) return [];
      return [{ likeness, weight: this.weightOf(subject, likeness) }];
    });
  }

  /** The two words of a compound that the library has apart: "Wednesday" and "afternoon" of "woensdagmiddag". */
  #partsOf(subject: Subject, language: string): Subject[] {
    if (!isCompounding(language) || subject.forms.some((form) => this.#postings.has(form))) return [subject];
    const found = compoundParts(subject.text, (part) => this.#postings.has(fold(stem(part, language))));
    return found?.map((text) => ({ ...subject, text, forms: [fold(stem(text, language))] })) ?? [subject];
  }

  #asks({ asks, language }: Question, wanted: readonly Wanted[]): AskedShape[] {
    const mean = wanted.length === 0 ? 1 : wanted.reduce((sum, { weight }) => sum + weight, 0) / wanted.length;
    return asks.map(({ shape, words }) => ({
      shape,
      words: words.map((word) => this.likenessOf(word, language)),
      weight: mean * SHAPE,
    }));
  }

  /** The weight of a word, from 0 to `rarest`: the rarer, the higher. */
  weightOf({ isCommon }: Pick<Subject, "isCommon">, likeness: Likeness): number {
    const usual = isCommon ? COMMON : 1;
    if (likeness.size === 0) return usual * this.rarest * ABSENT;
    let [same, related] = [0, 0];
    for (const [term, near] of likeness) {
      const count = this.#postings.get(term)!.length / 2;
      if (near === 1) same += count;
      else related = Math.max(related, count * near);
    }
    return usual * Math.log(1 + this.sections.length / Math.max(1, same, related));
  }

  /** The weight of a word that is in one section. */
  get rarest(): number {
    return Math.log(1 + Math.max(1, this.sections.length));
  }

  #lead(section: Section, question: Question, { here, near }: Place): number {
    const isHere = here !== undefined && section.source.id === here;
    const isSpoken = section.language === question.language;
    return 1 + (isHere ? OWN_PAGE : 0) + (isSpoken ? OWN_LANGUAGE : 0) + (near?.has(section) ? NEAR : 0);
  }

  #add(section: Section): void {
    const { at, blocks } = section;
    this.sections.push(section);
    for (const block of blocks)
      for (const [term, strength] of this.#strengthsIn(block.text, block, section)) {
        const posting = this.#postings.get(term);
        if (posting === undefined) this.#postings.set(term, [at, strength]);
        else if (posting.at(-2) !== at) posting.push(at, strength);
        else if (posting.at(-1)! < strength) posting[posting.length - 1] = strength;
      }
  }

  #readingsOf(section: Section): Reading[] {
    const known = this.#readings.get(section);
    if (known) return known;
    const found = unitsOf(section).map((unit) => ({
      unit,
      strengths: this.#strengthsIn(unit.text, unit.block, section),
      heading: this.#surroundingsOf(unit.block, section).heading,
      shapes: new Map<Shape, boolean>(),
    }));
    this.#readings.set(section, found);
    return found;
  }

  /** The weights of the terms of a text of a block; what stands around it counts as much as the text, except for the title. */
  #strengthsIn(text: string, block: Block, section: Section): Strengths {
    const strengths = new Map(this.#surroundingsOf(block, section).strengths);
    for (const term of termsIn(plainText(text), section.language)) strengths.set(term, 1);
    return strengths;
  }

  /** Blocks that follow each other mostly have the same ones. */
  #surroundingsOf({ headings, columns = [], leadIn }: Block, { language, source }: Section): Surroundings {
    const lines = [...headings, ...columns, leadIn];
    const key = [language, source.title, headings.at(-1), ...lines].join("\n");
    const known = this.#surroundings.get(key);
    if (known) return known;
    const weighed = (line: string, strength: number) =>
      termsIn(line, language).map((term) => [term, strength] as const);
    const strengths = new Map([...weighed(source.title, TITLE), ...lines.flatMap((line) => weighed(line, 1))]);
    const found = { strengths, heading: termsIn(headings.at(-1) ?? "", language) };
    this.#surroundings.set(key, found);
    return found;
  }
}

/** How well terms match a word of the question, 0 to 1. */
export function strengthOf(strengths: Strengths, likeness: Likeness): number {
  let best = 0;
  const [few, many] = strengths.size < likeness.size ? [strengths, likeness] : [likeness, strengths];
  for (const [term, strength] of few) best = Math.max(best, strength * (many.get(term) ?? 0));
  return best;
}

/** How much of a requested shape a unit contains, or the one before or after it; 0 to 1. */
function shapedAt(readings: readonly Reading[], at: number, ask: AskedShape): number {
  const beside = [readings[at - 1], readings[at + 1]].filter((reading) => reading !== undefined);
  return Math.max(shapedIn(readings[at]!, ask), ...beside.map((reading) => shapedIn(reading, ask) * BESIDE));
}

/** 1 if a unit contains a requested shape, or a word for it. */
function shapedIn(reading: Reading, { shape, words }: AskedShape): number {
  const { section } = reading.unit;
  const isShaped = reading.shapes.get(shape) ?? holdsShape(reading.unit.text, shape, section.language);
  reading.shapes.set(shape, isShaped);
  return isShaped || words.some((likeness) => strengthOf(reading.strengths, likeness) > NAMED) ? 1 : 0;
}
