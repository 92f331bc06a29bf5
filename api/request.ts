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
  const wanted = ctx.acceptsLanguages().map((tag) => canonicalLanguage(tag) ?? "");
  return wanted.find((tag) => tag.length <= MAX_LANGUAGE_LENGTH && hasWords(tag)) ?? "";
}

/** The request that presenters see. Its parts are computed on demand, since most presenters use none. */
export class AppRequest implements Request {
  readonly runtime: Runtime;
  readonly #ctx: Context;
  readonly #fallback: string | null;

  constructor(runtime: Runtime, ctx: Context, fallback: string | null = null) {
    this.runtime = runtime;
    this.#ctx = ctx;
    this.#fallback = fallback;
  }

  get method(): string {
    return this.#ctx.method;
  }

  get address(): string {
    return onThisHost(this.#ctx.originalUrl);
  }

  get query(): URLSearchParams {
    return new URLSearchParams(this.#ctx.querystring);
  }

  get parameters(): Record<string, string> {
    return this.#ctx.state.parameters ?? {};
  }

  get pagePath(): string | undefined {
    const { handle, pageSlug } = this.parameters;
    if (handle === undefined || pageSlug === undefined) return undefined;
    return mayBePageHost(this.runtime, this.#ctx)
      ? `/${encodeURIComponent(pageSlug)}`
      : `/p/${handle}/${encodeURIComponent(pageSlug)}`;
  }

  get formPage(): string | undefined {
    const referrer = this.#ctx.get("referer");
    if (this.#ctx.method !== "POST" || !URL.canParse(referrer)) return undefined;
    const { host, pathname, search } = new URL(referrer);
    // The address of an API route, which answered the form, can't be opened again.
    return host === this.#ctx.host && !pathname.startsWith("/v2/") ? onThisHost(pathname + search) : undefined;
  }

  get said(): Request["said"] {
    return (this.#ctx.state.row as Row | undefined)?.said ?? {};
  }

  coding<C extends string>(known: readonly C[]): C | "identity" {
    return acceptedCoding(this.#ctx, known);
  }

  language(fallback = this.#fallback): string {
    this.#ctx.vary("Accept-Language");
    const first = wordsLanguage(fallback ?? "en");
    return this.#ctx.acceptsLanguages([first, ...Object.keys(languages)]) || first;
  }
}
