import { terms } from "../engines/search/words.ts";
import { type Language, subjectTerms } from "./language.ts";
import { folded, type Topic, topics } from "./topics.ts";

/** What was said before; untrusted, since the client sends it. */
export interface Turn {
  role: "user" | "assistant";
  text: string;
}

/** One thing that an answer must speak of: a term, or a subject that has many words. */
export interface Unit {
  term?: string;
  topic?: Topic;
  /** 1 for a word that carries the question, less for one that nearly every question holds. */
  weight: number;
  /** True where a way of asking ("how much") stands for it, so that the shape of a sentence answers it. */
  asked: boolean;
  /** True in languages that write several words as one. */
  inCompounds: boolean;
  /** True where the shape of a sentence may stand for its words: asked for, or named by a word of the topic itself. */
  byShape: boolean;
}

/** A question as the extractive answerer reads it. */
export interface Reading {
  units: Unit[];
  /** What one sentence of the answer holds; all of them come from words like "how much" or "when". */
  shapes: RegExp[];
  /** True where the question names a way of asking ("how much"), false where only its subject suggests the shape. */
  strict: boolean;
  /** True for "what do you do?": no subject but the page itself. */
  general: boolean;
}

/** A term that only hints at the subject, or that stands for anything. */
const WEAK_WEIGHT = 0.4;
const VERB_WEIGHT = 0.65;
const COMMON_WORDS = [
  "offer offers offering provide have get use need want like know tell show explain find make take come work works buy sell rent order visit happen",
  "mean go try give bring wear run runs serve serves teach teaches build create become support supports supported start own allow allowed able exist include",
  "included available possible free really exactly currently nearby later afterwards along together directly already ever soon again else quickly quick",
  "fast early far advance ahead long big old new good best today day time number many much one single people person customer information info detail",
  "details question kind type types sort option options service services product products anything something someone thing things",
  "company business page website site shop store studio office clinic hotel museum",
  "bieten anbieten angebot brauche brauchen suche nehmen bekommen bekomme kaufen mieten leihen finden finde nutzen machen macht kommen gehen sagen",
  "erklären mitbringen passiert passieren erlaubt möglich verfügbar vorhanden informationen details etwas alles genau heute lange schnell nummer fall praxis laden",
  "geschäft filiale",
  "proposez proposer offrez apporter emmener trouver avoir acheter prendre faire aller passe possible disponible informations quelque chose besoin aujourd'hui cas numéro",
  "magasin boutique",
  "ofrecen ofrece traer llevar tener comprar tomar hacer hacen pasa pasar ir hago posible disponible información algo necesito quiero hoy caso número tienda clínica",
  "offrite offrire portare fare prendere comprare succede andare possibile disponibile informazioni qualcosa bisogno oggi numero negozio",
  "bieden meenemen kopen nemen doen gebeurt gaan mogelijk beschikbaar informatie iets nodig vandaag nummer winkel",
  "oferecem trazer levar comprar fazer acontece possível disponível informação informações algo preciso hoje loja",
].join(" ");
/** What is done ("do you teach pilates?") tells less than what it is done with. */
const VERBS: Record<Language, RegExp> = {
  en: /\b(?:do|does|did|can|could|will|would|may|might|should|must|shall) (?:i|you|we|they|it|he|she|one|the \w+|\w+) (?:also |still |have to |need to |get to |want to )?(\w+)/g,
  de: /^(\w+) (?:sie|ihr|er|es|du|wir|ich|die|der|das|den|man|ein|eine|einen|auch)\b/g,
  fr: /^(\w+)[- ](?:t-)?(?:vous|tu|on|il|elle|ils|elles|nous|je)\b/g,
  es: /^¿?(\w+(?:an|en|ais|eis|amos|emos))\b/g,
  it: /^(\w+(?:ate|ete|ite))\b/g,
  nl: /^(\w+) (?:jullie|u|je|jij|de|het|een|ik|we|er)\b/g,
  pt: /^(\w+(?:am|em))\b/g,
};
const CONNECTORS =
  /^(?:and|what about|how about|or|also|but|und|oder|auch|wie ist es mit|was ist mit|et|ou|aussi|y|o|e|ed|en|of|ook|tambem|tambien|anche|que tal)\b/;
const PRONOUNS =
  /\b(?:it|they|them|that|this|those|these|das|davon|dafur|dort|dazu|ca|cela|eso|esto|ello|questo|quello|cio|dat|daar|isso|isto|there)\b/;
/** "How long", "when": the shape is then a time of day too. */
const TIME_SHAPES = ["date", "hours"];

const commonTerms = new Set(subjectTerms(COMMON_WORDS, "en"));

/** Reads a question; a short follow-up ("and on Sundays?") borrows the subject of what the visitor asked before. */
export function readQuestion(question: string, history: Turn[], language: Language): Reading {
  const reading = readAlone(question, language);
  const before = history.findLast(({ role, text }) => role === "user" && text.trim() !== question.trim());
  if (!before) return reading;
  const earlier = readAlone(before.text, language);
  if (CONNECTORS.test(folded(question))) return merge(emphasised(reading), subjectOnly(earlier));
  return isFollowUp(question, reading) ? merge(reading, earlier) : reading;
}

function readAlone(question: string, language: Language): Reading {
  const plain = folded(question);
  const asked = topics.filter((topic) => topic.asks?.test(plain));
  const units = new Map<string, Unit>();
  for (const topic of asked)
    units.set(topic.name, { topic, weight: 1, asked: true, byShape: true, inCompounds: false });
  const verbs = new Set(terms([...plain.matchAll(VERBS[language])].map(([, verb]) => verb).join(" ")));
  for (const term of new Set(subjectTerms(question, language)))
    addUnit(units, { term, isVerb: verbs.has(term), language });
  const named = [...units.values()].flatMap(({ topic }) => (topic ? [topic] : []));
  return {
    units: [...units.values()],
    shapes: shapesOf(asked.length > 0 ? asked : named),
    strict: asked.some(({ shape }) => shape !== undefined),
    general: [...units.values()].every(({ term, topic }) => !topic && commonTerms.has(term!)),
  };
}

function addUnit(
  units: Map<string, Unit>,
  { term, isVerb, language }: { term: string; isVerb: boolean; language: Language },
): void {
  const exact = topics.find(({ terms }) => terms.has(term));
  const topic = exact ?? topics.find(({ terms }) => hasForm(terms, term));
  if (topic && units.has(topic.name)) return;
  const weight = commonTerms.has(term) ? WEAK_WEIGHT : isVerb && !topic ? VERB_WEIGHT : 1;
  const inCompounds = language === "de" || language === "nl";
  const unit = { term, weight, asked: false, byShape: exact !== undefined, inCompounds };
  if (topic) units.set(topic.name, { topic, ...unit });
  else units.set(term, unit);
}

/** Other endings of one word, as in `storniere` and `stornieren`. */
function hasForm(terms: ReadonlySet<string>, term: string): boolean {
  if (term.length < 6) return false;
  for (const known of terms) {
    if (Math.abs(known.length - term.length) <= 2 && known.startsWith(term.slice(0, Math.max(5, term.length - 2))))
      return true;
  }
  return false;
}

function shapesOf(asked: Topic[]): RegExp[] {
  const wider = asked.some(({ name }) => TIME_SHAPES.includes(name))
    ? [...asked, ...topics.filter(({ name }) => TIME_SHAPES.includes(name))]
    : asked;
  return [...new Set(wider.flatMap(({ shape }) => (shape ? [shape] : [])))];
}

/** In "and on Sundays?" each word counts, and takes the place of the one it was said before. */
function emphasised(reading: Reading): Reading {
  return { ...reading, units: reading.units.map((unit) => ({ ...unit, weight: 1 })) };
}

function subjectOnly(reading: Reading): Reading {
  return { ...reading, units: reading.units.filter(({ topic }) => topic !== undefined) };
}

/** Nothing but pronouns and one subject: it speaks of what was asked before. */
function isFollowUp(question: string, { units }: Reading): boolean {
  const plain = folded(question);
  const strong = units.filter(({ weight, asked }) => weight === 1 && !asked);
  return units.length === 0 || (strong.length <= 1 && PRONOUNS.test(plain));
}

function merge(reading: Reading, before: Reading): Reading {
  const known = new Set(
    reading.units.flatMap(({ term, topic }) => [term, topic?.name].filter((name) => name !== undefined)),
  );
  const borrowed = before.units.filter(({ term, topic, asked }) => {
    return !known.has(topic?.name ?? term!) && !(reading.strict && asked);
  });
  return {
    units: [...reading.units, ...borrowed],
    shapes: reading.shapes.length > 0 ? reading.shapes : before.shapes,
    strict: reading.strict || (reading.shapes.length === 0 && before.strict),
    general: reading.general && before.general,
  };
}
