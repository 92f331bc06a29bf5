// Over 300 lines: the table of the scripts.
import type { OutboxEntry, RunEnd } from "../platform/runtime.ts";
import { script, scriptsOf } from "./script.ts";

type Jobs = OutboxEntry[];

/** The keys that every script over deliveries of mail has. */
const deliveryKeys = ["messages", "timelines", "events", "queues", "stamp"] as const;
const runKeys = ["chunks", "readers", "alive"] as const;
const inRun = { needs: ["run"] };

/**
 * Every script of core/store/lua, under the name of its file (`putRecord` is in `put-record.lua`): its keys by name, its input and its
 * result. The headers of the files say what each name means. `runsWhenFull` says why.
 */
export const scripts = scriptsOf({
  // the store itself
  renewLock: script(["lock"], { runsWhenFull: "it adds no memory" }).of<
    { holder: string; leaseMs: number },
    "renewed" | "lost"
  >(),
  unregisterOutbox: script(["shard"], { runsWhenFull: "it frees memory" }).of<{ tag: string; score: string }, null>(),
  takeToken: script(["bucket"], { needs: ["bucket"] }).of<{ interval: number; burst: number }, number>(),
  putRecord: script(["record", "list", "counter", "slugs", "outbox", "companion"], {
    blobs: ["json", "companion"],
  }).of<
    {
      version: number;
      json: string;
      member: string;
      score: number;
      jobs: Jobs;
      status: string;
      slug?: string | undefined;
      field?: string | undefined;
      companion?: string | undefined;
      max?: number | undefined;
    },
    string
  >(),
  dropRecord: script(["record", "list", "counter", "slugs"], {
    runsWhenFull: "it frees memory",
  }).of<{ member: string; field?: string | undefined }, 0 | 1>(),

  // account
  startSession: script(["sessions"]).of<
    { sessionId: string; json: string; now: number; expiresAt: number; max: number },
    null
  >(),
  recordUse: script(["hash"], { runsWhenFull: "it overwrites a field" }).of<
    { used: string; field: string; now: number },
    null
  >(),
  useRefresh: script(["grant", "sessions"]).of<
    { sessionId: string; round: number; now: number; expiresAt: number; graceMs: number; maxMs: number },
    [] | [round: string, endsAt: string]
  >(),
  claimDomain: script(["domain"]).of<
    { account: string; handle: string | undefined; instant: string; isProven: boolean },
    ["taken"] | [state: "claimed" | "proven", handle: string, isFirst: 0 | 1]
  >(),
  releaseDomain: script(["domain", "identity"]).of<{ account: string }, number>(),
  decidePairing: script(["attempt"]).of<
    { status: "authorised" | "denied"; userId: string; email: string },
    "decided" | "unknown" | "late"
  >(),
  redeemAttempt: script(["attempt"]).of<
    { isRight: boolean; maxWrong: number },
    | ["unknown" | "wrong" | "ended" | "pending" | "denied"]
    | ["authorised", userId: string, email: string, device: string]
  >(),

  // runs of the assistant, and the fair queue
  claimRun: script(runKeys, inRun).of<
    { generation: number; token: string; lostMs: number; keepMs: number },
    "claimed" | "unknown" | "ended" | "superseded" | "sent" | "unread"
  >(),
  checkRun: script(runKeys, inRun).of<
    { generation: number; lostMs: number; keepMs: number },
    "read" | "unread" | "unknown" | "superseded" | RunEnd
  >(),
  leaseRun: script(runKeys, inRun).of<{ reader: string; leaseMs: number; keepMs: number }, number | "unknown">(),
  endRun: script([...runKeys, "fields"], inRun).of<
    {
      state: RunEnd;
      keepMs: number;
      condition: "anyway" | "unread" | "silent" | "written";
      newest?: string | undefined;
      chunk?: string | undefined;
    },
    "ended" | "already" | "refused" | "unknown"
  >(),
  claimLanes: script(["lanes"]).of<{ limit: number; leaseUs: number }, [due: number, ...lanesAndPositions: string[]]>(),
  parkLane: script(["lanes"]).of<{ lane: string; position: string; nextUs: number }, 0 | 1>(),

  // email
  acceptMessage: script([...deliveryKeys, "list", "suppressed", "quota", "once", "idempotent", "caps", "leads"], {
    needs: ["email"],
    blobs: ["json", "content"],
  }).of<
    {
      messageId: string;
      json: string;
      content: string;
      purpose: string;
      rank: number;
      instant: string;
      at: number;
      due: number;
      recipients: { about: string; digest: string; mailbox: string }[];
      quota: number;
      answer?: string | undefined;
      keyDigest?: string | undefined;
      onceDigest?: string | undefined;
      denied?: string | undefined;
      refusesAll: boolean;
      isClosed: boolean;
      caps: { name: string; max: number }[];
      leads: readonly string[];
      isNotice: boolean;
    },
    [
      kind: "accepted" | "repeated" | "once" | "erased" | "denied" | "suppressed" | "quota" | "closed",
      ...rest: string[],
    ]
  >(),
  takeDeliveries: script([...deliveryKeys, "leases", "bucket", "handle"], {
    needs: ["email", "bucket"],
  }).of<
    {
      share: number;
      maxRank: number;
      now: number;
      leaseEndsAt: number;
      token: string;
      instant: string;
      at: number;
      interval: number;
      burst: number;
      max: number;
    },
    [
      nextPoll: string,
      ...leased: [name: string, json: string, content: string, attempt: number, quota: string | null][],
    ]
  >(),
  moveDelivery: script([...deliveryKeys, "leases", "suppressed", "suppressions", "outbox"], {
    needs: ["email", "suppression"],
    runsWhenFull: "a mail whose sending is not recorded would be sent again",
  }).of<
    {
      messageId: string;
      n: number;
      from: readonly string[];
      to?: string | undefined;
      type: string;
      instant: string;
      at: number;
      members: string;
      token?: string | undefined;
      due?: number | undefined;
      givesBack?: boolean | undefined;
      suppression?: string | undefined;
      lifted?: string | undefined;
      jobs: Jobs;
    },
    "moved" | "stale"
  >(),
  suppressAddress: script(["suppressed", "suppressions"], {
    needs: ["suppression"],
  }).of<{ digest: string; json: string; at: number; replaced?: string | undefined }, string>(),

  // leads and campaigns
  captureLead: script(["recent", "lead", "list", "person", "outbox"], { blobs: ["json"] }).of<
    {
      recentId?: string | undefined;
      version: number;
      leadId: string;
      json: string;
      at: number;
      recentMs: number;
      jobs: Jobs;
    },
    "written" | "changed"
  >(),
  decideNotice: script(["record", "notices", "digests"]).of<
    { field: string; item: string; maxMails: number; hourMs: number; keepMs: number },
    string
  >(),
  issueLeadCode: script(["code", "lead"]).of<{ round: string; version: number; ttlMs: number }, string>(),
  tryLeadCode: script(["code", "lead", "outbox"], { blobs: ["json"] }).of<
    { round?: string | undefined; isRight: boolean; maxWrong: number; version: number; json: string; jobs: Jobs },
    "verified" | "wrong" | "changed"
  >(),
  recordConversion: script(["lead", "conversions", "outbox"]).of<
    { conversionId: string; json: string; jobs: Jobs },
    "written" | "gone"
  >(),
  scheduleSend: script(["sends", "counts", "outbox", "delayed", "rule"]).of<
    { leadId: string; jobs: Jobs; delayedName?: string | undefined; due: number },
    null
  >(),
  settleSend: script(["sends", "counts"]).of<{ leadId: string; state: "sent" | "denied" }, null>(),

  // knowledge
  writeDocument: script(["document", "knowledge", "list", "outbox"], {
    needs: ["knowledge"],
    blobs: ["values[]"],
  }).of<
    {
      earlier: string;
      revision: string;
      documentId: string;
      createdAt: number;
      prefix: string;
      status: string;
      jobs: Jobs;
      language: string;
      hashSize: number;
      sizes: number[];
      values: (string | Buffer)[];
    },
    "written" | "changed"
  >(),
  dropDocument: script(["document", "knowledge", "list"], {
    needs: ["knowledge"],
    runsWhenFull: "it frees memory",
  }).of<{ documentId: string; prefix: string }, 0 | 1>(),

  // payments and webhooks
  recordPurchase: script(["purchase", "purchases", "buyer", "outbox"]).of<
    { json: string; sessionId: string; ms: number; keepSeconds: number; hasBuyer: boolean; jobs: Jobs },
    "written" | "known"
  >(),
  queueDeliveries: script(["outbox", "delivery", "list", "queue", "awake"]).of<
    {
      now: number;
      keepMs: number;
      callMs: number;
      jobs: Jobs;
      deliveries: { id: string; json: string; due: number }[];
    },
    null
  >(),
  turnWebhookSender: script(["queue", "awake", "failing", "endpoint", "delivery", "event", "answers"], {
    runsWhenFull: "an event whose sending is not recorded would be sent again",
  }).of<
    {
      senderId: string;
      now: number;
      leaseMs: number;
      max: number;
      busy: number;
      failureMs: number;
      results: {
        id: string;
        json: string;
        due?: number | undefined;
        outcome: string;
        eventId: string;
        answers: string[];
      }[];
    },
    | [since: string, state: "busy" | "gone"]
    | [since: string, state: "asleep", next: string]
    | [since: string, state: "awake", json?: string, ...deliveries: [json: string, content: string][]]
  >(),

  // scheduling
  writeReading: script(["objects", "draft"], { blobs: ["last"] }).of<
    { last: string; isWhole: boolean; removed: string[]; keepSeconds: number },
    "written" | "outdated"
  >(),
  writeBusy: script(["busy", "draft", "state", "times"]).of<
    { last?: string | undefined; change: "replace" | "empty" | "confirm"; source?: string | undefined; readAt: number },
    "written" | "outdated"
  >(),
  writeBooking: script(
    [
      ...["booking", "blocks", "busy", "all", "before", "after", "catalog", "times", "outbox", "record"],
      ...["credentials", "bucket", "attendee"],
    ] as const,
    { needs: ["bucket"], blobs: ["json"] },
  ).of<
    {
      version: number;
      catalogVersion?: string | undefined;
      json: string;
      status: string;
      uid: string;
      start: number;
      now: number;
      slot: "claim" | "reclaim" | "hold" | "release";
      block?: { member: string; from: number; to: number } | undefined;
      eventTypeId: string;
      dayLimit?: { max: number; from: number; to: number } | undefined;
      record?: string | undefined;
      recordMs: number;
      jobs: Jobs;
      syncJobs: Jobs;
      networkLimit?: { interval: number; burst: number } | undefined;
      maxFuture: number;
    },
    ["written" | "changed" | "taken" | "repeated"] | ["crowded" | "limited", waitMs: string]
  >(),
});
