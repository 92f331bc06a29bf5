import { html, InsertionMode, Parser, type Token, type TreeAdapter, type TreeAdapterTypeMap } from "parse5";

/** What is told of a fragment: its tags, a doctype, and nesting deeper than browsers keep. */
export interface TagReader {
  opened(name: string, attributes: readonly { name: string; value: string }[], inSelect: boolean): void;
  closed(name: string): void;
  doctype(): void;
  tangled(): void;
}

/** Browsers flatten what stands deeper; elements that a page may make, those counted that unclosed ones make again. */
const deepest = 512;
const mostElements = 200_000;
/** Where the shell puts a page's content. */
const shell = "<!doctype html><html><head></head><body>";

/**
 * Reads the tags of a fragment in the body of a page as a browser does (HTML standard, "Parsing HTML documents"), also those
 * that it then ignores. With scripting `noscript` holds text, without it elements: a fragment with one is read both ways.
 */
export function readTags(fragment: string, reader: TagReader): void {
  new Tags(reader, true).read(fragment);
  if (/<noscript/i.test(fragment)) new Tags(reader, false).read(fragment);
}

class Tags extends Parser<Tree> {
  readonly #reader: TagReader;
  readonly #made: { elements: number };
  #inside = false;

  constructor(reader: TagReader, scriptingEnabled: boolean) {
    const made = { elements: 0 };
    super({ scriptingEnabled, treeAdapter: barren(made) });
    this.#reader = reader;
    this.#made = made;
  }

  read(fragment: string): void {
    this.tokenizer.write(shell, false);
    this.#inside = true;
    this.tokenizer.write(fragment, true);
  }

  override onStartTag(token: Token.TagToken): void {
    if (this.#inside) this.#reader.opened(token.tagName, token.attrs, selecting.has(this.insertionMode));
    super.onStartTag(token);
    if (this.openElements.stackTop > deepest || this.#made.elements > mostElements) this.#giveUp();
  }

  override onEndTag(token: Token.TagToken): void {
    if (this.#inside) this.#reader.closed(token.tagName);
    super.onEndTag(token);
  }

  override onDoctype(token: Token.DoctypeToken): void {
    if (this.#inside) this.#reader.doctype();
    super.onDoctype(token);
  }

  #giveUp(): void {
    this.#reader.tangled();
    this.tokenizer.pause();
  }
}

const selecting = new Set([InsertionMode.IN_SELECT, InsertionMode.IN_SELECT_IN_TABLE]);

interface Element {
  name: string;
  space: html.NS;
  attributes: Token.Attribute[];
}

type E = Element;
type Tree = TreeAdapterTypeMap<E, E, E, E, E, E, E, E, E, E>;

/** A tree that keeps nothing: how a tag is read depends on the open elements alone, which the parser holds itself. */
function barren(made: { elements: number }): TreeAdapter<Tree> {
  const node: Element = { name: "", space: html.NS.HTML, attributes: [] };
  const nothing = (): void => undefined;
  const anyNode = (): Element => node;
  const noNode = (): null => null;
  const noText = (): string => "";
  const isNot = (_node: Element): _node is Element => false;
  return {
    createElement(name, space, attributes) {
      made.elements += 1;
      return { name, space, attributes };
    },
    getTagName: ({ name }) => name,
    getNamespaceURI: ({ space }) => space,
    getAttrList: ({ attributes }) => attributes,
    getDocumentMode: () => html.DOCUMENT_MODE.NO_QUIRKS,
    createDocument: anyNode,
    createDocumentFragment: anyNode,
    createCommentNode: anyNode,
    createTextNode: anyNode,
    getTemplateContent: anyNode,
    getChildNodes: () => [],
    getFirstChild: noNode,
    getParentNode: noNode,
    getNodeSourceCodeLocation: noNode,
    getCommentNodeContent: noText,
    getTextNodeContent: noText,
    getDocumentTypeNodeName: noText,
    getDocumentTypeNodePublicId: noText,
    getDocumentTypeNodeSystemId: noText,
    isElementNode: isNot,
    isTextNode: isNot,
    isCommentNode: isNot,
    isDocumentTypeNode: isNot,
    adoptAttributes: nothing,
    appendChild: nothing,
    insertBefore: nothing,
    insertText: nothing,
    insertTextBefore: nothing,
    detachNode: nothing,
    setDocumentMode: nothing,
    setDocumentType: nothing,
    setTemplateContent: nothing,
    setNodeSourceCodeLocation: nothing,
    updateNodeSourceCodeLocation: nothing,
  };
}
