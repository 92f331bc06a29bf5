import type { UnsubscribeVisit } from "../core/email/unsubscribe.ts";
import { escapeHtml, missingPage } from "./page-view.ts";
import type { View } from "./route.ts";

const policy = "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/** The page of an unsubscribe link: a button, and after it what was done. */
export function unsubscribeView({ link }: UnsubscribeVisit): View {
  if (link === undefined) return missingPage();
  const headers = {
    "Content-Security-Policy": policy,
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex",
  };
  return { type: "text/html; charset=utf-8", body: document(link), headers };
}

function document({ recipient, from, done }: NonNullable<UnsubscribeVisit["link"]>): string {
  const [title, content] = done
    ? ["Unsubscribed", result(recipient, from)]
    : ["Unsubscribe", question(recipient, from)];
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="stylesheet" href="/assets/page.css">
</head>
<body>
<main>
<h1>${title}</h1>
${content}
</main>
</body>
</html>
`;
}

function question(recipient: string, from: string): string {
  const sentence = `<p>Shall <strong>${escapeHtml(recipient)}</strong> get no more mail from <strong>${escapeHtml(from)}</strong>?</p>`;
  return `${sentence}\n<form method="post"><button type="submit" name="List-Unsubscribe" value="One-Click">Unsubscribe</button></form>`;
}

function result(recipient: string, from: string): string {
  return `<p role="status"><strong>${escapeHtml(recipient)}</strong> gets no more mail from <strong>${escapeHtml(from)}</strong>.</p>`;
}
