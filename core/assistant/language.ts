import { terms } from "../engines/search/words.ts";

/** Languages that the assistant's own sentences exist in. */
export const languages = ["en", "de", "fr", "es", "it", "nl", "pt"] as const;
export type Language = (typeof languages)[number];

/** Words that carry grammar, not subject. */
const FUNCTION_WORDS: Record<Language, string> = {
  en:
    "the a an and or but of to in on at for with from by about is are was were be been am do does did can could will would " +
    "shall should may might must have has had i you he she it we they me my your our their this that these those there here " +
    "what which who whom whose when where why how not no yes please any some if than then so as into out up hi hello thanks",
  de:
    "der die das den dem des ein eine einen einem einer eines und oder aber von zu zum zur im in an am auf aus bei beim mit nach " +
    "für über um ist sind war waren sein bin hat haben habt hatte wird werden wurde kann können könnt könnte muss müssen soll darf " +
    "dürfen ich du er sie es wir ihr mich mir dich dir uns euch ihnen mein meine dein deine ihre ihren unser unsere euer eure " +
    "was welche welcher welches wer wen wem wann wo wohin woher warum wieso weshalb wie nicht kein keine ja nein bitte auch noch " +
    "nur schon wenn dass ob als gibt etwas man es hallo danke wieviel viel viele",
  fr:
    "le la les l un une des du de d et ou mais à au aux en dans sur pour avec par chez est sont était être ai as a avons avez ont " +
    "peut peux peuvent pouvez puis je j tu il elle on nous vous ils elles me m te t se s mon ma mes ton ta tes son sa ses notre nos " +
    "votre vos leur leurs ce cet cette ces que qu qui quoi quel quelle quels quelles quand où pourquoi comment combien ne n pas non " +
    "oui si plus y c est-ce bonjour merci svp faut fait faites",
  es:
    "el la los las un una unos unas y o pero de del a al en con por para sobre desde hasta es son era ser está están estoy soy hay " +
    "he ha han puede puedo pueden podéis yo tú él ella usted ustedes nosotros vosotros ellos me te se nos os lo le les mi mis tu tus " +
    "su sus nuestro nuestra vuestro este esta estos estas ese esa eso qué que cuál cuáles quién quiénes cuándo dónde adónde por " +
    "cómo cuánto cuánta cuántos cuántas no sí si más muy también tienen tenéis tiene hola gracias favor",
  it:
    "il lo la i gli le l un uno una e ed o ma di del dello della dei degli delle a al alla ai alle da dal dalla in nel nella con su " +
    "sul sulla per tra fra è sono era essere sei siete siamo ho hai ha hanno avete può posso possono potete io tu lui lei noi voi " +
    "loro mi ti si ci vi mio mia tuo tua suo sua nostro vostro questo questa questi queste quello che chi cosa quale quali quando " +
    "dove perché come quanto quanta quanti quante non no sì se più anche c'è ciao buongiorno grazie fate cos",
  nl:
    "de het een en of maar van naar in op aan bij met voor over uit om te tot door is zijn was waren ben bent heb heeft hebben hebt " +
    "had kan kunnen kunt zal zullen zou moet moeten mag mogen wordt worden ik jij je u hij zij ze wij we jullie hen hun mij me mijn " +
    "jouw uw onze ons dit dat deze die er wat welke welk wie wanneer waar waarom hoe hoeveel niet geen ja nee als dan ook nog wel " +
    "hallo bedankt alstublieft",
  pt:
    "o os a as um uma uns umas e ou mas de do da dos das em no na nos nas ao à aos às com por para pelo pela sobre é são era ser " +
    "está estão estou sou há tem têm tenho pode posso podem eu tu ele ela você vocês nós eles me te se lhe meu minha teu sua seu " +
    "seus suas nosso nossa este esta isto esse essa isso que quê qual quais quem quando onde porquê como quanto quanta quantos " +
    "quantas não sim mais muito também olá obrigado obrigada fazem",
};

/** Words of a visitor's first question that stand alone so often that grammar gives no hint. */
const SUBJECT_WORDS: Record<Language, string> = {
  en: "price prices pricing cost costs hours opening open close closed delivery shipping refund address parking booking much many offer",
  de: "preise preis kosten kostet öffnungszeiten geöffnet offen lieferung versand adresse parkplatz termin buchen angebot bietet macht",
  fr: "prix tarif tarifs coûte horaires ouvert fermé livraison adresse parking réservation réserver devis coût proposez",
  es: "precio precios cuesta coste horario horarios abierto cerrado abren envío dirección reserva aparcamiento presupuesto ofrecen",
  it: "prezzo prezzi costa costo orari apertura aperto chiuso aperti spedizione indirizzo prenotare parcheggio preventivo offrite",
  nl: "prijs prijzen kost kosten openingstijden geopend gesloten levering verzending adres parkeren afspraak offerte bieden",
  pt: "preço preços custa custo horário horários aberto fechado entrega endereço morada reserva estacionamento orçamento oferecem",
};

/** Letters that one language has and the other six lack, or nearly so. */
const LETTERS: [RegExp, Language][] = [
  [/[ßäü]/, "de"],
  [/[ñ¿¡]/, "es"],
  [/[ãõ]/, "pt"],
  [/[œèùêû]/, "fr"],
  [/\bij|ij\b/, "nl"],
  [/[ìò]/, "it"],
];
const WORDS_READ = 400;
const TEXT_READ = 4000;

const languagesOf = new Map<string, Language[]>();
for (const language of languages) {
  for (const word of new Set(`${FUNCTION_WORDS[language]} ${SUBJECT_WORDS[language]}`.split(" "))) {
    languagesOf.set(word, [...(languagesOf.get(word) ?? []), language]);
  }
}

const functionTerms = new Map(languages.map((language) => [language, new Set(terms(FUNCTION_WORDS[language]))]));

/**
 * The language of a text, told by its small words. `fallback` is what a text without any is taken for (say, the language
 * of the page); a text in another script is taken for English.
 */
export function languageOf(text: string, fallback: Language = "en"): Language {
  const lower = text.slice(0, TEXT_READ).toLowerCase().normalize("NFC");
  const letters = lower.match(/\p{L}/gu)?.length ?? 0;
  if ((lower.match(/\p{Script=Latin}/gu)?.length ?? 0) < letters / 2) return "en";
  const scores = scoreLanguages(lower);
  const [first, second] = [...languages].sort((a, b) => scores[b] - scores[a]);
  if (scores[first!] === 0) return fallback;
  return scores[first!] - scores[second!] < 0.05 && scores[fallback] === scores[first!] ? fallback : first!;
}

/** The terms of a text that name a subject: those of `terms`, without the small words of its language. */
export function subjectTerms(text: string, language: Language): string[] {
  return terms(text).filter((term) => !functionTerms.get(language)!.has(term));
}

function scoreLanguages(lower: string): Record<Language, number> {
  const scores: Record<Language, number> = { en: 0, de: 0, fr: 0, es: 0, it: 0, nl: 0, pt: 0 };
  for (const word of (lower.match(/\p{L}+/gu) ?? []).slice(0, WORDS_READ)) {
    const known = languagesOf.get(word) ?? [];
    for (const language of known) scores[language] += 1 / known.length;
  }
  for (const [letter, language] of LETTERS) if (letter.test(lower)) scores[language] += 0.5;
  return scores;
}
