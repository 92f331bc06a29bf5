import type { AccountDomain, identityAnswer, newDomain } from "../../schemas/email.ts";
import type { JobData } from "../../schemas/jobs.ts";
import type { Infer, Input } from "../../schemas/schema.ts";
import { attachDomain, type DomainClaim, domainClaim, domainsOf, handlesOf, hasRole } from "../account/face.ts";
import { openDns } from "../engines/mail/mail.ts";
import { canonicalDomain } from "../platform/address.ts";
import { delayUntil, instantIn, nextTurn } from "../platform/clock.ts";
import { Fail, invalid } from "../platform/errors.ts";
import { outcomeOf, withOutcome } from "../platform/outcome.ts";
import type { Caller, JobAttempt, Role, Runtime, Store } from "../platform/runtime.ts";
import { keyDigest } from "../store/idempotency.ts";
import { keys } from "../store/keys.ts";
import { job } from "../store/outbox.ts";
import { cursorAfter, type Listed, type ListInput, pageOf } from "../store/paging.ts";
import { checkIdentity, identityOf, identityStatus } from "./identity.ts";
import { sendersOfDomain } from "./senders.ts";

/** Domain ms between two checks of a domain: daily, and more often while its owner is setting up the records. */
const CHECK_INTERVALS_MS = { ready: 86_400_000, pending: 600_000 };
/** Domain ms after its creation for which a domain is checked often. */
const SETUP_PERIOD_MS = 72 * 3_600_000;

type DomainOwner = { handle: string; role: Role; account: string };

/**
 * Attaches a domain to the account of the caller's handles (docs/reference.md, "Domains"); 201 the first time. `domain_taken` if another
 * account owns it. Until its OWNERSHIP record is found, it shows no pages and excludes no other account.
 */
export async function addDomain(
  runtime: Runtime,
  input: Infer<typeof newDomain>,
  caller: Caller,
): Promise<{ domain: AccountDomain }> {
  const account = chosenAccount(await handlesOf(runtime.redis, caller.userId as string), input);
  const domain = canonicalDomain(input.domain);
  mustNotBeOurs(runtime, domain);
  const claim = await attachDomain(runtime, { account, domain, handle: input.handle ?? undefined });
  // Also for a domain that exists: its first request may have ended before this.
  await requestCheck(runtime, claim);
  const answer = { domain: await toAccountDomain(runtime, claim) };
  return outcomeOf(claim) === "created" ? withOutcome(answer, "created") : answer;
}

/** The domains of the caller's accounts, by name. */
export async function listDomains(
  runtime: Runtime,
  input: ListInput<never>,
  caller: Caller,
): Promise<Listed<"domains", AccountDomain>> {
  const handles = await handlesOf(runtime.redis, caller.userId as string);
  const accounts = operatedAccounts(handles);
  if (accounts.length === 0 && handles.length > 0) throw insufficientRole();
  const list = `domains of ${caller.userId}`;
  const { limit, after = "" } = pageOf(runtime.env, input, list);
  const claims = (await Promise.all(accounts.map((account) => domainsOf(runtime.redis, account)))).flat();
  const rest = claims.filter((claim) => nameOf(claim) > after);
  const page = rest.sort((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1)).slice(0, limit);
  const last = rest.length > limit ? page.at(-1) : undefined;
  const domains = await Promise.all(page.map((claim) => toAccountDomain(runtime, claim)));
  return { domains, nextCursor: cursorAfter(runtime.env, last && nameOf(last), list) };
}

/** The email identity of a domain of the caller's account with the senders that use it; `account_domain_not_found`. */
export async function readEmailIdentity(
  runtime: Runtime,
  input: Input<"domain">,
  caller: Caller,
): Promise<Infer<typeof identityAnswer>> {
  const claim = await claimOf(runtime, caller, input.domain);
  await scheduleNextCheck(runtime, claim);
  return withSenders(runtime, claim);
}

/** Starts a check of the domain's records; returns the identity before it. */
export async function reconcileEmailIdentity(
  runtime: Runtime,
  input: Input<"domain">,
  caller: Caller,
): Promise<Infer<typeof identityAnswer>> {
  const claim = await claimOf(runtime, caller, input.domain);
  await requestCheck(runtime, claim);
  return withSenders(runtime, claim);
}

async function withSenders(runtime: Runtime, claim: DomainClaim): Promise<Infer<typeof identityAnswer>> {
  const [identity, senderProfiles] = await Promise.all([identityOf(runtime, claim), sendersOfDomain(runtime, claim)]);
  return { identity, senderProfiles };
}

/**
 * Job: queries DNS and updates the identity. The next check is scheduled first, so that no failure and no crash ends the checks of a
 * domain; they end once the account has no claim on it any more.
 */
export async function checkDomain(
  runtime: Runtime,
  { domain, account }: JobData<"email.check">,
  attempt: Pick<JobAttempt, "due">,
): Promise<void> {
  const claim = await domainClaim(runtime.redis, account, domain);
  if (claim === undefined) return;
  await scheduleNextCheck(runtime, claim, attempt);
  const { status } = await checkIdentity(runtime, await openDns(runtime.env), claim);
  runtime.log.info({ domain, status }, "email.identity.checked");
}

/**
 * Schedules the next check of a domain. Idempotent: the domain has its own instants, one in each interval. A check that begins before it is
 * `due`, in real ms, is followed by the next one, not by itself.
 */
export async function scheduleNextCheck(
  runtime: Runtime,
  claim: JobData<"email.check">,
  { due } = { due: 0 },
): Promise<void> {
  const intervalMs = await interval(runtime, claim);
  const after = instantIn(runtime, Math.max(0, due - Date.now()));
  await enqueueCheck(runtime, claim, nextTurn(nameOf(claim), { intervalMs, after }));
}

/** The claim that the caller may manage. Other accounts' domains are not found; too low a role is refused. */
async function claimOf(runtime: Runtime, caller: Caller, name: string): Promise<DomainClaim> {
  const handles = await handlesOf(runtime.redis, caller.userId as string);
  const accounts = [...new Set(handles.map(({ account }) => account))];
  const found = await Promise.all(
    accounts.map((account) => domainClaim(runtime.redis, account, canonicalDomain(name))),
  );
  const claims = found.filter((claim) => claim !== undefined);
  if (claims.length === 0) throw new Fail("account_domain_not_found");
  const allowed = claims.find(({ account }) => operatedAccounts(handles).includes(account));
  if (allowed === undefined) throw insufficientRole();
  return allowed;
}

function chosenAccount(handles: DomainOwner[], input: Infer<typeof newDomain>): string {
  const { handle, accountId } = input;
  const fitting = handles.filter(
    (one) => (handle ?? one.handle) === one.handle && (accountId ?? one.account) === one.account,
  );
  const accounts = [...new Set(fitting.map(({ account }) => account))];
  if (accounts.length === 0) throw new Fail("forbidden");
  if (accounts.length > 1) throw invalid("/accountId", `is required, one of ${accounts.join(", ")}`);
  if (!operatedAccounts(handles).includes(accounts[0] as string)) throw insufficientRole();
  return accounts[0] as string;
}

/** The accounts with a handle on which the user is at least OPERATOR. */
function operatedAccounts(handles: DomainOwner[]): string[] {
  return [...new Set(handles.filter(({ role }) => hasRole(role, "OPERATOR")).map(({ account }) => account))];
}

function insufficientRole(): Fail {
  return new Fail("insufficient_role", { detail: "This operation requires the role OPERATOR." });
}

/** Names under PUBLIC_DOMAIN belong to the service and can't be attached. */
function mustNotBeOurs({ env }: Runtime, domain: string): void {
  const own = env.PUBLIC_DOMAIN?.replace(/:\d+$/, "");
  if (own !== undefined && (domain === own || domain.endsWith(`.${own}`))) throw new Fail("domain_taken");
}

async function toAccountDomain(runtime: Runtime, claim: DomainClaim): Promise<AccountDomain> {
  const { status, requiredDnsRecords } = await identityOf(runtime, claim);
  const createdAt = (await runtime.redis.hget(keys.domain(claim.domain), "createdAt")) ?? "";
  const { domain, account, handle, owned } = claim;
  return { domain, accountId: account, handle, owned, status, requiredDnsRecords, createdAt };
}

const nameOf = ({ domain, account }: JobData<"email.check">): string => `${domain} ${account}`;

/** Enqueues a check at the end of this second: all requests of a second are one check, which begins after them. */
export async function requestCheck(store: Store, claim: JobData<"email.check">): Promise<void> {
  await enqueueCheck(store, claim, (Math.floor(store.now() / 1000) + 1) * 1000);
}

async function enqueueCheck(store: Store, { domain, account }: JobData<"email.check">, at: number): Promise<void> {
  const id = `check-${keyDigest(nameOf({ domain, account }))}-${at}`;
  await store.queues.later(job("email.check", id, { domain, account }, { delay: delayUntil(store, at) }));
}

async function interval({ redis, now }: Runtime, at: JobData<"email.check">): Promise<number> {
  const createdAt = (await redis.hget(keys.domain(at.domain), "createdAt")) ?? "";
  const isNew = now() - Date.parse(createdAt) < SETUP_PERIOD_MS;
  const isReady = (await identityStatus(redis, at)) === "READY";
  return isNew && !isReady ? CHECK_INTERVALS_MS.pending : CHECK_INTERVALS_MS.ready;
}
