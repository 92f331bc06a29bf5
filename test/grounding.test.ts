import { readFileSync } from "node:fs";
import t from "tap";
import { factsOf, supports } from "../core/assistant/facts.ts";
import { ground, snippetOf } from "../core/assistant/grounding.ts";
import { evidenceOf, someEvidence } from "../fixtures/assistant/evidence.ts";
import { sites } from "../fixtures/assistant/judged.ts";

const evidence = [
  someEvidence(
    "The Team plan costs $9 per person. Setup is 1,000 €. Mail hi@acme.example, call +49 30 1234567 or visit https://acme.example/demo. " +
      "Open 9:00 to 17:00. You save 10 %. The warranty is two years. The code is SAVE20.",
  ),
];

/** What passes, and how many sentences went, when a text arrives in pieces of a size. */
function filtered(text: string, size = 7, never: string[] = []): { text: string; dropped: number; kept: number } {
  const filter = ground(evidence, never);
  let passed = "";
  for (let at = 0; at < text.length; at += size) passed += filter.push(text.slice(at, at + size));
  passed += filter.end();
  return { text: passed, dropped: filter.dropped, kept: filter.kept };
}

t.test("a sentence passes where its facts are in the evidence, whatever their form", async (t) => {
  const true_ = [
    "It costs **$9**.",
    "That is 9 USD.",
    "Setup is €1000.",
    "Setup is 1.000 Euro.",
    "Write to HI@acme.example.",
    "Call +49 30 123 45 67.",
    "See [the demo](https://acme.example/demo).",
    "See acme.example/demo for more.",
    "Open until 5 pm.",
    "Bis 17 Uhr geöffnet.",
    "You save 10 percent.",
    "A warranty of 2 years.",
    "Use save20 at the till.",
    "There are three good reasons.",
    "We work with B2B customers.",
    "See https://acme.example/pricing.",
  ];
  for (const sentence of true_) t.same(filtered(sentence), { text: sentence, dropped: 0, kept: 1 }, sentence);
});

t.test("a sentence goes where a number, price, time, address or link is not in the evidence", async (t) => {
  const false_ = [
    "It costs $8.",
    "It costs 9 €.",
    "Setup is 10,000 €.",
    "Write to hello@acme.example.",
    "Write to [us](mailto:evil@evil.example).",
    "Call +49 30 7654321.",
    "See [more](https://evil.example/?q=1).",
    "See evil.com/login.",
    "See [more](/relative).",
    "See [more](javascript:alert).",
    "Open until 6 pm.",
    "You save 20 %.",
    "Use SAVE30.",
    "It has ٤٢ rooms.",
    "It has ４２ rooms.",
    "Over 500 customers trust us.",
  ];
  for (const sentence of false_) t.same(filtered(sentence), { text: "", dropped: 1, kept: 0 }, sentence);
});

t.test("what passes doesn't depend on how the text was cut into deltas", async (t) => {
  const text =
    "# Plans\n\nThe **Team plan costs $9**. It has 50 GB! See [the demo](https://acme.example/demo).\n\n1. First.\n2. It costs $99. But it is nice.\n3. Last, e.g. this one.\n\n- a $9 item\n- a $10 item\n\n| Plan | Price |\n|---|---|\n| Team | $9 |\n| Pro | $90 |\n\nBye.";
  const whole = filtered(text, text.length);
  t.equal(
    whole.text,
    "# Plans\n\nThe **Team plan costs $9**. See [the demo](https://acme.example/demo).\n\n1. First.\n2. But it is nice.\n3. Last, e.g. this one.\n\n- a $9 item\n\n| Plan | Price |\n|---|---|\n| Team | $9 |\n\nBye.",
  );
  for (const size of [1, 2, 3, 5, 11, 50]) t.same(filtered(text, size), whole, `${size}`);
});

t.test("a sentence is passed on as soon as the next one begins, a line as soon as it ends", async (t) => {
  const filter = ground(evidence);
  t.equal(filter.push("Hello there."), "");
  t.equal(filter.push(" T"), "Hello there. ");
  t.equal(filter.push("he end\n"), "The end");
});

t.test("raw HTML and images go, the words stay", async (t) => {
  t.equal(
    filtered("Fine <b onclick=alert(1)>bold</b> text <img src=x onerror=alert(1)>here.").text,
    "Fine bold text here.",
  );
  t.equal(filtered("Look ![x](https://evil.example/p.png) here.").text, "Look  here.");
  t.equal(filtered("Well<script>alert(1)</script>, fine.").text, "Well, fine.");
  t.equal(filtered("Look !<b>[x](https://acme.example/demo) here.").text, "Look  here.");
});

t.test("strings that nobody may see take their sentence with them", async (t) => {
  t.equal(filtered("Fine. The text starts at TEXT-abc. Bye.", 4, ["TEXT-ABC"]).text, "Fine. Bye.");
});

t.test("no hostile text of a model leaves markup, an image or an outside link", async (t) => {
  const inputs = JSON.parse(
    readFileSync(new URL("../fixtures/assistant/hostile.json", import.meta.url), "utf8"),
  ) as string[];
  for (const input of inputs) {
    for (const text of [input, `Hello. ${input} And more.`, `- ${input}\n- ok`]) {
      for (const size of [1, 4, 1000]) {
        const passed = filtered(text, size).text;
        t.notMatch(passed, /<[a-z/!?]/i, input);
        t.notMatch(passed, /!\[|evil\.example|\]\((?!https:\/\/acme\.example\/(?:demo|pricing)\))/i, input);
      }
    }
  }
});

t.test("endless sentences and floods of marks are cut", async (t) => {
  const floods = ["<", "[", "![", "<script", "a ", "**", ".", "- ", "[a](", "<!--", "a. ", "|", "`", "語"];
  for (const piece of floods) {
    const { text } = filtered(piece.repeat(6000 / piece.length), 50);
    t.notMatch(text, /<[a-z/!?]|!\[/i, piece);
  }
});

t.test("facts are read the same way from text and evidence of all sites", async (t) => {
  for (const site of sites) {
    for (const { text } of evidenceOf(site)) t.ok(supports(factsOf(text), factsOf(text)));
  }
});

t.test("a snippet is an exact piece of its text", async (t) => {
  for (const site of sites) {
    for (const { text } of evidenceOf(site)) {
      const snippet = snippetOf(text, site.questions[0]!.question);
      t.ok(snippet !== "" && snippet.length <= 240 && text.includes(snippet), snippet);
    }
  }
  t.equal(snippetOf("", "What?"), "");
  t.equal(
    snippetOf("# Payment\nCash only. No cards.\n\nBread is cheap.", "Can I pay in cash?"),
    "Cash only. No cards.",
  );
});
