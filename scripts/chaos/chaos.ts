/**
 * `npm run chaos` runs a whole installation on loopback under a mixed load and injects every fault of faults.ts for CHAOS_MINUTES (3). Then
 * it repairs everything, lets running work finish, and compares the state with the accepted requests. Exit status 1 if a promise is broken.
 * CHAOS_SEED repeats an order of faults; CHAOS_FAULT runs only faults whose name contains it.
 */
import process from "node:process";
import { asker } from "../../fixtures/settled-handle.ts";
import { audit, type Finding } from "./audit.ts";
import { faults as all } from "./faults.ts";
import { type Ledger, Load } from "./load.ts";
import { type ChaosTown, openChaosTown } from "./town.ts";

const minutes = Number(process.env.CHAOS_MINUTES ?? 3);
const seed = Number(process.env.CHAOS_SEED ?? Date.now() % 1_000_000);
const faults = all.filter(({ name }) => name.includes(process.env.CHAOS_FAULT ?? ""));
/** Ms of a fault, of the calm after it, and within which everything must finish at the end. */
const RUN_MS = 6000;
const calm = 3000;
const SETTLE_TIMEOUT_MS = 120_000;

/** Events with a distant retry that the owner redelivered. */
const sentAgain = new Set<string>();

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));

const town = await openChaosTown({ TEST_CLOCK: "2027-03-01T08:00:00Z", TEST_CLOCK_RATE: "30" });
try {
  process.stdout.write(`chaos: ${minutes} minutes, CHAOS_SEED=${seed}\n`);
  const load = new Load(town, { pause: 250 });
  load.start();
  await breakThings(Date.now() + minutes * 60_000);
  await load.stop();
  const findings = await settled(load.ledger);
  print(load.ledger, findings);
  process.exitCode = findings.some(({ broken }) => broken.length > 0) ? 1 : 0;
} finally {
  await town.close();
}
process.exit();

async function breakThings(until: number): Promise<void> {
  const times = new Map<string, number>();
  for (let at = 0; Date.now() < until; at++) {
    const round = shuffled(Math.floor(at / faults.length));
    const fault = round[at % round.length] as (typeof faults)[number];
    process.stdout.write(`${new Date().toISOString()} ${fault.name}\n`);
    await fault.run(town, RUN_MS);
    times.set(fault.name, (times.get(fault.name) ?? 0) + 1);
    await pause(calm);
  }
  process.stdout.write(
    `${faults.filter(({ name }) => times.has(name)).length} of ${faults.length} faults were tried\n`,
  );
}

/** The order of the faults of a round, derived from the seed. */
function shuffled(round: number): typeof faults {
  let state = seed + round * 7919 + 1;
  const next = (): number => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state;
  };
  return faults
    .map((fault) => ({ fault, rank: next() }))
    .sort((one, other) => one.rank - other.rank)
    .map(({ fault }) => fault);
}

/** The findings once nothing is broken, or at the time limit. Events with a distant retry are redelivered at once. */
async function settled(ledger: Ledger): Promise<Finding[]> {
  const until = Date.now() + SETTLE_TIMEOUT_MS;
  for (;;) {
    const findings = await audit(town, ledger);
    if (findings.every(({ broken }) => broken.length === 0) || Date.now() > until) return findings;
    await redeliverWaiting(town);
    await pause(3000);
  }
}

interface Delivery {
  deliveryId: string;
  eventId: string;
  status: string;
  nextAttemptAt: string | null;
}

/** The wait before a third attempt is minutes long: an impatient owner redelivers the event. */
async function redeliverWaiting({ url, token, handles }: ChaosTown): Promise<void> {
  const owner = asker(url, token);
  for (const handle of handles) {
    const root = `/v2/handles/${handle}/scheduling/webhooks`;
    const [hook] = (await owner("GET", root)).body.webhooks as unknown as { webhookId: string }[];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const page = `${root}/${hook?.webhookId}/deliveries?limit=100${cursor && `&cursor=${cursor}`}`;
      const { deliveries, nextCursor } = (await owner("GET", page)).body as unknown as {
        deliveries: Delivery[];
        nextCursor: string | null;
      };
      for (const one of deliveries.filter(waitsLong)) {
        sentAgain.add(one.eventId);
        await owner("POST", `${root}/${hook?.webhookId}/deliveries/${one.deliveryId}/redeliver`);
      }
      cursor = nextCursor;
    }
  }
}

function waitsLong({ eventId, status, nextAttemptAt }: Delivery): boolean {
  return status === "PENDING" && !sentAgain.has(eventId) && Date.parse(nextAttemptAt ?? "") > Date.now() + 30_000;
}

function print(ledger: Ledger, findings: Finding[]): void {
  const { leads, mails, bookings, taken, chats, questions, requests, givenUp } = ledger;
  const ways = [...new Set(chats.map(({ how }) => how))].map(
    (how) => `${chats.filter((chat) => chat.how === how).length} ${how}`,
  );
  const copies = town.mail.mails.length - new Set(town.mail.mails.map(({ headers }) => headers["message-id"])).size;
  const again = town.hook.told.length - new Set(town.hook.told.map(({ id }) => id)).size;
  const lines = [
    `${requests} requests, ${givenUp} given up after a minute`,
    `accepted: ${leads.size} leads, ${mails.size} mails, ${bookings.length} bookings (${taken} slots were taken by another)`,
    `chats: ${ways.join(", ")}; questions: ${questions.answered} answered, ${questions.refused} told to come later`,
    `sent: ${town.mail.mails.length} mails, ${copies} of them copies; ${town.hook.told.length} events, ${again} of them again, ${sentAgain.size} asked for by the owner`,
    `failovers of Redis: processes wrote again after ${town.recoveries.map((ms) => `${ms} ms`).join(", ") || "none"}`,
    ...findings.map(
      ({ promise, checked, broken }) =>
        `${broken.length === 0 ? "held  " : "BROKEN"} ${promise}: ${checked - Math.min(checked, broken.length)} of ${checked}`,
    ),
    ...findings.flatMap(({ promise, broken }) => broken.slice(0, 10).map((one) => `  ${promise}: ${one}`)),
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
