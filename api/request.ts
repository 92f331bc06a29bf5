import type { Context } from "koa";
import { hostName } from "../core/pages/face.ts";
import { canonicalLanguage } from "../core/platform/language-tags.ts";
import type { Runtime } from "../core/platform/runtime.ts";
import type { ErrorCode } from "../schemas/errors.ts";
import { hasWords, type Words, wordsLanguage } from "../schemas/languages.ts";
import { propertiesOf, type Schema } from "../schemas/schema.ts";

/** Longest language tag that a request may name, in characters. */
const MAX_LANGUAGE_LENGTH = 64;

/**
 * How each input from the header or the connection is read, by its name; texts are "" if the client does not send them. Body and query can't
 * set an input of such a name.
 */
export const headerFields = {
  authorization: (ctx: Context) => ctx.get("authorization"),
  closed,
  cookie: (ctx: Context) => ctx.get("cookie"),
  host: (ctx: Context) => ctx.host,
  lastEventId: (ctx: Context) => ctx.get("last-event-id"),
  method: (ctx: Context) => ctx.method,
  origin: (ctx: Context) => ctx.get("origin"),
  userAgent: (ctx: Context) => ctx.get("user-agent"),
  visitorLanguage,
};

/** Names of the inputs of a schema that come from the header or the connection alone. */
export function headerInputs(schema: Schema<unknown>): (keyof typeof headerFields)[] {
  const names = Object.keys(headerFields) as (keyof typeof headerFields)[];
  return names.filter((name) => name in propertiesOf(schema));
}

/** Aborts when the response is over, also because the client has left. */
function closed({ res }: Context): AbortSignal {
  const controller = new AbortController();
  res.once("close", () => controller.abort());
  if (res.destroyed) controller.abort();
  return controller.signal;
}

/** The supported language (BCP 47) that the visitor prefers (RFC 9110, section 12.5.4); "" if none matches. */
function visitorLanguage(ctx: Context): string {
  ctx.vary("Accept-Language");
  // A client that names no language accepts "*", which is no tag.
  const tags = ctx.acceptsLanguages().filter((tag) => tag !== "*");
  const wanted = tags.map((tag) => canonicalLanguage(tag) ?? "");
  return wanted.find((tag) => tag.length <= MAX_LANGUAGE_LENGTH && hasWords(tag)) ?? "";
}

/** Failure texts of a route, if those of the code don't fit. */
export type FailureTexts = Partial<Record<ErrorCode, keyof Words["failures"]>>;

/** The HTTP side of a request, for presenters. A class: V8 would keep an object literal with getters until it collects its old objects. */
export class Request {
  readonly runtime: Runtime;
  readonly method: string;
  readonly parameters: Readonly<Record<string, string>>;
  /** Path and query as requested. */
  readonly address: string;
  readonly failureTexts: FailureTexts;
  readonly #ctx: Context;
  readonly #ofFailure: string | null;

  /** `ofFailure`: the language of the handle of a failed request. */
  constructor(runtime: Runtime, ctx: Context, ofFailure: string | null = null) {
    const { row, parameters = {} } = ctx.state as {
      row?: { failureTexts?: FailureTexts };
      parameters?: Record<string, string>;
    };
    this.runtime = runtime;
    this.method = ctx.method;
    this.parameters = parameters;
    this.address = onThisHost(ctx.originalUrl);
    this.failureTexts = row?.failureTexts ?? {};
    this.#ctx = ctx;
    this.#ofFailure = ofFailure;
  }

  get query(): URLSearchParams {
    return new URLSearchParams(this.#ctx.querystring);
  }

  /** Path of the page that the request names, on the visitor's host. */
  get pagePath(): string | undefined {
    const { handle, pageSlug } = this.parameters;
    if (handle === undefined || pageSlug === undefined) return undefined;
    return `${mayBePageHost(this.runtime, this.#ctx) ? "" : `/p/${handle}`}/${encodeURIComponent(pageSlug)}`;
  }

  /** Path of the page whose form was submitted, if it is on the same host. */
  get formPage(): string | undefined {
    const referrer = this.#ctx.get("referer");
    if (this.method !== "POST" || !URL.canParse(referrer)) return undefined;
    const { host, pathname, search } = new URL(referrer);
    // The address of an API route, which answered the form, can't be opened again.
    return host === this.#ctx.host && !pathname.startsWith("/v2/") ? onThisHost(pathname + search) : undefined;
  }

  get coding(): Coding {
    return codingOf(this.#ctx);
  }

  /**
   * The supported language that the visitor prefers (RFC 9110, section 12.5.4), else the fallback, else English. Without a fallback, a
   * failure uses the language of its handle.
   */
  language(fallback: string | null = this.#ofFailure): string {
    return wordsLanguage(visitorLanguage(this.#ctx) || (fallback ?? "en"));
  }
}

const codings = ["br", "gzip"] as const;
export type Coding = (typeof codings)[number] | "identity";

/** The first of our content codings that the client accepts (RFC 9110, section 12.5.3); none if it names none. */
export function codingOf(ctx: Context): Coding {
  if (!ctx.req.headers["accept-encoding"]) return "identity";
  return codings.find((coding) => ctx.acceptsEncodings(coding) === coding) ?? "identity";
}

/** False for the service's own hosts and for IP addresses, which is nearly always. */
export function mayBePageHost({ env }: Runtime, ctx: Context): boolean {
  const host = hostName(env.TRUST_PROXY ? ctx.host : (ctx.req.headers.host ?? ""));
  return !/^([\d.]+|\[.*\]|[^.]*)$/.test(host) && !env.ownHosts.has(host);
}

/** A path on the same host: one that starts with `//` or `/\` leads to another; browsers drop tabs and line breaks. */
export function onThisHost(address: string): string {
  return address.replace(/^[/\\\t\n\r]+/, "/");
}
