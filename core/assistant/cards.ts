import type { CtaCard, EvidenceCard } from "../../schemas/assistant.ts";
import { terms } from "../engines/search/words.ts";
import { clip, oneLine } from "../platform/characters.ts";
import type { Evidence } from "./evidence.ts";
import { snippetOf } from "./grounding.ts";
import { type Language, languageOf, subjectTerms } from "./language.ts";
import { phrases } from "./phrases.ts";
import { type Reading, readQuestion } from "./question.ts";
import { speaksOf } from "./scoring.ts";
import { folded } from "./topics.ts";
import { type Link, publicAddress } from "./visible-text.ts";

const EVIDENCE_CARDS = 4;
const CTA_CARDS = 3;
const FOLLOW_UPS = 3;
const TITLE_LENGTH = 200;
const LABEL_LENGTH = 80;
const HEADING_LENGTH = 70;
/** A question is taken for asked when it shares this much of its terms with one that was. */
const SAME_QUESTION = 0.6;
const RELEVANT_LINK = 0.6;

/** Labels that don't say where a link goes, and links that every page has. */
const EMPTY_LABEL =
  /^(?:here|click here|read more|more|learn more|details?|link|home|back|next|previous|skip to content|top|hier|mehr|weiterlesen|mehr erfahren|zuruck|weiter|startseite|ici|en savoir plus|lire la suite|accueil|aqui|leer mas|mas|inicio|qui|leggi di piu|scopri di piu|lees meer|meer|saiba mais|ler mais|\W*)$/;
const FURNITURE =
  /\b(?:privacy|imprint|impressum|datenschutz\w*|terms|agb|cookies?|legal|mentions legales|confidentialite|privacidad|aviso legal|privacidade|voorwaarden|log ?in|log ?out|sign in|anmelden|facebook|instagram|linkedin|twitter|youtube|tiktok|pinterest)\b/;
/** Where a visitor goes who wants to be in touch, to book or to buy. */
const ACTION =
  /\b(?:contact\w*|get in touch|talk to|demo|quote|consultation|book\w*|appointment|schedule|order|buy|shop|sign ?up|register|start|trial|subscribe|enquir\w*|inquir\w*|request|kontakt\w*|anfrag\w*|angebot\w*|termin\w*|buch\w*|bestell\w*|kauf\w*|beratung|testen|registrier\w*|devis|rendez|reserv\w*|command\w*|achet\w*|essai|inscri\w*|contacto|presupuesto|cita|compra\w*|pedir|contatt\w*|preventivo|prenot\w*|acquist\w*|ordina|offerte|afspraak|boek\w*|bestel\w*|koop|contato|orcamento|agend\w*|marc\w*|encomend\w*)\b/;

/** A card for each page or document among the evidence, with an exact piece of its text about the question. */
export function evidenceCards(evidence: Evidence[], question: string): EvidenceCard[] {
  const first = new Map<string, Evidence>();
  for (const item of evidence) {
    const source = `${item.kind} ${item.url ?? ""} ${item.title}`;
    if (!first.has(source)) first.set(source, item);
  }
  return [...first.values()].slice(0, EVIDENCE_CARDS).map(({ kind, title, url, text }) => ({
    title: clip(oneLine(title), TITLE_LENGTH),
    // A page's white space is markup; a document's is part of its text.
    snippet: kind === "page" ? oneLine(snippetOf(text, question)) : snippetOf(text, question),
    sourceType: kind,
    sourceUrl: kind === "page" ? url : null,
  }));
}

/** At most three links of public text that help with the question, or with getting in touch where `contact` is asked. */
export function ctaCards(links: Link[], question: string, contact: boolean): CtaCard[] {
  const reading = readQuestion(question, [], languageOf(question));
  const cards = new Map<string, { card: CtaCard; score: number }>();
  for (const { label, href } of links) {
    const card = cardOf(label, href);
    const score = card ? relevance(card, reading) + (contact && ACTION.test(folded(card.label)) ? 1 : 0) : 0;
    if (card && score >= RELEVANT_LINK && score > (cards.get(card.href)?.score ?? 0))
      cards.set(card.href, { card, score });
  }
  const sorted = [...cards.values()].sort((a, b) => b.score - a.score);
  return sorted.slice(0, CTA_CARDS).map(({ card }) => card);
}

/** What next questions are made of. */
export interface FollowUpMaterial {
  question: string;
  language: Language;
  /** The owner's suggested questions, then headings of public text; paths are read by their last part. */
  suggested: string[];
  headings: string[];
  /** Evidence that was just used, whose headings need no question any more. */
  used: Evidence[];
  /** What the visitor asked before. */
  asked: string[];
}

/** At most three next questions in the question's language: the owner's, questions that are headings, and headings. */
export function followUps({ question, language, suggested, headings, used, asked }: FollowUpMaterial): string[] {
  const done = new Set(used.map(({ heading }) => lastPart(heading)));
  const named = [...new Set(headings.map(lastPart))].filter((heading) => isNameable(heading) && !done.has(heading));
  const taken = [question, ...asked].map((text) => subjectTerms(text, language));
  const found: string[] = [];
  for (const offer of [...suggested.map(oneLine), ...named]) {
    const subject = subjectTerms(offer, language);
    const isQuestion = offer.endsWith("?") || suggested.includes(offer);
    if (isQuestion && languageOf(offer, language) !== language) continue;
    if (taken.some((other) => isSame(subject, other))) continue;
    taken.push(subject);
    if (found.push(isQuestion ? offer : askAbout(offer, language)) === FOLLOW_UPS) break;
  }
  return found;
}

function cardOf(label: string, href: string): CtaCard | undefined {
  const name = clip(oneLine(label), LABEL_LENGTH);
  const address = publicAddress(href);
  const plain = folded(name);
  if (address === undefined || EMPTY_LABEL.test(plain) || FURNITURE.test(plain)) return undefined;
  return { label: name, actionType: "link", href: address };
}

/** How much of the question a link's label and path speak of. */
function relevance({ label, href }: CtaCard, { units }: Reading): number {
  const spoken = new Set(terms(`${label} ${decodedPath(href)}`));
  const asked = units.filter(({ weight, term }) => weight === 1 && term !== undefined);
  return Math.max(0, ...asked.map((unit) => speaksOf(unit, spoken)));
}

function decodedPath(href: string): string {
  return new URL(href).pathname.replace(/%[0-9a-f]{2}|[^\p{L}\p{N}]+/giu, " ");
}

function lastPart(heading: string): string {
  return heading.split(" › ").at(-1)!.trim();
}

function isNameable(heading: string): boolean {
  return heading.length >= 3 && heading.length <= HEADING_LENGTH && /\p{L}{2}/u.test(heading);
}

function askAbout(heading: string, language: Language): string {
  return heading.endsWith("?")
    ? heading
    : phrases[language].ask.replace("{heading}", () => heading.replace(/[:.]$/, ""));
}

function isSame(subject: string[], other: string[]): boolean {
  const shared = subject.filter((term) => other.includes(term)).length;
  return subject.length > 0 && shared / subject.length >= SAME_QUESTION;
}
