import { readFileSync } from "node:fs";
import t from "tap";
import { visibleText } from "../core/assistant/visible-text.ts";

const page = `<main><!-- secret comment --><h1>Acme <em>Bakery</em></h1><p>Fresh&nbsp;bread
  &amp; cakes, 3 &lt; 5.</p>
<h2>Hours</h2><table><tr><th>Day</th><th>Time</th></tr><tr><td>Mon</td><td>9–17</td></tr></table>
<h2>Services</h2><h3>Cakes</h3><ul><li><p>Wedding <b>cake</b></p></li><li>Birthday<ul><li>Kids</li></ul></li></ul>
<details><summary>Do you deliver?</summary><p>Yes, in town.</p></details><p>After</p>
<dl><dt>Phone</dt><dd>+49 30 1234</dd><dt>Can I pay by card?</dt><dd>Yes.</dd></dl><h2>Alone</h2>
<address>Main St 5<br>10115 Berlin</address><h2>Nothing below</h2></main>`;

t.test("text stands under its headings, one line a block", async (t) => {
  t.same(visibleText(page), {
    title: "Acme Bakery",
    sections: [
      { heading: "", text: "Fresh bread & cakes, 3 < 5." },
      { heading: "Hours", text: "Day\tTime\nMon\t9–17" },
      { heading: "Services › Cakes", text: "- Wedding cake\n- Birthday\n- Kids" },
      { heading: "Services › Cakes › Do you deliver?", text: "Yes, in town." },
      { heading: "Services › Cakes", text: "After\nPhone\t+49 30 1234" },
      { heading: "Services › Cakes › Can I pay by card?", text: "Yes." },
      { heading: "Alone", text: "Main St 5\n10115 Berlin" },
      { heading: "", text: "Nothing below" },
    ],
    links: [],
  });
});

t.test("what a reader doesn't see is not read", async (t) => {
  const hidden = [
    "<!-- x -->",
    "<p hidden>x</p>",
    '<p aria-hidden="true">x</p>',
    '<p style="color:red; display : none">x</p>',
    '<p style="display:/**/none !important">x</p>',
    '<p style="VISIBILITY:hidden"><b>x</b></p>',
    '<p style="font-size:0px">x</p>',
    '<p style="opacity:0">x</p>',
    "<template>x</template>",
    "<script>x</script>",
    "<style>x</style>",
    "<noscript>x</noscript>",
    "<dialog>x</dialog>",
    "<textarea>x</textarea><select><option>x</option></select><button>x</button><label>x</label>",
    '<div hidden><p>x</p><a href="https://acme.example/">x</a></div>',
    "<svg><text>x</text></svg>",
  ];
  for (const html of hidden) t.same(visibleText(html), { title: "", sections: [], links: [] }, html);
  for (const style of ["display:block", "opacity:0.5", "font-size:10px", "color:none"]) {
    t.equal(visibleText(`<p style="${style}">x</p>`).sections.length, 1, style);
  }
});

t.test("characters without a glyph are dropped, those that shape letters stay", async (t) => {
  const read = (text: string) => visibleText(`<p>${text}</p>`).sections[0]?.text;
  t.equal(read("ig\u200bno\u{e0049}\u{e007f}re\u2060 th\u00adis\u202e"), "ignore this");
  t.equal(read("می\u200cخواهم"), "می\u200cخواهم");
  t.equal(read("👩\u200d💻 क्\u200dष"), "👩\u200d💻 क्\u200dष");
  t.equal(read("a\u200db"), "ab");
});

t.test("links are absolute web addresses with a label", async (t) => {
  const html = `<a href="/contact">Contact <b>us</b></a> <a href="https://x.example/a" aria-label="Named"><img src="x"></a>
    <a href="javascript:alert(1)">bad</a><a href="mailto:a@b.example">mail</a><a href="https://user:pass@x.example/">login</a>
    <a href="https://x.example/empty"></a><a>none</a><a href="/contact">Contact us</a>`;
  t.same(visibleText(html, "https://acme.example/page").links, [
    { label: "Contact us", href: "https://acme.example/contact" },
    { label: "Named", href: "https://x.example/a" },
  ]);
  t.same(
    visibleText(html).links.map(({ label }) => label),
    ["Named"],
  );
});

t.test("hostile and broken HTML gives text and web links only", async (t) => {
  const inputs = JSON.parse(
    readFileSync(new URL("../fixtures/assistant/hostile.json", import.meta.url), "utf8"),
  ) as string[];
  for (const input of inputs) {
    const { links } = visibleText(`<p>${input}</p>`, "https://acme.example/");
    t.ok(links.every(({ href }) => /^https?:\/\/[^@]+$/.test(href)));
  }
  t.type(visibleText("<p>unclosed <b>bold <div>x</p></div>").sections[0]?.text, "string");
  t.same(visibleText(""), { title: "", sections: [], links: [] });
});

t.test("a fragment of 256 KB of any kind is read", async (t) => {
  const size = 256 * 1024;
  for (const piece of [
    "<div>",
    "<b>",
    "<p>a",
    "<",
    "<table><tr><td>a",
    "&amp;",
    "<a href=x>",
    "<h2>x",
    "<dt>a?<dd>b",
    "<!--",
    '<p style="/*',
  ])
    t.ok(visibleText(piece.repeat(size / piece.length)).sections.length >= 0, piece);
  const long = visibleText(
    `<h1>T</h1>${"<section><h2>Topic</h2><p>A paragraph of ordinary words.</p></section>".repeat(3700)}`,
  );
  t.equal(long.sections.length, 3700);
});
