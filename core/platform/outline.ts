/** The level of a line in bold or capitals that names what follows: below h6, and below the question of a `details`. */
export const BOLD_LEVEL = 8;

/** A question, or a few words without a figure or the end of a sentence. */
const TITLE = /^(?:[^\d]{0,79}[^\d\s.!:;,…。]|.{1,199}[?؟？])$/u;

/** True for a line in bold that names what follows, and says nothing itself. */
export function isTitle(bold: string): boolean {
  return TITLE.test(bold);
}

/** A question alone on its line, which names what follows, and the sign that opens its answer: "How do I book? +". */
const QUESTION = /^(?:> ?)?[\p{L}¿"“«][^.!?؟？:;…。！|]{2,150}[?؟？]\s?[+▾▼⌄›]?$/u;

/** True for a line of text that is one question. */
export function isQuestion(line: string): boolean {
  return QUESTION.test(line);
}

/** A heading without the signs that only a pointer needs: of a link to it, or of what opens. */
export function headingName(text: string): string {
  return text.replace(/\s*¶$|(?<=[?؟？])\s?[+▾▼⌄›]$/, "");
}

/** True for a line in capitals that names what follows: "OPENING HOURS (by phone)". No row of a table is one, nor a script without capitals. */
export function isCapitalTitle(line: string): boolean {
  const name = line.replace(/ ?\([^()]*\)/g, "");
  return /^\p{Lu}[^\p{Ll}|]*$/u.test(name) && /\p{Lu}{3}/u.test(name) && isTitle(name);
}

/** The headings above the place that a reader of a text has reached, and the sections that they begin. */
export class Outline<Heading extends { name: string }> {
  /** The number of the current section. */
  section = 0;
  readonly #path: { level: number; heading: Heading; isUsed: boolean }[] = [];
  readonly #addBare: (heading: Heading) => void;

  /** `addBare` takes each heading with nothing below it, which is itself the text of its section. */
  constructor(addBare: (heading: Heading) => void) {
    this.#addBare = addBare;
  }

  /** Begins the section of a heading; without a name, of the same headings as before. */
  enter(level: number, heading: Heading): void {
    this.leave(level);
    this.section++;
    if (heading.name !== "") this.#path.push({ level, heading, isUsed: false });
  }

  /** Ends the sections from `level` inwards. */
  leave(level: number): void {
    while ((this.#path.at(-1)?.level ?? -1) >= level) {
      const { heading, isUsed } = this.#path.pop()!;
      this.section++;
      if (!isUsed) this.#addBare(heading);
    }
  }

  /** Returns a function that ends the sections from here on, and goes on below the headings of now. */
  aside(): () => void {
    const above = [...this.#path];
    return () => {
      const own = this.#path.filter((one) => !above.includes(one));
      this.#path.splice(0, this.#path.length, ...above);
      if (own.length > 0) this.section++;
      for (const { heading, isUsed } of own) if (!isUsed) this.#addBare(heading);
    };
  }

  /** The names of the headings above a text, from the outermost. */
  use(): string[] {
    for (const above of this.#path) above.isUsed = true;
    return this.#path.map(({ heading }) => heading.name);
  }
}
