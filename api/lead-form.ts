import { randomBytes } from "node:crypto";
import { formHtml, type LeadForm, mustBeOpen, readLeadForm, type StoredForm } from "../core/assistant/face.ts";
import { leadFormPath } from "../schemas/assistant.ts";
import { wordsOf } from "../schemas/languages.ts";
import { anyone, type Request, type Row, route, type View } from "./route.ts";
import { escapeHtml, htmlDocument } from "./shell.ts";

/** The form inside the widget's sandboxed frame. */
export const leadFormRows: Row[] = [
  route("GET /v2/public/pages/:handle/:pageSlug/lead-sections/:sectionId/form", anyone, leadFormPath, readLeadForm, {
    guard: mustBeOpen,
    view: (form, request) => leadFormView(form, pageOrigins(form, request)),
    logged: false,
    errorLogName: "assistant",
    summary: "Get the form of a lead section",
    description:
      "The document of the widget's sandboxed frame, kept for 24 h. Its content security policy lets only page origins frame it.",
    failures: ["not_found"],
    produces: { types: ["text/html"], example: "<!doctype html>…" },
  }),
];

/** A document that runs only its own script and that only the given origins may frame (docs/reference.md, "Form frame"). */
export function leadFormView(form: StoredForm, origins: string[]): View {
  const nonce = randomBytes(16).toString("base64url");
  const policy = [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src 'nonce-${nonce}'`,
    "form-action 'none'",
    "base-uri 'none'",
    `frame-ancestors ${origins.join(" ")}`,
  ].join("; ");
  const headers = {
    "Content-Security-Policy": policy,
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
  };
  return {
    type: "text/html; charset=utf-8",
    body: document(form, nonce),
    headers,
  };
}

/** The origins that show the page: the frame's own host, which may be a custom domain, the service's and the handle's. */
function pageOrigins(form: LeadForm, { runtime }: Request): string[] {
  const named = [runtime.env.BASE_URL, form.pageUrl].map((address) => new URL(address).origin);
  return ["'self'", ...new Set(named)];
}

/** The script comes before the form, so that the button works as soon as it is visible. */
function document({ fields, submitLabel, language = "en" }: StoredForm, nonce: string): string {
  const title = wordsOf(language).widget.form;
  const form = formHtml(fields, submitLabel, true) ?? "";
  return htmlDocument({
    language,
    title,
    styles: [],
    head: [
      `<link rel="stylesheet" href="/assets/lead-form.css" nonce="${nonce}">`,
      `<script src="/assets/lead-form.js" nonce="${nonce}"></script>`,
    ],
    body: `<main><h1 class="svc-unseen">${escapeHtml(title)}</h1>${form}</main>`,
  });
}
