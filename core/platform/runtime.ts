// Over 300 lines on purpose: it declares all ports, so that `Runtime` names each of them and imports no other file of core.
import type { Buffer } from "node:buffer";
import type { Queue } from "bullmq";
import type { ChainableCommander, Redis } from "ioredis";
import type { JSONWebKeySet, JWK } from "jose";
import type { JobData, JobName, QueueName } from "../../schemas/jobs.ts";
import type { Booking } from "../../schemas/scheduling.ts";
import type { Env } from "./env.ts";
import type { Log } from "./log-events.ts";
import type { Outbound } from "./outbound.ts";

/**
 * What core functions may use; `openRuntime` creates one per process. A function takes it as its first parameter and destructures what it
 * needs, so that the signature is its dependency list.
 */
export interface Runtime {
  readonly env: Env;
  /** The process's one connection for commands. */
  readonly redis: Redis;
  /** How the installation runs Redis: one server, one server with the search module in use, a cluster, or a master behind Sentinels. */
  readonly redisKind: "plain" | "module" | "cluster" | "sentinel";
  readonly queues: Outbox;
  readonly index: SearchIndex;
  /** Requests to other servers; addresses that users may name are checked. */
  readonly outbound: Outbound;
  readonly model: Model;
  /** Chunks of running answers, on their way from workers to readers. */
  readonly relay: RunRelay;
  readonly signingKey: SigningKey;
  readonly sessions: TokenVerifier;
  readonly credentials: CredentialStore;
  /** Takes payments for bookings; undefined if no payment provider is configured. */
  readonly payments: PaymentProvider | undefined;
  openBounces(url: string): Promise<Mailbox>;
  /** Real ms before its time at which a delayed send of a rule becomes a job. Until then Redis stores its ids alone, a quarter of a job. */
  readonly sendsAheadMs: number;
  readonly log: Log;
  /** Domain time in ms since 1970, which TEST_CLOCK can shift. Leases, tokens and signatures use real time instead. */
  now(): number;
  /** Aborted when the process must stop: it finishes running work and fetches no more. */
  readonly shutdownController: AbortController;
  /** A new random id: the prefix and 128 random bits in base 62. */
  id(prefix: string): string;
  close(): Promise<void>;
}

/** The part of a runtime that an operator's commands have too: it reaches Redis alone. */
export type Store = Pick<Runtime, "env" | "redis" | "queues" | "now" | "id">;

/** The caller. `userId` is set exactly if the route's access requires a user's token. */
export interface Caller {
  requestId: string;
  userId?: string;
  email?: string;
  handle?: string;
  role?: Role;
  /** The caller's session at this service; absent for other tokens. */
  sessionId?: string;
  /** Scopes of a personal access token; absent for a session, which has all rights of its user. */
  scopes?: readonly string[];
  /** The network of the request (`networkOf`), for throttles; never stored or logged. */
  network?: string;
  idempotencyKey?: string;
  /** Digest of the parsed body; set if the request has an idempotency key. */
  bodyDigest?: string;
}

/** Roles of a handle, in ascending order (docs/reference.md, "Handles, accounts and roles"). */
export const roles = ["CREATOR", "OPERATOR", "OWNER"] as const;
export type Role = (typeof roles)[number];

/**
 * A job to enqueue. `id` identifies the work: adding a known id again does nothing, so a job that may legitimately repeat carries a version
 * in its id. It must not contain `:`.
 */
export interface Job<N extends JobName = JobName> {
  name: N;
  id: string;
  data: JobData<N>;
  /** Real milliseconds to wait before it runs. */
  delay?: number;
  /** Jobs without a priority run first, then 1, then 2. */
  priority?: number;
  event?: never;
}

/** One attempt of a job, for functions that need to know which. */
export interface JobAttempt {
  /** 1 for the first; attempts that crashed, or whose group had no room, count too. */
  number: number;
  /** Earlier attempts that failed. */
  failures: number;
  /** True if a failure now is final. */
  last: boolean;
  /** Real ms at which the job was to begin; one that is promoted by hand begins earlier. */
  due: number;
  /** Aborted when the process stops or gives the job back. */
  signal: AbortSignal;
}

/** The delivery job of a webhook event, together with the event. One step writes both, and only if an endpoint is enabled. */
export interface EventJob extends Omit<Job<"webhooks.dispatch">, "event"> {
  event: EventRecord;
}

/** A webhook event as a step writes it. All keys have the tag of the outbox. */
interface EventRecord {
  key: string;
  content: string;
  retentionMs: number;
  /** Key of the endpoint list, and what the keys of endpoints begin with: without an enabled one the event is not stored. */
  endpoints: string;
  endpoint: string;
  /** Key of the endpoints that get it: those that are enabled when it is written. */
  audience: string;
  /** Keys of the sets of events that concern its people, so that it can be erased. */
  people: string[];
}

/** A job with its event, as the prelude's `outbox` writes it. */
export interface OutboxEntry {
  id: string;
  json: string;
  event?: EventRecord | undefined;
}

/** The queues of a process and their transactional outbox. */
export interface Outbox {
  /** The BullMQ queue of a name, opened at first use. */
  queue(name: QueueName): Queue;
  /** Enqueues at once, outside any atomic step. Use only when the caller detects a lost job. */
  later(...list: Job[]): Promise<void>;
  /**
   * Writes a change and its jobs, without webhook events, in one transaction on the keys of `tag`. Returns the replies of the change.
   */
  commit(tag: string, list: Job[], change: (transaction: ChainableCommander) => void): Promise<unknown[]>;
  /** The same for a script. It receives the outbox key and the jobs with their events, and writes them only if it changes something. */
  step<R>(
    tag: string,
    list: (Job | EventJob)[],
    change: (outbox: string, jobs: OutboxEntry[]) => Promise<R>,
  ): Promise<R>;
  /** Registers a tag with the sweeper; call it before a step writes to the tag's outbox. */
  register(tag: string): Promise<void>;
  /** Moves the named entries of an outbox, or all, to their queues. Returns their number. */
  publish(tag: string, ids?: string[]): Promise<number>;
  /**
   * Enqueues the jobs that crashed processes left in their outboxes. Returns their number. A tag in constant use is never old, so a pass over
   * all of them is due from time to time.
   */
  sweep(olderThanMs?: number, isBusyToo?: boolean): Promise<number>;
  /**
   * Registers every handle whose outbox has entries: a process that pauses between its registration and its step, and is killed after it,
   * leaves jobs that no sweep would find.
   */
  registerLeft(): Promise<void>;
  close(): Promise<void>;
}

/** A chunk and its number in the run, from 1 without gaps: the `id:` of an event. */
export interface RunChunk {
  id: number;
  chunk: string;
}

/** How a run ended: `lost` means that its worker died after it had sent chunks, so that no attempt may start again. */
export type RunEnd = "done" | "failed" | "cancelled" | "lost";

/** A reader of one run: its chunks in order, without gaps or duplicates. */
export interface RunSubscription extends AsyncIterableIterator<RunChunk> {
  /** How the run ended, once the reader has got there. */
  readonly outcome: RunEnd | undefined;
  /** Stops reading; does not wait for a pending `next`. */
  return(): Promise<IteratorResult<RunChunk>>;
}

/** The one process that may write a run's chunks. */
export interface RunPublisher {
  /** Aborted when the last reader has left, or when the run can't be written any more. */
  readonly signal: AbortSignal;
  /** Sends a chunk, one line of text, as soon as the ones before it are stored. Does nothing once the run has ended. */
  write(chunk: string): void;
  /**
   * Ends the run after the chunks so far and, in one step with the end, a last chunk. Resolves once that is stored, or if the run was
   * cancelled before.
   */
  end(end?: "done" | "failed", lastChunk?: string): Promise<void>;
  /** Releases the run unended for another attempt of its job. Only for a run without chunks. */
  release(): void;
}

/** Why a worker doesn't get a run; `sent` means that an earlier attempt has sent chunks. */
export type ClaimRefusal = "unknown" | "ended" | "superseded" | "sent" | "unread";

export interface SubscribeOptions {
  /** Number of the last chunk that the reader has; 0 or absent for the whole run. */
  after?: number;
  /** The run continues for a while after its last reader has left, instead of being cancelled at once. */
  resumable?: boolean;
}

/** Chunks of running answers, on their way from workers to readers. */
export interface RunRelay {
  /** Claims a run for an attempt of its job, or says why not. `generation` is at least 1 and grows with every attempt. */
  claim(runId: string, generation: number): Promise<RunPublisher | ClaimRefusal>;
  /**
   * Reads a run from its start or after a chunk. It subscribes at once, so that a worker that claims the run later knows its reader: call it
   * before the job is enqueued. Throws RunLost if nothing more can come.
   */
  follow(runId: string, options?: SubscribeOptions): RunSubscription;
  /** Ends all reading with RunLost, so that clients reconnect elsewhere. Runs that this process writes must have ended before. */
  close(): Promise<void>;
}

/** The service's own EdDSA key. It signs session tokens; the published key set has its public half. */
export interface SigningKey {
  kid: string;
  private: CryptoKey;
  publicJwk: JWK;
}

/** The user and the rights of a session token. */
export interface TokenSession {
  userId: string;
  email?: string;
  /** Id of a session of this service; absent for tokens of an external signer, which manages its own sessions. */
  sessionId?: string;
  /** The resources that the token is restricted to (RFC 8707), with its scopes; absent if the token has all rights of its user. */
  resources?: readonly string[];
  scopes?: readonly string[];
}

export interface TokenVerifier {
  /** The published key set of this service. */
  readonly jwks: JSONWebKeySet;
  /**
   * The session of a token. A token that was issued for a resource is valid only for that `resource`. Throws `invalid_token` for every other
   * string and for revoked sessions, `service_unavailable` while the keys can't be read.
   */
  check(token: string, resource?: string): Promise<TokenSession>;
  /** The same, also for the token of a revoked session, and without a read of Redis. */
  verify(token: string, resource?: string): Promise<TokenSession>;
  /** Throws `invalid_token` for a revoked session. */
  mustBeLive(session: TokenSession): Promise<void>;
}

/** A chunk of a knowledge document, as a search finds it. */
export interface FoundPassage {
  /** The document's id and the number of the chunk, `doc_1:0`. */
  id: string;
  documentId: string;
  title: string;
  topic: string;
  source: string;
  /** Headings above the text, outermost first, joined by ` › `; empty if there are none. */
  heading: string;
  /** An exact part of the document's content. */
  text: string;
  /** Language of the document (ISO 639-1). */
  language: string;
  tags: string[];
}

/** A text as a vector; only vectors of one model and length are compared. */
export interface Embedding {
  model: string;
  values: Float32Array;
}

/** A search in one handle's knowledge. */
export interface SearchRequest {
  handle: string;
  text: string;
  vector?: Embedding;
  /** A passage must have all of them; an empty list matches all passages. */
  tags: string[];
  limit: number;
}

/** Passages, best first. */
export interface SearchResult {
  /** Scores order one result; scores of different results can't be compared. */
  hits: { passage: FoundPassage; score: number }[];
  /** `vector` if vectors took part, alone or fused with words. */
  mode: "lexical" | "vector";
  /** True if a part of the index could not answer in full. */
  degraded: boolean;
}

export interface IndexStatus {
  /** The index that this Redis supports. */
  kind: "in-process" | "redisearch";
  /** The index that answers: the in-process index replaces the server's while that is incomplete. */
  serving: "in-process" | "redisearch";
  /** Why `serving` differs from `kind`. */
  reason?: FallbackReason;
}

/**
 * Why the in-process index answers instead of the server's: `missing` (the index was dropped and is being rebuilt), `building` (the server
 * still reads the chunks), `partial` (it ran out of memory or stopped early), `foreign` (the index of this name covers other keys),
 * `outdated` (another version of this service wrote the passages), `reconnected` (the connection was lost during the search), `refused`
 * (the server returned an error).
 */
export const fallbackReasons = [
  "missing",
  "building",
  "partial",
  "foreign",
  "outdated",
  "reconnected",
  "refused",
] as const;
export type FallbackReason = (typeof fallbackReasons)[number];

/** The common interface of both indexes. Rejects without Redis; an index that answers in part is `degraded`. */
export interface SearchIndex {
  readonly kind: IndexStatus["kind"];
  /** Searches that the in-process index answered instead of the server's, by reason, since the start of the process. */
  readonly fallbacks: ReadonlyMap<FallbackReason, number>;
  search(request: SearchRequest): Promise<SearchResult>;
  /** Asks the server; rejects without Redis. */
  status(): Promise<IndexStatus>;
  /** Creates what vectors of this dimension need, before the first one is written. Rejects without Redis. */
  prepareVectors(dimensions: number): Promise<void>;
  close(): Promise<void>;
}

export interface ModelMessage {
  role: "system" | "user" | "assistant";
  content: string;
}

/** Generates answers and embeds texts. Both parts may be absent: then answers are extracted, and retrieval uses words alone. */
export interface Model {
  /** The configured model name, reported unchanged as `modelId`. */
  readonly id: string;
  readonly writer: Writer | undefined;
  readonly embedder: Embedder | undefined;
}

/** A function that a model may call. */
export interface ModelTool {
  name: string;
  description: string;
}

/** A delta of a model: text, the name of a tool that it calls, or neither while it thinks. */
export interface Delta {
  text?: string;
  call?: string;
  /** True if the model was stopped here, in the middle of its text. */
  isCut?: boolean;
}

/** A model that generates text as a stream of deltas. Failures throw; `signal` also stops the work at the model server. */
export interface Writer {
  /** True if the model can call tools; checked occasionally. */
  callsTools(): Promise<boolean>;
  write(messages: ModelMessage[], tools: readonly ModelTool[], signal: AbortSignal): AsyncIterable<Delta>;
  /** An object of this JSON schema, unvalidated: models don't always follow schemas. */
  propose(messages: ModelMessage[], schema: object, signal: AbortSignal): Promise<unknown>;
}

/** A model that turns texts into vectors of one length. */
export interface Embedder {
  readonly id: string;
  embed(texts: string[], purpose: "query" | "document", signal: AbortSignal): Promise<Float32Array[]>;
}

/** A mailbox on another server (IMAP, RFC 9051), open for reading and marking. */
export interface Mailbox {
  /** The UIDs of the unseen mails, oldest first. */
  unseen(): Promise<number[]>;
  /** A mail as bytes; undefined if it is gone. Reading doesn't mark it as seen. */
  read(uid: number): Promise<Buffer | undefined>;
  markSeen(uid: number): Promise<void>;
  close(): void;
}

/** A connected account of a handle at a provider. */
export interface CredentialRef {
  handle: string;
  credentialId: string;
}

/** Connected accounts, as providers need them. */
export interface CredentialStore {
  /** The unsealed secret of an account, or null; `integration_not_found`. */
  secret(account: CredentialRef): Promise<string | null>;
  /** Replaces the secret atomically by the result of `change`; null keeps it. Returns the resulting secret. */
  changeSecret(account: CredentialRef, change: (secret: string | null) => string | null): Promise<string | null>;
  /** Marks an account as degraded by a failure, or as healthy without one. */
  updateHealth(account: CredentialRef, failure: Error | undefined): Promise<void>;
  /** The addresses of the handle's owners; calendar events that list them as attendees are theirs. */
  ownerAddresses(handle: string): Promise<string[]>;
}

/** The payment of a booking. */
export interface Order {
  booking: Booking;
  /** Where the visitor returns after paying or cancelling. */
  returnUrl: string;
  /** Minutes for which it can be paid. */
  openMinutes: number;
}

export interface PaymentProvider {
  /** The status of the account that takes the handle's payments; undefined if none is connected. */
  accountStatus(handle: string): Promise<"OK" | "DEGRADED" | undefined>;
  /**
   * Creates a hosted checkout of the account that receives the payment, or returns that of an earlier call for the same booking. Throws if
   * the provider fails.
   */
  openCheckout(order: Order): Promise<{ url: string; account?: string; session?: string }>;
}
