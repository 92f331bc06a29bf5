import { spawnSync } from "node:child_process";
import fc from "fast-check";
import t from "tap";
import { leadsCsv } from "../api/leads-csv.ts";
import { startService } from "../fixtures/service.ts";
import type { Lead } from "../schemas/leads.ts";

const blank = { firstName: "", company: "", service: "", source: "", pageSlug: null, campaignId: null, fields: {} };

/** Leads of these messages and telephone numbers as CSV. */
async function csvOf(leads: { message: string; phone?: string }[]): Promise<string> {
  const whole = leads.map(
    (one, at) => ({ ...blank, leadId: `lead_${at}`, email: "a@x.example", ...one }) as never as Lead,
  );
  const batches = (async function* () {
    yield whole;
  })();
  let text = "";
  for await (const part of leadsCsv(batches).body as AsyncIterable<string>) text += part;
  return text;
}

/** Rows and cells of a text as RFC 4180 says it, nothing more. */
function rowsOf(csv: string): string[][] {
  const rows: string[][] = [];
  const cell = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|$)/y;
  let row: string[] = [];
  while (cell.lastIndex < csv.length) {
    const [, quoted, plain = "", end] = cell.exec(csv) ?? [];
    if (end === undefined) throw new Error(`Not CSV at ${cell.lastIndex}`);
    row.push(quoted?.replaceAll('""', '"') ?? plain);
    if (end === ",") continue;
    rows.push(row);
    row = [];
  }
  return rows;
}

const breaks = ["\n", "\r", "\r\n", "\v", "\f", "\u0085", "\u2028", "\u2029"];

t.test("every reader parses the export row by row, whatever line breaks a message contains", async (t) => {
  const piece = fc.constantFrom(
    ...breaks,
    '"',
    '""',
    ",",
    ";",
    "'",
    "=1+1",
    "+",
    "-",
    "@",
    "\t",
    " ",
    "a",
    "=",
    "ä",
    "\u0000",
  );
  const message = fc.array(piece, { maxLength: 8 }).map((parts) => parts.join(""));
  await fc.assert(
    fc.asyncProperty(fc.array(message, { minLength: 1, maxLength: 4 }), async (messages) => {
      const csv = await csvOf(messages.map((one) => ({ message: one })));
      const rows = rowsOf(csv);
      t.same([rows.length, ...new Set(rows.map((row) => row.length))], [messages.length + 1, 15]);
      for (const [at, row] of rows.slice(1).entries()) {
        const cell = row[9] as string;
        t.equal(cell.replaceAll("'", ""), messages[at]?.replaceAll("'", ""), "nothing but apostrophes is added");
        const lines = cell.split(/[\n\v\f\r\u0085\u2028\u2029]/);
        t.notOk(
          lines.some((line) => /^[\s\0]*[=+\-@]/.test(line) || line.startsWith("\t")),
          encodeURIComponent(cell),
        );
        const parts = lines.flatMap((line) => line.split(/[;\t]/));
        t.notOk(
          parts.some((part) => /^[\s\0"]*[=+\-@]/.test(part)),
          `${encodeURIComponent(cell)} in a spreadsheet that splits at semicolons or tabs`,
        );
      }
    }),
    { numRuns: 300 },
  );
});

t.test("Python's reader takes it too", { skip: hasPython() ? false : "no python3 here" }, async (t) => {
  const messages = [...breaks.map((end) => `hello${end}=1+1`), 'a "b", c', "=1+1\n\n  =2", "'"];
  const script =
    "import csv,io,json,sys; print(json.dumps(list(csv.reader(io.StringIO(sys.stdin.read(), newline='')))))";
  const { stdout } = spawnSync("python3", ["-c", script], {
    input: await csvOf(messages.map((message) => ({ message }))),
    env: { PYTHONIOENCODING: "utf-8" },
  });
  const rows = JSON.parse(String(stdout)) as string[][];
  t.same(
    rows.map((row) => row.length),
    Array(messages.length + 1).fill(15),
  );
  t.same(
    rows.slice(1).map((row) => row[9]?.replaceAll("'", "")),
    messages.map((one) => one.replaceAll("'", "")),
  );
});

t.test("telephone numbers and other plain numbers stay as they are, formulas don't", async (t) => {
  const plain = ["+49 40 1", "+49 (0)40/123-456", "+1-555-0100", "+1.555.0100", "040 1", "-5", "-5.25", "1-2", "a=b"];
  const formulas = [
    "=1+1",
    "+1+1",
    "-1+1",
    "-2-3",
    "@SUM(1)",
    "+A1",
    "+49 40 1=2",
    " =1",
    "\u200b=1",
    "＝1",
    "+cmd|' /C calc'!A0",
    "- item",
    "+",
  ];
  const rows = rowsOf(await csvOf([...plain, ...formulas].map((phone) => ({ phone, message: "m" })))).slice(1);
  t.same(
    rows.map((row) => row[7]),
    [...plain, ...formulas.map((one) => `'${one}`)],
  );
});

t.test("no text of a visitor is a formula in a spreadsheet that splits cells at semicolons or tabs", async (t) => {
  const written = {
    "Ann;=1+1;x": "Ann;'=1+1;x",
    "Ann; @SUM(1)": "Ann;' @SUM(1)",
    'Ann;"=1+1"': 'Ann;\'"=1+1"',
    "Ann\t=1+1": "Ann\t'=1+1",
    "\t=1": "'\t'=1",
    "Ann; Bob": "Ann; Bob",
    "a-b; c=d": "a-b; c=d",
  };
  const rows = rowsOf(await csvOf(Object.keys(written).map((message) => ({ message })))).slice(1);
  t.same(
    rows.map((row) => row[9]),
    Object.values(written),
  );
  const from = performance.now();
  await csvOf(Array.from({ length: 200 }, () => ({ message: ';\t "'.repeat(1250) })));
  t.ok(performance.now() - from < 5000, "in a time that grows with its length");
});

t.test("line breaks of a visitor keep the owner's export intact", async (t) => {
  const service = await startService(t, { env: { PUBLIC_PAGE_AGENT_ENABLED: "1" } });
  const owner = await service.handle("acme");
  for (const [at, message] of ["hello\n=1+1", "hello\r=1+1", "one line"].entries())
    await service.visitor
      .post("/v2/public/handles/acme/leads")
      .send({ email: `${at}@x.example`, message, phone: "+49 40 1" })
      .expect(202);
  const { text } = await owner.get("/v2/handles/acme/leads/export").expect(200);
  const rows = rowsOf(text);
  t.same(new Set(rows.map((row) => row.length)), new Set([15]));
  t.same(new Set(rows.slice(1).map((row) => row[9])), new Set(["hello\n'=1+1", "hello\r'=1+1", "one line"]));
  t.ok(rows.slice(1).every((row) => row[7] === "+49 40 1"));
});

function hasPython(): boolean {
  return spawnSync("python3", ["--version"]).status === 0;
}
