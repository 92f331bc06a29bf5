import t, { type Test } from "tap";
import { keys } from "../core/store/keys.ts";
import { dice } from "../fixtures/dice.ts";
import { freePort } from "../fixtures/ports.ts";
import { spawnProgram } from "../fixtures/processes.ts";
import { openStage, PUBLIC_EVENTS_PATH, type Stage, unlimited } from "../fixtures/scheduling/owner.ts";
import type { Booking } from "../schemas/scheduling.ts";

const base = "/v2/handles/acme/scheduling";
const minute = 60_000;
const tomorrow = Math.ceil(Date.now() / 86_400_000) * 86_400_000 + 86_400_000;

interface Answer {
  status: number;
  body: { code?: string; bookingUid?: string; booking?: Booking };
}

/** Several web processes on the stage's Redis; gives what sends a request to one of them. */
async function openFronts(t: Test, stage: Stage, count: number) {
  const fronts = await Promise.all(
    Array.from({ length: count }, async () => {
      const port = await freePort();
      const env = {
        ...stage.service.redis.env,
        ...unlimited,
        PORT: String(port),
        BASE_URL: `http://127.0.0.1:${port}`,
        LOG_LEVEL: "info",
      };
      await spawnProgram(t, "api/server.ts", env).says("web.ready");
      return env.BASE_URL;
    }),
  );
  return async (front: number, path: string, body: object): Promise<Answer> => {
    const headers = { "Content-Type": "application/json" };
    const answer = await fetch(`${fronts[front % count]}${path}`, {
      method: "POST",
      headers,
      body: JSON.stringify(body),
    });
    return { status: answer.status, body: await answer.json() };
  };
}

function request(start: number, minutes: number) {
  const [from, to] = [start, start + minutes * minute].map((at) => new Date(at).toISOString());
  return { attendee: { name: "Ada", email: "ada@example.com" }, slot: { start: from, end: to } };
}

t.test("hundreds of visitors want one slot of several processes, and one gets it", async (t) => {
  const stage = await openStage(t, { env: { TEST_CLOCK: new Date().toISOString() } });
  await stage.event({ slug: "intro" });
  const post = await openFronts(t, stage, 3);
  const ask = (n: number) => post(n, `${PUBLIC_EVENTS_PATH}/intro/bookings`, request(tomorrow + 9 * 60 * minute, 30));
  const answers = await Promise.all(Array.from({ length: 300 }, (_, n) => ask(n)));
  t.equal(answers.filter(({ status }) => status === 201).length, 1);
  const losers = answers.filter(({ status }) => status !== 201);
  t.same([...new Set(losers.map(({ status, body }) => `${status} ${body.code}`))], ["409 scheduling_slot_unavailable"]);
});

t.test("bookings of an owner never overlap, despite concurrent bookings, moves and cancellations", async (t) => {
  const stage = await openStage(t, { env: { TEST_CLOCK: new Date().toISOString() } });
  const types = [
    { slug: "short", durationMinutes: 15, buffers: { beforeMinutes: 0, afterMinutes: 5 } },
    { slug: "talk", durationMinutes: 30, slotIntervalMinutes: 10, buffers: { beforeMinutes: 10, afterMinutes: 0 } },
    { slug: "hour", durationMinutes: 60, slotIntervalMinutes: 15 },
    { slug: "long", durationMinutes: 100, slotIntervalMinutes: 5, buffers: { beforeMinutes: 20, afterMinutes: 20 } },
  ];
  for (const type of types) await stage.event(type);
  const post = await openFronts(t, stage, 3);
  const roll = dice(20_261_005);
  const made: { bookingUid: string; slug: string; minutes: number }[] = [];
  const losses = new Set<string>();
  const act = async (n: number) => {
    const type = types[roll(types.length)] as (typeof types)[number];
    const start = tomorrow + (9 * 60 + roll(96) * 5) * minute;
    const own = roll(4) === 0 ? made[roll(made.length)] : undefined;
    const path = own ? `${PUBLIC_EVENTS_PATH}/${own.slug}/reschedule` : `${PUBLIC_EVENTS_PATH}/${type.slug}/bookings`;
    const body = {
      ...request(start, own?.minutes ?? type.durationMinutes),
      ...(own ? { bookingUid: own.bookingUid } : {}),
    };
    const answer = await post(n, path, body);
    if (answer.status === 201)
      made.push({ bookingUid: answer.body.bookingUid as string, slug: type.slug, minutes: type.durationMinutes });
    if (answer.status >= 400) losses.add(`${answer.status} ${answer.body.code}`);
    const given = roll(5) === 0 ? made[roll(made.length)] : undefined;
    if (given) await post(n, `${PUBLIC_EVENTS_PATH}/${given.slug}/bookings/${given.bookingUid}/cancel`, {});
  };
  for (let round = 0; round < 15; round++) await Promise.all(Array.from({ length: 40 }, (_, n) => act(n)));
  t.same(
    [...losses].filter(
      (loss) => !loss.includes("scheduling_slot_unavailable") && !loss.includes("booking_not_reschedulable"),
    ),
    [],
  );
  await t.test("read as its owner reads it", async (t) => {
    const { body } = await stage.owner.get(`${base}/bookings?status=ACCEPTED&order=asc&limit=100`).expect(200);
    const bookings = body.bookings as Booking[];
    t.ok(made.length > 10 && bookings.length > 3, `${made.length} made, ${bookings.length} stand`);
    const blocks = bookings.map(({ eventSlug, start, end }) => {
      const { buffers = { beforeMinutes: 0, afterMinutes: 0 } } = types.find(({ slug }) => slug === eventSlug) ?? {};
      return [
        Date.parse(start) - buffers.beforeMinutes * minute,
        Date.parse(end) + buffers.afterMinutes * minute,
      ] as const;
    });
    blocks.sort(([one], [other]) => one - other);
    t.same(
      blocks.filter(([from], at) => at > 0 && from < (blocks[at - 1]?.[1] ?? 0)),
      [],
    );
    t.equal(
      await stage.service.runtime.redis.zcard(keys.blocks("acme")),
      bookings.length,
      "each has its block, and nothing else has",
    );
  });
});

t.test("two moves and a cancellation at once leave one truth", async (t) => {
  const stage = await openStage(t, { env: unlimited });
  await stage.event({ slug: "intro" });
  for (let round = 0; round < 10; round++) {
    const { bookingUid } = (await stage.book("intro", "2026-10-05T09:00:00Z", 30).expect(201)).body;
    const move = (time: string) =>
      stage.service.visitor
        .post(`${PUBLIC_EVENTS_PATH}/intro/reschedule`)
        .send({ bookingUid, ...request(Date.parse(`2026-10-05T${time}:00Z`), 30) });
    const cancel = stage.service.visitor.post(`${PUBLIC_EVENTS_PATH}/intro/bookings/${bookingUid}/cancel`);
    await Promise.all([move("10:00"), move("11:00"), cancel]);
    const { booking } = (await stage.owner.get(`${base}/bookings/${bookingUid}`)).body;
    t.equal(booking.status, "CANCELLED");
    t.equal(await stage.service.runtime.redis.zcard(keys.blocks("acme")), 0);
  }
});
