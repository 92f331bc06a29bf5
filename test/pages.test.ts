import t from "tap";
import { publicPages } from "../core/pages/public-text.ts";
import { startService } from "../fixtures/service.ts";

const content = "<main><h1>Prices</h1><p>The small plan costs 12 EUR a month.</p></main>";
const page = { pageSlug: "pricing", title: "Prices", content };

t.test("a page is made once, published, changed and deleted", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const made = await owner.post("/v2/handles/acme/pages").send(page).expect(201);
  t.match(made.body.page, {
    pageSlug: "pricing",
    handle: "acme",
    status: "DRAFT",
    accessMode: "PUBLIC",
    template: "html_render",
    version: 1,
    publishedAt: null,
  });
  t.equal(made.body.page.url, "http://service.test/p/acme/pricing");
  t.match((await owner.post("/v2/handles/acme/pages").send(page).expect(409)).body, { code: "page_already_exists" });
  await service.visitor.get("/p/acme/pricing").expect(404);
  const published = await owner.post("/v2/handles/acme/pages/pricing/publish").expect(200);
  t.match(published.body.page, { status: "PUBLISHED", version: 2 });
  t.ok(published.body.page.publishedAt);
  const shown = await service.visitor.get("/p/acme/pricing").expect(200);
  t.match(shown.text, /The small plan costs 12 EUR/);
  t.match(shown.headers["content-security-policy"], /script-src 'self'/);
  t.notMatch(shown.headers["content-security-policy"], /script-src[^;]*unsafe-inline/);
  const changed = await owner
    .put("/v2/handles/acme/pages/pricing")
    .send({ title: "New prices", expectedVersion: 2 })
    .expect(200);
  t.match(changed.body.page, { title: "New prices", content, version: 3, status: "PUBLISHED" });
  const stale = await owner.put("/v2/handles/acme/pages/pricing").send({ title: "x", expectedVersion: 2 }).expect(409);
  t.match(stale.body, { code: "version_conflict", currentVersion: 3 });
  t.equal(stale.body.detail, "The resource has changed: its version is 3. Read it again and retry.");
  await owner.put("/v2/handles/acme/pages/pricing").send({ status: "DRAFT" }).expect(200);
  await service.visitor.get("/p/acme/pricing").expect(404);
  await owner.delete("/v2/handles/acme/pages/pricing").expect(204);
  t.match((await owner.get("/v2/handles/acme/pages/pricing").expect(404)).body, { code: "page_not_found" });
  t.match((await owner.delete("/v2/handles/acme/pages/pricing").expect(404)).body, { code: "page_not_found" });
});

t.test("an owner can send back a page as it was read, and unknown fields are refused by name", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const { body } = await owner.post("/v2/handles/acme/pages").send(page).expect(201);
  await owner.put("/v2/handles/acme/pages/pricing").send(body.page).expect(200);
  const refused = await owner.put("/v2/handles/acme/pages/pricing").send({ titel: "x" }).expect(400);
  t.match(refused.body, { code: "invalid_request", errors: [{ path: "/titel" }] });
  t.match(
    (await owner.post("/v2/handles/acme/pages").send({ pageSlug: "No Slug", title: 5 }).expect(400)).body.errors
      .map((one: { path: string }) => one.path)
      .sort(),
    ["/pageSlug", "/title"],
  );
});

t.test("content that could run or leave the shell is refused by parsing, never by substring", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const refused = [
    "<html><p>x</p></html>",
    "<head></head>",
    "<body>x</body>",
    "<script>alert(1)</script>",
    "<SCRIPT src=x></SCRIPT>",
    "<iframe src=x>",
    "<object data=x>",
    "<embed src=x>",
    "<base href=x>",
    "<meta charset=x>",
    "<link rel=x>",
    '<p onclick="x">',
    "<img src=x OnError=x>",
    '<a href="javascript:x">a</a>',
    '<a href=" java\nscript:x">a</a>',
    '<a href="java&#115;cript:x">a</a>',
    "<svg/onload=x>",
    "<svg><script>x</script></svg>",
    '<form action="JAVASCRIPT:x"></form>',
    '<button formaction="javascript:x">',
    "<svg><style><script>x</script></style></svg>",
    "<!doctype html><p>x",
    "<p>x</body></html>",
    "<p>x</p></HEAD >",
    '<!-- a --!><meta http-equiv="refresh" content="0;url=/x">',
    "<!-- a --!><script>x</script>",
    "<!-->-><iframe src=/x></iframe>-->",
    "<![CDATA[><iframe src=/x></iframe>]]>",
    '<noscript><p title="</noscript><iframe src=/x></iframe>"></p></noscript>',
    "<noscript><!-- </noscript><iframe src=/x></iframe> --></noscript>",
    "<noscript><iframe src=/x></iframe></noscript>",
    '<noembed><p title="</noembed><iframe src=/x></iframe>"></p></noembed>',
    '<noframes><p title="</noframes><iframe src=/x></iframe>"></p></noframes>',
    '<svg></p><style><a title="</style><iframe src=/x>"></a></style>',
    '<select><style><a title="</style><iframe src=/x>"></a></style></select>',
    '<svg><a><animate attributeName="href" values="#;javascript:alert(1)"/></a></svg>',
    '<svg><a><set attributeName=href to="java&Tab;script:x"/></a></svg>',
    "<div>".repeat(101),
  ];
  for (const html of refused) {
    const answer = await owner.post("/v2/handles/acme/pages").send({ ...page, content: html });
    t.equal(answer.status, 400, html);
    t.equal(answer.body.code, "invalid_page_content", html);
  }
  const kept = [
    "<header>x</header>",
    "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>",
    '<div class="a" id="b" data-c="d"><img src="https://example.com/a.png" alt=""></div>',
    "<form><input name=q></form>",
    '<p title="javascript: a guide">x</p>',
    "<!-- <script> </body> -->",
    "<p>&lt;/body&gt;</p>",
    '<p title="</body>">x</p>',
    "<textarea></html></textarea>",
    "<noscript><p>Works without scripts</p></noscript>",
    '<svg><title>A line</title><style>path { stroke: red }</style><animate attributeName="fill" values="red;blue"/></svg>',
    "<div>".repeat(100),
  ];
  for (const [at, html] of kept.entries()) {
    const answer = await owner.post("/v2/handles/acme/pages").send({ ...page, pageSlug: `kept-${at}`, content: html });
    t.equal(answer.status, 201, html);
    t.equal(answer.body.page.content, html);
  }
  t.match(
    (
      await owner
        .post("/v2/handles/acme/pages")
        .send({ ...page, content: `<p>${"ä".repeat(140_000)}</p>` })
        .expect(400)
    ).body,
    { code: "invalid_request", errors: [{ path: "/content" }] },
  );
});

t.test("a paid page shows its teaser alone", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const paid = {
    ...page,
    accessMode: "PAID",
    status: "PUBLISHED",
    description: "About prices",
    teaser: "<p>Buy to read on.</p>",
    content: "<p>Secret body</p>",
  };
  await owner.post("/v2/handles/acme/pages").send(paid).expect(201);
  const shown = await service.visitor.get("/p/acme/pricing").expect(200);
  t.match(shown.text, /Buy to read on/);
  t.match(shown.text, /About prices/);
  t.notMatch(shown.text, /Secret body/);
  t.match((await service.visitor.get("/v2/public/pages/acme/pricing/access-check").expect(200)).body, {
    accessMode: "PAID",
    hasAccess: false,
  });
});

t.test("a cached page is sent again if its bytes differ, also after it was deleted and created again", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const make = (text: string) =>
    owner
      .post("/v2/handles/acme/pages")
      .send({ ...page, content: `<p>${text}</p>`, status: "PUBLISHED" })
      .expect(201);
  const again = (tag: string) => service.visitor.get("/p/acme/pricing").set("If-None-Match", tag);
  await make("The first");
  const { etag = "" } = (await service.visitor.get("/p/acme/pricing").expect(200)).headers;
  t.equal((await again(etag).expect(304)).text, "");
  await owner.delete("/v2/handles/acme/pages/pricing").expect(204);
  await make("The second");
  t.match((await again(etag).expect(200)).text, /The second/);
  await owner.delete("/v2/handles/acme/pages/pricing").expect(204);
  await make("The first");
  await again(etag).expect(304);
});

t.test("a page that was deleted and created again shows its new text", async (t) => {
  const service = await startService(t, { workers: true, env: { PUBLIC_PAGE_AGENT_ENABLED: "1" } });
  const owner = await service.handle("acme");
  const answered = async (cost: string) => {
    const content = `<p>The small plan costs ${cost} a month.</p>`;
    await owner
      .post("/v2/handles/acme/pages")
      .send({ ...page, content, status: "PUBLISHED" })
      .expect(201);
    const { body } = await service.visitor
      .post("/v2/public/pages/acme/pricing/agentic-question")
      .send({ question: "What does the small plan cost?" })
      .expect(200);
    await owner.delete("/v2/handles/acme/pages/pricing").expect(204);
    return body.answerMarkdown;
  };
  t.match(await answered("12 EUR"), /12 EUR/);
  t.match(await answered("19 EUR"), /19 EUR/);
});

t.test("a handle's host serves only pages and public routes", async (t) => {
  const service = await startService(t, { env: { PUBLIC_DOMAIN: "pages.test" } });
  const owner = await service.handle("acme");
  const made = await owner
    .post("/v2/handles/acme/pages")
    .send({ ...page, pageSlug: "index", status: "PUBLISHED" })
    .expect(201);
  t.equal(made.body.page.url, "https://acme.pages.test/index");
  const at = (path: string, host = "acme.pages.test") => service.visitor.get(path).set("Host", host);
  await at("/index").expect(200);
  await at("/").expect(200);
  await at("/other").expect(404).expect("content-type", /html/);
  await at("/", "nobody.pages.test").expect(404);
  await at("/", "ACME.pages.test:48391").expect(200);
  await at("/", "acme.pages.test.").expect(200);
  await at("/healthz", "acme.pages.test:48391").expect(404);
  await at("/healthz").expect(404);
  await at("/v2/handles/acme/pages").expect(404);
  await at("/v2/public/pages/acme/index/access-check").expect(200);
  await service.runtime.redis.hset("domain:{www.acme.test}", { handle: "acme", account: "acct_acme" });
  await at("/", "www.acme.test").expect(404);
  await service.runtime.redis.hset("domain:{www.acme.test}", { owned: "1" });
  await at("/index", "www.acme.test").expect(200);
  await at("/index", "www.acme.test:48391").expect(200);
  await at("/healthz", "www.acme.test").expect(404);
  await at("/healthz", "unknown.test").expect(200);
  await at("/healthz", "service.test:8080").expect(200);
});

t.test("with a public domain, owners' pages are on their own hosts, never on that of the sign-in", async (t) => {
  const service = await startService(t, { env: { PUBLIC_DOMAIN: "pages.test", LOGIN_BUILTIN: "1" } });
  const owner = await service.handle("acme");
  await owner
    .post("/v2/handles/acme/pages")
    .send({ ...page, pageSlug: "index", status: "PUBLISHED" })
    .expect(201);
  for (const host of ["service.test", "127.0.0.1", "unknown.test"]) {
    const moved = await service.visitor.get("/p/acme/index?utm=1").set("Host", host).expect(301);
    t.equal(moved.headers.location, "https://acme.pages.test/index?utm=1", host);
  }
  for (const spelling of ["/P/acme/index", "/p/acme/%69ndex", "/p/%61cme/index/"]) {
    const moved = await service.visitor.get(spelling).set("Host", "service.test").expect(301);
    t.equal(moved.headers.location, "https://acme.pages.test/index", spelling);
  }
  await service.visitor.get("/index").set("Host", "acme.pages.test").expect(200);
  await service.visitor.get("/login").set("Host", "acme.pages.test").expect(404);
  await service.visitor.get("/p/Acme/index").expect(404);
});

t.test("a worker's cache of published pages is bounded by bytes, and always has the requested page", async (t) => {
  const service = await startService(t, { env: { PUBLIC_PAGE_AGENT_ENABLED: "1" }, workers: ["generation"] });
  const owner = await service.handle("acme");
  const words = (page: number) => Array.from({ length: 30_000 }, (_, at) => `w${(page * 30_000 + at).toString(36)}`);
  const publish = (pageSlug: string, content: string) =>
    owner
      .post("/v2/handles/acme/pages")
      .send({ ...page, pageSlug, content, status: "PUBLISHED" })
      .expect(201);
  await publish("oldest", `<h1>Opening hours</h1><p>The shop opens at 9.30 on Sundays.</p>`);
  for (let at = 0; at < 12; at++) await publish(`page-${at}`, `<p>${words(at).join(" ")}</p>`);
  const pages = await publicPages(service.runtime, "acme", "oldest");
  const others = [...pages.pages.keys()].filter((slug) => slug !== "oldest").length;
  t.ok(others > 0 && others < 12, `${others} of 12 pages`);
  t.ok(pages.bytes < 24 * 2 ** 20, `${pages.bytes} bytes`);
  // As a stream, which has no time limit: a slow machine reads the pages for longer than the JSON route waits.
  const parts = [{ type: "text", text: "When does the shop open on Sundays?" }];
  const chat = { messages: [{ id: "m1", role: "user", parts }] };
  const answer = await service.visitor.post("/v2/public/pages/acme/oldest/agentic-chat").send(chat).expect(200);
  t.match(answer.text, /9\.30/);
});

t.test("of two changes of one version one wins, and changes without a version all take effect", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  await owner.post("/v2/handles/acme/pages").send(page).expect(201);
  const both = await Promise.all(
    ["a", "b"].map((title) => owner.put("/v2/handles/acme/pages/pricing").send({ title, expectedVersion: 1 })),
  );
  t.same(both.map(({ status }) => status).sort(), [200, 409]);
  await Promise.all([
    owner.put("/v2/handles/acme/pages/pricing").send({ description: "d" }),
    owner.put("/v2/handles/acme/pages/pricing").send({ teaser: "t" }),
  ]);
  t.match((await owner.get("/v2/handles/acme/pages/pricing")).body.page, { description: "d", teaser: "t", version: 4 });
});

t.test("a crowd of changes of one page, over two processes, is written one by one and none is lost", async (t) => {
  const service = await startService(t);
  const other = await startService(t, { redis: service.redis });
  const owner = await service.handle("acme");
  const there = await other.as("user_acme");
  const path = "/v2/handles/acme/pages/pricing";
  await owner.post("/v2/handles/acme/pages").send({ pageSlug: "pricing", title: "Prices" }).expect(201);
  const answers = await Promise.all(
    Array.from({ length: 80 }, (_, at) => (at % 2 ? owner : there).put(path).send({ title: `Prices ${at}` })),
  );
  t.same([...new Set(answers.map(({ status }) => status))], [200]);
  const versions = answers.map(({ body }) => body.page.version as number).sort((one, two) => one - two);
  t.same(
    versions,
    Array.from({ length: 80 }, (_, at) => at + 2),
  );
});

t.test("lists continue by cursor, and only by their own", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  for (const slug of ["a", "b", "c"])
    await owner.post("/v2/handles/acme/pages").send({ pageSlug: slug, title: slug }).expect(201);
  const first = await owner.get("/v2/handles/acme/pages?limit=2").expect(200);
  t.equal(first.body.pages.length, 2);
  const second = await owner.get(`/v2/handles/acme/pages?limit=2&cursor=${first.body.nextCursor}`).expect(200);
  t.same([...first.body.pages, ...second.body.pages].map(({ pageSlug }) => pageSlug).sort(), ["a", "b", "c"]);
  t.equal(second.body.nextCursor, null);
  for (const query of [
    "limit=0",
    "limit=x",
    "limit=1.5",
    "limit=1e1",
    "limit=0x10",
    "limit=Infinity",
    "cursor=%20",
    "cursor=abc",
  ])
    await owner.get(`/v2/handles/acme/pages?${query}`).expect(400);
  await owner.get("/v2/handles/acme/pages?limit=1000").expect(200);
});
