import type { Buffer } from "node:buffer";
import { StringDecoder } from "node:string_decoder";
import { setImmediate } from "node:timers/promises";
import { Parser } from "htmlparser2";
import { ResponseRefused, type Sink } from "../../platform/exchange.ts";

/** Deepest nesting of a response; WebDAV needs fewer than ten levels. */
const MAX_DEPTH = 50;
/** Most elements to hold at a time: those of a person's calendars. */
const MAX_ELEMENTS = 20_000;
/** Bytes to parse at a time, so that a response doesn't block the event loop. */
const SLICE_BYTES = 32_768;

/** An element by its local name. */
export interface Element {
  name: string;
  /** The value of its `name` attribute. */
  named: string;
  text: string;
  children: Element[];
}

/**
 * Parses XML from untrusted servers as it arrives. `ResponseRefused` for a response that is nested too deep or has too many elements. The
 * time is linear: htmlparser2 searches all open elements at each tag, and the depth is bounded.
 */
export class XmlReader implements Sink {
  /** Bytes received. */
  bytes = 0;
  /** The open elements, below a node whose only child is the root. */
  readonly #open: Element[] = [elementOf("")];
  readonly #takes: (element: Element) => boolean;
  readonly #decoder = new StringDecoder("utf8");
  readonly #parser: Parser;
  #parsing = Promise.resolve();
  #failure: Error | undefined;
  #elements = 0;

  /** `takes` is called with each complete element, and returns true for one that need not be held any longer. */
  constructor(takes: (element: Element) => boolean = () => false) {
    this.#takes = takes;
    this.#parser = new Parser(
      {
        onopentagname: (name) => this.#begin(name.slice(name.lastIndexOf(":") + 1)),
        onattribute: (name, value) => {
          if (name === "name") this.#current.named = value;
        },
        ontext: (text) => {
          this.#current.text += text;
        },
        onclosetag: () => this.#end(),
      },
      { xmlMode: true },
    );
  }

  /** Queues a part for parsing; throws the error of an earlier part. */
  write(part: Buffer): void {
    if (this.#failure) throw this.#failure;
    this.bytes += part.length;
    this.#parsing = this.#parsing.then(() => this.#parse(part));
    this.#parsing.catch((error: Error) => {
      this.#failure = error;
    });
  }

  /** The root element, once everything is parsed; undefined if the text is not XML or is incomplete. */
  async root(): Promise<Element | undefined> {
    await this.#parsing;
    const root = this.#open.length === 1 ? this.#current.children[0] : undefined;
    this.#parser.end();
    return root;
  }

  async #parse(part: Buffer): Promise<void> {
    for (let at = 0; at < part.length; at += SLICE_BYTES) {
      this.#parser.write(this.#decoder.write(part.subarray(at, at + SLICE_BYTES)));
      await setImmediate();
    }
  }

  get #current(): Element {
    return this.#open.at(-1) as Element;
  }

  #begin(name: string): void {
    if (this.#open.length > MAX_DEPTH)
      throw new ResponseRefused("limit", `The answer is nested more than ${MAX_DEPTH} deep.`);
    if (++this.#elements > MAX_ELEMENTS)
      throw new ResponseRefused("limit", `The answer holds more than ${MAX_ELEMENTS} elements.`);
    const element = elementOf(name);
    this.#current.children.push(element);
    this.#open.push(element);
  }

  #end(): void {
    const element = this.#open.pop() as Element;
    if (!this.#takes(element)) return;
    this.#current.children.pop();
    this.#elements -= sizeOf(element);
  }
}

function elementOf(name: string): Element {
  return { name, named: "", text: "", children: [] };
}

function sizeOf({ children }: Element): number {
  return children.reduce((size, child) => size + sizeOf(child), 1);
}

/** All elements of this local name below an element. */
export function every({ children }: Element, name: string): Element[] {
  return children.flatMap((child) => [...(child.name === name ? [child] : []), ...every(child, name)]);
}

/** The text of the first element of a name; "" if there is none. */
export function textIn(element: Element, name: string): string {
  return every(element, name)[0]?.text.trim() ?? "";
}

/** The href in the first element of a name. */
export function hrefIn(element: Element, name: string): string | undefined {
  const [found] = every(element, name);
  return (found && textIn(found, "href")) || undefined;
}
