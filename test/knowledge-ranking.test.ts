import fc from "fast-check";
import t from "tap";
import { LexicalIndex } from "../core/engines/search/lexical.ts";
import { fuse, type Ranked } from "../core/engines/search/ranking.ts";
import { VectorIndex } from "../core/engines/search/vectors.ts";
import { passageTerms, queryTerms, terms } from "../core/engines/search/words.ts";

const slots = (found: Ranked<number>[]): number[] => found.map(({ item }) => item);
/** Words of a question that stand under one term each. */
const asked = (...terms: string[]): string[][] => terms.map((term) => [term]);

t.test("terms are lower case, without stop words and accents, stemmed by the rules of their language", async (t) => {
  t.same(terms("What are the REFUNDS you've refunded?"), ["refund", "refund"]);
  t.same(terms("O'Brien's résumé doesn't say “why”"), ["o", "brien", "resume", "resum"], "as written and as typed");
  t.same(terms("public-page v1.2 ｆｕｌｌ　ｗｉｄｔｈ"), ["public", "page", "publicpag", "v1", "2", "full", "width"]);
  t.same(terms("Die Kündigungen und Öffnungszeiten der Straßen", "de"), ["kundig", "offnungszeit", "strass"]);
  t.same(terms("L'hôtel et ses réservations", "fr"), ["hotel", "reserv"]);
  t.same(terms("Άνθρωπος άνθρωποσ", "el"), ["ανθρωπ", "ανθρωπ"]);
  t.same(terms("東京タワー"), ["東", "東京", "京", "京タ", "タワ", "ワー"], "letters of Han, and pairs");
  t.same(terms("Привет हिन्दी", "xx"), ["приве", "हिन्द"], "the first letters, without a stemmer");
  t.same(terms("猫"), ["猫"]);
  t.same(terms("?! — \0 \ud800"), []);
});

t.test("a word is found with its accents and without, in one piece and in two", async (t) => {
  const meets = (text: string, question: string, language: string) => {
    const held = new Set(terms(text, language));
    return queryTerms(question, [language]).some((word) => word.some((term) => held.has(term)));
  };
  for (const question of ["información", "informacion", "informaciones", "INFORMACIÓN"])
    t.ok(meets("Más informaciones y la información de contacto", question, "es"), question);
  for (const question of ["e-bikes", "ebike", "E‑Bike"]) t.ok(meets("Rent an e-bike", question, "en"), question);
  t.ok(meets("Öffnungszeiten", "offnungszeit", "de"));
  t.notOk(meets("Rent an e-bike", "tandem", "en"));
});

t.test("a question is read in each language of the texts, without the small words of its own", async (t) => {
  t.same(queryTerms("What is the price of a house?", ["en", "de"]), [["price", "pric"], ["hous"]]);
  t.same(queryTerms("Was kosten die Häuser?", ["en", "de"]), [
    ["kosten", "kost"],
    ["hauser", "haus"],
  ]);
  t.same(queryTerms("the what", ["de"]).length, 2, "no language of the texts has these as small words");
  t.same(queryTerms("what is it", ["en", "fr"]), []);
});

t.test("a term is never long, and 200 KB without a space are read at once", async (t) => {
  for (const letter of ["a", "й", "あ", "🎉", "a\u0301", "'"]) {
    t.ok(
      terms(letter.repeat(200_000)).every((term) => term.length > 0 && term.length <= 40),
      letter,
    );
  }
});

t.test("rare words weigh more than common ones, titles more than texts, short texts more than long ones", async (t) => {
  const index = new LexicalIndex();
  const add = (slot: number, title: string, text: string) =>
    index.add(slot, passageTerms({ title, heading: "", text, language: "en" }));
  add(0, "", "apple banana cherry");
  add(1, "", "apple banana date");
  add(2, "", "apple elder fig");
  add(3, "fig", "grape hazel");
  add(4, "", `fig ${"indigo ".repeat(30)}`);
  t.equal(slots(index.search(asked("appl", "cherri"), 5))[0], 0);
  t.same(slots(index.search(asked("fig"), 5)).slice(0, 3), [3, 2, 4]);
});

t.test("a document is found by its words, and only by those with access", async (t) => {
  const index = new LexicalIndex();
  index.add(0, ["refund", "secret"]);
  index.add(1, ["refund", "public"]);
  index.add(2, ["secret"]);
  index.add(3, ["public"]);
  t.same(slots(index.search(asked("refund"), 10)), [0, 1]);
  t.same(slots(index.search(asked("refund"), 10, (slot) => slot > 0)), [1]);
});

t.test("after any additions and removals a ranking is that of a new index", async (t) => {
  const word = fc.constantFrom("a", "b", "c", "d", "e", "f", "g");
  const step = fc.record({
    slot: fc.nat(12),
    words: fc.option(fc.array(word, { minLength: 1, maxLength: 8 }), { nil: undefined }),
  });
  const scores = (found: Ranked<number>[]) =>
    found.map(({ item, score }) => `${score.toFixed(5)} ${String(item).padStart(2)}`).sort();
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), fc.array(word, { maxLength: 4 }), (steps, query) => {
      const used = new LexicalIndex();
      const last = new Map<number, string[]>();
      for (const { slot, words } of steps) {
        if (words) used.add(slot, words);
        else used.remove(slot);
        if (words) last.set(slot, words);
        else last.delete(slot);
      }
      const fresh = new LexicalIndex();
      for (const [slot, words] of last) fresh.add(slot, words);
      t.same(scores(used.search(asked(...query), 20)), scores(fresh.search(asked(...query), 20)));
    }),
    { numRuns: 200 },
  );
});

t.test("an emptied index frees the memory of its terms", async (t) => {
  const index = new LexicalIndex();
  const fill = () => {
    for (let slot = 0; slot < 500; slot++)
      index.add(
        slot,
        Array.from({ length: 40 }, (_, at) => `term${(slot * 7 + at) % 900}`),
      );
  };
  fill();
  const full = index.bytes;
  for (let slot = 0; slot < 500; slot++) index.remove(slot);
  t.ok(index.bytes < full / 20);
  t.same(index.search(asked("term1"), 5), []);
  fill();
  t.ok(index.bytes < full * 1.2);
});

t.test("the nearest vectors are those of the definition of the cosine", async (t) => {
  const vector = fc.float32Array({
    minLength: 19,
    maxLength: 19,
    noNaN: true,
    noDefaultInfinity: true,
    min: -1,
    max: 1,
  });
  fc.assert(
    fc.property(fc.array(vector, { minLength: 1, maxLength: 60 }), vector, (vectors, query) => {
      const index = new VectorIndex(19);
      for (const [slot, values] of vectors.entries()) index.add(slot, values);
      const found = index.search(query, 60);
      t.equal(found.length, vectors.length);
      for (const { item, score } of found) if (Math.abs(score - cosine(vectors[item]!, query)) > 1e-5) return false;
      return found.every(({ score }, at) => at === 0 || score <= found[at - 1]!.score);
    }),
    { numRuns: 100 },
  );
});

t.test("a search gives the cosines of the nearest vectors, whatever their length", async (t) => {
  for (const dimensions of [1, 4, 15, 16, 17, 384]) {
    const index = new VectorIndex(dimensions);
    const query = Float32Array.from({ length: dimensions }, (_, at) => Math.cos(at * 13));
    const exact: number[] = [];
    for (let slot = 0; slot < 200; slot++) {
      const values = Float32Array.from({ length: dimensions }, (_, at) => Math.sin(slot * 31 + at * 17));
      index.add(slot, values);
      exact.push(cosine(values, query));
    }
    const found = index.search(query, 50);
    const nearest = [...exact].sort((one, other) => other - one).slice(0, 50);
    t.equal(found.length, 50);
    t.ok(found.every(({ item, score }) => Math.abs(score - exact[item]!) < 1e-5));
    t.ok(found.every(({ score }, rank) => Math.abs(score - nearest[rank]!) < 1e-5));
  }
});

t.test("vectors come and go, grow and shrink, and none is found that isn't there", async (t) => {
  const index = new VectorIndex(8);
  const query = Float32Array.from({ length: 8 }, (_, at) => Math.cos(at));
  const kept = new Map<number, Float32Array>();
  for (let step = 0; step < 3000; step++) {
    const slot = (step * 7919) % 400;
    const values = Float32Array.from({ length: 8 }, (_, at) => Math.sin(step + at));
    const isRemoval = step > 2500 || step % 3 === 0;
    if (isRemoval) index.remove(slot);
    else index.add(slot, values);
    if (isRemoval) kept.delete(slot);
    else kept.set(slot, values);
    if (step % 100 === 0) t.equal(index.search(query, 1000).length, kept.size);
  }
  const found = index.search(query, 1000);
  t.same(slots(found).sort(), [...kept.keys()].sort());
  t.ok(found.every(({ item, score }) => Math.abs(score - cosine(kept.get(item)!, query)) < 1e-5));
  for (const slot of kept.keys()) index.remove(slot);
  t.same([index.size, index.search(query, 5)], [0, []]);
  t.ok(index.bytes < 200_000);
});

t.test("vectors without a direction are like to none", async (t) => {
  const index = new VectorIndex(3);
  index.add(0, Float32Array.of(0, 0, 0));
  index.add(1, Float32Array.of(Number.NaN, 1, 0));
  index.add(2, Float32Array.of(0, 1, 0));
  const found = index.search(Float32Array.of(0, 2, 0), 3);
  t.same([found[0], ...found.slice(1).map(({ score }) => score)], [{ item: 2, score: 1 }, 0, 0]);
  t.same(slots(index.search(Float32Array.of(0, 2, 0), 3, (slot) => slot === 0)), [0]);
});

t.test("rankings are fused by 1 / (60 + rank)", async (t) => {
  const ranked = (item: string) => ({ item, score: 1 });
  const found = fuse([["a", "b", "c"].map(ranked), ["c", "d"].map(ranked)], 3);
  t.same(
    found.map(({ item }) => item),
    ["c", "a", "b"],
  );
  t.equal(found[0]?.score, 1 / 63 + 1 / 61);
  t.same(fuse([[], []], 3), []);
});

function cosine(one: Float32Array, other: Float32Array): number {
  let product = 0;
  for (let at = 0; at < one.length; at++) product += one[at]! * other[at]!;
  const lengths = Math.hypot(...one) * Math.hypot(...other);
  return lengths === 0 ? 0 : product / lengths;
}
