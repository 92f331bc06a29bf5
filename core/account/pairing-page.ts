import type { PairingDecided, pairingForm, pairingPage } from "../../schemas/account.ts";
import type { Infer } from "../../schemas/schema.ts";
import type { Caller, Runtime, TokenSession } from "../platform/runtime.ts";
import { authorizeUrl, decidePairing, type PendingPairing, pendingPairing } from "./pairing.ts";
import { formProof, loginUrl, sessionOfCookie, sessionOfForm } from "./sign-in.ts";

/** The page of a pairing attempt, with the signed-in user. */
export interface PairingVisit extends PendingPairing {
  user?: TokenSession;
  /** Ties the form to this attempt and session. */
  proof?: string;
  /** Address of the sign-in, which returns here. */
  loginUrl: string;
}

/** The page of a pairing attempt; `attempt_expired`, `attempt_not_pending`. */
export async function visitPairing(runtime: Runtime, input: Infer<typeof pairingPage>): Promise<PairingVisit> {
  const { env } = runtime;
  const pending = await pendingPairing(runtime, input.attemptId ?? "");
  const found = { ...pending, loginUrl: loginUrl(env, authorizeUrl(env, pending.attemptId)) };
  const session = await sessionOfCookie(runtime, input.cookie);
  if (session === undefined) return found;
  const { token: _token, ...user } = session;
  return { ...found, user, proof: formProof(env, session, formOf(pending.attemptId)) };
}

/** The decision from the page's own form; `invalid_token` without a session, `forbidden` for a forged form. */
export async function decideByForm(
  runtime: Runtime,
  input: Infer<typeof pairingForm>,
  caller: Caller,
): Promise<PairingDecided> {
  const { attemptId, decision } = input;
  const { token: _token, ...user } = await sessionOfForm(runtime, input, formOf(attemptId));
  return decidePairing(runtime, { attemptId, decision }, { ...caller, ...user });
}

const formOf = (about: string) => ({ form: "pairing form", about });
