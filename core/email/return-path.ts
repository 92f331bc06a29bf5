import { Buffer } from "node:buffer";
import type { Env } from "../platform/env.ts";
import { type Keys, roots, sameText, sign } from "../platform/sealing.ts";
import { mailFromDomain } from "./identity.ts";

/** The purpose of an address of the service: `b` receives bounces, `u` unsubscriptions. */
type ReturnKind = "b" | "u";

/** The delivery in a return path. */
interface ReturnedDelivery {
  kind: ReturnKind;
  messageId: string;
  n: number;
}

/** Path of unsubscribe pages, before the token of a delivery. */
export const UNSUBSCRIBE_PATH = "/v2/public/email/unsubscribe";

const prefix = "msg_";

/**
 * The address to which a delivery's bounces return. It contains the delivery and a signature against forgery. It is lower case, since some
 * mail systems change the case of a local part; at most 62 characters before the `@`.
 */
export function returnAddress(env: Keys, { kind, messageId, n }: ReturnedDelivery, domain: string): string {
  return `${localPart(env, { kind, messageId, n })}@${mailFromDomain(domain)}`;
}

/** The delivery of a return path; undefined for every address that the service didn't issue. */
export function deliveryOfAddress(env: Keys, address: string): ReturnedDelivery | undefined {
  const [, kind, hex = "", n] = /^([bu])\+([0-9a-f]+)\.(\d{1,2})\.[0-9a-f]{10}@/.exec(address.toLowerCase()) ?? [];
  if (kind === undefined) return undefined;
  const named = {
    kind: kind as ReturnKind,
    messageId: prefix + Buffer.from(hex, "hex").toString("latin1"),
    n: Number(n),
  };
  const given = address.toLowerCase().split("@")[0] as string;
  return isOurs(env, given, (root) => localPart(root, named)) ? named : undefined;
}

/** The address of a delivery's unsubscribe page. */
export function unsubscribeUrl(env: Keys & Pick<Env, "BASE_URL">, at: { messageId: string; n: number }): string {
  return `${env.BASE_URL}${UNSUBSCRIBE_PATH}/${unsubscribeToken(env, at)}`;
}

/** The token of a delivery's unsubscribe page. */
export function unsubscribeToken(env: Keys, at: { messageId: string; n: number }): string {
  const named = `${at.messageId}.${at.n}`;
  return `${named}.${sign(env, "unsubscribe", named)}`;
}

/** The delivery of an unsubscribe token; undefined for any other text. */
export function deliveryOfToken(env: Keys, token: string): { messageId: string; n: number } | undefined {
  const [, named, messageId, n] = /^((msg_[A-Za-z0-9]+)\.(\d{1,2}))\.[\w-]+$/.exec(token) ?? [];
  if (named === undefined) return undefined;
  const at = { messageId: messageId as string, n: Number(n) };
  return isOurs(env, token, (root) => unsubscribeToken(root, at)) ? at : undefined;
}

/** The Message-ID of a delivery, without angle brackets. It is signed, so that a recipient can't derive another recipient's. */
export function messageIdOf(env: Keys, at: { messageId: string; n: number }, domain: string): string {
  return `${namedPart(env, at)}@${mailFromDomain(domain)}`;
}

/** The delivery of a Message-ID; undefined for one that the service didn't issue. */
export function deliveryOfMessageId(env: Keys, text: string): ReturnedDelivery | undefined {
  const [, named = "", messageId = "", n] = /^<?((msg_[A-Za-z0-9]+)\.(\d{1,2})\.[\w-]+)@/.exec(text) ?? [];
  const at = { messageId, n: Number(n) };
  return isOurs(env, named, (root) => namedPart(root, at)) ? { kind: "b", ...at } : undefined;
}

/** True if one of the roots made the text. */
function isOurs(env: Keys, text: string, make: (root: Keys) => string): boolean {
  return roots(env).some((root) => sameText(make({ SECRET_KEY: root, SECRET_KEY_PREVIOUS: undefined }), text));
}

function namedPart(env: Keys, { messageId, n }: { messageId: string; n: number }): string {
  return `${messageId}.${n}.${sign(env, "message id", `${messageId}.${n}`).slice(0, 16)}`;
}

function localPart(env: Keys, { kind, messageId, n }: ReturnedDelivery): string {
  const hex = Buffer.from(messageId.slice(prefix.length), "latin1").toString("hex");
  const mac = Buffer.from(sign(env, "return path", `${kind}.${messageId}.${n}`), "base64url")
    .toString("hex")
    .slice(0, 10);
  return `${kind}+${hex}.${n}.${mac}`;
}
