import fc from "fast-check";
import t from "tap";
import { chunk } from "../core/engines/search/chunking.ts";

const markdown = (content: string, title = "") => chunk({ title, content, contentType: "text/markdown" });
const plain = (content: string) => chunk({ title: "", content, contentType: "text/plain" });
const words = (text: string): number => text.split(/\s+/).length;
const sentence = (number: number): string => `Sentence ${number} has words that say a little about number ${number}.`;
const prose = (count: number): string => Array.from({ length: count }, (_, at) => sentence(at)).join(" ");

t.test("Markdown is cut at headings, and a piece knows the headings above it", async (t) => {
  const content =
    "Intro.\n\n# Refunds\n\nWithin 14 days.\n\n## Costs ##\nShipping isn't refunded.\n\nHours\n-----\nNine to six.\n";
  t.same(markdown(content), [
    { heading: "", text: "Intro." },
    { heading: "Refunds", text: "Within 14 days." },
    { heading: "Refunds › Costs", text: "Shipping isn't refunded." },
    { heading: "Refunds › Hours", text: "Nine to six." },
  ]);
  t.same(markdown(content, "Refunds")[2]?.heading, "Costs", "the title isn't repeated");
  t.same(
    plain("# No heading\n\nText."),
    [{ heading: "", text: "# No heading\n\nText." }],
    "plain text has no headings",
  );
});

t.test("a heading with nothing below it is found itself", async (t) => {
  t.same(
    markdown("# Questions\n## Is it free? Yes.\n## Is it good? Very.\n").map(({ text }) => text),
    ["Is it free? Yes.", "Is it good? Very."],
  );
});

t.test("pieces have about 120 to 200 words and end with a sentence", async (t) => {
  for (const content of [
    prose(100),
    Array.from({ length: 100 }, (_, at) => sentence(at)).join("\n\n"),
    prose(50).replaceAll(" has ", "\nhas "),
  ]) {
    for (const pieces of [plain(content), markdown(content)]) {
      t.ok(pieces.every(({ text }) => words(text) >= 100 && words(text) <= 200));
      t.ok(pieces.every(({ text }) => /^Sentence \d+[\s\S]*number \d+\.$/.test(text)));
    }
  }
});

t.test("abbreviations, numbers and hard line breaks end no sentence", async (t) => {
  const long = `Dr. Smith paid 3.5 per cent, i.e. a little,\nand left at 5 p.m. for no. 7 ${"and so on ".repeat(30)}until the end.`;
  const pieces = plain(Array.from({ length: 6 }, () => long).join(" "));
  t.equal(pieces.length, 6);
  t.ok(pieces.every(({ text }) => text.startsWith("Dr. Smith") && text.endsWith("until the end.")));
});

t.test("text without spaces is measured by its letters", async (t) => {
  const pieces = plain("返品は十四日以内に承ります。".repeat(200));
  t.ok(pieces.length > 5);
  t.ok(pieces.every(({ text }) => text.length < 500 && text.endsWith("。")));
});

t.test("a comment of its own stays whole, and nothing in it is a heading", async (t) => {
  const comment = `<!-- Old:\n\n# Prices of 2019\n\n${prose(60)}\n-->`;
  const pieces = markdown(`# Hire\n\n${prose(30)}\n\n${comment}\n\nA tent <!-- new --> costs £9.`);
  t.ok(pieces.some(({ text }) => text.includes(comment)));
  t.ok(pieces.every(({ heading }) => heading === "Hire"));
  const long = `<!-- ${prose(400)} -->`;
  t.ok(markdown(`${prose(150)}\n\n${long}\n\n${prose(150)}`).some(({ text }) => text === long));
});

t.test("comments share chunks with the text around them, however many there are", async (t) => {
  const table = "| Boat | Price |\n|---|---|\n| Dinghy | £40 |\n<!-- New: -->\n| Kayak | £25 |";
  t.same(markdown(`# Hire\n\n${table}`), [{ heading: "Hire", text: table }]);
  t.ok(markdown("<!-- note -->\n\nA tent costs £9.\n\n".repeat(5000)).length < 1000);
});

t.test("code blocks stay whole, and nothing in them is a heading", async (t) => {
  const block = "```sh\n# comment\nrun --all\n```";
  const pieces = markdown(`# Use\n\n${prose(30)}\n\n${block}\n\nThen wait.`);
  t.ok(pieces.some(({ text }) => text.includes(block)));
  t.ok(pieces.every(({ heading }) => heading === "Use"));
});

t.test("a lesson card is one piece, in each of its forms", async (t) => {
  const value = `{"title": "Focus", "steps": ["# one", "two } three", "${prose(260)}"]}`;
  const fenced = `\`\`\`productivity_lesson_card\n${value}\n\`\`\``;
  const named = `productivity_lesson_card: ${value}`;
  const keyed = `{"productivity_lesson_card": ${value}}`;
  const below = `## productivity_lesson_card\n\n\`\`\`json\n${value}\n\`\`\``;
  const marked = `<productivity_lesson_card>\n${value}\n</productivity_lesson_card>`;
  const lines = `productivity_lesson_card\n${value.replaceAll(", ", ",\n")}`;
  const set = `productivity_lesson_card = ${value}`;
  for (const card of [fenced, named, keyed, below, marked, lines, set]) {
    for (const cut of [markdown, plain]) {
      const pieces = cut(`Before it.\n\n${card}\n\nAfter it.`).map(({ text }) => text);
      t.same(pieces, ["Before it.", card, "After it."]);
    }
  }
});

t.test("a broken lesson card is text", async (t) => {
  const pieces = markdown('Before.\n\nproductivity_lesson_card: {"title": "Focus"\n\nAfter.');
  t.same(
    pieces.map(({ text }) => text),
    ['Before.\n\nproductivity_lesson_card: {"title": "Focus"\n\nAfter.'],
  );
});

t.test(
  "pieces are exact, in order, without overlap, and leave out nothing but headings, whatever the content",
  async () => {
    const part = fc.oneof(
      fc.constantFrom(
        "# A\n",
        "## B\n",
        "\n",
        "\n\n",
        "- item\n",
        "```\n",
        "~~~x\n",
        "---\n",
        "===\n",
        "{",
        "}",
        '"',
        "productivity_lesson_card",
        ": ",
        ". ",
        "Dr. ",
        "。",
        "🎉",
        "\r\n",
        "| a |",
      ),
      fc.string({ unit: "grapheme", maxLength: 30 }),
      fc.integer({ min: 1, max: 80 }).map(prose),
    );
    const contents = fc.array(part, { maxLength: 40 }).map((parts) => parts.join(""));
    fc.assert(
      fc.property(contents, fc.boolean(), (content, isMarkdown) => {
        const pieces = isMarkdown ? markdown(content) : plain(content);
        let at = 0;
        let between = "";
        for (const { text } of pieces) {
          const found = content.indexOf(text, at);
          if (found < 0) return false;
          between += content.slice(at, found);
          at = found + text.length;
        }
        between += content.slice(at);
        return isMarkdown || between.trim() === "";
      }),
      { numRuns: 300 },
    );
  },
);

t.test("200 KB of anything make a bounded number of bounded pieces", async (t) => {
  const units = [
    "a",
    "a ",
    "Hello. ",
    "# a\n",
    "# a\nb\n",
    "- a\n",
    "\n",
    " ",
    "```\n",
    "```productivity_lesson_card\n```\n",
    "productivity_lesson_card:{",
    '{"productivity_lesson_card":{}}\n',
    "あ",
    "🎉",
    "#",
    "# ",
    "{",
    "a\n---\n",
    ". ",
  ];
  const fill = (unit: string): string => unit.repeat(Math.ceil(200_000 / unit.length));
  const contents = [...units.map(fill), `# ${fill("[](")}`, `\`\`\`\n${fill("a(1);\r\n")}`, `\`\`\`\n${fill("a\r")}`];
  for (const content of contents) {
    for (const cut of [markdown, plain]) {
      const since = performance.now();
      const pieces = cut(content);
      t.ok(performance.now() - since < 5000, "in linear time");
      t.ok(pieces.length <= 1000, `${JSON.stringify(content.slice(0, 40))}: ${pieces.length} pieces`);
      t.ok(pieces.every(({ text }) => text.length <= 5000));
      t.ok(
        pieces.every(({ text }) => !/^[\udc00-\udfff]|[\ud800-\udbff]$/.test(text)),
        "no letter is cut in two",
      );
    }
  }
});
