import { randomInt } from "node:crypto";
import type * as shape from "../../schemas/account.ts";
import type { Infer } from "../../schemas/schema.ts";
import { digestOf } from "../platform/digest.ts";
import type { Env } from "../platform/env.ts";
import { Fail } from "../platform/errors.ts";
import { withOutcome } from "../platform/outcome.ts";
import type { Caller, Runtime } from "../platform/runtime.ts";
import { sameText } from "../platform/sealing.ts";
import { keys } from "../store/keys.ts";
import { transact } from "../store/redis.ts";
import { scripts } from "../store/scripts.ts";
import { takeNetworkToken } from "../store/throttle.ts";
import { formProof, loginUrl, sessionOfCookie, sessionOfForm } from "./browser-sessions.ts";
import { handlesOf } from "./handles.ts";
import { deviceName, removeSession, startSession } from "./session-store.ts";

/** Lifetime of an attempt in seconds (docs/reference.md, "Desktop pairing"). */
const ATTEMPT_TTL_SECONDS = 600;
/** The number of wrong proofs that ends an attempt (docs/reference.md, "Desktop pairing"). */
const MAX_WRONG_PROOFS = 5;
const SESSION_TTL_SECONDS = 30 * 86_400;
/** Attempts per network: at once, and per second. */
const START_LIMIT = { burst: 300, rate: 5 };
/** Characters that are hard to confuse. */
const CODE_CHARACTERS = "ABCDEFGHJKMNPQRSTUVWXYZ23456789";
const CODE_LENGTH = 8;

/** The page of a pending attempt, for the user who decides about it. */
export interface PairingVisit {
  attemptId: string;
  /** `K7QF-M2XP`; the desktop shows the same code. */
  code: string;
  device: string;
  /** Lifetime of the desktop's session in days. */
  days: number;
  /** Address of the sign-in, which returns here. */
  loginUrl: string;
  user?: string;
  /** Ties the form to this attempt and session. */
  proof?: string;
}

/**
 * Starts a pairing (docs/reference.md, "Desktop pairing"). The client keeps the verifier, shows the code (characters 5 to 12 of the
 * attempt's id), opens the address and polls `redeemPairing`.
 */
export async function startPairing(
  runtime: Runtime,
  input: Infer<typeof shape.pairingStart>,
  caller: Caller,
): Promise<Infer<typeof shape.pairingStarted>> {
  const { redis, env } = runtime;
  await takeNetworkToken(runtime, caller, { name: "pairing", ...START_LIMIT });
  const attemptId = runtime.id(`att_${newCode()}_`);
  // The name from the body wins over the user agent.
  const device = deviceName(input.deviceName, input.userAgent);
  const expires = Date.now() + ATTEMPT_TTL_SECONDS * 1000;
  await transact(redis, (transaction) => {
    transaction.hset(keys.pairing(attemptId), { challenge: input.deviceProofChallenge, device, status: "pending" });
    transaction.pexpireat(keys.pairing(attemptId), expires);
  });
  return { attemptId, authorizeUrl: authorizeUrl(env, attemptId), expiresAt: new Date(expires).toISOString() };
}

function authorizeUrl({ BASE_URL }: Env, attemptId: string): string {
  return `${BASE_URL}/oauth/assistant/desktop/authorize?attemptId=${encodeURIComponent(attemptId)}`;
}

/** The page of an attempt; `attempt_expired` if it is unknown, `attempt_not_pending` once it is decided. */
export async function visitPairing(runtime: Runtime, input: Infer<typeof shape.pairingPage>): Promise<PairingVisit> {
  const { redis, env } = runtime;
  const { attemptId = "" } = input;
  const [status, device] = await redis.hmget(keys.pairing(attemptId), "status", "device");
  if (!status || status === "redeemed") throw new Fail("attempt_expired");
  if (status !== "pending") throw new Fail("attempt_not_pending");
  const days = SESSION_TTL_SECONDS / 86_400;
  const login = loginUrl(env, authorizeUrl(env, attemptId));
  // The client derives the code from the attempt's id too.
  const code = `${attemptId.slice(4, 8)}-${attemptId.slice(8, 12)}`;
  const visit = { attemptId, code, device: device ?? "", days, loginUrl: login };
  const session = await sessionOfCookie(runtime, input.cookie);
  if (session === undefined) return visit;
  const { email, userId } = session;
  return { ...visit, user: email ?? userId, proof: formProof(env, session, formOf(attemptId)) };
}

/** The decision from the page's own form, with its proof; `invalid_token` without a session, `forbidden` for a forged form. */
export async function decideByForm(
  runtime: Runtime,
  input: Infer<typeof shape.pairingForm>,
): Promise<shape.PairingDecided & { proof: string }> {
  const { attemptId, decision, proof } = input;
  const session = await sessionOfForm(runtime, input, formOf(attemptId));
  return { ...(await decidePairing(runtime, { attemptId, decision }, session)), proof };
}

const formOf = (about: string) => ({ form: "pairing form", about });

/**
 * Allows or denies an attempt once, as the signed-in user; `attempt_expired`, `attempt_not_pending`. The user who allowed one can still
 * deny it, which ends the desktop's session.
 */
export async function decidePairing(
  { redis }: Runtime,
  input: Infer<typeof shape.pairingDecision>,
  caller: Pick<Caller, "userId" | "email">,
): Promise<shape.PairingDecided> {
  const status = input.decision === "allow" ? "authorised" : "denied";
  const decision = { status, userId: caller.userId as string, email: caller.email ?? "" } as const;
  const result = await scripts.decidePairing(redis, { attempt: keys.pairing(input.attemptId) }, decision);
  const isEnded =
    status === "denied" && (await removeSession(redis, decision.userId, sessionIdOf(input.attemptId))) > 0;
  if (result === "unknown" && !isEnded) throw new Fail("attempt_expired");
  if (result === "late") throw new Fail("attempt_not_pending");
  return { attemptId: input.attemptId, status };
}

/**
 * Issues the session once, to the client that knows the verifier. `attempt_expired` for unknown, used and expired attempts,
 * `device_proof_mismatch` (the fifth one ends the attempt), `attempt_denied`; 202 `pending` until the user has decided.
 */
export async function redeemPairing(
  runtime: Runtime,
  input: Infer<typeof shape.pairingRedemption>,
): Promise<shape.PairingRedeemed> {
  const key = keys.pairing(input.attemptId);
  const challenge = await runtime.redis.hget(key, "challenge");
  if (challenge === null) throw new Fail("attempt_expired");
  const isRight = sameText(challengeOf(input.deviceProofVerifier), challenge);
  const proof = { isRight, maxWrong: MAX_WRONG_PROOFS };
  const [status, ...who] = await scripts.redeemAttempt(runtime.redis, { attempt: key }, proof);
  if (status === "unknown") throw new Fail("attempt_expired");
  if (status === "wrong" || status === "ended") throw new Fail("device_proof_mismatch");
  if (status === "denied") throw new Fail("attempt_denied");
  if (status === "pending") return { status };
  return withOutcome(await session(runtime, input.attemptId, who as [string, string, string]), "created");
}

/** base64url(SHA-256(verifier)), as in PKCE (RFC 7636, S256). */
export function challengeOf(verifier: string): string {
  return digestOf(verifier);
}

function newCode(): string {
  return Array.from({ length: CODE_LENGTH }, () => CODE_CHARACTERS[randomInt(CODE_CHARACTERS.length)]).join("");
}

/** The id of the desktop's session, by which its user ends it on the page of the attempt. */
function sessionIdOf(attemptId: string): string {
  return `ses_${attemptId.slice(4)}`;
}

async function session(
  runtime: Runtime,
  attemptId: string,
  [userId, email, device]: [userId: string, email: string, device: string],
): Promise<shape.PairingRedeemed> {
  const { env, redis } = runtime;
  const who = { sessionId: sessionIdOf(attemptId), userId, email, kind: "desktop" as const, device };
  const { token, expiresAt } = await startSession(runtime, { ...who, seconds: SESSION_TTL_SECONDS });
  // A denial removes the attempt before it ends the session.
  if ((await redis.exists(keys.pairing(attemptId))) === 0) {
    await removeSession(redis, userId, who.sessionId);
    throw new Fail("attempt_denied");
  }
  const mcpUrls = (await handlesOf(redis, userId)).map(({ handle }) => `${env.BASE_URL}/mcp/${handle}/mcp`);
  return { status: "authorised", session: { token, expiresAt }, relay: { baseUrl: env.BASE_URL, mcpUrls } };
}
