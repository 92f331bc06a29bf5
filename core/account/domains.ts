import type { Redis } from "ioredis";
import { Fail, invalid } from "../platform/errors.ts";
import { keys } from "../store/keys.ts";
import { scripts } from "../store/scripts.ts";
import type { Runtime } from "../platform/runtime.ts";
import { findHandle } from "./handles.ts";

/** A domain as an account holds it. */
export interface DomainClaim {
  /** In lower case, in ASCII. */
  domain: string;
  account: string;
  /** Whose pages the domain shows, or null. */
  handle: string | null;
  /** True once this account has proven that the domain is its own; until then others may attach it too. */
  owned: boolean;
}

export interface AttachedDomain {
  account: string;
  domain: string;
  handle?: string | undefined;
  /** Takes the domain as proven and ready to send from, without DNS; refused in production. */
  ready?: boolean;
}

type Store = Pick<Runtime, "redis" | "env" | "now">;

/**
 * Attaches a domain to an account (docs/reference.md, "Domains"); again changes its handle. `domain_taken` once another account has proven that it
 * is theirs, `not_found` for an unknown account or a handle of another one.
 */
export async function attachDomain(store: Store, input: AttachedDomain): Promise<DomainClaim> {
  const { account, handle, ready = false } = input;
  const domain = domainOf(input.domain);
  if (ready && store.env.production)
    throw new Fail("forbidden", { detail: "In production a domain is verified by its DNS records." });
  await mustHold(store.redis, account, handle);
  // The account's list comes first: an entry without a claim behind it is left out by those who read it.
  await store.redis.sadd(keys.accountDomains(account), domain);
  const claimed = await claim(store, { domain, account, handle: handle ?? "", proven: ready });
  if (ready) await store.redis.hset(keys.emailIdentity(domain, account), { status: "READY", vouched: "1" });
  return claimed;
}

/** Makes a domain the account's own, after its OWNERSHIP record was found; `domain_taken` when another one was faster. */
export async function proveDomain(store: Store, input: { account: string; domain: string }): Promise<DomainClaim> {
  const current = await domainClaim(store.redis, input.account, input.domain);
  if (current === undefined) throw new Fail("account_domain_not_found");
  return claim(store, { ...current, handle: current.handle ?? "", proven: true });
}

/** What an account holds of a domain; undefined when it never attached it, or when another account has proven it. */
export async function domainClaim(redis: Redis, account: string, domain: string): Promise<DomainClaim | undefined> {
  const [handle, holder, owned] = await redis.hmget(keys.domain(domain), `claim:${account}`, "account", "owned");
  return claimOf({ account, domain, handle, holder, owned });
}

/** The domains that an account holds, by name. */
export async function domainsOf(redis: Redis, account: string): Promise<DomainClaim[]> {
  const domains = (await redis.smembers(keys.accountDomains(account))).sort();
  const rows = await Promise.all(
    domains.map((domain) => redis.hmget(keys.domain(domain), `claim:${account}`, "account", "owned")),
  );
  return rows.flatMap(([handle, holder, owned], at) => {
    const held = claimOf({ account, domain: domains[at] as string, handle, holder, owned });
    return held ? [held] : [];
  });
}

/** A domain name as it is stored: lower case, ASCII, without the final dot. */
export function domainOf(name: string): string {
  const given = name.trim().replace(/\.$/, "");
  const ascii = URL.canParse(`http://${given}`) ? new URL(`http://${given}`).hostname : "";
  if (/^(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+(?=.*[a-z])[a-z0-9-]{2,63}$/.test(ascii)) return ascii;
  throw invalid("/domain", "must be a domain name");
}

interface Claim {
  domain: string;
  account: string;
  handle: string;
  proven: boolean;
}

async function claim({ redis, now }: Store, asked: Claim): Promise<DomainClaim> {
  const { domain, account, handle, proven } = asked;
  const input = { account, handle, instant: new Date(now()).toISOString(), isProven: proven };
  const became = await scripts.claimDomain(redis, { domain: keys.domain(domain) }, input);
  if (became === "taken") throw new Fail("domain_taken");
  return { domain, account, handle: handle || null, owned: became === "proven" };
}

type Row = Record<"handle" | "holder" | "owned", string | null | undefined>;

function claimOf({
  account,
  domain,
  handle,
  holder,
  owned,
}: Row & { account: string; domain: string }): DomainClaim | undefined {
  if (handle === null || handle === undefined || (owned === "1" && holder !== account)) return undefined;
  return { domain, account, handle: handle || null, owned: owned === "1" };
}

async function mustHold(redis: Redis, account: string, handle: string | undefined): Promise<void> {
  if (!(await redis.exists(keys.account(account))))
    throw new Fail("not_found", { detail: `There is no account ${account}.` });
  if (handle === undefined) return;
  if ((await findHandle(redis, handle))?.account !== account)
    throw new Fail("not_found", { detail: `The account has no handle ${handle}.` });
}
