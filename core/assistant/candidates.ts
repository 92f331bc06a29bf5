import { LRUCache } from "lru-cache";
import { terms } from "../engines/search/words.ts";
import type { Evidence } from "./evidence.ts";
import { type Sentence, sentences } from "./sentences.ts";
import { folded } from "./topics.ts";

/** A sentence with what stands around it. */
interface Surrounded extends Sentence {
  /** Number of the heading that it stands under, within its evidence. */
  part: number;
  terms: ReadonlySet<string>;
  heading: ReadonlySet<string>;
  /** Terms of the sentence before; for items, of the sentence that leads into their list. */
  before: ReadonlySet<string>;
  title: ReadonlySet<string>;
  /** The heading is a question, so that this section answers it. */
  answersHeading: boolean;
  /** The row that names the columns of this row's table. */
  header: string | undefined;
  /** As the patterns of topics read it. */
  folded: string;
}

/** A sentence that could be (part of) an answer. */
export interface Candidate extends Surrounded {
  evidence: Evidence;
  /** Place of its evidence in the ranking. */
  rank: number;
  /** Place among all candidates: the reading order. */
  at: number;
  /** Candidates of one number stand under one heading, without a break. */
  section: number;
}

const EVIDENCE_READ = 40;
const NONE: ReadonlySet<string> = new Set();
/** Characters of evidence whose sentences are kept: the same pages are asked about again and again. */
const KEPT_LENGTH = 1_000_000;
const kept = new LRUCache<string, Surrounded[]>({ maxSize: KEPT_LENGTH, sizeCalculation: (_, key) => key.length + 1 });

/** All sentences of the evidence in its order, each once. */
export function candidatesOf(evidence: Evidence[]): Candidate[] {
  const found: Candidate[] = [];
  const seen = new Set<string>();
  for (const [rank, item] of evidence.slice(0, EVIDENCE_READ).entries()) {
    const first = (found.at(-1)?.section ?? 0) + 1;
    for (const sentence of readEvidence(item)) {
      const key = `${item.title}\n${item.heading}\n${sentence.text}`;
      if (seen.has(key)) continue;
      seen.add(key);
      found.push({ evidence: item, rank, at: found.length, section: first + sentence.part, ...sentence });
    }
  }
  return found;
}

function readEvidence(evidence: Evidence): Surrounded[] {
  const key = `${evidence.title}\n${evidence.heading}\n${evidence.text}`;
  const known = kept.get(key);
  if (known) return known;
  const read = new EvidenceReader(evidence).read();
  kept.set(key, read);
  return read;
}

/** The cells of a table row. */
export function cells(row: string): string[] {
  return row
    .split(/[\t|]/)
    .map((cell) => cell.trim())
    .filter((cell) => cell !== "");
}

class EvidenceReader {
  private readonly evidence: Evidence;
  private readonly title: ReadonlySet<string>;
  private heading: string;
  private headingTerms: ReadonlySet<string>;
  private part = 0;
  private before = NONE;
  private leadIn = NONE;
  private header: string | undefined;

  constructor(evidence: Evidence) {
    this.evidence = evidence;
    this.title = new Set(terms(evidence.title));
    this.heading = evidence.heading;
    this.headingTerms = new Set(terms(evidence.heading));
  }

  read(): Surrounded[] {
    const found: Surrounded[] = [];
    const all = sentences(this.evidence.text);
    for (const [index, sentence] of all.entries()) {
      if (sentence.kind === "heading") this.enter(sentence.text);
      else if (!this.isHeader(sentence, all[index - 1], all[index + 1])) found.push(this.surrounded(sentence));
    }
    return found;
  }

  private enter(heading: string): void {
    this.part++;
    this.heading = heading;
    this.headingTerms = new Set([...terms(this.evidence.heading), ...terms(heading)]);
    this.before = this.leadIn = NONE;
  }

  /** The first row names the columns where it holds no number and more rows follow. */
  private isHeader(sentence: Sentence, previous: Sentence | undefined, next: Sentence | undefined): boolean {
    if (sentence.kind !== "row") this.header = undefined;
    if (sentence.kind !== "row" || previous?.kind === "row" || next?.kind !== "row") return false;
    this.header = cells(sentence.text).length > 1 && !/\d/.test(sentence.text) ? sentence.text : undefined;
    return this.header !== undefined;
  }

  private surrounded(sentence: Sentence): Surrounded {
    const own = new Set(terms(sentence.text));
    const prose = sentence.kind === "prose";
    const read = {
      ...sentence,
      part: this.part,
      terms: own,
      heading: this.header ? new Set([...this.headingTerms, ...terms(this.header)]) : this.headingTerms,
      before: prose ? this.before : this.leadIn,
      title: this.title,
      answersHeading: this.heading.trim().endsWith("?"),
      header: this.header,
      folded: folded(sentence.text),
    };
    if (prose) this.leadIn = sentence.text.endsWith(":") ? own : NONE;
    this.before = own;
    return read;
  }
}
