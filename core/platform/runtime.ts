import type { Redis } from "ioredis";
import type { Logger } from "pino";
import type { Model } from "../assistant/model.ts";
import type { Relay } from "../engines/relay/relay.ts";
import type { Env } from "./env.ts";
import type { FarLimits } from "../campaigns/delayed-sends.ts";
import type { Mailbox } from "../engines/mail/mailbox.ts";
import type { SmtpPool } from "../engines/mail/smtp.ts";
import type { KnowledgeIndex } from "../engines/search/search.ts";
import type { DocumentStore } from "../engines/search/stored.ts";
import type { SigningKey } from "../account/signing.ts";
import type { Sessions } from "../account/sessions.ts";
import type { Outbound } from "./outbound.ts";
import type { Queues } from "../store/outbox.ts";
import type { Payments } from "../scheduling/checkout.ts";
import type { BusySource } from "../scheduling/times.ts";

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
  readonly queues: Queues;
  readonly index: KnowledgeIndex;
  /** The knowledge documents, opened when they are first asked for. */
  documents(): Promise<DocumentStore>;
  /** Calls to other servers; those that a user may name are guarded. */
  readonly outbound: Outbound;
  readonly model: Model;
  /** Chunks of running answers, on their way from workers to readers. */
  readonly relay: Relay;
  /** The service's own signer. */
  readonly signingKey: SigningKey;
  /** Checks of session tokens. */
  readonly sessions: Sessions;
  /** Takes money for paid bookings; absent where the installation has no payment provider. */
  readonly payments?: Payments;
  /** Reads the selected calendars of a handle; absent where the installation has none. */
  readonly busySource?: BusySource;
  /** Connections to the mail server; undefined where none is configured. */
  readonly mailer: SmtpPool | undefined;
  /** Opens the mailbox in which bounces arrive; undefined where none is configured. */
  readonly openBounces: (() => Promise<Mailbox>) | undefined;
  /** Which sends of rules wait outside the queue. */
  readonly farLimits: FarLimits;
  readonly log: Log;
  /** Domain time in ms since 1970; moved by TEST_CLOCK. Leases, tokens and signatures use real time instead. */
  now(): number;
  /** Aborted when the process was told to go: it finishes what is under way and asks for nothing more. */
  readonly going: AbortController;
  /** A new random id: the prefix and 128 random bits in base 62. */
  id(prefix: string): string;
  close(): Promise<void>;
}

/** Who asks. `userId` is there exactly where the route's access asks for a token. */
export interface Caller {
  requestId: string;
  userId?: string;
  email?: string;
  handle?: string;
  role?: Role;
  /** The counter of the handle's pages, as it was when the role was read. */
  pages?: string;
  /** Scopes of a personal access token; absent for a session, which may do all that its user may. */
  scopes?: readonly string[];
  /** The network that the request came from (`networkOf`), for throttles; never stored or logged. */
  network?: string;
  idempotencyKey?: string;
  /** Digest of the body as it was parsed; there where there is a key. */
  bodyDigest?: string;
}

/** Roles of a handle, from the least to the most (contract 3). */
export const roles = ["CREATOR", "OPERATOR", "OWNER"] as const;
export type Role = (typeof roles)[number];
