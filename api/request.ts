import type { Context } from "koa";
import { canonicalLanguage } from "../core/platform/language-tags.ts";
import type { Runtime } from "../core/platform/runtime.ts";
import { hasWords, languages, wordsLanguage } from "../schemas/languages.ts";
import { mayBePageHost, onThisHost } from "./hosts.ts";
import { acceptedCoding } from "./reply.ts";
import type { HeaderInput, Request, Row } from "./route.ts";

/** Longest language tag that a request may name, in characters. */
const MAX_LANGUAGE_LENGTH = 64;

/** How each header input is read; all are "" if the client does not send them. */
export const headerFields: Record<HeaderInput, (ctx: Context) => string> = {
  cookie: (ctx) => ctx.get("cookie"),
  host: (ctx) => ctx.host,
  lastEventId: (ctx) => ctx.get("last-event-id"),
  method: (ctx) => ctx.method,
  origin: (ctx) => ctx.get("origin"),
  userAgent: (ctx) => ctx.get("user-agent"),
  visitorLanguage,
};

/** The supported language (BCP 47) that the visitor prefers (RFC 9110, section 12.5.4); "" if none matches. */
function visitorLanguage(ctx: Context): string {
  ctx.vary("Accept-Language");
  const wanted = ctx.acceptsLanguages().map((tag) => canonicalLanguage(tag) ?? "");
  return wanted.find((tag) => tag.length <= MAX_LANGUAGE_LENGTH && hasWords(tag)) ?? "";
}

/** The request that presenters see. Most use few of its parts, so the others are computed on demand. */
export function requestOf(runtime: Runtime, ctx: Context, ofFailure: string | null = null): Request {
  const { method, state } = ctx;
  const { row, parameters = {} } = state as { row?: Row; parameters?: Record<string, string> };
  return {
    runtime,
    method,
    parameters,
    address: onThisHost(ctx.originalUrl),
    said: row?.said ?? {},
    get query() {
      return new URLSearchParams(ctx.querystring);
    },
    get pagePath() {
      const { handle, pageSlug } = parameters;
      if (handle === undefined || pageSlug === undefined) return undefined;
      return `${mayBePageHost(runtime, ctx) ? "" : `/p/${handle}`}/${encodeURIComponent(pageSlug)}`;
    },
    get formPage() {
      const referrer = ctx.get("referer");
      if (method !== "POST" || !URL.canParse(referrer)) return undefined;
      const { host, pathname, search } = new URL(referrer);
      // The address of an API route, which answered the form, can't be opened again.
      return host === ctx.host && !pathname.startsWith("/v2/") ? onThisHost(pathname + search) : undefined;
    },
    coding: (known) => acceptedCoding(ctx, known),
    language: (fallback = ofFailure) => {
      ctx.vary("Accept-Language");
      const first = wordsLanguage(fallback ?? "en");
      return ctx.acceptsLanguages([first, ...Object.keys(languages)]) || first;
    },
  };
}
