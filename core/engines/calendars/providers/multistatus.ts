import { AnswerRefused } from "../../../platform/exchange.ts";
import { XmlReader } from "../xml-reader.ts";

/** One resource that a WebDAV server tells of (RFC 4918, section 13). */
export interface Resource {
  href: string;
  /** Status of the resource itself; 200 where only its properties have one. */
  status: number;
  etag: string;
  /** The calendar object, where it was asked for and is there. */
  data: string;
}

/** The resources of an answer, and the sync token that stands beside them ("" where none does). */
export interface Multistatus {
  resources: Resource[];
  syncToken: string;
}

/** Resources and elements of one answer. A person's calendar of a year has some thousand events; each takes some ten elements. */
export const MAX_RESOURCES = 20_000;
const MAX_ELEMENTS = 20 * MAX_RESOURCES;
/** Most characters of the texts that are wanted; a calendar object is bounded by the bytes of its answer. */
const MAX_LENGTHS = new Map([
  ["href", 2048],
  ["status", 256],
  ["getetag", 512],
  ["sync-token", 2048],
  ["calendar-data", Number.POSITIVE_INFINITY],
]);

/** Reads what a WebDAV server tells of many resources while it comes in. */
export class MultistatusReader extends XmlReader {
  readonly #resources: Resource[] = [];
  #syncToken = "";
  #text = "";

  constructor() {
    super(MAX_ELEMENTS);
  }

  /** What was told; undefined where the answer is no XML or was cut off. */
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
