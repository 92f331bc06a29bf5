import type { UnsubscribeVisit } from "../core/email/face.ts";
import { type Words, wordsOf } from "../schemas/languages.ts";
import { type Card, cardView } from "./account-view.ts";
import type { Request, View } from "./route.ts";
import { escapeHtml, sentence } from "./shell.ts";

const headers = { "Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex", Vary: "Accept-Language" };

type Link = NonNullable<UnsubscribeVisit["link"]>;

/** The page of an unsubscribe link in the visitor's language: a question, or the result and how to undo it. */
export function unsubscribeView({ link }: UnsubscribeVisit, request: Request): View {
  const language = request.language();
  const { unsubscribe: words } = wordsOf(language);
  const content = link ? contentOf(link, words) : page(words.title, escapeHtml(words.missing));
  const status = link ? 200 : 404;
  return cardView({ language, ...content, status, headers });
}

type Content = Pick<Card, "title" | "body">;

function contentOf(link: Link, words: Words["unsubscribe"]): Content {
  const { state, canUndo } = link;
  if (state === "subscribed")
    return page(words.title, saying(words.question, link), button("List-Unsubscribe", "One-Click", words.action));
  if (state === "resubscribed") return page(words.undone, saying(words.undoneDetail, link));
  return page(words.done, saying(words.detail, link), canUndo ? button("undo", "1", words.undo) : "");
}

function page(title: string, sentence: string, form = ""): Content {
  return { title, body: `<p>${sentence}</p>\n${form}` };
}

function saying(text: string, { recipient, from }: Link): string {
  return sentence(text, { address: recipient, sender: from });
}

/** A form that posts to the page's own address. */
function button(name: string, value: string, label: string): string {
  return `<form method="post"><button type="submit" name="${name}" value="${value}">${escapeHtml(label)}</button></form>`;
}
