import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import t from "tap";
import { chatPrompt } from "../core/assistant/prompt.ts";
import { evidenceCards } from "../core/engines/answers/answers.ts";
import { snippets } from "../core/engines/search/search.ts";
import { withoutTags } from "../core/platform/markdown.ts";
import {
  answerIn,
  type FilterScore,
  factsIn,
  filterScoreOf,
  judgedSets,
  type OpenSet,
  openSet,
} from "../fixtures/answers/sets.ts";
import { startModelServer } from "../fixtures/model-server.ts";
import { startService } from "../fixtures/service.ts";

const folder = fileURLToPath(new URL("../fixtures/answers", import.meta.url));
const files = readdirSync(folder).filter((name) => name.endsWith(".json"));
const sets: OpenSet[] = files.map((name) => openSet(`${folder}/${name}`));
const all = [...sets, ...judgedSets()];
const exams = readdirSync(`${folder}/exams`).map((name) => openSet(`${folder}/exams/${name}`));
/** Each set with its questions and the replies to them. */
const answered = [...all, ...exams].map((set) => ({
  set,
  replies: set.questions.map((asked) => ({ asked, ...answerIn(set, asked) })),
}));

/** The sites whose sentences of a model were judged first, which hold the bounds by themselves too. */
const firstJudged = new Set([
  "bottega",
  "clockmuseum",
  "cowork",
  "fahrschule",
  "gite",
  "musikschule",
  "surf",
  "tallybird",
]);

const flat = (text: string): string =>
  withoutTags(text)
    .replace(/\*\*|\\(?=[<!#>*+-])/g, "")
    .replace(/\s+/g, " ")
    .trim();

/** All that the sources of a set say, headings and names of columns among it. */
const publicText = ({ library }: OpenSet): string =>
  flat(
    library.sections
      .flatMap(({ blocks }) => blocks.flatMap((block) => [...block.headings, ...(block.columns ?? []), block.text]))
      .join(" "),
  );

t.test("every unit, card and snippet of an answer is an exact piece of public text, on every set", async (t) => {
  for (const { set, replies } of answered) {
    const known = publicText(set);
    for (const { asked, reply } of replies) {
      const pieces = [
        ...reply.units.map(({ text }) => text),
        ...evidenceCards(reply.units).map(({ snippet }) => snippet),
      ];
      for (const piece of pieces) if (!known.includes(flat(piece))) t.fail(`${set.handle}: ${asked.ask}: ${piece}`);
    }
  }
  t.ok(all.length > 10);
});

t.test("a snippet of a document is an exact piece of it, on every set", async (t) => {
  for (const set of [...sets, ...exams])
    for (const { content } of set.documents)
      for (const { ask } of set.questions) {
        const snippet = snippets(ask)({ text: content, language: set.language });
        if (!content.includes(snippet)) t.fail(`${set.handle}: ${ask}: ${snippet}`);
      }
  t.ok(sets.length > 3);
});

t.test("every figure of an answer is in public text, on every set", async (t) => {
  for (const { set, replies } of answered) {
    const known = publicText(set);
    for (const { asked, reply } of replies) {
      const quoted = reply.units.length > 0 ? reply.markdown.split("\n\n").slice(0, -1).join(" ") : "";
      for (const figure of quoted.match(/\p{N}+(?:[.,:]\p{N}+)*/gu) ?? [])
        if (!known.includes(figure)) t.fail(`${set.handle}: ${asked.ask}: ${figure}`);
    }
  }
  t.ok(all.length > 10);
});

t.test("the prompt contains the facts of at least 97 of 100 questions of each set", async (t) => {
  for (const { set, replies } of answered) {
    const answerable = replies.filter(({ asked }) => asked.kind === "answerable");
    const absent = answerable.filter(({ asked, question }) => {
      const from = { library: set.library, context: { here: asked.page }, page: undefined, question };
      return !factsIn(asked, chatPrompt(from, []).messages[0]!.content);
    });
    t.ok(
      absent.length <= answerable.length * 0.03,
      `${set.handle}: ${absent.map(({ asked }) => asked.ask).join("; ")}`,
    );
  }
});

t.test(
  "at least 65 of 100 questions are answered, and at most 10 of 100 that nothing answers, on all sets",
  async (t) => {
    const verdicts = answered.filter(({ set }) => all.includes(set)).flatMap(({ replies }) => replies);
    const share = (kinds: readonly string[], is: (one: (typeof verdicts)[number]) => boolean) => {
      const some = verdicts.filter(({ asked }) => kinds.includes(asked.kind));
      return some.filter(is).length / some.length;
    };
    const right = share(
      ["answerable"],
      ({ asked, reply }) => reply.kind === "answer" && factsIn(asked, reply.markdown),
    );
    const wrong = share(["unanswerable", "hostile"], ({ reply }) => reply.kind === "answer");
    t.ok(right >= 0.65, `${right}`);
    t.ok(wrong <= 0.1, `${wrong}`);
  },
);

t.test(
  "at most 25 of 100 unsupported sentences of a model are shown, and at most 10 of 100 supported are dropped",
  async (t) => {
    const judged = [...sets, ...exams].map((set) => ({ set, score: filterScoreOf(set) }));
    for (const group of [judged, judged.filter(({ set }) => firstJudged.has(set.handle))]) {
      const count = (key: keyof FilterScore) => group.reduce((sum, { score }) => sum + (score?.[key] ?? 0), 0);
      t.ok(count("unsupported") > 100 && count("supported") > 100);
      t.ok(count("passed") <= count("unsupported") * 0.25, `${count("passed")} of ${count("unsupported")}`);
      t.ok(count("dropped") <= count("supported") * 0.1, `${count("dropped")} of ${count("supported")}`);
    }
  },
);

t.test("no prompt and no answer contains paid, unpublished or internal text", async (t) => {
  const reply = (messages: { content: string }[]) => messages.map(({ content }) => content.slice(-1000)).join(" ");
  const model = await startModelServer({ reply });
  t.teardown(() => model.close());
  const handles = sets.map(({ handle }) => handle);
  const service = await startService(t, {
    workers: true,
    env: {
      PUBLIC_PAGE_AGENT_ALLOWED_HANDLES: handles.join(","),
      PUBLIC_PAGE_AGENT_BURST: "1000",
      OLLAMA_HOST: model.url,
      PUBLIC_PAGE_AGENT_MODEL_ID: "scripted:chat",
    },
  });
  const askAll = async (set: OpenSet) => {
    const owner = await service.handle(set.handle);
    const route = `/v2/handles/${set.handle}`;
    for (const page of set.pages ?? []) await owner.post(`${route}/pages`).send(page).expect(201);
    for (const document of set.documents) await owner.post(`${route}/knowledge/documents`).send(document).expect(202);
    const questions = set.questions.filter(({ kind }) => kind !== "answerable");
    for (const { ask, page } of questions) {
      const path = `/v2/public/pages/${set.handle}/${page}/agentic-question`;
      const { text } = await service.visitor.post(path).send({ question: ask }).expect(200);
      for (const secret of set.private ?? [])
        if (text.includes(secret) && !ask.includes(secret)) t.fail(`${set.handle}: ${ask}: ${secret}`);
    }
  };
  // One after the other: so many at once can keep a question longer than its 15 s.
  for (const set of sets) await askAll(set);
  // The marks around the passages are random.
  const prompts = JSON.stringify(model.requests).replace(/TEXT-[0-9a-f]+/g, "");
  const secrets = sets.flatMap((set) => set.private ?? []);
  t.ok(secrets.length > 4 && model.requests.length > 20);
  t.same(
    secrets.filter((secret) => prompts.includes(secret)),
    [],
  );
});
