import { Buffer } from "node:buffer";
import { DomUtils, parseDocument } from "htmlparser2";
import { Fail } from "../../../platform/errors.ts";
import type { OutboundAnswer } from "../../../platform/outbound.ts";
import type { Runtime } from "../../../platform/runtime.ts";
import type { Account } from "./provider.ts";

export type Tools = Pick<Runtime, "outbound">;
export type Node = ReturnType<typeof parseDocument>["children"][number];
export type Element = Extract<Node, { attribs: object }>;

/** A login at a calendar server; `home` is where its calendars are. */
export interface CaldavLogin {
  serverUrl: string;
  username: string;
  password: string;
  home: string;
}

/** Bytes of a server's answer. */
const largestAnswer = 32 * 1_048_576;

/** Namespaces of the requests. */
export const spaces = 'xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav" xmlns:s="http://calendarserver.org/ns/"';

/** The login of an account, as it was kept when the account was connected. */
export function loginOf({ secret }: Account): CaldavLogin {
  return JSON.parse(secret ?? "{}") as CaldavLogin;
}

/** Properties of a resource, and of those right below it with depth 1. */
export async function propfind(
  tools: Tools,
  open: CaldavLogin,
  address: string,
  asked: { depth: number; properties: string },
): Promise<{ nodes: Node[]; url: string }> {
  const body = `<d:propfind ${spaces}><d:prop>${asked.properties}</d:prop></d:propfind>`;
  const answer = await send(tools, open, address, { method: "PROPFIND", headers: xml(asked.depth), body });
  mustSucceed(answer);
  return { nodes: parsed(answer), url: answer.url };
}

/** A report on a calendar (RFC 3253), whatever came of it; fails where the answer has more bytes than `limit`. */
export function report(
  tools: Tools,
  open: CaldavLogin,
  address: string,
  body: string,
  limit: number = largestAnswer,
): Promise<OutboundAnswer> {
  return send(tools, open, address, { method: "REPORT", headers: xml(1), body, limit });
}

/** One request with the login, which never leaves the server that the owner named. */
export async function send(
  { outbound }: Tools,
  { serverUrl, username, password }: CaldavLogin,
  address: string,
  asked: { method: string; headers: Record<string, string>; body?: string; limit?: number },
): Promise<OutboundAnswer> {
  const url = within(serverUrl, address);
  const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
  const headers = { ...asked.headers, authorization };
  return outbound.request(url, { limit: largestAnswer, ...asked, headers, redirects: 3, patience: 20_000 });
}

/** Headers of a request with XML. */
export function xml(depth: number): Record<string, string> {
  return { depth: String(depth), "content-type": "application/xml; charset=utf-8" };
}

/** `caldav_login_failed` where the login is refused, a plain error for any other failure. */
export function mustSucceed({ status }: OutboundAnswer): void {
  if (status === 401 || status === 403) throw new Fail("caldav_login_failed");
  if (status < 200 || status > 299) throw new Error(`The calendar server answered ${status}.`);
}

/** An address that a server gave, on the server's own origin: what it says of others is not believed. */
export function within(base: string, href: string): string {
  const url = new URL(href, base);
  if (url.origin !== new URL(base).origin)
    throw new Fail("caldav_login_failed", { detail: "The calendar server redirects to another origin." });
  return url.href;
}

/** The elements of a small answer; `readMultistatus` reads large ones. */
export function parsed(answer: OutboundAnswer): Node[] {
  return parseDocument(answer.body.toString("utf8"), { xmlMode: true }).children;
}

/** All elements of this local name, at any depth. */
export function every(nodes: Node[], name: string): Element[] {
  return nodes.flatMap((node) => {
    if (!DomUtils.isTag(node)) return [];
    const below = every(node.children, name);
    return node.name.replace(/^.*:/, "") === name ? [node, ...below] : below;
  });
}

/** The address within the first element of a name. */
export function hrefIn(nodes: Node[], name: string): string | undefined {
  const [found] = every(nodes, name);
  return (found && textIn(found.children, "href")) || undefined;
}

/** The text of the first element of a name. */
export function textIn(nodes: Node[], name: string): string {
  const [found] = every(nodes, name);
  return found ? textOf(found) : "";
}

/** The text of an element. */
export function textOf(element: Element): string {
  return DomUtils.textContent(element).trim();
}
