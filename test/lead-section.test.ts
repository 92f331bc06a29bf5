import { Buffer } from "node:buffer";
import { readFileSync } from "node:fs";
import t, { type Test } from "tap";
import { composeLeadSection, type LeadMaterial, leadSectionFor } from "../core/assistant/lead-section.ts";
import type { AnswerRequest } from "../core/assistant/messages.ts";
import { readQuestion, type Wish } from "../core/engines/answers/answers.ts";
import { createRun } from "../core/engines/relay/runs.ts";
import { sites } from "../fixtures/assistant/judged.ts";
import { startService } from "../fixtures/service.ts";
import type { LeadSection } from "../schemas/assistant.ts";
import { wordsOf } from "../schemas/languages.ts";

const english = wordsOf("en").leadSection;

const read = <T>(name: string): T =>
  JSON.parse(readFileSync(new URL(`../fixtures/assistant/${name}`, import.meta.url), "utf8")) as T;
const hostile = read<string[]>("hostile.json");
const material: LeadMaterial = {
  sectionId: "sec_1",
  pageSlug: "pricing",
  question: "Can I get a quote for 50 people?",
  wish: "quote",
  language: "en",
  answer: "The Team plan costs $9 per person.",
  evidenceTitles: ["Pricing"],
  retrievalMode: "page",
};

/** The proposal of a well-behaved model. */
const proposal = {
  collapsedTitle: "A quote for your team",
  collapsedBody: "Tell us about your 50 people.",
  submitLabel: "Ask for the quote",
  fields: [
    { key: "teamSize", label: "Team size", type: "select", options: ["1–10", "11–50", "51 and more"], required: true },
    { key: "start", label: "When do you want to start?", type: "text" },
    { key: "goals", label: "What shall the team reach?", type: "textarea" },
  ],
  dynamicView: {
    headline: "Team plan for 50",
    subhead: "From $9 per person.",
    recommendedPath: { label: "Team plan", body: "It fits teams like yours." },
    momentumSteps: ["One", "Two", "Three", "Four"].map((title) => ({ title, body: `${title} is done.` })),
    fitSignals: ["You are a team", "You plan together"],
    questionChips: ["Is there a trial?"],
    visualAccent: "proof",
  },
};

t.test(
  "only visitors who ask for contact, a quote, a demo, an individual price or a purchase are offered the form",
  async (t) => {
    const intents = read<Record<Wish | "none", string[]>>("intents.json");
    for (const [name, questions] of Object.entries(intents)) {
      t.same(
        questions.filter((question) => (readQuestion(question, "en").wish ?? "none") !== name),
        [],
        name,
      );
    }
    t.same(
      sites.flatMap(({ questions }) =>
        questions.filter(({ question }) => readQuestion(question, "en").wish !== undefined),
      ),
      [],
    );
  },
);

t.test("without a model the section has all its parts, in the question's language", async (t) => {
  const section = composeLeadSection(material);
  checkLimits(t, section);
  t.equal(section.collapsedTitle, "Ask for a quote");
  t.equal(section.dynamicView.visualAccent, "signal");
  t.same(
    section.fields.map(({ key }) => key),
    ["email", "name", "company", "message"],
  );
  t.match(section.dynamicView.fitSignals, ["You asked: Can I get a quote for 50 people?", "Answered from: Pricing"]);
  t.same(section.leadContext, {
    pageSlug: "pricing",
    visitorQuestion: material.question,
    visibleAnswerText: material.answer,
    evidenceTitles: ["Pricing"],
    retrievalMode: "page",
  });
  const german = composeLeadSection({ ...material, question: "Ich möchte eine Demo", wish: "demo", language: "de" });
  t.equal(german.collapsedTitle, "Demo anfragen");
  t.equal(german.contextDisclosure, wordsOf("de").leadSection.disclosure);
  t.match(german.html, "E-Mail");
});

t.test("a good proposal is taken over", async (t) => {
  const section = composeLeadSection({ ...material, proposal });
  checkLimits(t, section);
  const { fields, dynamicView, ...rest } = section;
  t.match(rest, {
    collapsedTitle: proposal.collapsedTitle,
    collapsedBody: proposal.collapsedBody,
    submitLabel: proposal.submitLabel,
  });
  t.same(dynamicView, proposal.dynamicView);
  t.same(
    fields.map(({ key }) => key),
    ["email", "name", "company", "message", "teamSize", "start", "goals"],
  );
  t.match(fields[4], { type: "select", options: ["1–10", "11–50", "51 and more"], required: false });
  t.equal(section.contextDisclosure, english.disclosure, "the disclosure is never a model's");
});

t.test("each piece that can't be used falls back alone", async (t) => {
  const view = {
    ...proposal.dynamicView,
    headline: 7,
    momentumSteps: proposal.dynamicView.momentumSteps.slice(0, 2),
    fitSignals: ["one"],
    visualAccent: "gold",
  };
  const { dynamicView, collapsedTitle } = composeLeadSection({
    ...material,
    proposal: { ...proposal, dynamicView: view },
  });
  const standard = composeLeadSection(material).dynamicView;
  t.equal(collapsedTitle, proposal.collapsedTitle);
  t.equal(dynamicView.subhead, proposal.dynamicView.subhead);
  t.same(
    [dynamicView.headline, dynamicView.momentumSteps, dynamicView.fitSignals, dynamicView.visualAccent],
    [standard.headline, standard.momentumSteps, standard.fitSignals, standard.visualAccent],
  );
});

t.test("a proposal promises no number or price that is missing from the answer", async (t) => {
  const { dynamicView } = composeLeadSection({
    ...material,
    proposal: { dynamicView: { headline: "Now only $5", subhead: "Save 20 %" } },
  });
  t.equal(dynamicView.headline, english.headline.quote);
  t.equal(dynamicView.subhead, english.subhead);
  const asked = composeLeadSection({
    ...material,
    question: "Can I get a quote for $5?",
    proposal: { dynamicView: { headline: "A quote for $5" } },
  });
  t.equal(asked.dynamicView.headline, english.headline.quote);
});

t.test("forms never ask for passwords, payment data or identity numbers", async (t) => {
  const labels = [
    "Password",
    "Kreditkartennummer",
    "Your card number",
    "IBAN",
    "Geburtsdatum",
    "Social security number",
    "API key",
    "Numéro de carte bancaire",
    "Número de cuenta",
    "Data di nascita",
    "Wachtwoord",
    "Palavra-passe",
  ];
  for (const label of labels) {
    const section = composeLeadSection({
      ...material,
      proposal: { ...proposal, submitLabel: `Send ${label}`, fields: [{ key: "extra", label }] },
    });
    t.notOk(
      section.fields.some(({ key }) => key === "extra"),
      label,
    );
    t.equal(section.submitLabel, english.submit);
  }
  for (const key of ["password", "creditCard", "cvv", "apiKey", "website", "leadContext", "__proto__", "a b", ""]) {
    const section = composeLeadSection({ ...material, proposal: { fields: [{ key, label: "A question" }] } });
    t.equal(section.fields.length, 4, key);
  }
});

t.test("any number and size of proposed fields stays within the limits", async (t) => {
  const many = Array.from({ length: 50 }, (_, at) => ({
    key: `f${at}`,
    label: `Question ${"x".repeat(at)}`,
    type: "text",
  }));
  checkLimits(t, composeLeadSection({ ...material, proposal: { ...proposal, fields: many } }));
  const options = Array.from({ length: 8 }, (_, at) => `${"語".repeat(75)}${at}`);
  const heavy = ["a", "b", "c"].map((key) => ({ key, label: "語".repeat(80), type: "select", options }));
  const section = composeLeadSection({ ...material, proposal: { ...proposal, fields: heavy } });
  checkLimits(t, section);
});

t.test("garbage instead of a proposal gives the standard section", async (t) => {
  const standard = composeLeadSection(material);
  const nothing = [
    null,
    7,
    "text",
    [],
    [[]],
    { fields: 7, dynamicView: [] },
    { dynamicView: { recommendedPath: null, momentumSteps: [null, 7, {}] } },
    { fields: [{ key: { toString: 1 }, label: "A question" }] },
    { fields: [{ key: JSON.parse("[".repeat(20_000) + "]".repeat(20_000)), label: "A question" }] },
  ];
  for (const proposal of nothing) t.same(composeLeadSection({ ...material, proposal }), standard);
});

t.test("a hundred hostile inputs leave no script, image, handler or outside link", async (t) => {
  t.ok(hostile.length >= 100);
  for (const input of hostile) {
    const step = { title: input, body: input };
    const section = composeLeadSection({
      ...material,
      question: `Can I get a quote? ${input}`,
      answer: input,
      evidenceTitles: [input],
      followUps: [input],
      proposal: {
        collapsedTitle: input,
        collapsedBody: input,
        submitLabel: input,
        html: input,
        contextDisclosure: input,
        fields: [
          { key: input, label: input, type: input, options: [input] },
          { key: "safe", label: input, type: "select", options: [input, input] },
          { key: "email", label: input, type: "text", required: false },
        ],
        dynamicView: {
          headline: input,
          subhead: input,
          recommendedPath: { label: input, body: input },
          momentumSteps: [step, step, step],
          fitSignals: [input, input],
          questionChips: [input, input],
          visualAccent: input,
        },
      },
    });
    checkLimits(t, section, input);
  }
});

const TAGS = /^(?:form|div|label|span|input|textarea|select|option|button)$/;
const ATTRIBUTES = /^(?:class|for|id|name|type|required|maxlength|autocomplete|rows|value|aria-hidden)$/;

function checkLimits(t: Test, section: LeadSection, why = "within the limits"): void {
  const { fields, html, dynamicView, leadContext: _, ...texts } = section;
  const problems = [
    ...htmlProblems(html),
    ...fieldProblems(fields),
    ...viewProblems(dynamicView),
    ...lines([texts, dynamicView, fields])
      .filter(isUnsafe)
      .map((line) => `unsafe: ${line}`),
  ];
  t.same(problems, [], why);
}

function htmlProblems(html: string): string[] {
  const tags = [...html.matchAll(/<\/?([^\s>/]*)((?:"[^"]*"|[^">])*)>/g)];
  const attributes = tags.flatMap(([, , rest]) =>
    [...(rest ?? "").matchAll(/([^\s="/]+)(?:="[^"]*")?/g)].map(([, name]) => name!),
  );
  return [
    ...(Buffer.byteLength(html) > 12 * 1024 ? ["html is too large"] : []),
    ...(html.replace(/<\/?[^\s>/]*(?:"[^"]*"|[^">])*>/g, "").includes("<") ? ["html holds a loose <"] : []),
    ...tags.filter(([, name]) => !TAGS.test(name!)).map(([tag]) => `tag ${tag}`),
    ...attributes.filter((name) => !ATTRIBUTES.test(name)).map((name) => `attribute ${name}`),
  ];
}

function fieldProblems(fields: LeadSection["fields"]): string[] {
  const native = ["email", "name", "company", "phone", "message"];
  const [first] = fields;
  return [
    ...(fields.length > 8 ? ["more than 8 fields"] : []),
    ...(fields.filter(({ key }) => !native.includes(key)).length > 3 ? ["more than 3 generated fields"] : []),
    ...(first?.key === "email" && first.required && first.type === "email" ? [] : ["no required email"]),
    ...(new Set(fields.map(({ key }) => key)).size < fields.length ? ["a key twice"] : []),
  ];
}

function viewProblems({
  momentumSteps,
  fitSignals,
  visualAccent,
  questionChips,
}: LeadSection["dynamicView"]): string[] {
  return [
    ...(momentumSteps.length < 3 || momentumSteps.length > 4 ? ["momentumSteps"] : []),
    ...(fitSignals.length < 2 || fitSignals.length > 4 ? ["fitSignals"] : []),
    ...(questionChips.length > 4 ? ["questionChips"] : []),
    ...(["signal", "launch", "support", "proof"].includes(visualAccent) ? [] : ["visualAccent"]),
  ];
}

function isUnsafe(line: string): boolean {
  return /[<>]|\bon\w+\s*=|javascript:|vbscript:|data:|:\/\/|evil|\]\(|!\[|password/i.test(line);
}

function lines(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null
    ? Object.entries(value).flatMap(([name, inner]) => (name === "html" ? [] : lines(inner)))
    : [];
}

t.test("a chat shows its section once, also if the reply to that is lost or its answer is made again", async (t) => {
  const { runtime, handle } = await startService(t);
  await handle("acme");
  const request = { handle: "acme", pageSlug: "pricing", chatId: "c", question: material.question } as AnswerRequest;
  const { sectionId: _, pageSlug: _slug, question: _question, ...shown } = material;
  const { signal } = new AbortController();
  for (const runId of ["run_1", "run_2"]) await createRun(runtime.redis, runId, { request: "{}" });
  const isShown = async (runId: string) =>
    (await leadSectionFor(runtime, request, { ...shown, runId, signal })) !== undefined;
  t.same([await isShown("run_1"), await isShown("run_1"), await isShown("run_2")], [true, true, false]);
});
