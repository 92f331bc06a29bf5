/**
 * Every key of the service: our schema.sql. Kind first, then the hash tag, so that all keys of one tag can change in one step.
 * Each entry names type and lifetime; "for ever" means until its owner deletes it.
 */
export const keys = {
  // the service itself
  signingKey: "service:{signing-key}", // string, sealed private key; for ever
  clockOrigin: "service:{clock}", // string, real ms at which domain time starts (TEST_CLOCK); for ever
  probe: "service:{probe}", // string, written by readiness checks; 60 s
  heartbeat: (queue: string) => `heartbeat:{${queue}}`, // string, set by each worker of a queue; 30 s
  queuePrefix: (queue: string) => `queue:{${queue}}`, // prefix of BullMQ's own keys; finished jobs 1 h, failed ones 7 d
  outbox: (tag: string) => `outbox:{${tag}}`, // hash job id -> job; a field lives until it is enqueued
  pendingOutboxes: (shard: number) => `dirty:{${shard}}`, // zset tag -> real ms of its last registration; until swept
  handleImport: "handle-import:{handle-import}", // string, the command that imports a handle; 10 s after its last heartbeat
  throttle: (name: string, tag: string) => `bucket:${name}:{${tag}}`, // string, real µs at which the bucket is full again; until then, and 10 s

  // account
  handle: (handle: string) => `handle:{${handle}}`, // hash account, status, createdAt, since (createdAt before it was moved here), pages (counter, moved by each change of a page), mailWeight (share of the mail queue, 1), role:<userId>, setting:<name> (JSON); for ever
  handles: "handles:{all}", // set of every handle; for ever
  user: (userId: string) => `user:{${userId}}`, // hash email; for ever
  userHandles: (userId: string) => `user-handles:{${userId}}`, // set of handles, hint only (roles live in handle:); for ever
  account: (account: string) => `account:{${account}}`, // hash createdAt, entitlement:<name> = 1; for ever
  accountHandles: (account: string) => `account-handles:{${account}}`, // set; for ever
  accountDomains: (account: string) => `account-domains:{${account}}`, // set; for ever
  domain: (domain: string) => `domain:{${domain}}`, // hash account, handle, owned, createdAt, claim:<account> = handle; for ever
  userOfEmail: (email: string) => `user-of-email:{${email}}`, // string, user id by address in lower case, its domain in ASCII; a hint, user: decides; for ever
  token: (tokenId: string) => `token:{${tokenId}}`, // hash digest, user, name, scopes, created, used; until it expires
  userTokens: (userId: string) => `user-tokens:{${userId}}`, // zset token id by creation ms; for ever
  sessions: (userId: string) => `sessions:{${userId}}`, // hash session id -> JSON, used:<sessionId> -> real ms of its last use; until the last of them expires
  pairing: (attemptId: string) => `pairing:{${attemptId}}`, // hash challenge, device, status, user, email, wrong; 10 min
  oauthCode: (code: string) => `oauth-grant:{${code}}`, // hash json of an MCP client's grant, with the session that its single use starts, and uses; 60 s, and 60 s after its last use
  oauthRefresh: (userId: string, sessionId: string) => `oauth-refresh:{${userId}}:${sessionId}`, // hash round, at (real ms of the last use), json of an MCP client's grant; until its session expires
  signIn: (signInId: string) => `sign-in:{${signInId}}`, // hash email, user, language, wrong; 10 min
  audit: (handle: string) => `audit:{${handle}}`, // stream who, route, id, at, entries 90 d; 90 d after the last

  // pages
  page: (handle: string, slug: string) => `page:{${handle}}:${slug}`, // hash; for ever
  pages: (handle: string) => `pages:{${handle}}`, // zset slug by creation ms; for ever
  pageAccess: (code: string) => `page-access:{${code}}`, // string, single-use code after checkout; 15 min

  // knowledge
  documentPrefix: "document", // prefix of redis-om's documents, document:{handle}:id; for ever
  documents: (handle: string) => `documents:{${handle}}`, // zset document id by creation ms; for ever
  chunk: (handle: string, documentId: string, part: number) => `chunk:{${handle}}:${documentId}:${part}`, // hash; for ever
  knowledge: (handle: string) => `knowledge:{${handle}}`, // hash version, languages (JSON, chunks by language), d:<documentId> = version:chunks, s:<documentId> = status; for ever
  waitingDocuments: (handle: string) => `waiting-documents:{${handle}}`, // zset document id by real ms of its last change, until a worker indexes it; entries 1 h

  // strategy
  strategyContext: (handle: string, contextId: string) => `strategy-context:{${handle}}:${contextId}`, // string, JSON; 24 h

  // leads
  lead: (handle: string, leadId: string) => `lead:{${handle}}:${leadId}`, // hash version, json, notice (mail or digest to its owners), erased (its erasure has begun), mail:<message> (to its owners) -> digest of its once-only key; until erased
  leads: (handle: string) => `leads:{${handle}}`, // zset lead id by ms of its first capture; until erased
  recentLead: (handle: string, digest: string) => `lead-recent:{${handle}}:${digest}`, // string, lead of a person on a page and campaign; 24 h
  conversions: (handle: string, leadId: string) => `conversions:{${handle}}:${leadId}`, // hash conversion id -> json; until the lead is erased
  leadCode: (handle: string, leadId: string) => `lead-code:{${handle}}:${leadId}`, // hash round, wrong, used; 10 min
  leadNotices: (handle: string) => `lead-notices:{${handle}}`, // hash count and start (real ms) of the leads that owners were mailed; an hour
  leadDigest: (handle: string, round: string) => `lead-digest:{${handle}}:${round}`, // list of the hour's further leads; 25 h
  person: (handle: string, digest: string) => `person:{${handle}}:${digest}`, // set, leads of one address; until erased

  // campaigns
  campaign: (handle: string, campaignId: string) => `campaign:{${handle}}:${campaignId}`, // hash; for ever
  campaigns: (handle: string) => `campaigns:{${handle}}`, // zset campaign id by creation ms; for ever
  rule: (handle: string, campaignId: string, ruleId: string) => `rule:{${handle}}:${campaignId}:${ruleId}`, // hash version, json; until deleted, then 400 d
  rules: (handle: string, campaignId: string) => `rules:{${handle}}:${campaignId}`, // zset rule id by creation ms; until deleted
  ruleSends: (handle: string, ruleId: string) => `rule-sends:{${handle}}:${ruleId}`, // hash lead -> waiting, sent, denied, once means once; until the rule is deleted, then 400 d
  ruleCounts: (handle: string, ruleId: string) => `rule-counts:{${handle}}:${ruleId}`, // hash waiting, sent, denied; until the rule is deleted, then 400 d
  delayedSends: (handle: string) => `far-sends:{${handle}}`, // zset "campaignId ruleId leadId" -> domain ms when due; until it is a job
  delayedSendPolls: "far-turns:{far-sends}", // zset handle -> real µs of the next poll of its delayed sends; for ever

  // email: messages, their deliveries and events have the tag of their handle; identities have that of their domain
  emailIdentity: (domain: string, account: string) => `email-identity:{${domain}}:${account}`, // hash made (JSON with the sealed DKIM key), status, records, absences, lastCheckedAt, vouched; for ever
  sender: (handle: string, senderId: string) => `sender:{${handle}}:${senderId}`, // hash; for ever
  senders: (handle: string) => `senders:{${handle}}`, // zset sender id by creation ms; for ever
  template: (handle: string, templateId: string) => `template:{${handle}}:${templateId}`, // hash; for ever
  templates: (handle: string) => `templates:{${handle}}`, // zset template id by creation ms; for ever
  templateContent: (handle: string, templateId: string, version: number) =>
    `template-content:{${handle}}:${templateId}:${version}`, // string, JSON; for ever
  message: (handle: string, messageId: string) => `message:{${handle}}:${messageId}`, // hash; 90 d after its last event
  messages: (handle: string) => `messages:{${handle}}`, // zset message id by creation ms; entries 90 d
  messageEvents: (handle: string, messageId: string) => `message-events:{${handle}}:${messageId}`, // list of JSON; 90 d after its last event
  messageErasure: (handle: string, messageId: string) => `message-erasure:{${handle}}:${messageId}`, // string, the process that erases a recipient of this message; 10 s after its last heartbeat
  messageOwner: (messageId: string) => `message-owner:{${messageId}}`, // string, handle; 90 d
  emailEvents: (handle: string, list: string) => `email-events:{${handle}}:${list}`, // zset "messageId:position" by stamp, a list for each purpose and each recipient (to:digest); entries 90 d
  emailStamp: (handle: string) => `email-stamp:{${handle}}`, // string, the newest event's stamp, domain µs; for ever
  emailQueue: (handle: string, rank: number | "") => `email-queue:{${handle}}:${rank}`, // zset "messageId:n" -> real ms when due; until leased
  emailLeases: (handle: string) => `email-leases:{${handle}}`, // zset "messageId:n" -> real ms at which the lease of its sender ends; until it is sent or returned
  emailQuota: (handle: string, day: string) => `email-quota:{${handle}}:${day}`, // string, recipients accepted on that UTC day; 2 d
  mailCaps: (handle: string, day: string) => `mail-caps:{${handle}}:${day}`, // hash "cap:digest of a mailbox" -> mails accepted for it on that UTC day; 2 d
  emailOnce: (handle: string, digest: string) => `email-once:{${handle}}:${digest}`, // string, message id of an accept with a once-only key; 400 d
  emailLanes: (queue: string) => `email-turns:{email-turns}:${queue}`, // zset handle -> real µs when it is due; for ever
  mailAttempts: "mail-attempts:{email-turns}", // hash SENT, DEFERRED, FAILED, DENIED -> attempts to send a mail that ended so; for ever
  bounceMailbox: "bounce-mailbox:{email-bounces}", // string, the process that reads the mailbox of bounces; 10 s after its last heartbeat
  suppressed: (handle: string) => `suppressed:{${handle}}`, // hash digest of an address -> JSON; for ever
  suppressions: (handle: string) => `suppressions:{${handle}}`, // zset digest of an address by ms; for ever
  idempotent: (handle: string, route: string, digest: string) => `idempotent:{${handle}}:${route}:${digest}`, // string, JSON of body digest and answer; 24 h

  // scheduling: everything that decides about an owner's time has the handle's tag, so that one step can prevent overlaps
  schedule: (handle: string, scheduleId: string) => `schedule:{${handle}}:${scheduleId}`, // hash version, json; for ever
  schedules: (handle: string) => `schedules:{${handle}}`, // zset schedule id by creation ms; for ever
  eventType: (handle: string, eventTypeId: string) => `event-type:{${handle}}:${eventTypeId}`, // hash version, json, slug; for ever
  eventTypes: (handle: string) => `event-types:{${handle}}`, // zset event type id by creation ms; for ever
  eventTypeSlugs: (handle: string) => `event-type-slugs:{${handle}}`, // hash slug -> event type id; for ever
  catalogVersion: (handle: string) => `catalog-version:{${handle}}`, // counter, bumped by each change of a schedule or event type; for ever
  catalogLock: (handle: string) => `catalog-lock:{${handle}}`, // string, the request that writes a long schedule or event type; 10 s after its last heartbeat
  booking: (handle: string, bookingUid: string) => `booking:{${handle}}:${bookingUid}`, // hash version, json, status, block, written (JSON of its event and meeting at the providers, and of a creation that has begun), linkless, "notice kind sequence" ("mail", or the digest in which owners hear of it); for ever
  bookingNotices: (handle: string) => `booking-notices:{${handle}}`, // hash count and start (real ms) of the bookings that the service mailed to owners; an hour
  bookingDigest: (handle: string, round: string) => `booking-digest:{${handle}}:${round}`, // list of the hour's further mails, as the data of their jobs; 25 h
  syncLock: (handle: string, bookingUid: string) => `sync-lock:{${handle}}:${bookingUid}`, // string, the process that writes this booking to its providers; 10 s after its last heartbeat
  unsynced: (handle: string) => `unsynced:{${handle}}`, // set of bookings whose event could not be written; until it could
  unrefunded: (handle: string) => `unrefunded:{${handle}}`, // set of bookings whose payment could not be refunded; until it was
  bookings: (handle: string, status: string) => `bookings:{${handle}}:${status}`, // zset booking uid by start ms, a list for each status and ALL; for ever
  bookingBucket: (handle: string, network: string) => `network-bucket:{${handle}}:${network}`, // string, real µs at which the bucket is full again; until then, and 10 s
  attendeeBookings: (handle: string, address: string) => `attendee-bookings:{${handle}}:${address}`, // zset booking uid by start ms, future bookings of one address; until the last of them begins
  calendarFeed: (handle: string) => `calendar-feed:{${handle}}`, // string, JSON of the digest of its secret and createdAt; until revoked
  blocks: (handle: string) => `blocks:{${handle}}`, // zset "from:to:hold:start:eventTypeId:bookingUid" by from, bookings with their buffers, never overlapping; for ever
  busy: (handle: string) => `busy:{${handle}}`, // zset "from:to" by from, busy time of the selected calendars, merged; until replaced
  busyDraft: (handle: string, draft: string) => `busy-draft:{${handle}}:${draft}`, // zset that replaces busy when it is complete; 60 s
  busyState: (handle: string) => `busy-state:{${handle}}`, // hash at (real ms of the last pull), source (digest of the calendars' states); until the calendars are unselected
  timesVersion: (handle: string) => `times-version:{${handle}}`, // counter, bumped by each change of blocks or busy; for ever
  webhookEvent: (handle: string, eventId: string) => `webhook-event:{${handle}}:${eventId}`, // string, JSON; 30 d

  // providers
  credential: (handle: string, credentialId: string) => `credential:{${handle}}:${credentialId}`, // hash version, json (its secret sealed); until disconnected
  credentials: (handle: string) => `credentials:{${handle}}`, // zset credential id by creation ms; until disconnected
  refreshLock: (handle: string, credentialId: string) => `refresh-lock:{${handle}}:${credentialId}`, // string, the process that refreshes its tokens; 10 s after its last heartbeat
  providerPause: (handle: string, credentialId: string) => `provider-pause:{${handle}}:${credentialId}`, // string, no calls for this account; as long as its provider's Retry-After
  selectedCalendars: (handle: string) => `selected-calendars:{${handle}}`, // hash credential id -> JSON; until the account is disconnected
  calendarDraft: (handle: string, draft: string) => `calendar-draft:{${handle}}:${draft}`, // hash of a reading's objects until it is complete; 1 h if the process crashes
  calendarObjects: (handle: string, calendar: string) => `calendar-objects:{${handle}}:${calendar}`, // hash object -> JSON of its tag and busy time, "" -> the last reading; 30 d after it
  oauthState: (state: string) => `oauth-state:{${state}}`, // string, JSON of handle, provider, user, verifier; 10 min, single use
  oauthConsent: (consentId: string) => `oauth-consent:{${consentId}}`, // string, sealed JSON of an account that its user has not confirmed yet; 10 min, single use
  pageCheckout: (session: string) => `page-checkout:{${session}}`, // string, real ms of the first return from this checkout; 400 d
  pagePurchase: (handle: string, session: string) => `page-purchase:{${handle}}:${session}`, // string, JSON of a purchase, by its checkout; 400 d
  pagePurchases: (handle: string, slug: string) => `page-purchases:{${handle}}:${slug}`, // zset checkout by ms of its purchase; entries 400 d
  pageBuyer: (handle: string, digest: string) => `page-buyer:{${handle}}:${digest}`, // set, checkouts of one address; 400 d after the last, or until its person is erased
  pageRefund: (handle: string, payment: string) => `page-refund:{${handle}}:${payment}`, // string, instant at which this payment of a page was refunded; 400 d

  // webhooks
  webhook: (handle: string, webhookId: string) => `webhook:{${handle}}:${webhookId}`, // hash version, json, status; for ever
  webhooks: (handle: string) => `webhooks:{${handle}}`, // zset webhook id by creation ms; for ever
  webhookAudience: (handle: string, eventId: string) => `webhook-audience:{${handle}}:${eventId}`, // string, ids of the endpoints that were enabled when the event was written; 30 d
  webhookQueue: (handle: string, webhookId: string) => `webhook-queue:{${handle}}:${webhookId}`, // zset delivery id -> real ms when due, or when its lease ends; until settled
  webhookAwake: (handle: string, webhookId: string) => `webhook-awake:{${handle}}:${webhookId}`, // string, the sender of this endpoint's deliveries; 60 s after it was called, 20 s after its last heartbeat
  webhookFailing: (handle: string, webhookId: string) => `webhook-failing:{${handle}}:${webhookId}`, // string, real ms of the first failure since the last success; 30 d
  personEvents: (handle: string, digest: string) => `person-events:{${handle}}:${digest}`, // set of keys of events about one address, expired ones among them for a while; 30 d after the last
  webhookDelivery: (handle: string, deliveryId: string) => `webhook-delivery:{${handle}}:${deliveryId}`, // string, JSON; 30 d
  webhookAnswers: (handle: string, eventId: string) => `webhook-answers:{${handle}}:${eventId}`, // hash "deliveryId attempt" -> beginning of an endpoint's answer, which may quote the event; 30 d, with its event
  webhookDeliveries: (handle: string, webhookId: string) => `webhook-deliveries:{${handle}}:${webhookId}`, // zset delivery id by ms; entries 30 d

  waitingAnswers: (handle: string) => `waiting-answers:{${handle}}`, // zset run id by real ms of its question, until a worker answers it; entries 20 s

  // assistant: all runs, each one answer, share a tag, so that one command reads the chunks of many
  run: (runId: string) => `run:{runs}:${runId}`, // hash, the input of the answer; 10 min from its creation, and no longer than its run
  runChunks: (runId: string) => `run-chunks:{runs}:${runId}`, // stream, ids generation-number, whose last entry ends the run; 10 min after it
  runReaders: (runId: string) => `run-readers:{runs}:${runId}`, // zset web process -> real ms at which its lease ends; 10 min
  runAlive: (runId: string) => `run-alive:{runs}:${runId}`, // string, exists while a worker answers; 15 s after its last heartbeat
  runReader: (readerId: string) => `run-reader:{runs}:${readerId}`, // stream, an entry ends the blocking read of a web process; 10 s after it
  chatRun: (handle: string, slug: string, chat: string) => `chat:{${handle}}:${slug}:${chat}`, // string, run of a chat's latest answer; 10 min
  chatSection: (handle: string, slug: string, chat: string) => `chat-section:{${handle}}:${slug}:${chat}`, // string, the run that shows the lead section; 24 h
  leadSection: (handle: string, slug: string, section: string) => `lead-section:{${handle}}:${slug}:${section}`, // string, JSON of fields and submit label; 24 h
} as const;

// Redis takes a tag that begins with a closing brace for none; its client doesn't, and would ask another node of a cluster.
const makers: Record<string, unknown> = keys;
for (const [name, make] of Object.entries(makers))
  if (typeof make === "function")
    makers[name] = (...parts: unknown[]): string => String(make(...parts)).replace(/\{\}(?=.*\})/s, "{%7D");

/** Number of shards of the pending outboxes; a tag's shard never changes. */
export const OUTBOX_SHARDS = 16;
