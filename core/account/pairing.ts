import { createHash, randomInt } from "node:crypto";
import type {
  PairingDecided,
  pairingDecision,
  PairingRedeemed,
  pairingRedemption,
  pairingStart,
  PairingStarted,
} from "../../schemas/account.ts";
import type { Infer } from "../../schemas/schema.ts";
import { Fail } from "../platform/errors.ts";
import { withOutcome } from "../platform/outcome.ts";
import { keys } from "../store/keys.ts";
import { transact } from "../store/redis.ts";
import { scripts } from "../store/scripts.ts";
import type { Caller, Runtime } from "../platform/runtime.ts";
import { sameText } from "../platform/sealing.ts";
import { digestTag, takeToken } from "../store/throttle.ts";
import { handlesOf } from "./handles.ts";
import { deviceName, startSession } from "./session-store.ts";

/** Seconds in which an attempt must be decided and redeemed (docs/reference.md, "Desktop pairing"). */
const ATTEMPT_TTL_SECONDS = 600;
/** The number of the wrong proof that ends an attempt (docs/reference.md, "Desktop pairing"). */
const MAX_WRONG_PROOFS = 5;
/** Seconds for which a paired desktop is signed in. */
const SESSION_TTL_SECONDS = 30 * 86_400;
/** Attempts that one network may start: at once, and a second. */
const starts = { burst: 300, rate: 5 };
/** Letters that can't be taken for each other. */
const codeLetters = "ABCDEFGHJKMNPQRSTUVWXYZ23456789";
const codeLength = 8;

/** A pairing attempt that waits for a decision, as the person who decides sees it. */
export interface PendingPairing {
  attemptId: string;
  /** `K7QF-M2XP`: what the desktop shows too. */
  code: string;
  device: string;
  /** For how long the desktop would be signed in. */
  days: number;
}

/**
 * Starts a pairing (docs/reference.md, "Desktop pairing"): the client keeps the verifier, shows the code (letters 5 to 12 of the attempt's id), opens the
 * address and polls `redeemPairing`.
 */
export async function startPairing(
  runtime: Runtime,
  input: Infer<typeof pairingStart>,
  caller: Caller,
): Promise<PairingStarted> {
  const { redis, env } = runtime;
  await takeToken(runtime, { name: "pairing", tag: digestTag(env, caller.network ?? ""), ...starts });
  const attemptId = runtime.id(`att_${newCode()}_`);
  // What the client says that it is; else what its request said.
  const device = deviceName(input.deviceName, input.userAgent);
  const expires = Date.now() + ATTEMPT_TTL_SECONDS * 1000;
  await transact(redis, (transaction) => {
    transaction.hset(keys.pairing(attemptId), { challenge: input.deviceProofChallenge, device, status: "pending" });
    transaction.pexpireat(keys.pairing(attemptId), expires);
  });
  return { attemptId, authorizeUrl: authorizeUrl(env, attemptId), expiresAt: new Date(expires).toISOString() };
}

/** The browser page of an attempt. */
export function authorizeUrl({ BASE_URL }: { BASE_URL: string }, attemptId: string): string {
  return `${BASE_URL}/oauth/assistant/desktop/authorize?attemptId=${encodeURIComponent(attemptId)}`;
}

/** An attempt that can still be decided; `attempt_expired` for unknown ones, `attempt_not_pending` afterwards. */
export async function pendingPairing({ redis }: Pick<Runtime, "redis">, attemptId: string): Promise<PendingPairing> {
  const [status, device] = await redis.hmget(keys.pairing(attemptId), "status", "device");
  if (!status) throw new Fail("attempt_expired");
  if (status !== "pending") throw new Fail("attempt_not_pending");
  return { attemptId, code: codeOf(attemptId), device: device ?? "", days: SESSION_TTL_SECONDS / 86_400 };
}

/** Allows or denies an attempt for the signed-in user, once; `attempt_expired`, `attempt_not_pending`. */
export async function decidePairing(
  { redis }: Runtime,
  input: Infer<typeof pairingDecision>,
  caller: Caller,
): Promise<PairingDecided> {
  const status = input.decision === "allow" ? "authorised" : "denied";
  const decision = { status, userId: caller.userId as string, email: caller.email ?? "" } as const;
  const result = await scripts.decidePairing(redis, { attempt: keys.pairing(input.attemptId) }, decision);
  if (result === "unknown") throw new Fail("attempt_expired");
  if (result === "late") throw new Fail("attempt_not_pending");
  return { attemptId: input.attemptId, status };
}

/**
 * Issues the session to the client that knows the verifier, once. `attempt_expired` for unknown, used and expired attempts,
 * `device_proof_mismatch` (the fifth ends the attempt), `attempt_denied`; 202 `pending` until a person has decided.
 */
export async function redeemPairing(
  runtime: Runtime,
  input: Infer<typeof pairingRedemption>,
): Promise<PairingRedeemed> {
  const key = keys.pairing(input.attemptId);
  const challenge = await runtime.redis.hget(key, "challenge");
  if (challenge === null) throw new Fail("attempt_expired");
  const isRight = sameText(challengeOf(input.deviceProofVerifier), challenge);
  const proof = { isRight, maxWrong: MAX_WRONG_PROOFS };
  const [status, ...who] = await scripts.redeemPairing(runtime.redis, { attempt: key }, proof);
  if (status === "unknown") throw new Fail("attempt_expired");
  if (status === "wrong") throw new Fail("device_proof_mismatch");
  if (status === "denied") throw new Fail("attempt_denied");
  if (status === "pending") return { status };
  return withOutcome(await session(runtime, who as [string, string, string]), "created");
}

/** base64url(SHA-256(verifier)), as PKCE makes it (RFC 7636, S256). */
export function challengeOf(verifier: string): string {
  return createHash("sha256").update(verifier).digest("base64url");
}

/** The code to compare, which the client reads from the attempt's id too. */
export function codeOf(attemptId: string): string {
  return `${attemptId.slice(4, 8)}-${attemptId.slice(8, 12)}`;
}

function newCode(): string {
  return Array.from({ length: codeLength }, () => codeLetters[randomInt(codeLetters.length)]).join("");
}

async function session(
  runtime: Runtime,
  [userId, email, device]: [userId: string, email: string, device: string],
): Promise<PairingRedeemed> {
  const { env, redis } = runtime;
  const who = { userId, email, kind: "desktop" as const, device };
  const { token, expiresAt } = await startSession(runtime, { ...who, seconds: SESSION_TTL_SECONDS });
  const mcpUrls = (await handlesOf(redis, userId)).map(({ handle }) => `${env.BASE_URL}/mcp/${handle}/mcp`);
  return { status: "authorised", session: { token, expiresAt }, relay: { baseUrl: env.BASE_URL, mcpUrls } };
}
