import type { Buffer } from "node:buffer";
import { StringDecoder } from "node:string_decoder";
import { setImmediate } from "node:timers/promises";
import { Parser } from "htmlparser2";
import { AnswerRefused, type Sink } from "../../platform/exchange.ts";

/** Deepest nesting of a response; WebDAV needs fewer than ten levels. */
const MAX_DEPTH = 50;
/** Bytes to parse at a time, so that a response doesn't block the event loop. */
const SLICE_BYTES = 32_768;

/**
 * Parses XML from untrusted servers as it arrives, without buffering; `opened`, `text` and `closed` receive the content by local names.
 * `AnswerRefused` for a response that is nested too deep or has too many elements. The time is linear: htmlparser2 searches all open
 * elements at each tag, and the depth is bounded.
 */
export abstract class XmlReader implements Sink {
  /** Local names of the open elements, the root first. */
  protected readonly path: string[] = [];
  /** Bytes received. */
  bytes = 0;
  readonly #maxElements: number;
  readonly #decoder = new StringDecoder("utf8");
  readonly #parser: Parser;
  readonly #waiting: Buffer[] = [];
  #reading: Promise<void> | undefined;
  #failure: Error | undefined;
  #elements = 0;

  constructor(maxElements: number) {
    this.#maxElements = maxElements;
    this.#parser = new Parser(
      {
        onopentagname: (name) => this.#open(name),
        onattribute: (name, value) => this.attribute(name, value),
        ontext: (text) => this.text(text),
        onclosetag: () => this.#close(),
      },
      { xmlMode: true },
    );
  }

  /** Queues a part for parsing; throws the error of an earlier part. */
  write(part: Buffer): void {
    if (this.#failure) throw this.#failure;
    this.bytes += part.length;
    this.#waiting.push(part);
    this.#reading ??= this.#readOn();
  }

  /** Resolves when everything is parsed: true if the text was complete XML with every element closed. */
  protected async finish(): Promise<boolean> {
    await this.#reading;
    if (this.#failure) throw this.#failure;
    const isWhole = this.path.length === 0 && this.#elements > 0;
    this.#parser.end();
    return isWhole;
  }

  async #readOn(): Promise<void> {
    try {
      for (let part = this.#waiting.shift(); part; part = this.#waiting.shift())
        for (let at = 0; at < part.length; at += SLICE_BYTES) {
          this.#parser.write(this.#decoder.write(part.subarray(at, at + SLICE_BYTES)));
          await setImmediate();
        }
    } catch (error) {
      this.#failure = error as Error;
    }
    this.#reading = undefined;
  }

  protected abstract opened(name: string): void;
  protected abstract text(text: string): void;
  /** The element is no longer part of `path`. */
  protected abstract closed(name: string): void;
  protected attribute(_name: string, _value: string): void {}

  #open(qualified: string): void {
    const name = qualified.slice(qualified.lastIndexOf(":") + 1);
    if (this.path.length === MAX_DEPTH)
      throw new AnswerRefused("limit", `The answer is nested more than ${MAX_DEPTH} deep.`);
    if (++this.#elements > this.#maxElements)
      throw new AnswerRefused("limit", `The answer holds more than ${this.#maxElements} elements.`);
    this.path.push(name);
    this.opened(name);
  }

  #close(): void {
    this.closed(this.path.pop() ?? "");
  }
}

/** An element of a small answer. */
export interface Element {
  name: string;
  /** The value of its `name` attribute. */
  named: string;
  text: string;
  children: Element[];
}

/** Reads a small answer as a tree. */
export class TreeReader extends XmlReader {
  readonly #open: Element[] = [{ name: "", named: "", text: "", children: [] }];

  /** A node with the root as its child; undefined if the text is not XML or is incomplete. */
  async tree(): Promise<Element | undefined> {
    return (await this.finish()) ? this.#open[0] : undefined;
  }

  protected override opened(name: string): void {
    const element: Element = { name, named: "", text: "", children: [] };
    this.#open.at(-1)?.children.push(element);
    this.#open.push(element);
  }

  protected override attribute(name: string, value: string): void {
    const element = this.#open.at(-1);
    if (element && name === "name") element.named = value;
  }

  protected override text(text: string): void {
    const element = this.#open.at(-1);
    if (element) element.text += text;
  }

  protected override closed(): void {
    this.#open.pop();
  }
}

/** All elements of this local name below an element. */
export function every({ children }: Element, name: string): Element[] {
  return children.flatMap((child) => [...(child.name === name ? [child] : []), ...every(child, name)]);
}

/** The text of the first element of a name; "" if there is none. */
export function textIn(element: Element, name: string): string {
  const [found] = every(element, name);
  return found?.text.trim() ?? "";
}

/** The href in the first element of a name. */
export function hrefIn(element: Element, name: string): string | undefined {
  const [found] = every(element, name);
  return (found && textIn(found, "href")) || undefined;
}
