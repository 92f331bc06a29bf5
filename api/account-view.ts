import type { View } from "./route.ts";
import { escapeHtml, htmlDocument, unlisted } from "./shell.ts";

/** A page with one message or one question: a card with a title. */
export interface Card {
  /** BCP 47. */
  language: string;
  title: string;
  /** HTML below the title. */
  body: string;
  status?: number;
  /** Further origins that the page's form may redirect to. */
  leadsTo?: string[];
  /** The page's own script in /assets. */
  script?: string;
  headers?: Record<string, string | string[]>;
  /** Search engines may index the page. */
  isListed?: boolean;
  /** Pages of the same origin may frame it. */
  isFramed?: boolean;
}

/** A card as a document that runs only its own script and can't be framed. */
export function cardView(card: Card): View {
  return {
    type: "text/html; charset=utf-8",
    status: card.status ?? 200,
    body: document(card),
    headers: { ...headersOf(card), ...card.headers },
  };
}

/** A link styled as a button of a card. */
export function cardLink(label: string, href: string): string {
  return `<p class="actions"><a class="button" href="${escapeHtml(href)}">${escapeHtml(label)}</a></p>`;
}

/** The buttons of a decision, the first one prominent. */
export function decisionButtons(...choices: [value: string, label: string][]): string {
  const buttons = choices.map(([value, label], at) => {
    return `<button name="decision" value="${value}"${at === 0 ? "" : ' class="quiet"'}>${escapeHtml(label)}</button>`;
  });
  return `<div class="actions">${buttons.join("")}</div>`;
}

/** Hidden inputs of a form, without undefined ones. */
export function hiddenInputs(fields: Record<string, string | undefined>): string {
  const known = Object.entries(fields).filter((field): field is [string, string] => field[1] !== undefined);
  return known.map(([name, value]) => `<input type="hidden" name="${name}" value="${escapeHtml(value)}">`).join("");
}

/** The input for a mailed code, below what was wrong with the last one. */
export function codeInput(label: string, wrong: string | undefined): string {
  return `${problemOf(wrong)}
<label>${escapeHtml(label)}<input name="code" class="digits" inputmode="numeric" autocomplete="one-time-code" autofocus required maxlength="7"${describedBy(wrong)}></label>`;
}

/** What is wrong with an input. */
export function problemOf(text: string | undefined): string {
  return text ? `<p class="alert" role="alert" id="problem">${escapeHtml(text)}</p>` : "";
}

/** Attributes that tie an input to what is wrong with it. */
export function describedBy(problem: string | undefined): string {
  return problem ? ' aria-invalid="true" aria-describedby="problem"' : "";
}

/** Rows of a name and a value (HTML). A value keeps its own text direction. */
export function factList(rows: readonly [name: string, html: string][]): string {
  const row = ([name, html]: readonly [string, string]): string =>
    `<div><dt>${escapeHtml(name)}</dt><dd><bdi>${html}</bdi></dd></div>`;
  return `<dl class="facts">${rows.map(row).join("")}</dl>`;
}

function headersOf({ leadsTo = [], script, isFramed }: Card): Record<string, string> {
  const policy = [
    "default-src 'none'",
    "style-src 'self'",
    ...(script ? ["script-src 'self'", "connect-src 'self'"] : []),
    `form-action ${["'self'", ...leadsTo].join(" ")}`,
    "base-uri 'none'",
    `frame-ancestors ${isFramed ? "'self'" : "'none'"}`,
  ];
  return {
    "Content-Security-Policy": policy.join("; "),
    "Cache-Control": "no-store",
    "X-Frame-Options": isFramed ? "SAMEORIGIN" : "DENY",
    // With no-referrer, forms would send the origin "null".
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
  };
}

function document({ language, title, body, script, isListed }: Card): string {
  return htmlDocument({
    language,
    title,
    styles: ["page.css", "account.css"],
    head: [...(isListed ? [] : [unlisted]), ...(script ? [`<script src="/assets/${script}" defer></script>`] : [])],
    look: "account",
    body: `<main>\n<h1>${escapeHtml(title)}</h1>\n${body}\n</main>`,
  });
}
