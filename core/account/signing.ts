import type { Redis } from "ioredis";
import { exportJWK, exportPKCS8, generateKeyPair, importPKCS8, type JWK, SignJWT } from "jose";
import type { Env } from "../platform/env.ts";
import type { Runtime, SigningKey } from "../platform/runtime.ts";
import { resealed, type SealBinding, seal, unseal } from "../platform/sealing.ts";
import { keys } from "../store/keys.ts";

const sealBinding = (context: string): SealBinding => ({ purpose: "signing key", context });

interface StoredKey {
  kid: string;
  sealed: string;
  jwk: JWK;
}

/** Reads the key, or creates it at the first start. Processes that start at once end up with the same key. */
export async function signingKey({ redis, env }: { redis: Redis; env: Env }): Promise<SigningKey> {
  const stored = (await redis.get(keys.signingKey)) ?? (await makeKey(redis, env));
  const { kid, sealed, jwk } = JSON.parse(stored) as StoredKey;
  const pem = unseal(env, sealBinding(kid), sealed).toString();
  return { kid, private: await importPKCS8(pem, "EdDSA"), publicJwk: jwk };
}

/** Seals the key again after a change of SECRET_KEY; true if it did. The key itself stays the same. */
export async function resealSigningKey({ redis, env }: { redis: Redis; env: Env }): Promise<boolean> {
  const stored = await redis.get(keys.signingKey);
  if (stored === null) return false;
  const key = JSON.parse(stored) as StoredKey;
  const sealed = resealed(env, sealBinding(key.kid), key.sealed);
  if (sealed !== undefined) await redis.set(keys.signingKey, JSON.stringify({ ...key, sealed }));
  return sealed !== undefined;
}

/** The user and session of a token, the real ms at which it expires, and its rights if it is restricted to a resource (RFC 8707). */
export interface TokenClaims {
  userId: string;
  email?: string | undefined;
  sessionId: string;
  expiresAt: number;
  grant?: { resource: string; scopes: readonly string[] } | undefined;
}

/** The token of a session. `sid` is the session id (OpenID Connect Front-Channel Logout 1.0, section 3). */
export async function issueToken(
  { signingKey: key, env }: Pick<Runtime, "signingKey" | "env">,
  { userId, email, sessionId, expiresAt, grant }: TokenClaims,
): Promise<string> {
  const scope = grant ? { scope: grant.scopes.join(" ") } : {};
  return new SignJWT({ sid: sessionId, ...(email ? { email } : {}), ...scope })
    .setProtectedHeader({ alg: "EdDSA", kid: key.kid, typ: "JWT" })
    .setSubject(userId)
    .setIssuer(env.BASE_URL)
    .setAudience(grant?.resource ?? env.BASE_URL)
    .setIssuedAt()
    .setExpirationTime(Math.floor(expiresAt / 1000))
    .sign(key.private);
}

async function makeKey(redis: Redis, env: Env): Promise<string> {
  const pair = await generateKeyPair("EdDSA", { crv: "Ed25519", extractable: true });
  const kid = crypto.randomUUID();
  const jwk = { ...(await exportJWK(pair.publicKey)), kid, alg: "EdDSA", use: "sig" };
  const stored: StoredKey = { kid, jwk, sealed: seal(env, sealBinding(kid), await exportPKCS8(pair.privateKey)) };
  await redis.set(keys.signingKey, JSON.stringify(stored), "NX");
  return (await redis.get(keys.signingKey)) as string;
}
