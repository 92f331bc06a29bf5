/** The role of a sentence that passed: the opening of a list, table or part; talk, such as a greeting; or a fact. */
type Role = "opening" | "talk" | "fact";

/**
 * Holds back what says nothing by itself: a heading, an introduction and the names of columns until what they introduce, and talk until
 * the first fact. It is lost if nothing of that passes.
 */
export class Held {
  #text = "";
  #isOpening = false;
  /** A sentence was dropped after the opening. */
  #isLost = false;
  #hasFact = false;

  drop(): void {
    this.#isLost = true;
  }

  /** The text that is shown once a sentence passes; `isItem` for an item of a list and a row. */
  pass(text: string, { role, isItem }: { role: Role; isItem: boolean }): string {
    if (text === "") return "";
    if (this.#isOpening && this.#isLost && !isItem) this.#text = "";
    this.#isLost = false;
    this.#text += text;
    this.#isOpening = role === "opening";
    return this.#isOpening || (role === "talk" && !this.#hasFact) ? "" : this.#shown();
  }

  /** The rest; `hasDropped` if any sentence was dropped. */
  end(hasDropped: boolean): string {
    return (this.#isOpening && this.#isLost) || (hasDropped && !this.#hasFact) ? "" : this.#shown();
  }

  /** Begins with no line break. */
  #shown(): string {
    const text = this.#hasFact ? this.#text : this.#text.replace(/^\n+/, "");
    this.#text = "";
    this.#hasFact = true;
    return text;
  }
}
