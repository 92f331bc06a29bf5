import type { Redis } from "ioredis";
import { canonicalDomain } from "../platform/address.ts";
import { Fail, invalid } from "../platform/errors.ts";
import { withOutcome } from "../platform/outcome.ts";
import type { Store } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { transact } from "../store/redis.ts";
import { scripts } from "../store/scripts.ts";
import { findHandle, mustBeAccount } from "./handles.ts";

/** A domain, in lower case and ASCII, and an account that claims it. */
type ClaimName = Record<"domain" | "account", string>;

export interface DomainClaim extends ClaimName {
  /** The handle whose pages the domain shows, or null. */
  handle: string | null;
  /** True once this account has proven its ownership; until then other accounts may attach the domain too. */
  owned: boolean;
}

interface AttachedDomain extends ClaimName {
  /** The handle whose pages the domain shows; without one, that of an earlier claim stays. */
  handle?: string | undefined;
  /** Marks the domain as owned and ready to send, without DNS; refused in production. */
  ready?: boolean;
}

/** Most domains of an account: each is checked by DNS queries for as long as it is attached. */
const MAX_DOMAINS = 500;

/**
 * Attaches a domain to an account, `created` the first time, or changes its handle (docs/reference.md, "Domains"). `domain_taken` once
 * another account has proven its ownership; `not_found` for an unknown account or another account's handle; `invalid_request` for an
 * account that has 500.
 */
export async function attachDomain(store: Store, input: AttachedDomain): Promise<DomainClaim> {
  const { account, handle, ready = false } = input;
  const domain = domainOf(input.domain);
  if (ready && store.env.production)
    throw new Fail("forbidden", { detail: "In production a domain is verified by its DNS records." });
  await mustBeAccount(store.redis, account);
  if (handle !== undefined && (await findHandle(store.redis, handle))?.account !== account)
    throw new Fail("not_found", { detail: `The account has no handle ${handle}.` });
  await listDomain(store.redis, account, domain);
  const [state, claimed, isFirst] = await writeClaim(store, { account, domain, handle, ready });
  if (state === "taken") {
    await store.redis.srem(keys.accountDomains(account), domain);
    throw new Fail("domain_taken");
  }
  if (ready) await store.redis.hset(keys.emailIdentity(domain, account), { status: "READY", vouched: "1" });
  const claim = { domain, account, handle: claimed || null, owned: state === "proven" };
  return isFirst ? withOutcome(claim, "created") : claim;
}

/** Ends an account's claim on a domain: its pages and its mail stop there, and other accounts may attach it. `not_found` without one. */
export async function detachDomain({ redis }: Store, { account, domain: name }: ClaimName): Promise<ClaimName> {
  const domain = domainOf(name);
  const domainKeys = { domain: keys.domain(domain), identity: keys.emailIdentity(domain, account) };
  const had = await scripts.releaseDomain(redis, domainKeys, { account });
  await redis.srem(keys.accountDomains(account), domain);
  if (had === 0) throw new Fail("not_found", { detail: `${account} has not attached ${domain}.` });
  return { domain, account };
}

/** The account's list comes before the claim: readers skip an entry without one. */
async function listDomain(redis: Redis, account: string, domain: string): Promise<void> {
  const list = keys.accountDomains(account);
  const [added, count] = await transact(redis, (transaction) => transaction.sadd(list, domain).scard(list));
  if (Number(count) <= MAX_DOMAINS) return;
  // Without a claim, another request has just listed it and removes it again.
  if (added === 0 && (await domainClaim(redis, account, domain)) !== undefined) return;
  if (added === 1) await redis.srem(list, domain);
  throw new Fail("invalid_request", { detail: `An account has at most ${MAX_DOMAINS} domains.` });
}

/** Records proven ownership, after the OWNERSHIP record was found; false if another account was faster. */
export async function proveDomain(store: Store, { account, domain }: ClaimName): Promise<boolean> {
  const [state] = await writeClaim(store, { account, domain, ready: true });
  return state === "proven";
}

/** The account's claim on a domain; undefined if it has none, or if another account owns the domain. */
export async function domainClaim(redis: Redis, account: string, domain: string): Promise<DomainClaim | undefined> {
  const [handle, holder, owned] = await redis.hmget(keys.domain(domain), `claim:${account}`, "account", "owned");
  if (handle == null || (owned === "1" && holder !== account)) return undefined;
  return { domain, account, handle: handle || null, owned: owned === "1" };
}

/** The domains of an account, by name. */
export async function domainsOf(redis: Redis, account: string): Promise<DomainClaim[]> {
  const domains = (await redis.smembers(keys.accountDomains(account))).sort();
  const claims = await Promise.all(domains.map((domain) => domainClaim(redis, account, domain)));
  return claims.filter((one) => one !== undefined);
}

/** A domain name in stored form: lower case, ASCII, without the final dot. */
export const domainForm = /^(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+(?=.*[a-z])[a-z0-9-]{2,63}$/;

/** The stored form of a domain name; `invalid_request` for another text. */
function domainOf(name: string): string {
  const domain = canonicalDomain(name.trim());
  if (domainForm.test(domain) && URL.canParse(`http://${domain}`)) return domain;
  throw invalid("/domain", "must be a domain name");
}

function writeClaim({ redis, now }: Store, { domain, account, handle, ready = false }: AttachedDomain) {
  const input = { account, handle, instant: new Date(now()).toISOString(), isProven: ready };
  return scripts.claimDomain(redis, { domain: keys.domain(domain) }, input);
}
