import { Redis } from "ioredis";
import { keys, OUTBOX_SHARDS } from "../../core/store/keys.ts";
import { asker } from "../../fixtures/settled-handle.ts";
import { queueNames } from "../../schemas/jobs.ts";
import { floodMark } from "./flood.ts";
import type { Ledger } from "./load.ts";
import type { ChaosTown } from "./town.ts";

/** One promise: how many things were checked, and those that break it. */
export interface Finding {
  promise: string;
  checked: number;
  broken: string[];
}

interface Evidence {
  town: ChaosTown;
  ledger: Ledger;
  redis: Redis;
}

/** Compares the current state with everything that was accepted. Unfinished work counts as broken: retry later. */
export async function audit(town: ChaosTown, ledger: Ledger): Promise<Finding[]> {
  const redis = new Redis(town.redis.url);
  const evidence = { town, ledger, redis };
  try {
    return [
      await noOverlap(evidence),
      await everyBooking(evidence),
      everyBookingMail(evidence),
      everyEvent(evidence),
      await everyLead(evidence),
      onceARule(evidence),
      everyMail(evidence),
      everyStream(evidence),
      await nothingOfStrangers(evidence),
      everyRecovery(evidence),
      noHarmByCalendars(evidence),
      await nothingStuck(evidence),
      nothingWrong(evidence),
    ];
  } finally {
    redis.disconnect();
  }
}

/** Blocks include the buffers of their bookings: none may begin before the previous one ends. */
async function noOverlap({ town, redis }: Evidence): Promise<Finding> {
  const broken: string[] = [];
  let checked = 0;
  for (const handle of town.handles) {
    let end = Number.NEGATIVE_INFINITY;
    for (const block of await redis.zrange(keys.blocks(handle), 0, "-1")) {
      const [from = 0, to = 0] = block.split(":").map(Number);
      if (from < end) broken.push(`${handle} ${block}`);
      end = Math.max(end, to);
      checked++;
    }
  }
  return { promise: "no two bookings of an owner overlap", checked, broken };
}

async function everyBooking({ town, ledger }: Evidence): Promise<Finding> {
  const owner = asker(town.url, town.token);
  const broken: string[] = [];
  for (const { handle, uid } of ledger.bookings) {
    const { body } = await owner("GET", `/v2/handles/${handle}/scheduling/bookings/${uid}`);
    if ((body.booking as { status?: string } | undefined)?.status !== "ACCEPTED") broken.push(uid);
  }
  const made = new Set(ledger.bookings.map(({ email }) => email));
  if (made.size !== ledger.bookings.length) broken.push("a visitor was booked twice with one key");
  return { promise: "every booking that was confirmed is there", checked: ledger.bookings.length, broken };
}

function everyBookingMail({ town, ledger }: Evidence): Finding {
  const mailed = new Set(town.mail.mails.flatMap(({ to }) => to));
  const broken = ledger.bookings.filter(({ email }) => !mailed.has(email)).map(({ uid }) => uid);
  return { promise: "every booking's confirmation was sent", checked: ledger.bookings.length, broken };
}

function everyEvent({ town, ledger }: Evidence): Finding {
  const told = new Set(town.hook.told.map(({ type, bookingUid }) => `${type} ${bookingUid}`));
  const due = ledger.bookings.flatMap(({ uid }) =>
    ["created", "confirmed"].map((kind) => `scheduling.booking.${kind} ${uid}`),
  );
  return {
    promise: "every event of a booking reached the webhook",
    checked: due.length,
    broken: due.filter((one) => !told.has(one)),
  };
}

async function everyLead({ town, ledger }: Evidence): Promise<Finding> {
  const owner = asker(town.url, town.token);
  const broken: string[] = [];
  for (const [name, leadId] of ledger.leads) {
    const [handle = ""] = name.split(" ");
    if ((await owner("GET", `/v2/handles/${handle}/leads/${leadId}`)).status !== 200) broken.push(name);
  }
  return { promise: "every lead that was accepted is there", checked: ledger.leads.size, broken };
}

/** Mails per lead: one per rule. */
const rulesEach = 3;

/** Copies of one mail have one Message-ID: a crash between sending and recording may repeat a mail, but must not make another. */
function onceARule({ town, ledger }: Evidence): Finding {
  const sent = messageIds(town);
  const broken = [...ledger.leads.keys()].filter((name) => (sent.get(name)?.size ?? 0) !== rulesEach);
  return {
    promise: `each of ${rulesEach} rules sent each lead one mail`,
    checked: ledger.leads.size * rulesEach,
    broken: broken.map((name) => `${name}: ${sent.get(name)?.size ?? 0}`),
  };
}

function everyMail({ town, ledger }: Evidence): Finding {
  const sent = messageIds(town);
  const broken = [...ledger.mails.keys()].filter((name) => (sent.get(name)?.size ?? 0) !== 1);
  return {
    promise: "every mail that was accepted was sent, as one message",
    checked: ledger.mails.size,
    broken: broken.map((name) => `${name}: ${sent.get(name)?.size ?? 0}`),
  };
}

/** Message-IDs by `handle recipient`; the sending domain gives the handle. */
function messageIds({ mail }: ChaosTown): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const { to, headers } of mail.mails) {
    const handle = /@([a-z]+)\.example/.exec(headers.from ?? "")?.[1];
    const name = `${handle} ${to[0]}`;
    found.set(name, (found.get(name) ?? new Set()).add(headers["message-id"] ?? ""));
  }
  return found;
}

/** A stream was cut off if its web process died. */
function everyStream({ town, ledger }: Evidence): Finding {
  const ends = town.webs.flatMap((web) => web.ends);
  const broken = ledger.chats.filter(({ how, began, ended }) => {
    if (how === "cut off") return !ends.some((at) => at >= began - 1000 && at <= ended + 1000);
    return how === "never ended";
  });
  return {
    promise: "every stream ended in order, but for those whose web process died",
    checked: ledger.chats.length,
    broken: broken.map(({ how, began, ended }) => `${how} after ${ended - began} ms, ${new Date(began).toISOString()}`),
  };
}

/** Most throttle buckets that an installation of this size needs. */
const MAX_BUCKETS = 1000;

/** A flood of made-up names leaves no keys, and its throttles share few buckets. */
async function nothingOfStrangers({ redis }: Evidence): Promise<Finding> {
  const broken: string[] = [];
  let [checked, buckets] = [0, 0];
  for await (const names of redis.scanStream({ count: 1000 }) as AsyncIterable<string[]>) {
    checked += names.length;
    buckets += names.filter((name) => name.startsWith("bucket:")).length;
    broken.push(...names.filter((name) => name.includes(floodMark)).map((name) => name.slice(0, 200)));
  }
  if (buckets > MAX_BUCKETS) broken.push(`${buckets} buckets`);
  return { promise: "a flood of made-up names leaves no key of its own", checked, broken };
}

/** Ms within which writes continue after a failover of Redis. */
const recoveryMs = 5000;

function everyRecovery({ town: { recoveries } }: Evidence): Finding {
  return {
    promise: "each process wrote again within 5 s of a failover of Redis",
    checked: recoveries.length,
    broken: recoveries.filter((ms) => ms > recoveryMs).map((ms) => `${ms} ms`),
  };
}

/** A hostile calendar server slows down no web process, and its account degrades with a reason. */
function noHarmByCalendars({ town: { calendarAttacks } }: Evidence): Finding {
  const isHarmless = ({ healthMs, limitMs, account }: ChaosTown["calendarAttacks"][number]): boolean =>
    healthMs <= limitMs && account.status === "DEGRADED" && Boolean(account.detail);
  return {
    promise: "a hostile calendar server degraded its account alone",
    checked: calendarAttacks.length,
    broken: calendarAttacks.filter((one) => !isHarmless(one)).map((one) => JSON.stringify(one)),
  };
}

/** No lease, no outbox entry, no due job that waits, no failed job. */
async function nothingStuck({ town, redis }: Evidence): Promise<Finding> {
  const broken: string[] = [];
  for (const handle of town.handles) {
    for (const key of [
      keys.emailLeases(handle),
      keys.emailQueue(handle, 0),
      keys.emailQueue(handle, 1),
      keys.emailQueue(handle, 2),
    ])
      if (await redis.zcard(key)) broken.push(`${key} holds ${await redis.zcard(key)}`);
    if (await redis.hlen(keys.outbox(handle)))
      broken.push(`${keys.outbox(handle)} holds ${await redis.hlen(keys.outbox(handle))}`);
  }
  for (const queue of queueNames) broken.push(...(await leftIn(redis, queue)));
  const later = await redis.zcard(`${keys.queuePrefix("campaigns")}:campaigns:delayed`);
  if (later) broken.push(`${later} sends of rules wait for their time`);
  for (let shard = 0; shard < OUTBOX_SHARDS; shard++)
    if (await redis.zcard(keys.pendingOutboxes(shard))) broken.push(`${keys.pendingOutboxes(shard)} is dirty`);
  return {
    promise: "no lease, outbox entry or job is stuck",
    checked: queueNames.length + town.handles.length * 5 + OUTBOX_SHARDS,
    broken,
  };
}

async function leftIn(redis: Redis, queue: string): Promise<string[]> {
  const name = (kind: string): string => `${keys.queuePrefix(queue)}:${queue}:${kind}`;
  const [active, wait, prioritized, failed] = await Promise.all([
    redis.llen(name("active")),
    redis.llen(name("wait")),
    redis.zcard(name("prioritized")),
    redis.zcard(name("failed")),
  ]);
  return Object.entries({ active, wait, prioritized, failed }).flatMap(([state, count]) =>
    count ? [`${queue}: ${count} ${state}`] : [],
  );
}

function nothingWrong({ town, ledger }: Evidence): Finding {
  const defects = [...town.webs, ...town.workers].flatMap(({ name, defects }) =>
    defects.map((line) => `${name}: ${line.slice(0, 400)}`),
  );
  const { wrong, requests } = ledger;
  return {
    promise: "no answer but success, a taken slot and 503; no defect in a log",
    checked: requests,
    broken: [...wrong, ...defects],
  };
}
