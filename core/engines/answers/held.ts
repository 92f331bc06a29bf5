/** What a sentence that passed is for a visitor: it opens a list or table, it is talk such as a greeting, or it says something. */
type Role = "opening" | "talk" | "fact";

/**
 * Holds back what says nothing by itself: an introduction and the names of columns until what they introduce, and talk until the first
 * fact. It is lost if nothing of that passes.
 */
export class Held {
  #text = "";
  #isOpening = false;
  /** A sentence was dropped after the opening, or before the first fact. */
  #isLost = false;
  #hasFact = false;
  #hasShown = false;

  drop(): void {
    this.#isLost = true;
  }

  /** The text that is shown once a sentence passes; `isItem` for an item of a list and a row. */
  pass(text: string, { role, isItem }: { role: Role; isItem: boolean }): string {
    if (text === "") return "";
    if (this.#isOpening && this.#isLost && !isItem) this.#text = "";
    if (role === "opening" && this.#hasFact) this.#isLost = false;
    this.#text += text;
    this.#isOpening = role === "opening";
    if (this.#isOpening || (role === "talk" && !this.#hasFact)) return "";
    this.#isLost = false;
    this.#hasFact = true;
    return this.#shown();
  }

  end(): string {
    return this.#isLost && (this.#isOpening || !this.#hasFact) ? "" : this.#shown();
  }

  /** Begins with no line break. */
  #shown(): string {
    const text = this.#hasShown ? this.#text : this.#text.replace(/^\n+/, "");
    this.#text = "";
    this.#hasShown ||= text !== "";
    return text;
  }
}
