import lunr from "lunr";
import MiniSearch from "minisearch";
import bm25 from "wink-bm25-text-search";
import nlp from "wink-nlp-utils";

/** Search libraries over title and text, set up as their documentation shows: documents first, then the best ids for a question. */
export const libraries = {
  lunr(documents) {
    const index = lunr(function () {
      this.ref("id");
      this.field("title");
      this.field("text");
      for (const document of documents) this.add(document);
    });
    // A parsed query would treat punctuation of a question as syntax.
    return (text) => index.query((query) => query.term(lunr.tokenizer(text), {})).map(({ ref }) => ref);
  },
  minisearch(documents) {
    const index = new MiniSearch({ fields: ["title", "text"] });
    index.addAll(documents);
    return (text) => index.search(text).map(({ id }) => id);
  },
  wink(documents) {
    const index = bm25();
    index.defineConfig({ fldWeights: { title: 1, text: 1 } });
    const { lowerCase, tokenize0 } = nlp.string;
    const { removeWords, stem, propagateNegations } = nlp.tokens;
    index.definePrepTasks([lowerCase, tokenize0, removeWords, stem, propagateNegations]);
    for (const { id, title, text } of documents) index.addDoc({ title, text }, id);
    index.consolidate();
    return (text) => index.search(text, 10).map(([id]) => id);
  },
};
