import { type Html, html, htmlDocument, htmlView, type Part, unlisted } from "./html.ts";
import type { View } from "./route.ts";

/** A page with one message or one question: a card with a title. */
interface Card {
  /** BCP 47. */
  language: string;
  title: string;
  /** What is below the title. */
  body: Part;
  status?: number;
  /** Further origins or schemes that the page's form may redirect to. */
  leadsTo?: string[];
  /** The page's own script in /assets. */
  script?: string | undefined;
  headers?: Record<string, string | string[]>;
  /** Search engines may index the page. */
  isListed?: boolean;
  /** Pages of the same origin may frame it. */
  isFramed?: boolean;
}

/** The part of a card that depends on its step. */
export type CardContent = Pick<Card, "title" | "body">;

/** A card as a document that runs only its own script, and that no page of another origin can frame. */
export function cardView({ language, title, body, script, leadsTo = [], isListed, isFramed, ...more }: Card): View {
  const document = htmlDocument({
    language,
    title,
    styles: ["page.css", "card.css", "account.css"],
    head: [!isListed && unlisted, script && html`<script src="/assets/${script}" defer></script>`],
    body: html`<main class="card">\n<h1>${title}</h1>\n${body}\n</main>`,
  });
  const policy = [
    "default-src 'none'",
    "style-src 'self'",
    // The icon of the tab.
    "img-src 'self'",
    `form-action ${["'self'", ...leadsTo].join(" ")}`,
    "base-uri 'none'",
    `frame-ancestors ${isFramed ? "'self'" : "'none'"}`,
    ...(script ? ["script-src 'self'", "connect-src 'self'"] : []),
  ];
  // With no-referrer, forms would send the origin "null".
  const own = { "X-Frame-Options": isFramed ? "SAMEORIGIN" : "DENY", "Referrer-Policy": "same-origin" };
  return htmlView(document, policy, { ...more, headers: { ...own, ...more.headers } });
}

/** A link styled as a button of a card. */
export function cardLink(label: string, href: string): Html {
  return html`<p class="actions"><a class="button" href="${href}">${label}</a></p>`;
}

/** A less prominent link below a card's form. */
export function otherLink(label: string, href: string): Html {
  return html`<p class="other"><a href="${href}">${label}</a></p>`;
}

/** The buttons of a decision, the first one prominent. */
export function decisionButtons(...choices: [value: string, label: string][]): Html {
  const buttons = choices.map(
    ([value, label], at) =>
      html`<button name="decision" value="${value}"${at > 0 && html` class="quiet"`}>${label}</button>`,
  );
  return html`<div class="actions">${buttons}</div>`;
}

/** Hidden inputs of a form, without undefined ones. */
export function hiddenInputs(fields: Record<string, string | undefined>): Part {
  return Object.entries(fields).map(
    ([name, value]) => value !== undefined && html`<input type="hidden" name="${name}" value="${value}">`,
  );
}

/** The input for a mailed code, below what was wrong with the last one. It has room for spaces that are pasted along. */
export function codeInput(label: string, wrong: string | undefined): Html {
  return html`${problemOf(wrong)}
<label>${label}<input name="code" class="digits" inputmode="numeric" autocomplete="one-time-code" autofocus required maxlength="20"${describedBy(wrong)}></label>`;
}

export function problemOf(text: string | undefined): Part {
  return text && html`<p class="alert" role="alert" id="problem">${text}</p>`;
}

/** Attributes that tie an input to what is wrong with it. */
export function describedBy(problem: string | undefined): Part {
  return problem && html` aria-invalid="true" aria-describedby="problem"`;
}

/** Rows of a name and a value. A value keeps its own text direction. */
export function factList(rows: readonly (readonly [name: string, value: Part])[]): Html {
  const written = rows.map(([name, value]) => html`<div><dt>${name}</dt><dd><bdi>${value}</bdi></dd></div>`);
  return html`<dl>${written}</dl>`;
}
