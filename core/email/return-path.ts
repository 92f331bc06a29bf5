import { Buffer } from "node:buffer";
import { sameText, sign } from "../platform/sealing.ts";
import type { Env } from "../platform/env.ts";
import { mailFromDomain } from "./identity.ts";

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
  const roots = [env.SECRET_KEY, env.SECRET_KEY_PREVIOUS].filter((root) => root !== undefined);
  return roots.some((root) =>
    sameText(unsubscribeToken({ SECRET_KEY: root, SECRET_KEY_PREVIOUS: undefined }, at), token),
  )
    ? at
    : undefined;
}

function localPart(env: Keys, { kind, messageId, n }: Returned): string {
  const hex = Buffer.from(messageId.slice(prefix.length), "latin1").toString("hex");
  const mac = Buffer.from(sign(env, "return path", `${kind}.${messageId}.${n}`), "base64url")
    .toString("hex")
    .slice(0, 10);
  return `${kind}+${hex}.${n}.${mac}`;
}
