import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import openapiTS, { astToString } from "openapi-typescript";
import t, { type Test as TapTest } from "tap";
import ts from "typescript";
import { readDocument } from "../fixtures/document.ts";
import { makeSending, startMailing } from "../fixtures/email.ts";
import { eventually } from "../fixtures/service.ts";
import { root } from "../fixtures/sources.ts";
import { startMailServer } from "../fixtures/smtp.ts";

/** The example, checked against the types of the document, as a module. */
async function built(t: TapTest, folder: string): Promise<string> {
  const [example, types] = [join(folder, "client-example.ts"), join(folder, "api.d.ts")];
  copyFileSync(join(root, "docs/client-example.ts"), example);
  writeFileSync(types, astToString(await openapiTS(JSON.stringify(readDocument()))));
  const options: ts.CompilerOptions = {
    ...{ strict: true, noEmit: true, allowImportingTsExtensions: true, skipLibCheck: true, types: ["node"] },
    ...{ target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.NodeNext, lib: ["lib.es2023.d.ts", "lib.dom.d.ts"] },
  };
  const program = ts.createProgram([example], options);
  const faults = ts.getPreEmitDiagnostics(program);
  t.same(
    faults.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, "\n")),
    [],
    "the example fits the types",
  );
  const compilerOptions = { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.ESNext };
  const { outputText } = ts.transpileModule(readFileSync(example, "utf8"), { compilerOptions });
  const file = join(folder, "client-example.mjs");
  writeFileSync(file, outputText);
  return file;
}

t.test("the example of a typed client compiles against the document and works", async (t) => {
  const folder = join(root, ".data", `client-${process.pid}`);
  mkdirSync(folder, { recursive: true });
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const { walk } = await import(pathToFileURL(await built(t, folder)).href);
  const mail = await startMailServer(t);
  const service = await startMailing(t, mail.url, { env: { PUBLIC_PAGE_AGENT_ENABLED: "1" }, workers: true });
  const { handle } = await makeSending(service);
  const token = await service.token(`user_${handle}`);
  const came = await walk({ url: service.url, token, handle, senderId: "sender_main", templateId: "tmpl_hello" });
  t.match(came, {
    page: { pageSlug: "pricing", status: "PUBLISHED" },
    answer: { answerMarkdown: /12 EUR a month/, degraded: false },
    lead: { status: "ACCEPTED" },
    message: { status: "QUEUED" },
    booking: { title: "Intro", status: "ACCEPTED" },
  });
  await eventually(() =>
    mail.mails.some(({ to, headers }) => to[0] === "ada@example.com" && headers.subject === "Hello Ada"),
  );
});
