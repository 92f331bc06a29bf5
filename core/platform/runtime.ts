// Over 300 lines on purpose: all ports stand here, so that `Runtime` names each of them and imports no other file of core.
import type { Buffer } from "node:buffer";
import type { Queue } from "bullmq";
import type { ChainableCommander, Redis } from "ioredis";
import type { JSONWebKeySet, JWK } from "jose";
import type { Logger } from "pino";
import type { JobData, JobName, QueueName } from "../../schemas/jobs.ts";
import type { Booking } from "../../schemas/scheduling.ts";
import type { Env } from "./env.ts";
import type { Outbound } from "./outbound.ts";

/** JSON lines to stdout. */
export type Log = Logger;

/**
 * What a core function may use, made once a process by `openRuntime`. Functions take it first and destructure what they need,
 * so that a signature is its dependency list.
 */
export interface Runtime {
  readonly env: Env;
  /** The process's one command connection. */
  readonly redis: Redis;
  /** How the installation has its Redis: one server, one whose search module is in use, a cluster, or a master named by Sentinels. */
  readonly redisKind: "plain" | "module" | "cluster" | "sentinel";
  readonly queues: Outbox;
  readonly index: SearchIndex;
  /** The knowledge documents, opened when they are first asked for. */
  documents(): Promise<DocumentStore>;
  /** Calls to other servers; those that a user may name are guarded. */
  readonly outbound: Outbound;
  readonly model: Model;
  /** Chunks of running answers, on their way from workers to readers. */
  readonly relay: RunRelay;
  /** The service's own signer. */
  readonly signingKey: SigningKey;
  /** Checks of session tokens. */
  readonly sessions: TokenVerifier;
  /** The sealed secrets of connected accounts. */
  readonly credentials: CredentialStore;
  /** Takes money for paid bookings; absent where the installation has no payment provider. */
  readonly payments?: PaymentProvider;
  /** Reads the selected calendars of a handle; absent where the installation has none. */
  readonly busySource?: BusySource;
  /** Connections to the mail server; undefined where none is configured. */
  readonly mailer: Mailer | undefined;
  /** Opens the mailbox in which bounces arrive; undefined where none is configured. */
  readonly openBounces: (() => Promise<Mailbox>) | undefined;
  /** Which sends of rules wait outside the queue. */
  readonly delayedSends: DelayedSendLimits;
  readonly log: Log;
  /** Domain time in ms since 1970; moved by TEST_CLOCK. Leases, tokens and signatures use real time instead. */
  now(): number;
  /** Aborted when the process was told to go: it finishes what is under way and asks for nothing more. */
  readonly shutdownController: AbortController;
  /** A new random id: the prefix and 128 random bits in base 62. */
  id(prefix: string): string;
  close(): Promise<void>;
}

/** The caller. `userId` exists exactly if the route's access requires a token. */
export interface Caller {
  requestId: string;
  userId?: string;
  email?: string;
  handle?: string;
  role?: Role;
  /** The counter of the handle's pages, as it was when the role was read. */
  pages?: string;
  /** The session of this service by which the caller is signed in; absent for other tokens. */
  sessionId?: string;
  /** Scopes of a personal access token; absent for a session, which may do all that its user may. */
  scopes?: readonly string[];
  /** The network that the request came from (`networkOf`), for throttles; never stored or logged. */
  network?: string;
  idempotencyKey?: string;
  /** Digest of the body as it was parsed; there where there is a key. */
  bodyDigest?: string;
}

/** Roles of a handle, from the least to the most (docs/reference.md, "Handles, accounts and roles"). */
export const roles = ["CREATOR", "OPERATOR", "OWNER"] as const;
export type Role = (typeof roles)[number];

/**
 * Something that happens later. `id` says what it is: adding the same id again while the first is known does nothing, so a job
 * that may rightly happen again carries a version in its id. No `:` in it.
 */
export interface Job<N extends JobName = JobName> {
  name: N;
  id: string;
  data: JobData<N>;
  /** Real milliseconds to wait before it runs. */
  delay?: number;
  /** Jobs without one go first, then 1, then 2. */
  priority?: number;
  event?: never;
}

/** The job of a webhook event, with the event: both are written in one step, and only where the handle has an endpoint. */
export interface EventJob extends Omit<Job, "event"> {
  event: EventRecord;
}

/** A webhook event as a step writes it. All keys have the tag of the outbox. */
export interface EventRecord {
  key: string;
  content: string;
  retentionMs: number;
  /** The list of endpoints: without one nobody could be told, now or later. */
  endpoints: string;
  /** The set that remembers which events tell of a person, so that they can be erased. */
  person?: string | undefined;
}

/** A job as the prelude's `outbox` writes it into an outbox, with its event. */
export interface OutboxEntry {
  id: string;
  json: string;
  event?: EventRecord | undefined;
}

/** The queues of a process and the transactional outbox in front of them. */
export interface Outbox {
  /** The BullMQ queue of a name, opened when first asked for. */
  queue(name: QueueName): Queue;
  /** Enqueues at once, outside any atomic step. Use only when the caller detects a lost job. */
  later(...list: Job[]): Promise<void>;
  /** Writes a change and the jobs that it causes in one transaction on the keys of `tag`. Returns the replies of the change. */
  commit(tag: string, list: Job[], change: (transaction: ChainableCommander) => void): Promise<unknown[]>;
  /** The same for a script, which gets the outbox key and the jobs with their events and writes them only if it changes something. */
  step<R>(
    tag: string,
    list: (Job | EventJob)[],
    change: (outbox: string, jobs: OutboxEntry[]) => Promise<R>,
  ): Promise<R>;
  /** Registers a tag with the sweeper; comes before a step that writes to the outbox of that tag. */
  mark(tag: string): Promise<void>;
  /** Moves the named entries of an outbox, or all, to their queues. Returns how many there were. */
  publish(tag: string, ids?: string[]): Promise<number>;
  /** Enqueues the jobs that crashed processes left in their outboxes. Returns how many. */
  sweep(olderThanMs?: number): Promise<number>;
  close(): Promise<void>;
}

/** A chunk and its number in the run, from 1 without gaps: the `id:` of an event. */
export interface RunChunk {
  id: number;
  chunk: string;
}

/** How an ended run ended: `lost` when its worker died after chunks were out, and nobody may begin again. */
export type RunEnd = "done" | "failed" | "cancelled" | "lost";

/** A reader of one run: its chunks in order, without gaps and repeats. */
export interface RunSubscription extends AsyncIterableIterator<RunChunk> {
  /** How the run ended, once that has been read. */
  readonly outcome: RunEnd | undefined;
  /** Stops reading; doesn't wait for a pending `next`. */
  return(): Promise<IteratorResult<RunChunk>>;
}

/** The one process that may write a run's chunks. */
export interface RunPublisher {
  /** Aborted when nobody wants the answer any more, or when it can't be written any more. */
  readonly signal: AbortSignal;
  /** Sends a chunk, one line of text, in this tick of the event loop. Does nothing once the run is over. */
  write(chunk: string): void;
  /** Ends the run after what was written. Resolves when that is stored, or was cancelled before. */
  end(end?: "done" | "failed"): Promise<void>;
  /** Gives the run back unended, for another attempt of its job to take. For a run of which nothing was written. */
  release(): void;
}

/** Why a worker doesn't get a run; `sent` means that an earlier attempt got as far as sending chunks. */
export type ClaimRefusal = "unknown" | "ended" | "superseded" | "sent" | "unread";

/** How a subscriber reads a run. */
export interface SubscribeOptions {
  /** Number of the last chunk that the reader has; 0 or absent for all. */
  after?: number;
  /** Ends reading, as leaving the loop does. */
  signal?: AbortSignal;
  /** The run goes on for a while after its last reader left, instead of being cancelled at once. */
  resumable?: boolean;
}

/** Chunks of running answers, on their way from workers to readers. */
export interface RunRelay {
  /** Takes a run for an attempt of its job; `generation` is 1 or more and higher in every attempt. */
  claim(runId: string, generation: number): Promise<RunPublisher | ClaimRefusal>;
  /** Reads a run from its start or after a chunk. Begins at once: call it before the job is enqueued. */
  follow(runId: string, options?: SubscribeOptions): RunSubscription;
  close(): Promise<void>;
}

/** The service's own EdDSA key: signs session tokens; its public half is the published key set. */
export interface SigningKey {
  kid: string;
  private: CryptoKey;
  publicJwk: JWK;
}

/** Who a session token speaks for. */
export interface Session {
  userId: string;
  email?: string;
  /** Names a session of this service's own; absent for tokens of an outside signer, which keeps its sessions itself. */
  sessionId?: string;
  /** The resource that the token was issued for (RFC 8707) and its scopes there; absent where it is good for all that its user may. */
  resource?: string;
  scopes?: readonly string[];
}

/** Checks of session tokens. */
export interface TokenVerifier {
  /** The published key set of this service. */
  readonly jwks: JSONWebKeySet;
  /**
   * The session of a token; `invalid_token` for every other string and for revoked sessions, `service_unavailable` while no key can
   * be had.
   */
  check(token: string): Promise<Session>;
  /**
   * The same, and what `read` gives for the session, in one round trip to Redis. A token that was issued for a resource is good for
   * that `resource` alone.
   */
  checkWith<T>(token: string, read: (session: Session) => Promise<T>, resource?: string): Promise<[Session, T]>;
}

/** A piece of a knowledge document as a search finds it. */
export interface Passage {
  /** The document's id and the number of the piece, `doc_1:0`. */
  id: string;
  documentId: string;
  title: string;
  topic: string;
  source: string;
  /** Headings above the text, from the outermost, joined by ` › `; empty without any. */
  heading: string;
  /** An exact piece of the document's content. */
  text: string;
  /** Of the document (ISO 639-1). */
  language: string;
  tags: string[];
}

/** What is asked of one handle's knowledge. */
export interface SearchRequest {
  handle: string;
  text: string;
  /** The question's embedding; only vectors of its dimension take part. */
  vector?: Float32Array;
  /** The model that made the vector: only vectors of this model take part. */
  model?: string;
  /** A passage must carry all of them; none asks all passages. */
  tags: string[];
  /** Most passages in the answer. */
  limit: number;
}

/** Passages from the best to the worst. */
export interface SearchResult {
  /** Scores rank within one result; they mean nothing between two results. */
  hits: { passage: Passage; score: number }[];
  /** `vector` when vectors took part, alone or fused with words. */
  mode: "lexical" | "vector";
  /** True when a part of the index could not answer or did not answer in full. */
  degraded: boolean;
}

/** Which index answers now. */
export interface IndexStatus {
  /** Which one this Redis allows. */
  kind: "in-process" | "redisearch";
  /** Which one answers questions: the in-process index stands in for the server's while that is not complete. */
  serving: "in-process" | "redisearch";
  /** Why another one than `kind` is serving. */
  reason?: FallbackReason;
}

/**
 * Why the in-process index answers instead of the server's: `missing` (the index was dropped and is made again), `building` (the
 * server still reads the chunks), `partial` (it gave up for lack of memory, or stopped early), `foreign` (the index of this name
 * holds other keys), `outdated` (passages stand under terms of another version of this service), `reconnected` (the connection was lost during the question), `refused` (the server answered with an error).
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

/** The one interface of both indexes. A failing Redis rejects; an index that answers in part is `degraded`. */
export interface SearchIndex {
  readonly kind: IndexStatus["kind"];
  /** Questions that the in-process index answered instead of the server's, by reason, since this process started. */
  readonly fallbacks: ReadonlyMap<FallbackReason, number>;
  search(request: SearchRequest): Promise<SearchResult>;
  /** Asks the server; rejects when Redis can't be reached. */
  status(): Promise<IndexStatus>;
  /** Makes what vectors of this dimension need, before the first of them is written. Rejects when Redis can't be reached. */
  prepareVectors(dimensions: number): Promise<void>;
  close(): Promise<void>;
}

/** A knowledge document as it is stored. Status and chunk count change elsewhere and therefore live in the knowledge hash. */
export interface StoredDocument {
  [field: string]: string | number | string[] | undefined;
  documentId: string;
  title: string;
  topic: string;
  source: string;
  contentType: string;
  containerTags: string[];
  content: string;
  revision: string;
  createdAt: string;
  updatedAt: string;
}

/** Keeps documents by their entity id, `{handle}:documentId`. */
export interface DocumentStore {
  /** Replaces a document as a whole; takes part in no transaction. */
  save(entityId: string, stored: StoredDocument): Promise<void>;
  fetch(entityId: string): Promise<StoredDocument | undefined>;
}

/** One turn of a conversation for a model. */
export interface Message {
  role: "system" | "user" | "assistant";
  content: string;
}

/** What writes answers and measures texts. Both parts may be absent: then answers are extracted and words alone retrieve. */
export interface Model {
  /** The configured generation target, reported unchanged as `modelId`. */
  readonly id: string;
  readonly writer: Writer | undefined;
  readonly embedder: Embedder | undefined;
}

/** A function that a model may call. */
export interface Tool {
  name: string;
  description: string;
}

/** What a model sends: a piece of text, the name of a tool that it calls, or neither while it thinks. */
export interface Delta {
  text?: string;
  call?: string;
}

/** A model that writes: deltas as they come; a failure throws; `signal` ends the work at the model too. */
export interface Writer {
  /** True where the model can call tools; asked once in a while. */
  callsTools(signal: AbortSignal): Promise<boolean>;
  write(messages: Message[], tools: readonly Tool[], signal: AbortSignal): AsyncIterable<Delta>;
  /** An object of this JSON schema, unchecked: models don't keep to schemas. */
  propose(messages: Message[], schema: object, signal: AbortSignal): Promise<unknown>;
}

/** A model that turns texts into vectors of one length. */
export interface Embedder {
  readonly id: string;
  embed(texts: string[], purpose: "query" | "document", signal: AbortSignal): Promise<Float32Array[]>;
}

/** One recipient's SMTP envelope (RFC 5321, section 2.3.1). */
export interface Envelope {
  from: string;
  to: string;
}

/** Connections to the mail server. */
export interface Mailer {
  /** `rateLimit`: mails that all processes together may send in `rateDelta` ms; 0 for no limit. */
  readonly settings: { host: string; maxConnections: number; rateLimit: number; rateDelta: number };
  /** Sends a mail to one recipient; resolves with the server's reply once it has accepted it. Throws SmtpFailure. */
  send(envelope: Envelope, content: Buffer): Promise<string>;
  /** Opens a connection and logs in, to see whether the server can be reached. */
  probe(): Promise<void>;
  close(): void;
}

/** A mailbox on another server (IMAP, RFC 9051), open for reading and marking. */
export interface Mailbox {
  /** The numbers of the mails that nobody has seen, the oldest first. */
  unseen(): Promise<number[]>;
  /** A mail as bytes; undefined where it is gone. Reading doesn't mark it. */
  read(uid: number): Promise<Buffer | undefined>;
  markSeen(uid: number): Promise<void>;
  close(): void;
}

/** A connected account of a handle at a provider. */
export interface CredentialRef {
  handle: string;
  credentialId: string;
}

/** Connected accounts, as far as providers need them. */
export interface CredentialStore {
  /** The unsealed secret of an account, null where it has none; `integration_not_found`. */
  secret(account: CredentialRef): Promise<string | null>;
  /** Replaces the secret atomically by what `change` makes of it; null leaves it. Returns the one that is then kept. */
  changeSecret(account: CredentialRef, change: (secret: string | null) => string | null): Promise<string | null>;
  /** Marks an account as degraded by a failure, or as well again without one. */
  judge(account: CredentialRef, failure: Error | undefined): Promise<void>;
  /** The addresses of the handle's owners: events in which they take part are theirs. */
  ownerAddresses(handle: string): Promise<string[]>;
}

/** What is to be paid for a booking. */
export interface Order {
  handle: string;
  booking: Booking;
  amountMinor: number;
  currency: string;
  /** Where the visitor goes after paying or giving up. */
  returnUrl: string;
  /** Minutes for which it can be paid. */
  openMinutes: number;
}

/** The payment provider of paid bookings. */
export interface PaymentProvider {
  /** True where the handle has connected an account that can take money. */
  isConnected(handle: string): Promise<boolean>;
  /** Makes a hosted checkout, or gives the one that an earlier call made for the same booking. Throws where the provider can't. */
  openCheckout(order: Order): Promise<{ url: string }>;
}

/** Where busy times come from: reads a handle's selected calendars again. Must not fail. */
export interface BusySource {
  refresh(handle: string): Promise<void>;
}

/** Which delayed sends of rules wait as ids in their handle's own set instead of as delayed jobs. */
export interface DelayedSendLimits {
  /** Delayed jobs beyond which sends that are due much later wait outside the queue. */
  maxDelayed: number;
  /** Real ms before its time at which a send is a job at the latest; nothing nearer waits outside. */
  aheadMs: number;
}
