import { oneLine, visibleCharacters } from "../../platform/characters.ts";
import { escapeHtml } from "../../platform/escaping.ts";
import { directionOf } from "../../platform/language-tags.ts";

/** The contents of a service mail, before the layout; texts are plain and keep their line breaks. */
export interface MailLayout {
  /** BCP 47. */
  language: string;
  subject: string;
  sender: string;
  title: string;
  /** A code to type, in large digits. */
  code?: string;
  paragraphs?: string[];
  facts?: Fact[];
  /** Links as buttons, the main one first. */
  actions?: [words: string, address: string][];
  /** Why the recipient gets the mail. */
  footer?: string;
}

/** A named value; with an address it is a link. */
export type Fact = [name: string, value: string, address?: string | undefined];

/**
 * Renders a mail as text and as HTML with one simple layout, which follows the reader's light or dark mode. Invisible characters are
 * removed: visitors' values could hide or turn round what follows them.
 */
export function layOut(layout: MailLayout): { subject: string; text: string; html: string } {
  return {
    subject: subjectOf(layout),
    text: visibleCharacters(textOf(layout)),
    html: visibleCharacters(htmlOf(layout)),
  };
}

const MAX_SUBJECT = 250;

function subjectOf({ subject }: MailLayout): string {
  return [...oneLine(subject)].slice(0, MAX_SUBJECT).join("");
}

function textOf({ title, code, paragraphs = [], facts = [], actions = [], sender, footer }: MailLayout): string {
  const named = facts.map(factLine).join("\n");
  const linked = actions.map(([words, address]) => `${words}:\n${address}`);
  // The signature delimiter (RFC 3676, section 4.3).
  const signed = ["-- ", sender, footer].filter(Boolean).join("\n");
  const parts = [title, code && `    ${code}`, ...paragraphs, named, ...linked, signed];
  return `${parts.filter(Boolean).join("\n\n")}\n`;
}

/**
 * An address that its text already shows is not repeated. Further lines of a value are indented, so that none looks like another fact, a
 * link of ours or the end of the mail.
 */
function factLine([name, value, address]: Fact): string {
  const isPlain = address === undefined || address === value || address.startsWith("mailto:");
  return `${factLabel(name)} ${value.replace(/\r\n|[\r\n\p{Zl}\p{Zp}]/gu, "\n    ")}${isPlain ? "" : `\n${address}`}`;
}

/** The name of a fact before its value in plain text: a question gets no colon. */
export function factLabel(name: string): string {
  return /[\p{L}\p{N})]$/u.test(name) ? `${name}:` : name;
}

/** Inline styles, since many mail programs drop the others; programs with a dark mode use the classes. */
const styles = {
  page: "margin:0;padding:24px 12px;background:#f3f4f6;color:#1b1f27",
  card: "max-width:560px;margin:0 auto;padding:28px 24px;background:#ffffff;border:1px solid #dfe2e8;border-radius:12px;font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;overflow-wrap:anywhere;word-break:break-word",
  sender: "margin:0 0 16px;font-size:14px;font-weight:600;color:#596070",
  title: "margin:0 0 16px;font-size:20px;line-height:1.35;font-weight:600",
  code: "margin:0 0 16px;font-size:30px;font-weight:700;letter-spacing:5px",
  text: "margin:0 0 16px",
  facts: "width:100%;margin:0 0 20px;border-collapse:collapse",
  name: "width:1%;min-width:88px;vertical-align:top;font-weight:400;color:#596070",
  value: "padding:6px 0;vertical-align:top",
  link: "color:#1d4fd7",
  actions: "margin:0 0 8px",
  button:
    "display:inline-block;margin:0 8px 10px 0;padding:11px 20px;border:1px solid #1d4fd7;border-radius:8px;font-weight:600;text-decoration:none",
  main: "background:#1d4fd7;color:#ffffff",
  other: "background:#ffffff;color:#1d4fd7",
  footer: "margin:16px 0 0;font-size:13px;color:#596070",
};

/** Dark mode, and on phones the values below their names: beside them, addresses would be broken. */
const variants = `:root{color-scheme:light dark;supported-color-schemes:light dark}
@media (prefers-color-scheme:dark){
.page{background:#101318!important;color:#eceef2!important}
.card{background:#1a1e26!important;border-color:#333a47!important}
.faint{color:#a6adbb!important}
.link{color:#9dbcff!important}
.main{background:#9dbcff!important;border-color:#9dbcff!important;color:#0d1220!important}
.other{background:#1a1e26!important;border-color:#9dbcff!important;color:#9dbcff!important}
}
@media (max-width:480px){
th,td{display:block!important;width:auto!important;padding:0!important}
td{padding-bottom:12px!important}
}`;

function htmlOf(layout: MailLayout): string {
  const { language, sender, title, code, paragraphs = [], footer } = layout;
  const direction = directionOf(language);
  const parts = [
    `<p class="faint" dir="auto" style="${styles.sender}">${escaped(sender)}</p>`,
    `<h1 dir="auto" style="${styles.title}">${escaped(title)}</h1>`,
    code && `<p style="${styles.code}">${escaped(code)}</p>`,
    ...paragraphs.map((text) => `<p dir="auto" style="${styles.text}">${escaped(text)}</p>`),
    factTable(layout),
    buttons(layout),
    footer && `<p class="faint" dir="auto" style="${styles.footer}">${escaped(footer)}</p>`,
  ];
  return `<!doctype html>
<html lang="${escaped(language)}" dir="${direction}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="supported-color-schemes" content="light dark">
<title>${escaped(subjectOf(layout))}</title>
<style>${variants}</style>
</head>
<body class="page" style="${styles.page}">
<div class="card" style="${styles.card};text-align:${sideOf(direction)}">
${parts.filter(Boolean).join("\n")}
</div>
</body>
</html>
`;
}

/** The side where lines begin. Texts of another direction begin there too, below the sender's name. */
function sideOf(direction: "ltr" | "rtl"): "left" | "right" {
  return direction === "rtl" ? "right" : "left";
}

function factTable({ facts = [], language }: MailLayout): string {
  const side = sideOf(directionOf(language));
  const gap = side === "left" ? "padding:6px 16px 6px 0" : "padding:6px 0 6px 16px";
  const rows = facts.map(
    ([name, value, address]) =>
      `<tr><th class="faint" scope="row" align="${side}" style="${styles.name};${gap}">${escaped(name)}</th><td dir="auto" style="${styles.value}">${linked(value, address)}</td></tr>`,
  );
  return rows.length === 0 ? "" : `<table style="${styles.facts}">\n${rows.join("\n")}\n</table>`;
}

function linked(value: string, address: string | undefined): string {
  if (address === undefined) return escaped(value);
  return `<a class="link" href="${escaped(address)}" style="${styles.link}">${escaped(value)}</a>`;
}

function buttons({ actions = [] }: MailLayout): string {
  const all = actions.map(([words, address], index) => {
    const kind = index === 0 ? "main" : "other";
    return `<a class="${kind}" href="${escaped(address)}" style="${styles.button};${styles[kind]}">${escaped(words)}</a>`;
  });
  return all.length === 0 ? "" : `<p style="${styles.actions}">${all.join("\n")}</p>`;
}

function escaped(text: string): string {
  return escapeHtml(text).replace(/\r\n|[\r\n]/g, "<br>");
}
