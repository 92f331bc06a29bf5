import t from "tap";
import { languages } from "../schemas/languages.ts";

t.test("a file gives its language small words, though no stemmer knows it", async (t) => {
  const { en } = languages;
  Object.assign(languages, { pl: { ...en, answers: { ...en!.answers, fillers: "czy jest można ile się" } } });
  const { languageOf, stem, stopWords } = await import("../core/platform/languages.ts");
  t.ok(stopWords("pl").has("czy"));
  t.equal(languageOf("Czy jest parking?", "en"), "pl");
  t.equal(stem("bicyklami", "pl"), stem("bicykle", "pl"));
  const { termsIn } = await import("../core/engines/answers/words.ts");
  t.same(termsIn("Czy można płacić kartą?", "pl"), ["placi", "karta"]);
});
