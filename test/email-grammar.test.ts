import fc from "fast-check";
import { parseHTML } from "linkedom";
import t from "tap";
import { Fail } from "../core/platform/errors.ts";
import { parseHtml, parsePlain, render } from "../core/email/grammar.ts";
import { mustHaveAll, parseTemplate, renderTemplate } from "../core/email/templates.ts";

/** The failure of a call. */
function failure(call: () => unknown): Fail {
  try {
    call();
  } catch (error) {
    if (error instanceof Fail) return error;
    throw error;
  }
  throw new Error("It did not fail.");
}

const inHtml = (source: string, value: string): string => render(parseHtml(source), { x: value });

t.test("a template knows {{name}} and nothing else", async (t) => {
  for (const name of ["a", "firstName", "fields.company", "a-b_c.d", "x".repeat(64)]) {
    t.equal(render(parsePlain("text", `Dear {{${name}}}!`), { [name]: "Ann" }), "Dear Ann!", name);
  }
  const wrong = [
    "{{",
    "{{}}",
    "{{ name }}",
    "{{{name}}}",
    "{{#if a}}",
    "{{/if}}",
    "{{>part}}",
    "{{a b}}",
    "{{name}",
    "{{ü}}",
    `{{${"x".repeat(65)}}}`,
  ];
  for (const text of wrong)
    t.equal(failure(() => parsePlain("text", `ok {{a}} ${text}`)).code, "template_invalid", text);
  t.equal(render(parsePlain("text", "}} { {a} }"), {}), "}} { {a} }", "other braces are text");
});

t.test("a refusal names the position", async (t) => {
  const { details } = failure(() => parsePlain("text", "one\ntwo {{ bad }}"));
  t.match(details.more, { field: "text", position: 8, line: 2, column: 5 });
  t.match(details.errors, [{ path: "/text", message: /position 8 \(line 2, column 5\)/ }]);
});

t.test("values are escaped for where they stand", async (t) => {
  const nasty = `<b>&"'`;
  t.equal(inHtml("<p>{{x}}</p>", nasty), "<p>&lt;b&gt;&amp;&quot;&#39;</p>");
  t.equal(inHtml('<p title="{{x}}">', nasty), '<p title="&lt;b&gt;&amp;&quot;&#39;">');
  t.equal(inHtml("<p title='a {{x}}'>", nasty), "<p title='a &lt;b&gt;&amp;&quot;&#39;'>");
  t.equal(inHtml('<a href="{{x}}">', "https://a.example/?b=1&c=2"), '<a href="https://a.example/?b=1&amp;c=2">');
  t.equal(inHtml('<a href="https://a.example/{{x}}">', "b/c d?e"), '<a href="https://a.example/b/c%20d%3Fe">');
  t.equal(inHtml('<a href="https://a.example/?q={{x}}">', "b&c=d/e"), '<a href="https://a.example/?q=b%26c%3Dd%2Fe">');
  t.equal(inHtml('<a href="mailto:{{x}}">', "ann@far.example"), '<a href="mailto:ann@far.example">');
  t.equal(inHtml("<title>{{x}}</title>", nasty), "<title>&lt;b&gt;&amp;&quot;&#39;</title>");
  t.equal(render(parsePlain("subject", "Hi {{x}}"), { x: nasty }), `Hi ${nasty}`, "a subject is no HTML");
  t.equal(render(parsePlain("text", "Hi {{x}}"), { x: `${nasty}\nmore` }), `Hi ${nasty}\nmore`, "nor is a text");
});

t.test("a placeholder stands in no place where no escape is safe", async (t) => {
  const places = [
    "<script>var a = '{{x}}'</script>",
    "<style>p { color: {{x}} }</style>",
    "<!-- {{x}} -->",
    "<p class={{x}}>",
    "<p {{x}}>",
    "<p {{x}}='a'>",
    '<p onclick="{{x}}">',
    '<p style="{{x}}">',
    '<img srcset="{{x}}">',
    '<a href="javascript:{{x}}">',
    '<a href="data:text/html,{{x}}">',
  ];
  for (const html of places) t.equal(failure(() => parseHtml(html)).code, "template_invalid", html);
});

t.test("a value that is an address leads to http, https, mailto or tel", async (t) => {
  const source = '<a href="{{x}}">';
  for (const bad of [
    "javascript:alert(1)",
    " JavaScript:alert(1)",
    "java\nscript:alert(1)",
    "\u0001javascript:x",
    "data:text/html,x",
    "vbscript:x",
  ]) {
    const { code, details } = failure(() => inHtml(source, bad));
    t.equal(code, "invalid_request", JSON.stringify(bad));
    t.equal(details.errors?.[0]?.path, "/variables/x");
  }
  for (const good of ["", "https://a.example", "mailto:a@b.example", "tel:+431", "a.example/b", "/b"])
    t.ok(inHtml(source, good));
});

t.test("a value is never read as a template", async (t) => {
  const parsed = parseTemplate({ subject: "{{a}}", html: "<p>{{a}}</p>", text: "{{a}} {{b}}" });
  const { subject, html, text } = renderTemplate(parsed, { a: "{{b}}", b: "secret" });
  t.same([subject, html, text], ["{{b}}", "<p>{{b}}</p>", "{{b}} secret"]);
});

t.test("missing variables are named, extra ones are ignored, and nothing is inherited", async (t) => {
  const parsed = parseTemplate({ subject: "{{a}}", html: null, text: "{{b}} {{constructor}} {{__proto__}}" });
  const { code, details } = failure(() => mustHaveAll(parsed, { a: "1", other: "2" }));
  t.equal(code, "template_variables_missing");
  t.same(
    details.errors?.map(({ path }) => path),
    ["/variables/b", "/variables/constructor", "/variables/__proto__"],
  );
  t.doesNotThrow(() => mustHaveAll(parsed, JSON.parse('{"a":"","b":"","constructor":"","__proto__":""}')));
});

t.test("a value in a subject is one line", async (t) => {
  const subject = parsePlain("subject", "Hi {{x}}");
  for (const bad of ["a\nb", "a\rBcc: evil@far.example", "a\r\nb", "a\u0000b", "a\u2028b", "x".repeat(999)]) {
    t.equal(failure(() => render(subject, { x: bad })).code, "invalid_request", encodeURIComponent(bad.slice(0, 20)));
  }
});

t.test("the text of an HTML template keeps its placeholders, and makes no new ones", async (t) => {
  const html = '<h1>Hi {{Name}}</h1><p>See <a href="https://a.example/{{id}}">this</a> &#123;&#123;other}}</p>';
  const { text } = renderTemplate(parseTemplate({ subject: "s", html, text: null }), {
    Name: "Ann",
    id: "7",
    other: "no",
  });
  t.match(text, /Hi Ann/);
  t.match(text, "https://a.example/7");
  t.match(text, "{{other}}");
});

t.test("whatever a value holds, the document has the same elements and attributes", async (t) => {
  const source =
    '<div title="{{x}}"><p>{{x}}</p><a href="https://a.example/{{x}}?q={{x}}" class=\'{{x}}\'>{{x}}</a></div>';
  const shape = (html: string) =>
    [...parseHTML(`<main>${html}</main>`).document.querySelectorAll("*")].map((one) => [
      one.tagName,
      [...one.attributes].map(({ name }) => name),
    ]);
  const expected = shape(inHtml(source, "plain"));
  const pieces = fc.constantFrom(
    "<",
    ">",
    '"',
    "'",
    "&",
    "/",
    "=",
    " ",
    "script",
    "onload",
    "-->",
    "<!--",
    "{{x}}",
    "]]>",
    "\n",
    "\u0000",
    "a",
  );
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 12 }), (parts) => {
      t.same(shape(inHtml(source, parts.join(""))), expected);
    }),
    { numRuns: 300 },
  );
});
