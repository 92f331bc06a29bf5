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

/**
 * The request that presenters see. Most use few of its parts, so the others are computed on demand. A class: V8 would keep an object
 * literal with getters, and so the whole request, until it collects its old objects.
 */
export class KoaRequest implements Request {
  readonly runtime: Runtime;
  readonly method: string;
  readonly parameters: Record<string, string>;
  readonly address: string;
  readonly said: Request["said"];
  readonly #ctx: Context;
  readonly #ofFailure: string | null;

  constructor(runtime: Runtime, ctx: Context, ofFailure: string | null = null) {
    const { row, parameters = {} } = ctx.state as { row?: Row; parameters?: Record<string, string> };
    this.runtime = runtime;
    this.method = ctx.method;
    this.parameters = parameters;
    this.address = onThisHost(ctx.originalUrl);
    this.said = row?.said ?? {};
    this.#ctx = ctx;
    this.#ofFailure = ofFailure;
  }

  get query(): URLSearchParams {
    return new URLSearchParams(this.#ctx.querystring);
  }

  get pagePath(): string | undefined {
    const { handle, pageSlug } = this.parameters;
    if (handle === undefined || pageSlug === undefined) return undefined;
    return `${mayBePageHost(this.runtime, this.#ctx) ? "" : `/p/${handle}`}/${encodeURIComponent(pageSlug)}`;
  }

  get formPage(): string | undefined {
    const referrer = this.#ctx.get("referer");
    if (this.method !== "POST" || !URL.canParse(referrer)) return undefined;
    const { host, pathname, search } = new URL(referrer);
    // The address of an API route, which answered the form, can't be opened again.
    return host === this.#ctx.host && !pathname.startsWith("/v2/") ? onThisHost(pathname + search) : undefined;
  }

  coding<C extends string>(known: readonly C[]): C | "identity" {
    return acceptedCoding(this.#ctx, known);
  }

  language(fallback: string | null = this.#ofFailure): string {
    this.#ctx.vary("Accept-Language");
    const first = wordsLanguage(fallback ?? "en");
    return this.#ctx.acceptsLanguages([first, ...Object.keys(languages)]) || first;
  }
}
