import { type Credential, type oauthCallback, type ProviderKey, providerKeys } from "../../schemas/integrations.ts";
import type { Input } from "../../schemas/schema.ts";
import { mustStillBeActive } from "../account/face.ts";
import {
  type AuthorisationRequest,
  exchangeCode,
  type OAuthSettings,
  type Provider,
  providers,
  requestAuthorisation,
  takeState,
} from "../engines/calendars/calendars.ts";
import { oneLine } from "../platform/characters.ts";
import type { Env } from "../platform/env.ts";
import { Fail, insteadOf, unavailable } from "../platform/errors.ts";
import type { Caller, Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { readSelected } from "./busy-calendars.ts";
import { type ConnectedAccount, credentialRecords, secretOf, storeCredential, toCredential } from "./credentials.ts";

/** Longest name of an account at a provider, in characters. */
const MAX_ACCOUNT_LENGTH = 320;

/** Providers, whether they can be connected here, and the connected accounts. */
export async function listIntegrations(
  runtime: Runtime,
  { handle }: Input<"handle">,
): Promise<{ providers: { providerKey: ProviderKey; configured: boolean }[]; credentials: Credential[] }> {
  const isConfigured = ({ oauth }: Provider): boolean => oauth?.(runtime.env).clientId !== "";
  return {
    providers: providerKeys.map((key) => ({ providerKey: key, configured: isConfigured(providers[key]) })),
    credentials: (await credentialRecords.all(runtime, handle)).map(toCredential),
  };
}

/** Starts a provider's authorisation; `integration_not_found`, `provider_not_configured`. */
export async function startAuthorization(
  runtime: Runtime,
  { handle, providerKey }: Input<"handle" | "providerKey">,
  { userId = "" }: Pick<Caller, "userId">,
): Promise<{ authorizeUrl: string; state: string }> {
  const { key, settings } = configuredProvider(runtime.env, providerKey);
  return requestAuthorisation(runtime, { handle, providerKey: key, userId }, settings);
}

/** Completes an authorisation for the user who started it; `invalid_oauth_state`, `oauth_exchange_failed`. */
export async function finishAuthorization(
  runtime: Runtime,
  { handle, providerKey, code, state }: Input<"handle" | "providerKey", typeof oauthCallback>,
  { userId = "" }: Pick<Caller, "userId">,
): Promise<{ credential: Credential }> {
  configuredProvider(runtime.env, providerKey);
  const started = await takeState(runtime, { providerKey, state, userId });
  if (started.handle !== handle) throw new Fail("invalid_oauth_state");
  const account = await authorisedAccount(runtime, { ...started, code });
  await mustStillBeActive(runtime.redis, handle).catch(async (error) => {
    await revoke(runtime, handle, { ...account, secret: () => account.secret });
    throw error;
  });
  return { credential: await storeCredential(runtime, handle, account) };
}

/** Exchanges the code of an authorisation; `oauth_exchange_failed`, `provider_not_configured`, `service_unavailable`. */
export async function authorisedAccount(
  runtime: Runtime,
  asked: AuthorisationRequest & { code: string },
): Promise<ConnectedAccount> {
  const { providerKey } = asked;
  const { settings, provider } = configuredProvider(runtime.env, providerKey);
  const { connect } = provider;
  if (connect === undefined) throw new Fail("provider_not_configured");
  const connecting = exchangeCode(runtime, settings, asked).then((grant) => connect(runtime, grant, settings));
  const found = await connecting.catch((error: Error) => {
    throw unavailable(error, "The provider is not responding.");
  });
  // Whatever a provider answers, only a line of text names an account.
  const { account } = found as { account: unknown };
  if (typeof account !== "string" || !account || account.length > MAX_ACCOUNT_LENGTH || account !== oneLine(account))
    throw new Fail("oauth_exchange_failed", { detail: "The provider did not name the account." });
  return { providerKey, ...found };
}

/** Disconnects an account, also at the provider if that responds; `integration_not_found`. */
export async function disconnectAccount(
  runtime: Runtime,
  input: Input<"handle" | "providerKey" | "credentialId">,
): Promise<void> {
  const { handle, credentialId } = input;
  const isSelected = await runtime.redis.hexists(keys.selectedCalendars(handle), credentialId);
  await disconnect(runtime, input);
  await mustStillBeActive(runtime.redis, handle);
  if (isSelected) await readSelected(runtime, handle);
}

/** Disconnects all accounts of a handle that goes; returns the providers that did not revoke their grants. */
export async function disconnectAll(runtime: Runtime, handle: string): Promise<ProviderKey[]> {
  const left: ProviderKey[] = [];
  for (const { providerKey, credentialId } of await credentialRecords.all(runtime, handle)) {
    const disconnecting = disconnect(runtime, { handle, providerKey, credentialId });
    // Its owner may disconnect it at the same moment.
    if (!(await disconnecting.catch(insteadOf("integration_not_found", true)))) left.push(providerKey);
  }
  return left;
}

/** Forgets an account and revokes its grant; false if the grant is left. */
async function disconnect(runtime: Runtime, input: Input<"handle" | "providerKey" | "credentialId">): Promise<boolean> {
  const { handle, providerKey, credentialId } = input;
  const stored = await credentialRecords.read(runtime, handle, credentialId);
  if (stored.providerKey !== providerKey) throw new Fail("integration_not_found");
  if (!(await credentialRecords.remove(runtime, handle, credentialId))) throw new Fail("integration_not_found");
  return revoke(runtime, handle, { ...stored, secret: () => secretOf(runtime, handle, stored) });
}

/**
 * Revokes the grant of an account that is forgotten, unless a handle of the same owner uses it: providers have one grant per user, whatever
 * the handle. False if the grant is left.
 */
export async function revoke(
  runtime: Runtime,
  handle: string,
  { providerKey, account, secret }: Omit<ConnectedAccount, "secret"> & { secret: () => string | null },
): Promise<boolean> {
  const { oauth, disconnect } = providers[providerKey];
  try {
    if (await isUsed(runtime, handle, { providerKey, account })) return true;
    // A calendar server has no grant; Microsoft's can't be revoked.
    if (disconnect === undefined) return oauth === undefined;
    await disconnect(runtime, { account, secret: secret() });
    return true;
  } catch (error) {
    runtime.log.warn({ handle, providerKey, error: (error as Error).message }, "integration.revoke_failed");
    return false;
  }
}

async function isUsed(
  runtime: Runtime,
  handle: string,
  { providerKey, account }: Pick<ConnectedAccount, "providerKey" | "account">,
): Promise<boolean> {
  const owner = (await runtime.redis.hget(keys.handle(handle), "account")) ?? "";
  const handles = await runtime.redis.smembers(keys.accountHandles(owner));
  const connected = await Promise.all(handles.map((one) => credentialRecords.all(runtime, one)));
  return connected.flat().some((other) => other.providerKey === providerKey && other.account === account);
}

/** A provider with OAuth and its settings; `integration_not_found`, `provider_not_configured`. */
export function configuredProvider(
  env: Env,
  providerKey: string,
): { key: ProviderKey; settings: OAuthSettings; provider: Provider } {
  const key = providerKeys.find((one) => one === providerKey);
  const provider = key && providers[key];
  if (key === undefined || provider?.oauth === undefined)
    throw new Fail("integration_not_found", { detail: "No provider of this name is connected by OAuth." });
  const settings = provider.oauth(env);
  if (settings.clientId === "") throw new Fail("provider_not_configured");
  return { key, settings, provider };
}
