import fc from "fast-check";
import { type DefaultTreeAdapterTypes, parse } from "parse5";
import t from "tap";
import { startService } from "../fixtures/service.ts";

type Node = DefaultTreeAdapterTypes.Node;
type Element = DefaultTreeAdapterTypes.Element;

const pages = "/v2/handles/acme/pages";

/** All nodes of a document in their order. */
function* nodes(node: Node): Generator<Node> {
  yield node;
  if ("content" in node) yield* nodes(node.content);
  if ("childNodes" in node) for (const child of node.childNodes) yield* nodes(child);
}

function elements(html: string): Element[] {
  return [...nodes(parse(html))].filter((node) => "tagName" in node);
}

/** The shell's part of a page: its head, and whether its own end tags were parsed as such. */
function shellOf(html: string): { head: string[]; isSwallowed: boolean } {
  const document = [...nodes(parse(html))];
  const [head] = elements(html).filter(({ tagName }) => tagName === "head");
  const texts = document.flatMap((node) => [
    ...("attrs" in node ? node.attrs.map(({ name, value }) => name + value) : []),
    ...("value" in node ? [node.value] : []),
    ...("data" in node ? [node.data] : []),
  ]);
  return {
    head: [...nodes(head as Element)].flatMap((node) => ("tagName" in node ? [node.tagName] : [])),
    isSwallowed: texts.some((text) => /<?\/?(body|html)\b/.test(text)),
  };
}

t.test(
  "content and teaser that end inside something, or could take in the page around them, are refused",
  async (t) => {
    const service = await startService(t);
    const owner = await service.handle("acme");
    const unfinished = [
      '<main><h1>Hi</h1></main><meta http-equiv=refresh content="0;url=https://evil.example/" x',
      "<img src=/assets/page.css onerror=alert(1) x",
      '<p title="',
      "<p title='",
      "<p title=a",
      "<p",
      "</p",
      "</",
      "<!",
      "<?x",
      "<!-- to do",
      "<!-- to do --",
      "<!-- a --! >",
      "<!doct",
      "<style>p { color: red }",
      "<style>p {}</style",
      "<textarea>",
      "<title>x",
      "<noscript>",
      "<xmp>",
      "<noembed>",
      "<plaintext>",
      "<template>",
      "<div><template><p>x</div>",
      "<svg>",
      "<svg><path d='M0 0'/>",
      "<svg><![CDATA[ x",
      "<math><mi>x</mi>",
      "<table><template>",
      "<noscript><!--</noscript>",
    ];
    for (const html of unfinished)
      for (const field of ["content", "teaser"]) {
        const { status, body } = await owner.post(pages).send({ pageSlug: "open", title: "Open", [field]: html });
        t.match({ status, ...body }, { status: 400, code: "invalid_page_content", field }, `${field} ${html}`);
        t.match(body.errors[0], { path: `/${field}`, message: /^at position \d+ \(line \d+, column \d+\): / });
      }
    const teaser = { pageSlug: "open", title: "Open", teaser: "<p>a</p></main><p>b</p>" };
    t.match((await owner.post(pages).send(teaser).expect(400)).body, { code: "invalid_page_content", position: 8 });
  },
);

t.test("a fragment may leave elements open", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const fine = ["<main><p>x", "<ul><li>a<li>b", "<table><tr><td>x", "a < b", "a <", "x &", "<b>x", "<svg></svg>x"];
  for (const [at, content] of fine.entries()) {
    const sent = { pageSlug: `fine-${at}`, title: "Fine", status: "PUBLISHED", content };
    t.equal((await owner.post(pages).send(sent)).status, 201, content);
  }
});

t.test("a fault of a page is named with its place", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const content = "<main>\n<h1>Hi</h1>\n  <script>x</script></main>\n<p onclick=x>";
  const { body } = await owner.post(pages).send({ pageSlug: "a", title: "A", content }).expect(400);
  t.match(body, { code: "invalid_page_content", field: "content", position: 21, line: 3, column: 3 });
  t.same(body.errors, [
    { path: "/content", message: "at position 21 (line 3, column 3): <script> is not allowed" },
    { path: "/content", message: "at position 50 (line 4, column 4): the attribute onclick is not allowed" },
  ]);
});

t.test("elements are nested up to 100 deep in a page, and the place of the next is named", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  for (const field of ["content", "teaser"])
    for (const tag of ["<div>", "<b>", "<ul><li>", "<font size=1>"]) {
      const times = 100 / (tag.split("<").length - 1);
      const send = (html: string) => owner.post(pages).send({ pageSlug: "deep", title: "Deep", [field]: html });
      const { body } = await send(tag.repeat(times + 1)).expect(400);
      t.match(body, { code: "invalid_page_content", line: 1, position: tag.length * times }, `${field} ${tag}`);
      await send(tag.repeat(times)).expect(201);
      await owner.delete(`${pages}/deep`).expect(204);
    }
  const many = await owner.post(pages).send({ pageSlug: "deep", title: "Deep", content: "<b>".repeat(80_000) });
  t.equal(many.status, 400);
});

t.test("no content of a page breaks the shell around it", async (t) => {
  const service = await startService(t, { env: { PUBLIC_PAGE_AGENT_ENABLED: "1" } });
  const owner = await service.handle("acme");
  await owner.post(pages).send({ pageSlug: "any", title: "Any", status: "PUBLISHED" }).expect(201);
  const shown = async () => shellOf((await service.visitor.get("/p/acme/any").expect(200)).text);
  const { head, isSwallowed } = await shown();
  t.notOk(isSwallowed);
  const piece = fc.constantFrom(
    ..."< > </ <! <!-- --> --!> / = \" ' & x title p main div </div> </p> </main> <p <p> <div> <b> <a </a> <style> </style>".split(
      " ",
    ),
    ..."<svg> </svg> <math> <mi> <![CDATA[ ]]> <template> </template> <select> <option> <table> <td> <form> <button>".split(
      " ",
    ),
    ..."<title> </title> <textarea> </textarea> <noscript> </noscript> <xmp> <plaintext> <meta <script <base ? ! \n".split(
      " ",
    ),
    " ",
    "\u0000",
  );
  let taken = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 9 }), fc.constantFrom("content", "teaser"), async (parts, field) => {
      const accessMode = field === "teaser" ? "PAID" : "PUBLIC";
      const sent = { accessMode, content: "", teaser: "", [field]: parts.join("") };
      const { status } = await owner.put(`${pages}/any`).send(sent);
      if (status !== 200) return;
      taken += 1;
      t.strictSame(await shown(), { head, isSwallowed: false }, parts.join(""));
    }),
    { numRuns: 250 },
  );
  t.ok(taken > 50, `${taken} fragments were taken`);
});

t.test("a page declares its language and direction, its address, and its link preview", async (t) => {
  const env = { PUBLIC_DOMAIN: "pages.test", PUBLIC_PAGE_AGENT_ENABLED: "1" };
  const service = await startService(t, { env });
  const owner = await service.handle("acme");
  const page = {
    pageSlug: "about",
    title: 'A & "B"',
    description: "What <we> do",
    status: "PUBLISHED",
    content: "<p>x",
  };
  const made = await owner
    .post(pages)
    .send({ ...page, language: "DE-at" })
    .expect(201);
  t.equal(made.body.page.language, "de-AT");
  const at = (host: string) => service.visitor.get("/about").set("Host", host).expect(200);
  const { text } = await at("acme.pages.test");
  const [html, ...others] = elements(text);
  t.same(html?.attrs, [
    { name: "lang", value: "de-AT" },
    { name: "dir", value: "ltr" },
  ]);
  const attributes = others.map(({ attrs }) => Object.fromEntries(attrs.map(({ name, value }) => [name, value])));
  const told = Object.fromEntries(
    attributes.flatMap((one) => (one.content ? [[one.property ?? one.name, one.content]] : [])),
  );
  t.match(told, {
    description: page.description,
    "og:title": page.title,
    "og:description": page.description,
    "og:url": "https://acme.pages.test/about",
  });
  t.match(
    attributes.find(({ rel }) => rel === "canonical"),
    { href: "https://acme.pages.test/about" },
  );
  const [, json = ""] = /agent-config">(.*)<\/script>/.exec(text) ?? [];
  t.match(JSON.parse(json), { handle: "acme", pageSlug: "about", language: "de-AT" });
  t.ok(text.indexOf(json) < text.indexOf("</head>"), "the config is in the head");
  await owner.put(`${pages}/about`).send({ language: "ar" }).expect(200);
  t.match((await at("acme.pages.test")).text, '<html lang="ar" dir="rtl">');
});

t.test("a page without a language uses that of its text; an invalid language tag is refused", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const texts: [string, string][] = [
    ["en", "The small plan costs 12 EUR a month. You can cancel at any time."],
    ["de", "Der kleine Tarif kostet 12 EUR im Monat. Sie können jederzeit kündigen."],
    ["fr", "La petite formule coûte 12 EUR par mois. Vous pouvez résilier à tout moment."],
    ["sv", "Den lilla planen kostar 12 EUR i månaden. Du kan säga upp när som helst."],
    ["ja", "小さいプランは月額12ユーロです。いつでも解約できます。"],
    ["he", "התוכנית הקטנה עולה 12 אירו לחודש. ניתן לבטל בכל עת."],
  ];
  for (const [language, text] of texts) {
    const sent = {
      pageSlug: language,
      title: "E-Bike",
      status: "PUBLISHED",
      content: `<main lang="x"><p>${text}</p></main>`,
    };
    t.equal((await owner.post(pages).send(sent).expect(201)).body.page.language, null);
    t.match((await service.visitor.get(`/p/acme/${language}`).expect(200)).text, `<html lang="${language}" `);
  }
  const changed = await owner.put(`${pages}/de`).send({ language: "nl" }).expect(200);
  t.equal(changed.body.page.language, "nl");
  await owner.put(`${pages}/de`).send({ language: null }).expect(200);
  t.match((await service.visitor.get("/p/acme/de").expect(200)).text, '<html lang="de" ');
  await owner.put("/v2/handles/acme/settings").send({ language: "pt" }).expect(200);
  t.match((await service.visitor.get("/p/acme/de").expect(200)).text, '<html lang="pt" ', "the handle's comes first");
  await owner.put(`${pages}/de`).send({ language: "nl" }).expect(200);
  t.match((await service.visitor.get("/p/acme/de").expect(200)).text, '<html lang="nl" ');
  for (const language of ["", "de_DE", "english language", "x", 5, "de-"]) {
    const { body } = await owner.put(`${pages}/de`).send({ language }).expect(400);
    t.match(body, { code: "invalid_request", errors: [{ path: "/language" }] }, String(language));
  }
});
