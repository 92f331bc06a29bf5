/**
 * The development mail server: `smtp-sink.mjs <smtp port> <page port> <folder>`. It accepts every mail, forwards none, stores each one as a
 * file in the folder, and shows all of them on a page, as HTML, text and source. Loopback only.
 */
import { randomBytes } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import PostalMime from "postal-mime";
import { SMTPServer } from "smtp-server";

/** Most mails on the page. */
const mostListed = 200;
/** Seconds between two refreshes of the list. */
const refreshes = 3;

/** Starts both servers; resolves with their ports. */
export async function startSink({ smtpPort, pagePort, folder }) {
  mkdirSync(folder, { recursive: true });
  const smtp = new SMTPServer({
    ...{ authOptional: true, allowInsecureAuth: true, disabledCommands: ["STARTTLS"], logger: false },
    onAuth: (_auth, _session, done) => done(null, { user: "anyone" }),
    onData: (stream, session, done) => keep(folder, stream, session.envelope).then(() => done(), done),
  });
  smtp.on("error", (error) => process.stderr.write(`${error.message}\n`));
  const page = createServer((request, response) => void answer(folder, request, response));
  await Promise.all([listening(smtp.listen(smtpPort, "127.0.0.1")), listening(page.listen(pagePort, "127.0.0.1"))]);
  const close = () => Promise.all([new Promise((done) => smtp.close(done)), new Promise((done) => page.close(done))]);
  return { smtpPort: smtp.server.address().port, pagePort: page.address().port, close };
}

function listening(server) {
  return new Promise((resolve, reject) => server.once("listening", resolve).once("error", reject));
}

/** Writes a mail with its envelope in front; the name sorts by time. The file gets its name once it is complete. */
async function keep(folder, stream, { mailFrom, rcptTo }) {
  const parts = [];
  for await (const part of stream) parts.push(part);
  const envelope = {
    from: mailFrom ? mailFrom.address : "",
    to: rcptTo.map(({ address }) => address),
    at: new Date().toISOString(),
  };
  const name = `${Date.now()}-${randomBytes(4).toString("hex")}.eml`;
  writeFileSync(join(folder, `.${name}`), Buffer.concat([Buffer.from(`${JSON.stringify(envelope)}\r\n`), ...parts]));
  renameSync(join(folder, `.${name}`), join(folder, name));
}

function names(folder) {
  return readdirSync(folder)
    .filter((name) => /^\d+-[0-9a-f]{8}\.eml$/.test(name))
    .sort()
    .reverse();
}

async function read(folder, name) {
  const bytes = readFileSync(join(folder, name));
  const end = bytes.indexOf("\r\n");
  const source = bytes.subarray(end + 2);
  return { name, ...JSON.parse(bytes.subarray(0, end).toString()), source, mail: await PostalMime.parse(source) };
}

/** Rejects DNS rebinding: another site could make a browser request the page under that site's name. */
const ownName = /^(127\.0\.0\.1|localhost|\[::1\])(:\d+)?$/;

async function answer(folder, request, response) {
  const { pathname } = new URL(request.url, "http://127.0.0.1");
  const [, name, form] = /^\/(\d+-[0-9a-f]{8}\.eml)(?:\/(html|source))?$/.exec(pathname) ?? [];
  const known = name !== undefined && names(folder).includes(name);
  if (!ownName.test(request.headers.host ?? "") || (pathname !== "/" && !known))
    return send(response, 404, "text/plain", "Not found\n");
  if (pathname === "/") return send(response, 200, "text/html", await list(folder), { refresh: String(refreshes) });
  const found = await read(folder, name);
  if (form === "source") return send(response, 200, "text/plain", found.source);
  // The mail's HTML runs no scripts and loads nothing, in its frame and on its own.
  if (form === "html")
    return send(response, 200, "text/html", found.mail.html ?? "", {
      "content-security-policy": "sandbox; default-src 'none'; img-src data: https:; style-src 'unsafe-inline'",
    });
  return send(response, 200, "text/html", single(found));
}

function send(response, status, type, body, headers = {}) {
  const policy = "default-src 'none'; style-src 'unsafe-inline'; frame-src 'self'; form-action 'none'; base-uri 'none'";
  const always = {
    "content-type": `${type}; charset=utf-8`,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
  };
  response.writeHead(status, { "content-security-policy": policy, ...always, ...headers }).end(body);
}

async function list(folder) {
  const mails = await Promise.all(
    names(folder)
      .slice(0, mostListed)
      .map((name) => read(folder, name)),
  );
  const rows = mails.map(
    ({ name, to, at, mail }) =>
      `<tr><td><time datetime="${at}">${at.slice(0, 19).replace("T", " ")}</time></td><td>${escapeHtml(to.join(", "))}</td><td><a href="/${name}">${escapeHtml(mail.subject || "(no subject)")}</a></td></tr>`,
  );
  const table = `<table><thead><tr><th>Taken (UTC)</th><th>To</th><th>Subject</th></tr></thead><tbody>${rows.join("")}</tbody></table>`;
  return shell("Inbox", `<h1>Inbox</h1>${rows.length === 0 ? "<p>No mail yet.</p>" : table}`);
}

function single({ name, from, to, at, mail, source }) {
  const facts = [
    ["From", `${mail.from?.name ?? ""} <${mail.from?.address ?? ""}>`],
    ["To", to.join(", ")],
    ["Return path", from],
    ["Taken", at],
  ];
  const terms = facts.map(([term, text]) => `<dt>${term}</dt><dd>${escapeHtml(text)}</dd>`).join("");
  const files = mail.attachments
    .map(({ filename, mimeType }) => `<li>${escapeHtml(`${filename ?? "(no name)"}, ${mimeType}`)}</li>`)
    .join("");
  const html =
    mail.html === undefined
      ? ""
      : `<h2>HTML</h2><iframe sandbox title="HTML of the mail" src="/${name}/html"></iframe>`;
  const text = mail.text === undefined ? "" : `<h2>Text</h2><pre>${escapeHtml(mail.text)}</pre>`;
  const raw = `<h2>Source</h2><p><a href="/${name}/source">alone</a></p><pre>${escapeHtml(source.toString("latin1"))}</pre>`;
  const body = `<p><a href="/">Inbox</a></p><h1>${escapeHtml(mail.subject || "(no subject)")}</h1><dl>${terms}</dl>${files ? `<h2>Files</h2><ul>${files}</ul>` : ""}${html}${text}${raw}`;
  return shell(mail.subject || "Mail", body);
}

const style = `body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1c1c1c;background:#fff}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.4rem .6rem;border-bottom:1px solid #ddd;vertical-align:top}
iframe{width:100%;height:28rem;border:1px solid #ccc;background:#fff}pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f6f6f6;padding:1rem}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem}dt{color:#555}dd{margin:0;overflow-wrap:anywhere}`;

function shell(title, body) {
  const head = `<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${escapeHtml(title)}</title><style>${style}</style>`;
  return `<!doctype html><html lang="en"><head>${head}</head><body><main>${body}</main></body></html>`;
}

function escapeHtml(text) {
  return String(text).replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [smtpPort, pagePort, folder] = process.argv.slice(2);
  const started = await startSink({ smtpPort: Number(smtpPort), pagePort: Number(pagePort), folder });
  for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => process.exit(0));
  process.stdout.write(
    `${JSON.stringify({ message: "sink.ready", smtpPort: started.smtpPort, pagePort: started.pagePort })}\n`,
  );
}
