import type { Redis } from "ioredis";
import type { Session as SessionView } from "../../schemas/account.ts";
import type { Input } from "../../schemas/schema.ts";
import { isBlank } from "../platform/characters.ts";
import { Fail } from "../platform/errors.ts";
import type { Caller, Runtime, TokenSession } from "../platform/runtime.ts";
import { coalesce } from "../store/coalesce.ts";
import { keys } from "../store/keys.ts";
import { cursorAfter, type Listed, type ListInput, pageOf } from "../store/paging.ts";
import { transact } from "../store/redis.ts";
import { scripts } from "../store/scripts.ts";
import { issueToken, type TokenClaims } from "./signing.ts";

/** Most sessions of a user; beyond that, the one unused for longest ends. */
const MAX_SESSIONS = 100;
/** Ms between two updates of the last use. */
const TOUCH_INTERVAL_MS = 60_000;
const MAX_DEVICE_CHARACTERS = 80;

/** A stored session; times in real ms. */
type StoredSession = Pick<SessionView, "kind" | "device"> & Record<"createdAt" | "expiresAt", number>;

interface NewSession extends Pick<TokenClaims, "userId" | "email" | "grant">, Pick<SessionView, "kind" | "device"> {
  /** By default a random id. */
  sessionId?: string;
  seconds: number;
  /** Lifetime of its token, if it is shorter. */
  tokenSeconds?: number;
}

/** Starts a session and returns its token, a JWT of this service. Both expire in the same second unless `tokenSeconds` is given. */
export async function startSession(
  runtime: Pick<Runtime, "redis" | "env" | "signingKey" | "id">,
  { sessionId = runtime.id("ses_"), userId, email, kind, device, seconds, tokenSeconds = seconds, grant }: NewSession,
): Promise<{ token: string; expiresAt: string }> {
  const now = Date.now();
  const expiresAt = (Math.floor(now / 1000) + seconds) * 1000;
  const stored: StoredSession = { kind, device, createdAt: now, expiresAt };
  const input = { sessionId, json: JSON.stringify(stored), now, expiresAt, max: MAX_SESSIONS };
  await scripts.startSession(runtime.redis, { sessions: keys.sessions(userId) }, input);
  const tokenEnds = expiresAt - (seconds - tokenSeconds) * 1000;
  const token = await issueToken(runtime, { userId, email, sessionId, expiresAt: tokenEnds, grant });
  return { token, expiresAt: instant(expiresAt) };
}

/** The first text that is not blank as a device name: at most 80 characters without control characters. */
export function deviceName(...texts: unknown[]): string {
  const names = texts.filter((text) => typeof text === "string").map((text) => text.replace(/\p{C}/gu, "").trim());
  return [...(names.find((name) => !isBlank(name)) ?? "")].slice(0, MAX_DEVICE_CHARACTERS).join("");
}

/** False for a revoked session; otherwise updates its last use, at most once a minute. Failed updates are ignored. */
export function useSession(
  { redis, log }: Pick<Runtime, "redis" | "log">,
  { userId, sessionId = "" }: TokenSession,
): Promise<boolean> {
  const key = keys.sessions(userId);
  return coalesce(redis, `session ${sessionId}`, async () => {
    const used = await redis.hget(key, `used:${sessionId}`);
    const now = Date.now();
    if (used !== null && now - Number(used) >= TOUCH_INTERVAL_MS)
      scripts
        .recordUse(redis, { hash: key }, { used: sessionId, field: `used:${sessionId}`, now })
        .catch((error: Error) => log.warn({ error: error.message }, "session.touch_failed"));
    return used !== null;
  });
}

/** The user's sessions, newest first. Tokens of an external signer have none. */
export async function listSessions(
  { redis, env }: Runtime,
  input: ListInput<never>,
  caller: Caller,
): Promise<Listed<"sessions", SessionView>> {
  const list = keys.sessions(caller.userId as string);
  const { limit, after } = pageOf(env, input, list);
  const all = viewsOf(await redis.hgetall(list), caller.sessionId);
  const rest = after === undefined ? all : all.filter((one) => sortKeyOf(one) < after);
  const last = rest.length > limit ? rest[limit - 1] : undefined;
  return { sessions: rest.slice(0, limit), nextCursor: cursorAfter(env, last && sortKeyOf(last), list) };
}

/** Revokes a session of the user from the next request on; `current` means the caller's own. `session_not_found`. */
export async function endSession({ redis }: Runtime, input: Input<"sessionId">, caller: Caller): Promise<void> {
  const sessionId = input.sessionId === "current" ? (caller.sessionId ?? "") : input.sessionId;
  // The field of a session's last use is no session: its removal alone would leave half a session.
  if (sessionId.startsWith("used:")) throw new Fail("session_not_found");
  if ((await removeSession(redis, caller.userId as string, sessionId)) === 0) throw new Fail("session_not_found");
}

/** Ends a session; 0 if there is none. */
export function removeSession(redis: Redis, userId: string, sessionId: string): Promise<number> {
  return redis.hdel(keys.sessions(userId), sessionId, `used:${sessionId}`);
}

/** Ends all sessions of a user, those of desktops and of MCP clients among them. Returns their number. */
export async function removeSessions(redis: Redis, userId: string): Promise<number> {
  const key = keys.sessions(userId);
  const [fields] = await transact(redis, (transaction) => transaction.hkeys(key).del(key));
  return (fields as string[]).filter((field) => !field.startsWith("used:")).length;
}

function viewsOf(fields: Record<string, string>, current: string | undefined): SessionView[] {
  const now = Date.now();
  const views = Object.entries(fields).flatMap(([sessionId, json]) => {
    if (sessionId.startsWith("used:")) return [];
    const { kind, device, createdAt, expiresAt } = JSON.parse(json) as StoredSession;
    const lastUsedAt = Number(fields[`used:${sessionId}`]);
    const times = { createdAt: instant(createdAt), lastUsedAt: instant(lastUsedAt), expiresAt: instant(expiresAt) };
    return expiresAt > now ? [{ sessionId, kind, device, ...times, current: sessionId === current }] : [];
  });
  return views.sort((one, other) => (sortKeyOf(one) < sortKeyOf(other) ? 1 : -1));
}

/** The sort key of a session: ISO times of one format sort as text. */
function sortKeyOf({ createdAt, sessionId }: SessionView): string {
  return `${createdAt} ${sessionId}`;
}

function instant(ms: number): string {
  return new Date(ms).toISOString();
}
