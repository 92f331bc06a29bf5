import {
  type DefaultTreeAdapterMap,
  type DefaultTreeAdapterTypes,
  defaultTreeAdapter,
  html,
  InsertionMode,
  Parser,
  type Token,
  TokenizerMode,
  type TreeAdapter,
} from "parse5";

/** Characters of parsed input that a reader keeps before it drops them. */
const BUFFERED_LENGTH = 1024;
/** Deepest nesting of elements in a page, a template or a document. */
export const MAX_NESTING = 100;

/** Attributes whose value is a URL. */
export const addressAttributes: ReadonlySet<string> = new Set(
  "href src action formaction background cite poster data longdesc xlink:href ping srcset".split(" "),
);
/** SVG elements that change other attributes. */
export const animations: ReadonlySet<string> = new Set(
  "animate set animatetransform animatemotion animatecolor".split(" "),
);

/** A start tag. Offsets count UTF-16 units from the beginning of the source. */
export interface StartTag {
  name: string;
  attributes: readonly { name: string; value: string; start: number; end: number }[];
  at: number;
  inSelect: boolean;
}

/** Receives the parts of a source in order. `refused` gives the reason why the source can't be used; nothing follows it. */
export interface HtmlListener {
  startTag?(tag: StartTag): void;
  endTag?(name: string, at: number): void;
  doctype?(at: number): void;
  refused?(why: string, at: number): void;
}

interface Reading {
  /** Markup that precedes the source. */
  before?: string;
  /** Scripting is enabled, so that the content of `noscript` is text. */
  scripting?: boolean;
  /** Most elements of the tree, including those that the parser re-creates for unclosed formatting elements. */
  maxElements: number;
}

/**
 * Parses HTML as browsers do (HTML standard, "Parsing HTML documents") and reports ignored tags too. It builds no tree: the open elements
 * alone decide how a tag is parsed.
 */
export class HtmlReader extends Parser<DefaultTreeAdapterMap> {
  readonly #listener: HtmlListener;
  readonly #maxElements: number;
  readonly #made: { elements: number };
  /** Length of the preceding markup, and number of elements that it leaves open. */
  readonly #before: number;
  readonly #outer: number;
  #length = 0;
  #reported: Token.Token | undefined;
  #isOver = true;

  constructor(listener: HtmlListener, { before = "", scripting = false, maxElements }: Reading) {
    const made = { elements: 0 };
    super({ scriptingEnabled: scripting, sourceCodeLocationInfo: true, treeAdapter: looseNodes(made) });
    this.#listener = listener;
    this.#maxElements = maxElements;
    this.#made = made;
    this.tokenizer.preprocessor.bufferWaterline = BUFFERED_LENGTH;
    this.tokenizer.write(before, false);
    this.#before = before.length;
    this.#outer = Math.max(this.openElements.depth, 2);
    this.#isOver = false;
  }

  /** Parses the next part of the source. */
  read(part: string): void {
    // The parser copies what it keeps with each further part; between constructs it needs none of it.
    if (this.#length > 0 && this.context !== "markup") this.tokenizer.preprocessor.dropParsedChunk();
    this.#length += part.length;
    if (!this.#isOver) this.tokenizer.write(part, false);
  }

  /** Ends the source. Throws if an open construct would swallow the markup that follows, which begins with a line break. */
  finish(): void {
    this.read("\n");
    if (this.#isOver) return;
    if (this.tokenizer.state !== TokenizerMode.DATA) this.#unfinished();
    else this.#unclosed();
  }

  #unclosed(): void {
    const open = this.openElements.items.slice(this.#outer, this.openElements.stackTop + 1) as (Element | undefined)[];
    const left = open.find((one) => one && (one.tagName === "template" || one.namespaceURI !== html.NS.HTML));
    if (left) this.#refuse(`<${left.tagName}> is not closed`, this.#offset(left.sourceCodeLocation));
  }

  /** The context at the current position. */
  get context(): "text" | "raw text" | "quoted value" | "markup" {
    const { state } = this.tokenizer;
    if (quotedStates.has(state)) return "quoted value";
    if (state === TokenizerMode.RCDATA) return "text";
    if (state === TokenizerMode.DATA) return styled.has(this.openElement) ? "raw text" : "text";
    return rawStates.has(state) ? "raw text" : "markup";
  }

  get openElement(): string {
    return this.#current?.tagName ?? "";
  }

  get #current(): Element | undefined {
    return this.openElements.current as Element | undefined;
  }

  override onStartTag(token: Token.TagToken): void {
    const at = this.#offset(token.location);
    if (this.#isNew(token)) this.#listener.startTag?.(this.#tagOf(token, at));
    super.onStartTag(token);
    if (!this.#isOver) this.#check(at);
  }

  override onEndTag(token: Token.TagToken): void {
    if (this.#isNew(token)) this.#listener.endTag?.(token.tagName, this.#offset(token.location));
    super.onEndTag(token);
    if (!this.#isOver && this.#before > 0 && this.openElements.depth < this.#outer)
      this.#refuse(`</${token.tagName}> closes an element of the page`, this.#offset(token.location));
  }

  override onDoctype(token: Token.DoctypeToken): void {
    if (this.#isNew(token)) this.#listener.doctype?.(this.#offset(token.location));
    super.onDoctype(token);
  }

  /** Reports each tag once: the parser handles some tags again in another state. */
  #isNew(token: Token.Token): boolean {
    const isNew = !this.#isOver && token !== this.#reported;
    this.#reported = token;
    return isNew;
  }

  #tagOf({ tagName: name, attrs, location }: Token.TagToken, at: number): StartTag {
    const attributes = attrs.map((one) => {
      const { startOffset = 0, endOffset = 0 } = location?.attrs?.[one.name] ?? {};
      return { name: one.name, value: one.value, start: startOffset - this.#before, end: endOffset - this.#before };
    });
    return { name, attributes, at, inSelect: selecting.has(this.insertionMode) };
  }

  #check(at: number): void {
    if (this.openElements.depth - this.#outer > MAX_NESTING)
      this.#refuse(`elements are nested more than ${MAX_NESTING} deep`, at);
    else if (this.#made.elements > this.#maxElements)
      this.#refuse(`more than ${this.#maxElements} elements come of it`, at);
  }

  #unfinished(): void {
    const { state } = this.tokenizer;
    const isText = rawStates.has(state) || state === TokenizerMode.RCDATA;
    // biome-ignore lint/complexity/useLiteralKeys: the token that is being read is protected
    const token = this.tokenizer["currentToken"];
    if (isText) this.#refuse(`<${this.openElement}> is not closed`, this.#offset(this.#current?.sourceCodeLocation));
    else if (token && "data" in token) this.#refuse("a comment is not closed", this.#offset(token.location));
    else this.#refuse("a tag is not finished", token ? this.#offset(token.location) : this.#length - 1);
  }

  #refuse(why: string, at: number): void {
    this.#isOver = true;
    this.#listener.refused?.(why, at);
    this.tokenizer.pause();
  }

  #offset(location: Token.Location | null | undefined): number {
    return Math.max((location?.startOffset ?? 0) - this.#before, 0);
  }
}

/** Elements whose text readers don't see, even if it is parsed as markup. */
const styled = new Set(["style", "script"]);
const selecting = new Set([InsertionMode.IN_SELECT, InsertionMode.IN_SELECT_IN_TABLE]);
const rawStates: ReadonlySet<number> = new Set([
  TokenizerMode.RAWTEXT,
  TokenizerMode.SCRIPT_DATA,
  TokenizerMode.PLAINTEXT,
  TokenizerMode.CDATA_SECTION,
]);
const quotedStates: ReadonlySet<number> = new Set(['<p title="', "<p title='"].map(stateAfter));

function stateAfter(source: string): number {
  const reader = new HtmlReader({}, { maxElements: 1 });
  reader.read(source);
  return reader.tokenizer.state;
}

type Element = DefaultTreeAdapterTypes.Element;

/** Counts the elements and joins them to no tree: the parser itself tracks the open ones, and some insertions take quadratic time. */
function looseNodes(made: { elements: number }): TreeAdapter<DefaultTreeAdapterMap> {
  const nothing = (): void => undefined;
  return {
    ...defaultTreeAdapter,
    createElement(...tag) {
      made.elements += 1;
      return defaultTreeAdapter.createElement(...tag);
    },
    appendChild: nothing,
    insertBefore: nothing,
    insertText: nothing,
    insertTextBefore: nothing,
    setDocumentType: nothing,
    // The parser looks for the text that it has inserted.
    getNodeSourceCodeLocation: (node) => node?.sourceCodeLocation,
    setNodeSourceCodeLocation: (node, location) => void (node && Object.assign(node, { sourceCodeLocation: location })),
  };
}
