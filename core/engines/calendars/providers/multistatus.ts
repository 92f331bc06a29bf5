import { AnswerRefused } from "../../../platform/exchange.ts";
import { XmlReader } from "../xml-reader.ts";

/** One resource of a multistatus (RFC 4918, section 13). */
export interface Resource {
  href: string;
  /** Status of the resource; 200 if only its properties have one. */
  status: number;
  etag: string;
  /** The calendar object, if it was requested and exists. */
  data: string;
}

/** The resources of a response, and its sync token ("" if there is none). */
export interface Multistatus {
  resources: Resource[];
  syncToken: string;
}

/** Resources and elements of one response. A person's calendar of a year has some thousand events with about ten elements each. */
export const MAX_RESOURCES = 20_000;
const MAX_ELEMENTS = 20 * MAX_RESOURCES;
/** Most characters of the texts to read; the bytes of the response bound calendar objects. */
const MAX_LENGTHS = new Map([
  ["href", 2048],
  ["status", 256],
  ["getetag", 512],
  ["sync-token", 2048],
  ["calendar-data", Number.POSITIVE_INFINITY],
]);

/** Parses a multistatus as it arrives. */
export class MultistatusReader extends XmlReader {
  readonly #resources: Resource[] = [];
  #syncToken = "";
  #text = "";

  constructor() {
    super(MAX_ELEMENTS);
  }

  /** The parsed multistatus; undefined if the response is not XML or is incomplete. */
  async multistatus(): Promise<Multistatus | undefined> {
    return (await this.finish()) ? { resources: this.#resources, syncToken: this.#syncToken } : undefined;
  }

  protected override opened(name: string): void {
    this.#text = "";
    if (name !== "response") return;
    if (this.#resources.length === MAX_RESOURCES)
      throw new AnswerRefused("limit", `The answer tells of more than ${MAX_RESOURCES} resources.`);
    this.#resources.push({ href: "", status: 200, etag: "", data: "" });
  }

  protected override text(text: string): void {
    const name = this.path.at(-1) ?? "";
    const most = MAX_LENGTHS.get(name);
    if (most === undefined) return;
    this.#text += text;
    if (this.#text.length > most) throw new AnswerRefused("limit", `Its ${name} has more than ${most} characters.`);
  }

  protected override closed(name: string): void {
    if (!MAX_LENGTHS.has(name)) return;
    const text = this.#text.trim();
    const isOfResponse = this.path.at(-1) === "response";
    const resource = this.path.includes("response") ? this.#resources.at(-1) : undefined;
    this.#text = "";
    if (resource === undefined) {
      if (name === "sync-token") this.#syncToken = text;
    } else if (name === "href" && isOfResponse) resource.href = text;
    else if (name === "status" && isOfResponse) resource.status = Number(/ (\d{3})/.exec(text)?.[1] ?? 200);
    else if (name === "getetag") resource.etag = text;
    else if (name === "calendar-data") resource.data = text;
  }
}
