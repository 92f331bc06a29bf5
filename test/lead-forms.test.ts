import { Buffer } from "node:buffer";
import { Parser } from "htmlparser2";
import t from "tap";
import { setHandleActive } from "../core/account/handles.ts";
import {
  formHtml,
  leadFields,
  leadForm,
  MAX_FORM_BYTES,
  safeForm,
  storeLeadForm,
} from "../core/assistant/lead-form.ts";
import { keys } from "../core/store/keys.ts";
import { section } from "../fixtures/chat/examples.ts";
import { hostileHtml, hostileMarkdown } from "../fixtures/chat/hostile.ts";
import { type Service, startService } from "../fixtures/service.ts";

const form = "/v2/public/pages/acme/kitchens/lead-sections/sec_example/form";
const policyOf = (nonce: string, origins: string): string =>
  `default-src 'none'; script-src 'nonce-${nonce}'; style-src 'nonce-${nonce}'; form-action 'none'; base-uri 'none'; frame-ancestors ${origins}`;

/** A service whose page `kitchens` shows the example's lead section. */
async function furnished(t: Parameters<typeof startService>[0], env: Record<string, string> = {}): Promise<Service> {
  const service = await startService(t, { env: { PUBLIC_PAGE_AGENT_ALLOWED_HANDLES: "acme", ...env } });
  const owner = await service.handle("acme");
  await owner
    .post("/v2/handles/acme/pages")
    .send({ pageSlug: "kitchens", title: "Kitchens", content: "<p>x</p>", status: "PUBLISHED" })
    .expect(201);
  const { sectionId, fields, submitLabel } = section;
  const place = { handle: "acme", pageSlug: "kitchens", sectionId };
  await storeLeadForm(service.runtime, place, { fields, submitLabel, language: "de" });
  return service;
}

/** The tags and attributes of HTML as a parser sees them. */
function parsed(html: string): { tags: string[]; attributes: string[]; text: string } {
  const seen = { tags: [] as string[], attributes: [] as string[], text: "" };
  const parser = new Parser({
    onopentag(name, attributes) {
      seen.tags.push(name);
      seen.attributes.push(...Object.keys(attributes));
    },
    ontext(text) {
      seen.text += text;
    },
  });
  parser.end(html);
  return seen;
}

const tags = ["form", "div", "label", "span", "input", "textarea", "select", "option", "button"];
const attributes = [
  "class",
  "aria-hidden",
  "for",
  "id",
  "name",
  "type",
  "required",
  "maxlength",
  "autocomplete",
  "tabindex",
  "rows",
  "value",
];

function isHarmless(html: string): boolean {
  const seen = parsed(html);
  return seen.tags.every((tag) => tags.includes(tag)) && seen.attributes.every((name) => attributes.includes(name));
}

t.test("a shown section has its form as a separate document, which can only run its own script", async (t) => {
  const { visitor } = await furnished(t);
  const first = await visitor.get(form).expect(200).expect("content-type", "text/html; charset=utf-8");
  const nonce = /<script src="\/assets\/lead-form\.js" nonce="([\w-]{22})">/.exec(first.text)?.[1] ?? "";
  t.equal(first.headers["content-security-policy"], policyOf(nonce, "'self' http://service.test"));
  t.equal(first.headers["x-frame-options"], undefined);
  t.equal(first.headers["cache-control"], "no-store");
  t.match(first.text, `<link rel="stylesheet" href="/assets/lead-form.css" nonce="${nonce}">`);
  t.equal(first.text.match(/<script/g)?.length, 1);
  for (const { key } of section.fields) t.match(first.text, ` name="${key}"`);
  t.match(first.text, /<input id="svc-field-email" name="email" required[^>]* type="email"/);
  t.match(first.text, /<option>Up to 6 m²<\/option>/);
  t.match(first.text, '<button type="submit">Ask for a plan</button>');
  t.match(first.text, /name="website"[^>]* tabindex="-1"/, "what people don't see and programs fill in");
  const second = await visitor.get(`${form}?accent=red`).expect(200);
  t.not(
    second.headers["content-security-policy"],
    first.headers["content-security-policy"],
    "each answer has its own nonce",
  );
  await visitor.get("/assets/lead-form.css").expect(200);
});

t.test("the page's own hosts may frame it", async (t) => {
  const { visitor } = await furnished(t, { PUBLIC_DOMAIN: "pages.test" });
  const answer = await visitor.get(form).set("Host", "acme.pages.test").expect(200);
  t.match(
    answer.headers["content-security-policy"],
    /frame-ancestors 'self' http:\/\/service\.test https:\/\/acme\.pages\.test$/,
  );
});

t.test("a form that was never shown, is older than a day, or whose page is closed does not exist", async (t) => {
  const service = await furnished(t);
  const { visitor, runtime } = service;
  const bodies: string[] = [];
  const missing = async (path: string): Promise<void> => {
    const { requestId: _, ...body } = (await visitor.get(path).expect(404)).body;
    bodies.push(JSON.stringify(body));
  };
  await missing(form.replace("sec_example", "sec_other"));
  await missing(form.replace("kitchens", "bathrooms"));
  await missing(form.replace("acme", "nobody"));
  const lasts = await runtime.redis.ttl(keys.leadSection("acme", "kitchens", "sec_example"));
  t.ok(lasts > 86_300 && lasts <= 86_400, "kept for 24 h");
  await (await service.as("user_acme")).put("/v2/handles/acme/pages/kitchens").send({ status: "DRAFT" }).expect(200);
  await missing(form);
  await (await service.as("user_acme"))
    .put("/v2/handles/acme/pages/kitchens")
    .send({ status: "PUBLISHED" })
    .expect(200);
  await visitor.get(form).expect(200);
  await setHandleActive(runtime.redis, "acme", false);
  await missing(form);
  t.equal(new Set(bodies).size, 1, "and nothing tells why");
});

t.test("email is always asked for, native fields keep their types, and three more are the most", async (t) => {
  t.same(leadFields(undefined), [{ key: "email", label: "Email", type: "email", required: true }]);
  const proposed = [
    { key: "name", label: "Your name", type: "select", required: true },
    { key: "email", label: "Where may we write?", required: false },
    ...["phone", "company", "message"].map((key) => ({ key })),
    ...["one", "two", "three", "four", "five"].map((key) => ({ key, label: key })),
    { key: "one", label: "again" },
  ];
  const fields = leadFields(proposed);
  t.same(
    fields.map(({ key, type, required }) => `${key} ${type} ${required}`),
    [
      "email email true",
      "name text true",
      "phone tel false",
      "company text false",
      "message textarea false",
      "one text false",
      "two text false",
      "three text false",
    ],
  );
  t.equal(fields[0]?.label, "Where may we write?");
  t.equal(fields.find(({ key }) => key === "one")?.label, "one");
});

t.test("what can't be used of a proposal is left out", async (t) => {
  const nonsense = [
    null,
    5,
    "email",
    [],
    {},
    { key: 5, label: "x" },
    { key: "a b", label: "x" },
    { key: "__proto__", label: "x" },
    { key: "x".repeat(65), label: "x" },
    { key: "website", label: "x" },
    { key: "leadContext", label: "x" },
    { key: "consent", label: "x" },
    { key: "empty", label: " \u200b\n " },
    { key: "number", label: 5 },
    { key: "1st", label: "x" },
  ];
  t.same(
    leadFields(nonsense).map(({ key }) => key),
    ["email"],
  );
  t.same(leadFields("email").length, 1);
  t.match(leadFields([{ key: "a", label: "x", type: "select", options: ["only one"] }])[1], { type: "text" });
  t.match(leadFields([{ key: "a", label: "x", type: "file" }])[1], { type: "text" });
  t.match(leadFields([{ key: "a", label: "x", type: "select", options: ["A", "A", " ", 5, "B"] }])[1], {
    options: ["A", "B"],
  });
  t.equal(leadFields([{ key: "a", label: `${"word ".repeat(40)}` }])[1]!.label.length <= 80, true);
});

t.test("a form is at most 12 KB, whatever is proposed", async (t) => {
  const long = (letter: string) => Array.from({ length: 8 }, (_, at) => `${at}${letter.repeat(79)}`);
  const proposed = ["one", "two", "three"].map((key) => ({
    key,
    label: "&".repeat(80),
    type: "select",
    options: long("&"),
  }));
  const made = leadForm(
    [...["name", "company", "phone", "message"].map((key) => ({ key, label: "&".repeat(80) })), ...proposed],
    "&".repeat(80),
  );
  t.ok(Buffer.byteLength(made.html) <= MAX_FORM_BYTES);
  t.same(
    made.fields.map(({ key }) => key),
    ["email", "name", "company", "phone", "message"],
    "the generated fields go, the form stays",
  );
  t.equal(safeForm(`<form>${"x".repeat(MAX_FORM_BYTES)}</form>`), undefined);
  t.equal(safeForm("&".repeat(MAX_FORM_BYTES / 4)), undefined, "also where it is only afterwards too large");
});

t.test("hostile labels, options and keys are text in a form, and no more", async (t) => {
  const hostile = [...hostileHtml, ...hostileMarkdown];
  t.ok(hostile.length > 100);
  for (const words of hostile) {
    const { html, fields } = leadForm(
      [
        { key: words, label: words },
        { key: "name", label: words },
        { key: "choice", label: words, type: "select", options: [words, "other"] },
        { key: "text", label: words, type: words },
      ],
      words,
    );
    t.ok(isHarmless(html), words);
    t.equal(safeForm(html), html, "the second sanitising changes nothing");
    const { text } = parsed(html);
    for (const { label } of fields) t.ok(text.includes(label), "and it is all there to be read");
  }
});

t.test("hostile HTML that came as a form would lose everything but form elements", async (t) => {
  for (const html of [...hostileHtml, ...hostileMarkdown]) {
    for (const whole of [
      html,
      `<form>${html}</form>`,
      `<form><label>${html}</label></form>`,
      `<form><select><option>${html}</select></form>`,
      `<form><textarea>${html}</textarea></form>`,
    ]) {
      const safe = safeForm(whole) ?? "";
      t.ok(isHarmless(safe), whole);
      t.equal(safeForm(safe), safe, "what is safe stays as it is");
    }
  }
});

t.test("an ordinary form goes through the sanitiser unharmed", async (t) => {
  const html = formHtml(section.fields, section.submitLabel) ?? "";
  t.same(
    parsed(html).tags.filter((tag) => /input|select|textarea|button/.test(tag)),
    ["input", "input", "input", "select", "textarea", "button"],
  );
  t.equal(section.html, html);
});
