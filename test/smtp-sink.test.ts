import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import nodemailer from "nodemailer";
import t from "tap";
import { startSink } from "../scripts/smtp-sink.mjs";

t.test("the inbox of development shows every mail as HTML, as text and as source", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "sink-"));
  const sink = await startSink({ smtpPort: 0, pagePort: 0, folder });
  t.teardown(async () => {
    await sink.close();
    await rm(folder, { recursive: true });
  });
  const base = `http://127.0.0.1:${sink.pagePort}`;
  const page = async (path: string, headers = {}) => {
    const answer = await fetch(base + path, { headers: { connection: "close", ...headers } });
    return { status: answer.status, policy: answer.headers.get("content-security-policy"), text: await answer.text() };
  };
  t.match(await page("/"), { status: 200, text: /No mail yet/ });
  const transport = nodemailer.createTransport(`smtp://anyone:x@127.0.0.1:${sink.smtpPort}`);
  const html = "<p>Hello <b>Ann</b></p><script>top.x = 1</script>";
  await transport.sendMail({
    from: "Acme <a@acme.example>",
    to: "ann@far.example",
    subject: "A <b>subject</b>",
    html,
    text: "Hello & welcome",
  });
  transport.close();
  const list = await page("/");
  t.match(list.text, /A &#60;b&#62;subject&#60;\/b&#62;/, "a subject is no HTML");
  const [, link] = /href="(\/\d+-\w+\.eml)"/.exec(list.text) ?? [];
  const one = await page(link as string);
  t.match(one.text, /<iframe sandbox title="[^"]+" src="\/\d+-\w+\.eml\/html">/);
  t.match(one.text, /<pre>Hello &#38; welcome/);
  t.match(one.text, /<pre>From: Acme &#60;a@acme\.example&#62;/);
  t.notMatch(one.text, /<script/);
  t.match(await page(`${link}/html`), { status: 200, policy: /^sandbox; default-src 'none'/, text: /<b>Ann<\/b>/ });
  t.match((await page(`${link}/source`)).text, /^From: Acme <a@acme\.example>/);
  for (const wrong of ["/none", "/1-00000000.eml", "/../package.json", `${link}/other`])
    t.equal((await page(wrong)).status, 404, wrong);
});
