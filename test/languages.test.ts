import t from "tap";
import ts from "typescript";
import { clip, fold } from "../core/platform/characters.ts";
import { languageOf, primaryLanguage, stem, stopWords } from "../core/platform/languages.ts";
import { nodes, sources } from "../fixtures/sources.ts";
import { languages, type Words, wordsOf } from "../schemas/languages.ts";

/** Schemes, elements and words of CSS, which are words of a language too. */
const markup = ["tel", "none", "font", "li"];
/** Letters of foldings and of ranges of scripts. */
const letters = [
  "core/assistant/prompt.ts ɏ",
  "core/engines/search/words.ts ー",
  ...["ß", "ς", "σ", "ı"].map((letter) => `core/platform/characters.ts ${letter}`),
];

/** The paths of all values of a file, in any order. */
function paths(value: unknown, at = ""): string[] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [at];
  return Object.entries(value)
    .flatMap(([key, inner]) => paths(inner, `${at}/${key}`))
    .sort();
}

/** The words of the lists that are compared with texts. */
function smallWords({ connectors, negations, pronouns, figures, abbreviations }: Words["answers"]): string[] {
  const { currencies, ...lists } = figures;
  const all = [
    ...connectors,
    negations,
    pronouns,
    abbreviations,
    ...Object.values(currencies),
    ...Object.values(lists),
  ];
  return all.join(" ").split(" ");
}

function isLiteral(node: ts.Node): node is ts.LiteralLikeNode {
  return ts.isLiteralExpression(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node);
}

t.test("every language file has the keys of the English one", async (t) => {
  const english = paths(languages.en);
  for (const [code, words] of Object.entries(languages)) t.same(paths(words), english, code);
});

t.test("a language without a file gets English words", async (t) => {
  t.equal(wordsOf("sv"), languages.en);
  t.equal(wordsOf("DE-at"), languages.de);
});

t.test("the language of a text is recognised by its small words; without any it is the given one", async (t) => {
  const asked: [string, string][] = [
    ["Do you sell helicopters?", "en"],
    ["whats your number", "en"],
    ["Verkaufen Sie Hubschrauber?", "de"],
    ["Vendez-vous des hélicoptères ?", "fr"],
    ["¿Venden helicópteros?", "es"],
    ["Vendete anche degli elicotteri?", "it"],
    ["Verkopen jullie ook helikopters?", "nl"],
    ["Vocês vendem helicópteros?", "pt"],
    ["how much is the tiramisù?", "en"],
    ["Сколько стоит доставка?", "ru"],
    ["ヘリコプターはありますか", "ja"],
    ["E-Bike 小さいプランは月額12ユーロです。いつでも解約できます。", "ja"],
    ["You can read about the price here in English, Deutsch, 日本語 and Русский.", "en"],
    ["Od wtorku do piątku w godzinach 10–19, w soboty 10–15. W poniedziałki nieczynne.", "pl"],
    ["Prowadzimy warsztaty ceramiczne w Krakowie od 2011 roku. Prace odbiera się po trzech tygodniach.", "pl"],
    ["Järjestämme keramiikkakursseja Helsingissä vuodesta 2011. Työt noudetaan kolmen viikon kuluttua.", "fi"],
    ["Czy jest parking?", "pl"],
  ];
  for (const [text, language] of asked) t.equal(languageOf(text, "sv"), language, text);
  t.equal(languageOf("Zumba?", "nl"), "nl");
  t.equal(languageOf("prima fila?", "it"), "it", "a Romanian word too");
  t.equal(languageOf("hva koster det?", "it"), "no");
  t.equal(languageOf("kan jeg melde fra og få pengene igen", "da"), "da", "mostly words of Norwegian too");
  for (const code of Object.keys(languages)) t.equal(languageOf("Demo?", code), code);
  for (const code of ["en", "fr"]) t.equal(languageOf("Contact?", code), code);
  t.equal(languageOf("", "fr"), "fr");
});

t.test("one small word of a language is chance in the text of another", async (t) => {
  const asked: [string, string][] = [
    ["je stěna hangar levnější", "cs"],
    ["kde se učila žaneta lézt", "cs"],
    ["je donáška zadarmo?", "sk"],
    ["mogu li platiti karticom", "hr"],
    ["Ile kosztuje sala konferencyjna?", "pl"],
    ["kad jūs strādājat", "lv"],
    ["có chỗ đậu xe không", "vi"],
    ["paljonko päivähoito maksaa isolle koiralle", "fi"],
  ];
  for (const [text, language] of asked) t.equal(languageOf(text, language), language, text);
  t.equal(languageOf("how much is a helmet", "cs"), "en");
  t.equal(languageOf("Stříháme a barvíme v Brně od roku 2009. Dámský střih stojí 450 Kč, pánský 300 Kč."), "en");
  const salon = "Salon mieści się przy ul. Szerokiej 14, wejście od podwórza. Płatność kartą do 200 zł albo BLIK-iem.";
  t.equal(languageOf(salon), "pl", '"do" is English too');
});

t.test("a page in a made-up language is read as English: word lists are cached by language", async (t) => {
  for (const tag of ["qaaqx", "qabcdefg-DE", "zz", "x", ""]) t.equal(primaryLanguage(tag), "en", tag);
  for (const [tag, code] of Object.entries({ "de-AT": "de", pl: "pl", "zh-Hant-TW": "zh", "fil-PH": "fil" }))
    t.equal(primaryLanguage(tag), code);
});

t.test("a letter with a stroke is the same without it, as people type in haste", async (t) => {
  const typed = {
    Łódź: "lodz",
    "Đà Nẵng": "da nang",
    Øl: "ol",
    ışıklar: "isiklar",
    IŞIKLAR: "isiklar",
    Ħamrun: "hamrun",
  };
  for (const [written, plain] of Object.entries(typed)) t.equal(fold(written), plain);
  t.equal(fold("þŋ"), "þŋ", "other letters remain");
});

t.test("a text without spaces is cut between characters as people see them", async (t) => {
  const family = "👨‍👩‍👧‍👦";
  t.equal(clip(family.repeat(60), 240), family.repeat(21));
  t.equal(clip("कि".repeat(60), 101), "कि".repeat(50));
  t.equal(clip(`a${"\u0301".repeat(500)}`, 240).length, 240, "one endless character");
});

t.test("a word of a language without a stemmer is cut to its first letters", async (t) => {
  t.equal(stem("bicyklami", "pl"), stem("bicykle", "pl"));
  t.equal(stem("sobotu", "cs"), stem("sobota", "cs"));
  t.equal(stem("kurz", "cs"), "kurz");
});

t.test("words are stemmed by their own language's rules", async (t) => {
  t.equal(stem("stornieren", "de"), stem("storniere", "de"));
  t.equal(stem("refunded", "en"), stem("refunds", "en"));
  t.ok(stopWords("de").has("nicht") && stopWords("sv").has("och") && stopWords("pl").size === 0);
});

t.test("answers read a new language by its file alone", async (t) => {
  const { en } = languages;
  const answers = {
    ...en!.answers,
    connectors: ["och", "men"],
    negations: "inte",
    clitics: "",
    abbreviations: "bl.a t.ex",
    matters: { ...en!.answers.matters, free: "kostnadsfritt" },
    figures: {
      ...{ one: "", articles: "en ett", since: "sedan", clock: "nolla", ranges: "till", moments: "före", coins: "öre" },
      currencies: { ...en!.answers.figures.currencies, SEK: "kronor spänn" },
    },
  };
  Object.assign(languages, { sv: { ...en, answers } });
  const { figuresIn } = await import("../core/engines/answers/figures.ts");
  const { holdsShape } = await import("../core/engines/answers/shapes.ts");
  const { clauseTexts } = await import("../core/engines/answers/witnesses.ts");
  const { sentences } = await import("../core/platform/sentences.ts");
  t.same([...figuresIn("120 spänn, kl. 9 nolla, 20 procent", "sv")].sort(), [
    ...["amount % 20", "amount SEK 120", "number 120", "number 20", "time 540"],
  ]);
  const shaped = { amount: "Det är kostnadsfritt.", clock: "9 till 17", time: "på söndagar", duration: "en vecka" };
  for (const [shape, text] of Object.entries(shaped)) t.ok(holdsShape(text, shape as "amount", "sv"), text);
  t.ok(holdsShape("50 öre", "amount", "sv") && holdsShape("före lunch", "time", "sv"));
  t.same(clauseTexts("te och kaffe men inte mjölk", "sv"), ["te", "kaffe", "inte mjölk"]);
  t.equal(sentences("Vi säljer bl.a. Volvo. Ring oss.").length, 2);
});

t.test("no word of a language is in code that reads text", async (t) => {
  const lists = Object.entries(languages).map(([code, { answers }]) => [...stopWords(code), ...smallWords(answers)]);
  const known = new Set(lists.flat().filter((word) => !markup.includes(word)));
  const found = sources("core", "api", "workers").flatMap(({ path, tree }) =>
    [...nodes(tree)].filter(isLiteral).flatMap((node) => {
      const isPattern = /^core\/(?:engines\/answers\/|platform\/sentences)/.test(path) && !ts.isStringLiteral(node);
      const plain = isPattern ? node.text.replace(/\\p\{[^}]*\}|\\./gi, " ") : "";
      const words = (plain.match(/[a-z]{2,}/gi) ?? []).filter((word) => known.has(word));
      return [...(node.text.match(/(?![a-z])\p{L}/giu) ?? []), ...words].map((word) => `${path} ${word}`);
    }),
  );
  t.same([...new Set(found)], letters);
});
