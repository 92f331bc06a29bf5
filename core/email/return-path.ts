import { Buffer } from "node:buffer";
import { sameText, sign } from "../platform/sealing.ts";
import type { Env } from "../platform/env.ts";
import { mailFromDomain } from "./identity.ts";
import { unsubscribePath } from "./unsubscribe-line.ts";

/** What an address of the service itself is for: `b` takes bounces, `u` the wish to get no more mail. */
export type ReturnKind = "b" | "u";

/** A delivery as its return path names it. */
export interface Returned {
  kind: ReturnKind;
  messageId: string;
  n: number;
}

type Keys = Pick<Env, "SECRET_KEY" | "SECRET_KEY_PREVIOUS">;

const prefix = "msg_";

/**
 * The address to which a delivery's bounces return: it names the delivery and is signed, so that nobody can forge one. Lower case
 * alone, for not every mail system keeps the case of a local part; at most 62 characters before the `@`.
 */
export function returnAddress(env: Keys, { kind, messageId, n }: Returned, domain: string): string {
  return `${localPart(env, { kind, messageId, n })}@${mailFromDomain(domain)}`;
}

/** The delivery that an address names; undefined for every address that the service hasn't made. */
export function returnedIn(env: Keys, address: string): Returned | undefined {
  const [, kind, hex = "", n] = /^([bu])\+([0-9a-f]+)\.(\d{1,2})\.[0-9a-f]{10}@/.exec(address.toLowerCase()) ?? [];
  if (kind === undefined) return undefined;
  const named = {
    kind: kind as ReturnKind,
    messageId: prefix + Buffer.from(hex, "hex").toString("latin1"),
    n: Number(n),
  };
  const roots = [env.SECRET_KEY, env.SECRET_KEY_PREVIOUS].filter((root) => root !== undefined);
  const given = address.toLowerCase().split("@")[0] as string;
  return roots.some((root) => sameText(localPart({ SECRET_KEY: root, SECRET_KEY_PREVIOUS: undefined }, named), given))
    ? named
    : undefined;
}

/** The address of the page where the recipient of a delivery unsubscribes. */
export function unsubscribeUrl(env: Keys & Pick<Env, "BASE_URL">, at: { messageId: string; n: number }): string {
  return `${env.BASE_URL}${unsubscribePath}/${unsubscribeToken(env, at)}`;
}

/** A token for the unsubscribe page of a delivery. */
export function unsubscribeToken(env: Keys, at: { messageId: string; n: number }): string {
  const named = `${at.messageId}.${at.n}`;
  return `${named}.${sign(env, "unsubscribe", named)}`;
}

/** The delivery that a token names; undefined for every other text. */
export function deliveryIn(env: Keys, token: string): { messageId: string; n: number } | undefined {
  const [, named, messageId, n] = /^((msg_[A-Za-z0-9]+)\.(\d{1,2}))\.[\w-]+$/.exec(token) ?? [];
  if (named === undefined) return undefined;
  const at = { messageId: messageId as string, n: Number(n) };
  return isOurs(env, token, (root) => unsubscribeToken(root, at)) ? at : undefined;
}

/** The Message-ID of a delivery, without angle brackets; signed, for recipients see their own and must not speak for the others. */
export function messageIdOf(env: Keys, at: { messageId: string; n: number }, domain: string): string {
  return `${namedPart(env, at)}@${mailFromDomain(domain)}`;
}

/** The delivery that a Message-ID names; undefined for every one that the service hasn't made. */
export function namedIn(env: Keys, text: string): Returned | undefined {
  const [, named = "", messageId = "", n] = /^<?((msg_[A-Za-z0-9]+)\.(\d{1,2})\.[\w-]+)@/.exec(text) ?? [];
  const at = { messageId, n: Number(n) };
  return isOurs(env, named, (root) => namedPart(root, at)) ? { kind: "b", ...at } : undefined;
}

/** True for a text that was made with one of the roots. */
function isOurs(env: Keys, text: string, make: (root: Keys) => string): boolean {
  const roots = [env.SECRET_KEY, env.SECRET_KEY_PREVIOUS].filter((root) => root !== undefined);
  return roots.some((root) => sameText(make({ SECRET_KEY: root, SECRET_KEY_PREVIOUS: undefined }), text));
}

function namedPart(env: Keys, { messageId, n }: { messageId: string; n: number }): string {
  return `${messageId}.${n}.${sign(env, "message id", `${messageId}.${n}`).slice(0, 16)}`;
}

function localPart(env: Keys, { kind, messageId, n }: Returned): string {
  const hex = Buffer.from(messageId.slice(prefix.length), "latin1").toString("hex");
  const mac = Buffer.from(sign(env, "return path", `${kind}.${messageId}.${n}`), "base64url")
    .toString("hex")
    .slice(0, 10);
  return `${kind}+${hex}.${n}.${mac}`;
}
