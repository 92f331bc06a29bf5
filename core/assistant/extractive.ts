import { type Candidate, candidatesOf, cells } from "./candidates.ts";
import type { Evidence } from "./evidence.ts";
import { type Language, languageOf } from "./language.ts";
import { linkMarkdown, sentenceMarkdown } from "./markdown.ts";
import { phrases } from "./phrases.ts";
import { type Reading, readQuestion, type Turn } from "./question.ts";
import { type Scored, scoreCandidates } from "./scoring.ts";
import { folded } from "./topics.ts";

/** An answer made of exact sentences of the evidence. */
export interface Extraction {
  /** False where the evidence doesn't answer; `markdown` then says so. */
  answered: boolean;
  language: Language;
  markdown: string;
  /** The evidence that the sentences shown come from, in their order; empty where there are none. */
  used: Evidence[];
}

/** Share of the question, by weight, that a sentence and what stands around it must speak of. */
const ANSWER_COVERAGE = 0.48;
/** Below the share of an answer, but worth showing as what comes closest. */
const CLOSEST_COVERAGE = 0.4;
/** The share where "how much" or "when" is asked and no amount or time is there. */
const UNSHAPED_COVERAGE = 0.75;
/** A further sentence is taken when its score reaches this share of the best: under the same heading, elsewhere. */
const FURTHER_SHARE = 0.85;
const ELSEWHERE_SHARE = 0.95;
const SENTENCES = 3;
const ITEMS = 8;
const ANSWER_LENGTH = 900;
/** "Yes." says nothing without the sentence that follows. */
const SHORT_SENTENCE = 30;
const PIECE_LENGTH = 24;

const GREETING =
  /^(?:hi|hello|hey|good (?:morning|afternoon|evening)|hallo|moin|guten (?:tag|morgen|abend)|bonjour|bonsoir|salut|hola|buenos dias|buenas|ciao|buongiorno|salve|goedendag|goedemorgen|ola|bom dia|boa tarde)[\s!.,]*$/;
const THANKS =
  /^(?:thanks?|thank you|thx|danke|vielen dank|merci|gracias|grazie|bedankt|dank je|dank u|obrigad[oa])(?: (?:a lot|so much|very much|schon|sehr|beaucoup|mille))?[\s!.]*$/;
const WHO_ARE_YOU =
  /^(?:who are you|what are you|are you (?:a )?(?:bot|robot|human|real|ai)|wer bist du|wer sind sie|bist du ein (?:bot|mensch)|qui etes[- ]vous|qui es[- ]tu|quien eres|chi sei|wie ben je|quem es|quem e voce)[\s?!.]*$/;
/** A sentence that starts so leans on the one before it. */
const LEANING =
  /^(?:it|they|this|these|that|those|he|she|then|also|however|es|dies|diese[rs]?|danach|il|elle|ils|elles|cela|esto|eso|questo|deze|dit|dat|ele|ela|isto|isso)\b/i;

/** Answers from the evidence (best first) with its own sentences; `history` only resolves a short follow-up. */
export function extract(question: string, evidence: Evidence[], history: Turn[]): Extraction {
  const sample = evidence.slice(0, 5).map(({ text }) => text.slice(0, 800));
  const language = languageOf(question, languageOf(sample.join(" ")));
  const reply = smallTalk(folded(question), language);
  if (reply !== undefined) return { answered: true, language, markdown: reply, used: [] };
  const reading = readQuestion(question, history, language);
  const candidates = candidatesOf(evidence);
  const scored = scoreCandidates(candidates, reading);
  const answering = scored.filter((candidate) => isAnswer(candidate, reading));
  const chosen = answering.length === 0 && reading.general ? opening(candidates) : choose(answering, candidates);
  if (chosen.length > 0) return { answered: true, ...composed(chosen, language) };
  return unanswered(closest(scored, candidates), language);
}

function composed(chosen: Candidate[], language: Language): Omit<Extraction, "answered"> {
  const used = [...new Set(chosen.map((candidate) => candidate.evidence))];
  return { language, markdown: `${compose(chosen)}\n\n${nameSources(used, language)}`, used };
}

/** Says that there is no answer, and shows the sentence that speaks of part of the question where there is one. */
function unanswered(near: Candidate[], language: Language): Extraction {
  const { unanswered, closest } = phrases[language];
  if (near.length === 0) return { answered: false, language, markdown: unanswered, used: [] };
  const { markdown, used } = composed(near, language);
  return { answered: false, language, markdown: `${unanswered} ${closest}\n\n${markdown}`, used };
}

/** An answer in pieces of a few words for a stream; joined they are the answer. */
export function* answerPieces(markdown: string): Generator<string> {
  let from = 0;
  for (const { index } of markdown.matchAll(/\s(?=\S)/g)) {
    if (index + 1 - from < PIECE_LENGTH) continue;
    yield markdown.slice(from, index + 1);
    from = index + 1;
  }
  if (from < markdown.length) yield markdown.slice(from);
}

function smallTalk(plain: string, language: Language): string | undefined {
  if (GREETING.test(plain)) return phrases[language].greeting;
  if (THANKS.test(plain)) return phrases[language].thanks;
  return WHO_ARE_YOU.test(plain) ? phrases[language].about : undefined;
}

/** What a page says first about itself. */
function opening(candidates: Candidate[]): Candidate[] {
  const own = candidates.filter(({ evidence, kind }) => !evidence.related && kind === "prose");
  const first = own[0];
  return first ? own.filter(({ evidence }) => evidence === first.evidence).slice(0, SENTENCES) : [];
}

/** Covers the question, and holds an amount, a time or a place where one is asked for. */
function isAnswer({ coverage, shaped, kind, text }: Scored, { strict, general }: Reading): boolean {
  if (general && kind !== "item" && !text.endsWith(":")) return false;
  return coverage >= (strict && !shaped ? UNSHAPED_COVERAGE : ANSWER_COVERAGE);
}

function choose(answering: Scored[], candidates: Candidate[]): Candidate[] {
  const [best, ...others] = [...answering].sort((a, b) => b.score - a.score);
  if (!best) return [];
  const limit = best.kind === "prose" ? SENTENCES : ITEMS;
  const close = others.filter((other) => isClose(other, best)).slice(0, limit - 1);
  const chosen = new Set<Candidate>();
  let length = 0;
  for (const candidate of [best, ...close].flatMap((one) => withNeighbours(candidates[one.at]!, candidates))) {
    if (length > 0 && length + candidate.text.length > ANSWER_LENGTH) break;
    if (!chosen.has(candidate)) length += candidate.text.length;
    chosen.add(candidate);
  }
  return [...chosen].sort((a, b) => a.at - b.at);
}

function closest(scored: Scored[], candidates: Candidate[]): Candidate[] {
  const near = scored.filter(({ coverage }) => coverage >= CLOSEST_COVERAGE).sort((a, b) => b.score - a.score)[0];
  return near ? withNeighbours(candidates[near.at]!, candidates).sort((a, b) => a.at - b.at) : [];
}

function isClose(other: Scored, best: Scored): boolean {
  return other.score >= best.score * (other.section === best.section ? FURTHER_SHARE : ELSEWHERE_SHARE);
}

/** A sentence with those that it can't be read without. */
function withNeighbours(one: Candidate, all: Candidate[]): Candidate[] {
  const same = (other: Candidate | undefined) => (other && other.section === one.section ? other : undefined);
  const before = same(all[one.at - 1]);
  const after = same(all[one.at + 1]);
  if (one.kind !== "prose") return [one];
  if (one.text.endsWith(":")) return [one, ...listAfter(one, all)];
  if (LEANING.test(one.text) && before?.kind === "prose") return [before, one];
  return one.text.length < SHORT_SENTENCE && after?.kind === "prose" ? [one, after] : [one];
}

function listAfter(one: Candidate, all: Candidate[]): Candidate[] {
  const following = all.slice(one.at + 1, one.at + 1 + ITEMS);
  const end = following.findIndex(({ kind, section }) => kind === "prose" || section !== one.section);
  return end < 0 ? following : following.slice(0, end);
}

/** Prose as paragraphs, one for each section; items and rows as a list. */
function compose(chosen: Candidate[]): string {
  let text = "";
  for (const [index, candidate] of chosen.entries()) {
    const last = chosen[index - 1];
    const listed = candidate.kind !== "prose";
    const joins = last?.section === candidate.section && (last.kind === "prose") === !listed;
    if (last) text += joins ? (listed ? "\n" : " ") : "\n\n";
    text += listed ? `- ${itemMarkdown(candidate)}` : sentenceMarkdown(candidate.text);
  }
  return text;
}

/** A row as its first cell and the others, each named by its column where there are several. */
function itemMarkdown({ kind, text, header }: Candidate): string {
  if (kind !== "row") return sentenceMarkdown(text);
  const [first = "", ...others] = cells(text).map(sentenceMarkdown);
  const columns = header ? cells(header).map(sentenceMarkdown) : [];
  const named = others.map((cell, at) => (others.length > 1 && columns[at + 1] ? `${columns[at + 1]}: ${cell}` : cell));
  return others.length === 0 ? first : `**${first}** ${named.join(", ")}`;
}

function nameSources(used: Evidence[], language: Language): string {
  const names = [...new Set(used.map(({ title, url }) => linkMarkdown(title, url)))];
  return `${names.length > 1 ? phrases[language].sources : phrases[language].source}: ${names.join(", ")}`;
}
