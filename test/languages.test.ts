import t from "tap";
import { languageOf, stem, stopWords } from "../core/platform/languages.ts";
import { languages, wordsOf } from "../schemas/languages.ts";

/** The paths of all values of a file, in any order. */
function paths(value: unknown, at = ""): string[] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [at];
  return Object.entries(value)
    .flatMap(([key, inner]) => paths(inner, `${at}/${key}`))
    .sort();
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
  for (const code of ["de", "en", "es", "fr", "it", "nl", "pt"]) t.equal(languageOf("Demo?", code), code);
  for (const code of ["en", "fr"]) t.equal(languageOf("Contact?", code), code);
  t.equal(languageOf("", "fr"), "fr");
});

t.test("words are stemmed by their own language's rules", async (t) => {
  t.equal(stem("stornieren", "de"), stem("storniere", "de"));
  t.equal(stem("refunded", "en"), stem("refunds", "en"));
  t.equal(stem("bicyklami", "pl"), "bicyklami", "a language without rules keeps its words");
  t.ok(stopWords("de").has("nicht") && stopWords("sv").has("och") && stopWords("pl").size === 0);
});
