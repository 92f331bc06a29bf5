import { LRUCache } from "lru-cache";
import { languageOf } from "../../platform/languages.ts";
import type { Block } from "./blocks.ts";
import { plainText } from "./markdown.ts";
import { isCommon, type Likeness, likenessOf, partsOf } from "./matching.ts";
import type { Question, Subject } from "./question.ts";
import { sentences } from "./sentences.ts";
import { holdsShape, type Shape } from "./shapes.ts";
import { termsIn } from "./words.ts";

/** A page or a document with what an answer says of it. */
export interface Source {
  kind: "page" | "kb_doc";
  /** Names it within the library. */
  id: string;
  title: string;
  /** Public address of a page; null for a document. */
  url: string | null;
  /** As the owner declares it; else it is told from the text. */
  language?: string;
  blocks: readonly Block[];
}

/** Blocks of a source under one heading. */
export interface Section {
  source: Source;
  language: string;
  /** Place among all sections. */
  at: number;
  blocks: readonly Block[];
}

/** A piece of public text that may answer: a sentence, an item, a row, or a column of a table. */
export interface Unit {
  section: Section;
  block: Block;
  /** Exact public text; of a row its cells, apart by tabs. */
  text: string;
  start: number;
  /** Place within its section. */
  at: number;
  /** Set where the unit is a column of its table. */
  column?: number;
}

/** A unit with how well it answers a question. */
export interface Hit {
  unit: Unit;
  /** Share of the question, by weight, that it and what stands around it speak of. */
  coverage: number;
  score: number;
}

type Terms = Map<string, number>;
interface Reading {
  unit: Unit;
  terms: Terms;
  /** Terms of its own text. */
  own: readonly string[];
  shapes: Map<Shape, boolean>;
}

/** What stands around a unit counts less than the unit. */
export const TUNE = {
  heading: 0.8,
  upper: 0.6,
  title: 0.4,
  leadIn: 0.8,
  before: 0.55,
  columns: 0.9,
  section: 0.45,
  ask: 0.5,
  askWord: 0.5,
  countWord: 0.8,
  asks: { amount: 0.6, time: 0.5, duration: 0.6, count: 0.4, place: 0.4, person: 0.4, phone: 1.2, mail: 1.2 } as Record<Shape, number>,
  absent: 0.7,
  short: 0.3,
  common: 0.45,
  askScale: 1,
  ownPage: 0.1,
  ownLanguage: 0.05,
  unitShare: 0.75,
  shapeless: 0.85,
  length: 0.0,
  headed: 0.05,
};
const SECTIONS_READ = 40;
const MAX_SECTIONS = 20_000;
const MAX_SECTION_LENGTH = 900;
const MAX_LIST_LENGTH = 2000;

/** All public text that answers may rest on, with an index of its words. */
export class Library {
  readonly sections: Section[] = [];
  readonly #postings = new Map<string, Map<number, number>>();
  readonly #readings = new WeakMap<Section, Reading[]>();
  readonly #likeness = new LRUCache<string, Likeness>({ max: 2000 });
  readonly languages = new Set<string>();

  constructor(sources: readonly Source[]) {
    for (const source of sources) this.#add(source);
  }

  /** Sections in the order of how well they speak of a question, the best first, with the weight of what they hold. */
  rank(question: Question, here?: string): { section: Section; score: number }[] {
    const scores = new Map<number, number>();
    for (const { likeness, weight } of this.#asked(question)) {
      const held = new Map<number, number>();
      for (const [term, near] of likeness)
        for (const [at, strength] of this.#postings.get(term)!) held.set(at, Math.max(held.get(at) ?? 0, near * strength));
      for (const [at, strength] of held) scores.set(at, (scores.get(at) ?? 0) + weight * strength);
    }
    return [...scores]
      .map(([at, score]) => ({ section: this.sections[at]!, score: score * this.#lead(this.sections[at]!, question, here) }))
      .sort((one, other) => other.score - one.score);
  }

  /** The units of the best sections, the best first. */
  hits(question: Question, here?: string): Hit[] {
    const ranked = this.rank(question, here).slice(0, SECTIONS_READ).map(({ section }) => section);
    const asked = this.#asked(question);
    const known = asked.filter(({ likeness }) => likeness.size > 0);
    const mean = asked.length === 0 ? 1 : asked.reduce((sum, { weight }) => sum + weight, 0) / asked.length;
    const asks = question.asks.map(({ shape, words }) => ({
      shape,
      likeness: words.map((word) => this.#likenessOf(word, question.language)),
      weight: (TUNE.askScale * mean + (1 - TUNE.askScale) * Math.log(1 + this.sections.length) * 0.6) * (TUNE.asks[shape] ?? TUNE.ask),
    }));
    const total = [...asked, ...asks].reduce((sum, { weight }) => sum + weight, 0) || 1;
    const pages = asks.length > 0 && known.length === 0 ? this.sections.slice(0, MAX_SECTIONS) : ranked;
    const found: Hit[] = [];
    for (const section of pages) {
      const readings = this.#readingsOf(section);
      const rows = readings.map((reading) => {
        const held = asked.map(({ likeness }) => strengthOf(reading.terms, likeness));
        const shaped = asks.map(({ shape, likeness }) => askedFor(shape, isShaped(reading, shape), likeness.map((one) => strengthOf(reading.terms, one))));
        return { reading, held, shaped };
      });
      const whole = asked.map((_, at) => Math.max(0, ...rows.map(({ held }) => held[at]!)));
      const wholeShare = whole.reduce((sum, held, at) => sum + held * asked[at]!.weight, 0) / total;
      for (const { reading, held, shaped } of rows) {
        const own = held.reduce((sum, strength, at) => sum + strength * asked[at]!.weight, 0);
        const shape = shaped.reduce<number>((sum, strength, at) => sum + strength * asks[at]!.weight, 0);
        const unitShare = (own + shape) / total;
        const coverage = TUNE.unitShare * unitShare + (1 - TUNE.unitShare) * (wholeShare + shape / total);
        const fits = asks.length === 0 || shaped.some((one) => one > 0) ? 1 : TUNE.shapeless;
        const headed = asked.some(({ likeness }) => likeness.size > 0 && isHeaded(reading, likeness)) ? 1 + TUNE.headed : 1;
        const score = coverage * fits * headed * this.#lead(section, question, here) - TUNE.length * Math.min(1, reading.unit.text.length / 400);
        found.push({ unit: reading.unit, coverage: coverage * fits, score, debug: { held, usual: question.subjects.map(s=>s.forms.some(f=>isCommon(f))?1:0), sweights: question.subjects.map(s=>s.weight), whole, shaped, weights: asked.map(({weight})=>weight), sizes: asked.map(({likeness})=>likeness.size), best: asked.map(({likeness})=>Math.max(0,...likeness.values())), asks: asks.map(({shape,weight})=>[shape,weight]), total, unitShare, wholeShare, headed, mw: Math.log(1+this.sections.length) } } as any);
      }
    }
    return found.sort((one, other) => other.score - one.score);
  }

  /** What the question speaks of; a compound that the library lacks is asked for by its parts. */
  #asked({ subjects, language }: Question): { likeness: Likeness; weight: number }[] {
    return subjects.flatMap((subject) => {
      const likeness = this.#likenessOf(subject, language);
      const parts = Math.max(0, ...likeness.values()) < 0.7 ? partsOf(subject.text, this.#postings, language) : [];
      if (parts.length === 0) return [{ likeness, weight: this.#weight(subject, likeness) }];
      return parts.map((part) => {
        const own: Subject = { text: part, forms: [part], weight: subject.weight * 0.7 };
        const found = this.#likenessOf(own, language);
        return { likeness: found, weight: this.#weight(own, found) };
      });
    });
  }

  #lead(section: Section, question: Question, here?: string): number {
    const own = here !== undefined && section.source.id === here ? TUNE.ownPage : 0;
    return 1 + own + (section.language === question.language ? TUNE.ownLanguage : 0);
  }

  #likenessOf(subject: Subject, language: string): Likeness {
    const key = `${language} ${subject.forms.join(" ")}`;
    const known = this.#likeness.get(key);
    if (known) return known;
    const found = likenessOf(subject.forms, this.#postings.keys(), language);
    this.#likeness.set(key, found);
    return found;
  }

  /** Rare words tell more; a word that the library lacks tells less than its rarity, and a short one next to nothing. */
  #weight({ text, weight, forms }: Subject, likeness: Likeness): number {
    const count = Math.max(1, this.sections.length);
    const usual = forms.some((form) => isCommon(form)) ? TUNE.common : 1;
    if (likeness.size === 0) return weight * usual * Math.log(1 + count) * TUNE.absent * (text.length <= 2 && !/\d/.test(text) ? TUNE.short : 1);
    let held = 0;
    let best = 0;
    for (const [term, near] of likeness) {
      if (near < 0.99 && forms.length > 0) held = Math.max(held, this.#postings.get(term)!.size * near);
      else held += this.#postings.get(term)!.size;
      best = Math.max(best, near);
    }
    return weight * usual * Math.log(1 + count / Math.max(1, held));
  }

  #add(source: Source): void {
    const language = source.language ?? languageOf(source.blocks.map(({ text }) => text).join("\n"));
    this.languages.add(language);
    for (const blocks of sectionsOf(source.blocks)) {
      if (this.sections.length >= MAX_SECTIONS) return;
      this.sections.push({ source, language, at: this.sections.length, blocks });
    }
    for (const section of this.sections.slice(-source.blocks.length)) if (section.source === source) this.#index(section);
  }

  #index(section: Section): void {
    const { language, at, source, blocks } = section;
    const add = (text: string, strength: number) => {
      for (const term of termsIn(text, language)) {
        const posting = this.#postings.get(term) ?? new Map<number, number>();
        this.#postings.set(term, posting);
        if ((posting.get(at) ?? 0) < strength) posting.set(at, strength);
      }
    };
    for (const block of blocks) add(`${plainText(block.text)} ${(block.columns ?? []).join(" ")}`, 1);
    const { headings, leadIn } = blocks[0]!;
    for (const [depth, heading] of headings.entries()) add(heading, headingStrength(headings, depth));
    add(leadIn, TUNE.leadIn);
    add(source.title, TUNE.title);
  }

  #readingsOf(section: Section): Reading[] {
    const known = this.#readings.get(section);
    if (known) return known;
    const units = unitsOf(section);
    const found = units.map((unit, at) => this.#read(unit, units[at - 1]));
    this.#readings.set(section, found);
    return found;
  }

  #read(unit: Unit, before: Unit | undefined): Reading {
    const { language, source } = unit.section;
    const terms: Terms = new Map();
    const add = (text: string, strength: number) => {
      for (const term of termsIn(text, language)) if ((terms.get(term) ?? 0) < strength) terms.set(term, strength);
    };
    const own = termsIn(plainText(unit.text), language);
    for (const term of own) terms.set(term, 1);
    const { headings, leadIn, columns } = unit.block;
    if (unit.column === undefined) add((columns ?? []).join(" "), TUNE.columns);
    add(leadIn, TUNE.leadIn);
    if (unit.block.kind === "text" && before?.block.kind === "text") add(plainText(before.text), TUNE.before);
    for (const [depth, heading] of headings.entries()) add(heading, headingStrength(headings, depth));
    add(source.title, TUNE.title);
    return { unit, terms, own, shapes: new Map() };
  }
}

/** What is asked for is there by its form, by a word for it, or by both. */
function askedFor(shape: Shape, isShaped: boolean, words: readonly number[]): number {
  if (words.length === 0) return isShaped ? 1 : 0;
  const share = shape === "count" ? TUNE.countWord : TUNE.askWord;
  return (isShaped ? 1 - share : 0) + Math.max(...words) * share;
}

/** A question that is a heading says what its section is about as well as the section. */
function headingStrength(headings: readonly string[], depth: number): number {
  if (depth < headings.length - 1) return TUNE.upper;
  return headings[depth]!.endsWith("?") ? 1 : TUNE.heading;
}

function strengthOf(terms: Terms, likeness: Likeness): number {
  let best = 0;
  const [few, many] = terms.size < likeness.size ? [terms, likeness] : [likeness, terms];
  for (const [term, strength] of few) best = Math.max(best, strength * (many.get(term) ?? 0));
  return best;
}

function isHeaded({ unit }: Reading, likeness: Likeness): boolean {
  const heading = unit.block.headings.at(-1);
  return heading !== undefined && termsIn(heading, unit.section.language).some((term) => (likeness.get(term) ?? 0) > 0.65);
}

function isShaped(reading: Reading, shape: Shape): boolean {
  const known = reading.shapes.get(shape);
  if (known !== undefined) return known;
  const found = holdsShape(reading.unit.text, shape, reading.own);
  reading.shapes.set(shape, found);
  return found;
}

/** Blocks under one heading, as far as they are read at one look; a table or a list is not torn from what leads into it. */
function sectionsOf(blocks: readonly Block[]): Block[][] {
  const found: Block[][] = [];
  let length = 0;
  for (const block of blocks.filter(({ buttons }) => !buttons)) {
    const last = found.at(-1)?.at(-1);
    const follows = last?.section === block.section && (length + block.text.length <= MAX_SECTION_LENGTH || (block.kind !== "text" && length <= MAX_LIST_LENGTH));
    if (follows) found.at(-1)!.push(block);
    else found.push([block]);
    length = (follows ? length : 0) + block.text.length;
  }
  return found;
}

/** The sentences, items and rows of a section in their order. */
export function unitsOf(section: Section): Unit[] {
  const found: Unit[] = [];
  const add = (block: Block, text: string, start: number) => found.push({ section, block, text, start, at: found.length });
  for (const block of section.blocks) {
    if (block.kind === "row") add(block, block.text, block.start);
    else for (const { text, start } of sentences(block.text)) add(block, text, block.start + start);
  }
  return found;
}
