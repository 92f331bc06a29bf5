import type { TemplateContent } from "../../schemas/email.ts";
import { wordsOf } from "../../schemas/languages.ts";
import { lastLineAt } from "./html-places.ts";

/** The variable that the service fills with the recipient's unsubscribe address. */
export const unsubscribeVariable = "unsubscribeUrl";

/** Path of unsubscribe pages, before the token of a delivery. */
export const UNSUBSCRIBE_PATH = "/v2/public/email/unsubscribe";

const asked = `{{${unsubscribeVariable}}}`;

/** Adds a last line with the unsubscribe address, in the mail's language, to an HTML or text that has none. */
export function withUnsubscribeLine({ subject, html, text }: TemplateContent, language: string): TemplateContent {
  const word = wordsOf(language).unsubscribe.action;
  return { subject, html: html && withHtmlLine(html, word), text: text && withTextLine(text, word) };
}

function withHtmlLine(html: string, word: string): string {
  if (html.includes(asked)) return html;
  const at = lastLineAt(html);
  return `${html.slice(0, at)}\n<p style="margin-top:2em;font-size:small"><a href="${asked}">${word}</a></p>\n${html.slice(at)}`;
}

function withTextLine(text: string, word: string): string {
  return text.includes(asked) ? text : `${text.trimEnd()}\n\n${word}: ${asked}\n`;
}
