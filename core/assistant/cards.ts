import type { CtaCard } from "../../schemas/assistant.ts";
import { languages, wordsOf } from "../../schemas/languages.ts";
import {
  absoluteAddress,
  holdsWords,
  isWords,
  type Link,
  type Question,
  questionLikeness,
  readQuestion,
  shareOf,
} from "../engines/answers/answers.ts";
import { clip, oneLine } from "../platform/characters.ts";

const MAX_CTA_CARDS = 3;
const MAX_FOLLOW_UPS = 3;
/** Most questions and headings that are read for them: a page may have ten thousand. */
const MAX_OFFERS = 100;
const MAX_LABEL_LENGTH = 80;
const MIN_HEADING_LENGTH = 3;
const MAX_HEADING_LENGTH = 70;
/** Share of common words above which two questions count as the same. */
const SAME_QUESTION = 0.6;
/** Least relevance of a link that is shown, which any word in common with the question reaches. */
const RELEVANT_LINK = 0.6;

const links = Object.values(languages).map(({ answers }) => answers.links);
/** Labels that don't describe their link, links that every page has, and links to contact, booking and purchase. */
const emptyLabels = links.flatMap(({ empty }) => empty);
const ignoredLabels = links.flatMap(({ ignored }) => ignored);
const actions = links.flatMap(({ action }) => action);

/** At most three links of public text that help with the question, or with contact if the visitor wants it. */
export function ctaCards(links: readonly Link[], question: Question): CtaCard[] {
  const cards = new Map<string, { card: CtaCard; score: number }>();
  for (const link of links) {
    const card = cardOf(link);
    const score = card ? relevance(card, question) : 0;
    if (card && score >= RELEVANT_LINK && score > (cards.get(card.href)?.score ?? 0))
      cards.set(card.href, { card, score });
  }
  const sorted = [...cards.values()].sort((one, other) => other.score - one.score);
  return sorted.slice(0, MAX_CTA_CARDS).map(({ card }) => card);
}

interface FollowUpMaterial {
  question: Question;
  /** The owner's suggested questions, then headings of public text. */
  suggested: readonly string[];
  headings: readonly string[];
  /** Headings of the answer's own sources. */
  answered: readonly string[];
  /** The visitor's earlier questions. */
  asked: readonly string[];
}

/** At most three follow-up questions in the question's language: the owner's, headings that are questions, and other headings. */
export function followUps({ question, suggested, headings, answered, asked }: FollowUpMaterial): string[] {
  const { language } = question;
  const named = [...new Set(headings)].filter((heading) => isNameable(heading) && !answered.includes(heading));
  const taken = [question, ...asked.map((text) => readQuestion(text, language))];
  const found: string[] = [];
  for (const offer of [...suggested.map(oneLine), ...named].slice(0, MAX_OFFERS)) {
    const isQuestion = offer.endsWith("?") || suggested.includes(offer);
    const read = readQuestion(offer, language);
    if (isQuestion && read.language !== language) continue;
    if (taken.some((other) => questionLikeness(read, other) >= SAME_QUESTION)) continue;
    taken.push(read);
    if (found.push(isQuestion ? offer : askAbout(offer, language)) === MAX_FOLLOW_UPS) break;
  }
  return found;
}

function cardOf({ label, href }: Link): CtaCard | undefined {
  const name = clip(oneLine(label), MAX_LABEL_LENGTH);
  const address = absoluteAddress(href);
  const isEmpty = !/\p{L}/u.test(name) || isWords(name, emptyLabels) || holdsWords(name, ignoredLabels);
  return address === undefined || isEmpty ? undefined : { label: name, actionType: "link", href: address };
}

/** 0 for a link without a word of the question; above it the share that its label and path cover, and 1 for a link that fulfils its wish. */
function relevance({ label, href }: CtaCard, question: Question): number {
  const path = new URL(href).pathname.replace(/%[0-9a-f]{2}|[^\p{L}\p{N}]+/giu, " ");
  const share = shareOf(`${label} ${path}`, question);
  const isWished = question.wish !== undefined && holdsWords(label, actions);
  return (share > 0 ? RELEVANT_LINK + share : 0) + (isWished ? 1 : 0);
}

function isNameable(heading: string): boolean {
  return heading.length >= MIN_HEADING_LENGTH && heading.length <= MAX_HEADING_LENGTH && /\p{L}{2}/u.test(heading);
}

function askAbout(heading: string, language: string): string {
  if (heading.endsWith("?")) return heading;
  return wordsOf(language).answers.phrases.ask.replace("{heading}", () => heading.replace(/[:.]$/, ""));
}
