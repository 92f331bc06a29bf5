import { Buffer } from "node:buffer";
import type { Env } from "../platform/env.ts";
import { type Keys, roots, sameText, sign } from "../platform/sealing.ts";
import type { DeliveryName } from "./events.ts";
import { mailFromDomain } from "./identity.ts";

/** The purpose of an address of the service: `b` receives bounces, `u` unsubscriptions. */
type ReturnKind = "b" | "u";

/** A delivery, as its names outside the service contain it. */
export type DeliveryId = Omit<DeliveryName, "handle">;

type ReturnPath = DeliveryId & { kind: ReturnKind };

/** Path of unsubscribe pages, before the token of a delivery. */
export const UNSUBSCRIBE_PATH = "/v2/public/email/unsubscribe";

const prefix = "msg_";

/**
 * The address to which a delivery's bounces return. It contains the delivery and a signature against forgery. It is lower case, since some
 * mail systems change the case of a local part; at most 62 characters before the `@`.
 */
export function returnAddress(env: Keys, at: ReturnPath, domain: string): string {
  return `${localPart(env, at)}@${mailFromDomain(domain)}`;
}

/** The delivery of a return path; undefined for every address that the service didn't issue. */
export function deliveryOfAddress(env: Keys, address: string): ReturnPath | undefined {
  const pattern = /^(([bu])\+([0-9a-f]+)\.(\d{1,2})\.[0-9a-f]{10})@/;
  const [, given, kind, hex = "", n] = pattern.exec(address.toLowerCase()) ?? [];
  const messageId = prefix + Buffer.from(hex, "hex").toString("latin1");
  const at = { kind: kind as ReturnKind, messageId, n: Number(n) };
  return isOurs(env, given, (root) => localPart(root, at)) ? at : undefined;
}

/** The address of a delivery's unsubscribe page. */
export function unsubscribeUrl(env: Keys & Pick<Env, "BASE_URL">, at: DeliveryId): string {
  return `${env.BASE_URL}${UNSUBSCRIBE_PATH}/${signedName(env, "unsubscribe", at)}`;
}

/** The Message-ID of a delivery, without angle brackets. It is signed, so that a recipient can't derive another recipient's. */
export function messageIdOf(env: Keys, at: DeliveryId, domain: string): string {
  return `${signedName(env, "message id", at)}@${mailFromDomain(domain)}`;
}

/** Characters of the signature in a token or a Message-ID. */
const macLetters = { unsubscribe: 43, "message id": 16 };

/** The delivery of a token, which mail programs may extend by punctuation, or of a Message-ID; undefined if the service didn't issue it. */
export function deliveryNamed(env: Keys, purpose: keyof typeof macLetters, text: string): DeliveryId | undefined {
  const [, given, messageId = "", n] = /^<?((msg_[A-Za-z0-9]+)\.(\d{1,2})\.[\w-]+)/.exec(text) ?? [];
  const at = { messageId, n: Number(n) };
  return isOurs(env, given, (root) => signedName(root, purpose, at)) ? at : undefined;
}

function signedName(env: Keys, purpose: keyof typeof macLetters, { messageId, n }: DeliveryId): string {
  const name = `${messageId}.${n}`;
  return `${name}.${sign(env, purpose, name).slice(0, macLetters[purpose])}`;
}

/** True if one of the roots made the text. */
function isOurs(env: Keys, text: string | undefined, make: (root: Keys) => string): boolean {
  if (text === undefined) return false;
  return roots(env).some((root) => sameText(make({ SECRET_KEY: root, SECRET_KEY_PREVIOUS: undefined }), text));
}

function localPart(env: Keys, { kind, messageId, n }: ReturnPath): string {
  const hex = Buffer.from(messageId.slice(prefix.length), "latin1").toString("hex");
  const mac = Buffer.from(sign(env, "return path", `${kind}.${messageId}.${n}`), "base64url").toString("hex");
  return `${kind}+${hex}.${n}.${mac.slice(0, 10)}`;
}
