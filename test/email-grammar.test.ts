import process from "node:process";
import fc from "fast-check";
import { Parser } from "htmlparser2";
import t from "tap";
import { mustFitSubject, parseHtml, parsePlain, render } from "../core/email/grammar.ts";
import { mustHaveAll, parseTemplate, renderTemplate } from "../core/email/templates.ts";
import { Fail } from "../core/platform/errors.ts";
import { HtmlReader } from "../core/platform/html.ts";

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

t.test("a mail that its values make too long is refused as soon as it is too long", async (t) => {
  for (const pieces of [parsePlain("text", "{{a}}".repeat(10_000)), parseHtml("{{a}}".repeat(10_000))]) {
    let reads = 0;
    const values = Object.defineProperty({}, "a", { get: () => `${"<".repeat(20_000)}${reads++}` });
    t.throws(() => render(pieces, values), { code: "invalid_request", details: { errors: [{ path: "/variables" }] } });
    t.ok(reads > 0 && reads < 1000, `${reads} of 10,000 values written`);
  }
});

t.test("{{name}} is the only syntax of a template", async (t) => {
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

t.test("values are escaped for their context", async (t) => {
  const nasty = `<b>&"'`;
  t.equal(inHtml("<p>{{x}}</p>", nasty), "<p>&lt;b&gt;&amp;&quot;&#39;</p>");
  t.equal(inHtml('<p title="{{x}}">', nasty), '<p title="&lt;b&gt;&amp;&quot;&#39;">');
  t.equal(inHtml("<p title='a {{x}}'>", nasty), "<p title='a &lt;b&gt;&amp;&quot;&#39;'>");
  t.equal(inHtml('<a href="{{x}}">', "https://a.example/?b=1&c=2"), '<a href="https://a.example/?b=1&amp;c=2">');
  t.equal(inHtml('<a href="https://a.example/{{x}}">', "b/c d?e"), '<a href="https://a.example/b/c%20d%3Fe">');
  t.equal(inHtml('<a href="https://a.example/?q={{x}}">', "b&c=d/e"), '<a href="https://a.example/?q=b%26c%3Dd%2Fe">');
  t.equal(inHtml('<a href="mailto:{{x}}">', "ann@far.example"), '<a href="mailto:ann@far.example">');
  t.equal(inHtml('<a href="mailto:{{x}}">', "a@b.example?bcc=c"), '<a href="mailto:a@b.example%3Fbcc%3Dc">');
  t.equal(inHtml('<a href="https://a.example/{{x}}:y">', "b"), '<a href="https://a.example/b:y">');
  t.equal(inHtml("<title>{{x}}</title>", nasty), "<title>&lt;b&gt;&amp;&quot;&#39;</title>");
  t.equal(render(parsePlain("subject", "Hi {{x}}"), { x: nasty }), `Hi ${nasty}`, "a subject is no HTML");
  t.equal(render(parsePlain("text", "Hi {{x}}"), { x: `${nasty}\nmore` }), `Hi ${nasty}\nmore`, "nor is a text");
});

t.test("a placeholder is refused in contexts that no escaping makes safe", async (t) => {
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
    "<p>New lead: {{x}} <{{x}}></p>",
    "<p></{{x}}>",
    "<title><{{x}}</title>",
    "<p>&{{x}};",
    '<p title="&#{{x}};">',
    '<iframe srcdoc="{{x}}">',
    '<meta http-equiv="refresh" content="0;url={{x}}">',
    '<svg><a><animate attributeName="href" to="{{x}}"/></a></svg>',
    "<svg><style>{{x}}</style></svg>",
    "<svg><![CDATA[{{x}}]]></svg>",
    "<!-- a --!><style>{{x}}</style>",
    '<p title="a" title="{{x}}">',
    '<p title="a" title="{{x}}" lang="en">',
    '</p title="{{x}}">',
    '<a href="{{x}}:alert(1)">',
    '<a href="{{x}}&colon;alert(1)">',
    '<a href="javascript&colon;{{x}}">',
    "{{x}}<frameset>",
  ];
  for (const html of places) t.equal(failure(() => parseHtml(html)).code, "template_invalid", html);
});

t.test("a refused placeholder is named with its position and with how to write it", async (t) => {
  const { details } = failure(() => parseHtml("<p>New lead:\n{{name}} <{{email}}></p>"));
  t.match(details.more, { field: "html", position: 23, line: 2, column: 11 });
  t.match(details.errors, [{ path: "/html", message: /position 23 .*right after <.* write &lt;/ }]);
  t.equal(
    render(parseHtml("<p>{{name}} &lt;{{email}}></p>"), { name: "Ann", email: "img/src=//evil.example/p?@x.example" }),
    "<p>Ann &lt;img/src=//evil.example/p?@x.example></p>",
  );
});

t.test("a body that ends inside something, or is nested too deep, is refused at its place, and at once", async (t) => {
  const wrong: [string, number][] = [
    ["<p>Hi</p><img src='a", 9],
    ["<p>Hi</p><!-- {{x", 14],
    ["<p>Hi</p><!-- x", 9],
    ["<style>p {}", 0],
    ["<p><template>x", 3],
    ["<b>".repeat(80_000), 300],
    ["<ol><li>a".repeat(26_000), 450],
    ["<div><p>".repeat(20_000), 797],
    ["<blockquote>".repeat(20_000), 1200],
    ["<i>x</i>".repeat(30_000), 79_976],
  ];
  for (const [html, position] of wrong) {
    const started = performance.now();
    const { code, details } = failure(() => parseTemplate({ subject: "s", html, text: null }));
    t.match(
      { code, ...details.more },
      { code: "template_invalid", field: "html", line: 1, position },
      html.slice(0, 20),
    );
    t.ok(performance.now() - started < 10_000, `${html.slice(0, 20)} does not hang`);
  }
  t.ok(parseTemplate({ subject: "s", html: "<table>".repeat(9_000), text: null }), "tables that end one another");
  const links = `<p>See ${"<a href=https://a.example>".repeat(9_000)}this</p>`;
  t.match(renderTemplate(parseTemplate({ subject: "s", html: links, text: null }), {}).text, /See .*this/s);
});

t.test("markup in the raw text of an element is nested as deep as it likes", (t) => {
  for (const name of ["noscript", "noembed", "noframes", "iframe"]) {
    const html = `<${name}>${`<${name}>`.repeat(20_000)}x</${name}>`;
    t.ok(parseTemplate({ subject: "s", html, text: null }), name);
  }
  t.end();
});

t.test("a body of placeholders costs time that grows with its length, wherever they are", (t) => {
  const length = 240_000;
  const bodies = {
    text: `<p>${"{{a}}".repeat(length / 5)}</p>`,
    "text of character references": `<p>${"&amp;{{a}}".repeat(length / 10)}</p>`,
    titles: `<a title="${"{{a}}".repeat(100)}">x</a>`.repeat(length / 520),
    addresses: `<a href="https://far.example/${"{{a}}".repeat(100)}">x</a>`.repeat(length / 540),
    "a long address": `<a href="https://far.example/${"x".repeat(length - 600)}${"{{a}}".repeat(100)}">x</a>`,
  };
  for (const [name, source] of Object.entries(bodies)) {
    const before = process.cpuUsage();
    t.match(parseTemplate({ subject: "", html: source, text: null }).names, ["a"], name);
    const { user, system } = process.cpuUsage(before);
    t.ok(user + system < 3_000_000, `${name}: ${(user + system) / 1000} ms of CPU`);
  }
  const many = (count: number) => `<p>x</p><a title="x" href="https://far.example/${"{{a}}".repeat(count)}">x</a>`;
  t.equal(parseHtml(many(100)).length, 102);
  const { details } = failure(() => parseHtml(many(101)));
  t.match(details.errors, [{ path: "/html", message: /at most 100 placeholders/ }]);
  t.throws(() => parseHtml(many(48_000)), { code: "template_invalid" });
  t.end();
});

t.test("no value leads a link to another host, nor to a script", async (t) => {
  const linkOf = (html: string, value: string) => {
    const [, address = ""] = /href="([^"]*)"/.exec(inHtml(html, value)) ?? [];
    return new URL(address.replaceAll("&amp;", "&"), "http://mail.example/");
  };
  const bad = [
    "@evil.example/",
    "/@evil.example",
    ".evil.example",
    "//evil.example",
    "\\\\evil.example",
    ":@evil.example",
    "?@evil.example",
  ];
  for (const html of [
    '<a href="https://acme.example{{x}}">',
    '<a href="https://acme.example/{{x}}">',
    '<a href="https://acme.example/a?b={{x}}">',
    '<a href=" HTTPS:\\\\acme.example{{x}}/b">',
    '<a href="https:acme.example{{x}}">',
    '<a href="//acme.example{{x}}">',
  ])
    for (const value of [...bad, "", "/ok"]) t.equal(linkOf(html, value).host, "acme.example", `${html} ${value}`);
  for (const value of bad) t.equal(linkOf('<a href="/{{x}}">', value).host, "mail.example", value);
  t.equal(linkOf('<a href="https://{{x}}.acme.example/">', "shop").host, "shop.acme.example");
  t.equal(linkOf('<a href="https://{{x}}/">', "shop.acme.example").host, "shop.acme.example");
  for (const value of ["evil.example/", "evil.example?", "a@evil.example", "evil.example\\"])
    t.equal(failure(() => inHtml('<a href="https://{{x}}.acme.example/">', value)).code, "invalid_request", value);
});

/** Start tags with their attributes, and end tags, as a browser reads them. */
function tagsOf(html: string): string[] {
  const tags: string[] = [];
  const reader = new HtmlReader(
    {
      startTag: ({ name, attributes }) => tags.push([name, ...attributes.map((one) => one.name)].join(" ")),
      endTag: (name) => tags.push(`/${name}`),
      doctype: () => tags.push("!"),
      refused: (why) => tags.push(why),
    },
    { maxElements: 10_000 },
  );
  reader.read(html);
  reader.finish();
  return tags;
}

t.test("in an accepted template, no value adds or changes a tag", async (t) => {
  const markup = fc.constantFrom(
    ...'{{x}} {{y}} {{x}} < > </ <! <!-- --> --!> / = " \' & &# p a <p> <p </p> <div> </div> <a title=" <a href=" <a href=\' "> \'>'.split(
      " ",
    ),
    ..."<b> </b> <style> </style> <title> </title> <textarea> <svg> </svg> <template> <table> <td> <select> <option> <frameset>".split(
      " ",
    ),
    ...'<noscript> <xmp> <![CDATA[ ]]> https://a.example/ https: // javascript : ? onclick= style=" <meta content="'.split(
      " ",
    ),
    " ",
  );
  const nasty = fc.constantFrom(
    ..."< > \" ' & / \\ = : ; # @ ? ! - --> <!-- ]]> script javascript: lt; amp &lt; #60; x3c; img onload=x style title evil.example {{y}}".split(
      " ",
    ),
    " ",
    "\n",
    "\u0000",
    "a",
  );
  const value = fc.array(nasty, { maxLength: 6 }).map((parts) => parts.join(""));
  let taken = 0;
  fc.assert(
    fc.property(fc.array(markup, { maxLength: 10 }), value, value, (parts, x, y) => {
      const source = parts.join("");
      const pieces = attempt(() => parseHtml(source), "template_invalid");
      if (pieces === undefined || !source.includes("{{")) return;
      const written = attempt(() => render(pieces, { x, y }), "invalid_request");
      if (written === undefined) return;
      taken += 1;
      t.strictSame(tagsOf(written), tagsOf(render(pieces, {})), `${source} with ${x} and ${y}`);
    }),
    { numRuns: 4000 },
  );
  t.ok(taken > 200, `${taken} mails were made`);
});

/** The result of a call; undefined if it is refused with this code. */
function attempt<T>(call: () => T, code: string): T | undefined {
  try {
    return call();
  } catch (error) {
    if (error instanceof Fail && error.code === code) return undefined;
    throw error;
  }
}

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
    const refused = failure(() => mustFitSubject(subject, { x: bad }));
    t.equal(refused.code, "invalid_request", encodeURIComponent(bad.slice(0, 20)));
    t.match(render(subject, { x: bad }), /^Hi [ -~]{1,998}$/, "and would be one if nobody refused it");
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

t.test("an address in the text of an HTML template is the one in the HTML", async (t) => {
  const html =
    '<a href="https://acme.example{{x}}">a</a> <a href="https://acme.example/o?n={{x}}">o</a> <a href="{{url}}">{{url}}</a>';
  const textFor = (x: string) =>
    renderTemplate(parseTemplate({ subject: "s", html, text: null }), { x, url: "https://acme.example/?a=1&b=2" }).text;
  t.equal(
    textFor("/Grace O'Hara & Co"),
    "a [https://acme.example/Grace%20O%27Hara%20%26%20Co] o [https://acme.example/o?n=%2FGrace%20O%27Hara%20%26%20Co] https://acme.example/?a=1&b=2",
  );
  t.match(textFor("@evil.example"), "[https://acme.example/%40evil.example]");
});

t.test("whatever the values contain, the document keeps its elements and attributes", async (t) => {
  const source =
    '<div title="{{x}}"><p>{{x}}</p><a href="https://a.example/{{x}}?q={{x}}" class=\'{{x}}\'>{{x}}</a></div>';
  const shape = (html: string) => {
    const tags: [name: string, attributes: string[]][] = [];
    new Parser({ onopentag: (name, attributes) => void tags.push([name, Object.keys(attributes)]) }).end(html);
    return tags;
  };
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
