import { setImmediate } from "node:timers/promises";
import { Parser } from "htmlparser2";

/** One resource that a WebDAV server tells of (RFC 4918, 13). */
export interface Resource {
  href: string;
  /** Status of the resource itself; 200 where only its properties have one. */
  status: number;
  etag: string;
  /** The calendar object, where it was asked for and is there. */
  data: string;
}

/** Letters of an answer that are read at a time: a large one must not hold up everything else. */
const slice = 32_768;
/** Elements whose text is wanted. */
const told = new Set(["href", "status", "getetag", "calendar-data", "sync-token"]);

/** The resources of an answer, and the sync token that stands beside them ("" where none does). Read in slices. */
export async function readMultistatus(text: string): Promise<{ resources: Resource[]; syncToken: string }> {
  const reader = new Reader();
  for (let at = 0; at < text.length; at += slice) {
    reader.write(text.slice(at, at + slice));
    await setImmediate();
  }
  reader.end();
  return reader;
}

class Reader {
  readonly resources: Resource[] = [];
  syncToken = "";
  readonly #path: string[] = [];
  readonly #parser: Parser;
  #text = "";

  constructor() {
    const opened = (name: string): void => {
      this.#path.push(local(name));
      this.#text = "";
      if (this.#path.at(-1) === "response") this.resources.push({ href: "", status: 200, etag: "", data: "" });
    };
    const ontext = (text: string): void => {
      if (told.has(this.#path.at(-1) ?? "")) this.#text += text;
    };
    const onclosetag = (): void => this.#close();
    this.#parser = new Parser({ onopentagname: opened, ontext, onclosetag }, { xmlMode: true });
  }

  write(text: string): void {
    this.#parser.write(text);
  }

  end(): void {
    this.#parser.end();
  }

  #close(): void {
    const name = this.#path.pop() ?? "";
    if (!told.has(name)) return;
    const text = this.#text.trim();
    const isOfResponse = this.#path.at(-1) === "response";
    const resource = this.#path.includes("response") ? this.resources.at(-1) : undefined;
    this.#text = "";
    if (resource === undefined) {
      if (name === "sync-token") this.syncToken = text;
    } else if (name === "href" && isOfResponse) resource.href = text;
    else if (name === "status" && isOfResponse) resource.status = Number(/ (\d{3})/.exec(text)?.[1] ?? 200);
    else if (name === "getetag") resource.etag = text;
    else if (name === "calendar-data") resource.data = text;
  }
}

/** A name without the prefix of its namespace. */
function local(name: string): string {
  return name.replace(/^.*:/, "");
}
