import t, { type Test } from "tap";
import { type Dice, dice } from "../fixtures/dice.ts";
import { openStage, PUBLIC_EVENTS_PATH, type Stage, unlimited } from "../fixtures/scheduling/owner.ts";
import type { Booking } from "../schemas/scheduling.ts";

const base = "/v2/handles/acme/scheduling";
const minute = 60_000;
const midnight = Date.parse("2026-10-06T00:00:00Z");
const [OPENS, CLOSES] = [9 * 60, 12 * 60];

/** What is known of one morning: the event types by slug, and the bookings, with their starts in minutes. */
interface Morning {
  types: Record<string, Terms>;
  bookings: Standing[];
}

interface Terms {
  durationMinutes: number;
  confirmationRequired: boolean;
  hidden: boolean;
  maxBookingsPerDay: number;
}

interface Standing {
  uid: string;
  slug: string;
  status: string;
  start: number;
  end: number;
  moves: number;
}

interface Answer {
  /** Status, and code or booking's status. */
  outcome: string;
  uid: string;
}

/** A request, and what it does if it is the next one: it changes the morning and returns the expected outcome. */
interface Step {
  send(stage: Stage): ReturnType<Stage["owner"]["post"]>;
  apply(morning: Morning, uid: string): string;
}

const taken = "409 scheduling_slot_unavailable";
const isHeld = ({ status }: Standing): boolean => status === "ACCEPTED" || status === "PENDING";
const find = ({ bookings }: Morning, uid: string) => bookings.find((one) => one.uid === uid) as Standing;
const termsOf = ({ types }: Morning, slug: string) => types[slug] as Terms;

function isFree(morning: Morning, { slug, start, uid }: Pick<Standing, "slug" | "start" | "uid">): boolean {
  const { durationMinutes, maxBookingsPerDay } = termsOf(morning, slug);
  const end = start + durationMinutes;
  const others = morning.bookings.filter((one) => isHeld(one) && one.uid !== uid);
  const isClear = others.every((one) => one.start >= end || one.end <= start);
  return isClear && end <= CLOSES && others.filter((one) => one.slug === slug).length < maxBookingsPerDay;
}

function slotOf(start: number, minutes: number): { start: string; end: string } {
  const [from, to] = [start, start + minutes].map((at) => new Date(midnight + at * minute).toISOString());
  return { start: from as string, end: to as string };
}

function book(slug: string, start: number, minutes: number): Step {
  return {
    send: ({ book }) => book(slug, slotOf(start, minutes).start, minutes),
    apply(morning, uid) {
      const { hidden, confirmationRequired } = termsOf(morning, slug);
      if (hidden) return "404 event_type_not_found";
      if (!isFree(morning, { slug, start, uid })) return taken;
      const status = confirmationRequired ? "PENDING" : "ACCEPTED";
      morning.bookings.push({ uid, slug, status, start, end: start + minutes, moves: 0 });
      return `201 ${status}`;
    },
  };
}

function move({ uid, slug, start: from, end }: Standing, start: number): Step {
  const body = { bookingUid: uid, slot: slotOf(start, end - from) };
  return {
    send: ({ service }) => service.visitor.post(`${PUBLIC_EVENTS_PATH}/${slug}/reschedule`).send(body),
    apply(morning) {
      const [terms, booking] = [termsOf(morning, slug), find(morning, uid)];
      if (terms.hidden) return "404 event_type_not_found";
      if (!isHeld(booking)) return "409 booking_not_reschedulable";
      // A repeated request moves nothing.
      if (booking.start === start) return `200 ${booking.status}`;
      if (booking.moves === 5) return "429 rate_limited";
      if (!isFree(morning, { slug, start, uid })) return taken;
      const status = terms.confirmationRequired ? "PENDING" : booking.status;
      Object.assign(booking, { status, start, end: start + end - from, moves: booking.moves + 1 });
      return `200 ${status}`;
    },
  };
}

function cancel({ uid, slug }: Standing): Step {
  return {
    send: ({ service }) => service.visitor.post(`${PUBLIC_EVENTS_PATH}/${slug}/bookings/${uid}/cancel`),
    apply(morning) {
      const booking = find(morning, uid);
      if (booking.status === "REJECTED") return "409 booking_not_cancellable";
      booking.status = "CANCELLED";
      return "200 CANCELLED";
    },
  };
}

function decide({ uid }: Standing, decision: "confirm" | "decline"): Step {
  return {
    send: ({ owner }) => owner.post(`${base}/bookings/${uid}/${decision}`),
    apply(morning) {
      const booking = find(morning, uid);
      if (booking.status !== "PENDING") return "409 booking_not_pending";
      booking.status = decision === "confirm" ? "ACCEPTED" : "REJECTED";
      return `200 ${booking.status}`;
    },
  };
}

function change(slug: string, eventTypeId: string, terms: Partial<Terms>): Step {
  return {
    send: ({ owner }) => owner.put(`${base}/event-types/${eventTypeId}`).send(terms),
    apply(morning) {
      Object.assign(termsOf(morning, slug), terms);
      return "200 ";
    },
  };
}

/** The mornings that some order of the steps leads to, if each step gets its answer in that order. */
function explained(mornings: Morning[], steps: Step[], answers: Answer[]): Morning[] {
  const found = new Map<string, Morning>();
  for (const before of mornings)
    for (const order of ordersOf(steps.length)) {
      const morning = structuredClone(before);
      const fits = order.every((at) => {
        const { outcome, uid } = answers[at] as Answer;
        return (steps[at] as Step).apply(morning, uid) === outcome;
      });
      morning.bookings.sort((one, other) => (one.uid < other.uid ? -1 : 1));
      if (fits) found.set(JSON.stringify(morning), morning);
    }
  return [...found.values()];
}

function ordersOf(count: number): number[][] {
  if (count === 0) return [[]];
  const last = count - 1;
  return ordersOf(last).flatMap((order) => Array.from({ length: count }, (_, at) => order.toSpliced(at, 0, last)));
}

interface Opened {
  stage: Stage;
  morning: Morning;
  /** Ids of the event types by slug. */
  ids: Record<string, string>;
}

/** A handle with two event types whose slots share a morning. */
async function openMorning(t: Test, seed: number): Promise<Opened> {
  const stage = await openStage(t, { env: unlimited });
  const weeklyAvailability = [{ day: 2, startTime: "09:00", endTime: "12:00" }];
  await stage.owner.post(`${base}/schedules`).send({ scheduleId: "main", timeZone: "UTC", weeklyAvailability });
  const terms = { confirmationRequired: seed % 3 === 0, hidden: false, maxBookingsPerDay: 1 + (seed % 2) };
  const types = { short: { ...terms, durationMinutes: 30 }, long: { ...terms, durationMinutes: 60 } };
  const ids: Record<string, string> = {};
  for (const [slug, one] of Object.entries(types)) ids[slug] = await stage.event({ slug, ...one });
  return { stage, morning: { types, bookings: [] }, ids };
}

/** A step that may come next. */
function nextStep(roll: Dice, { types, bookings }: Morning, ids: Record<string, string>): Step {
  const one = bookings[roll(bookings.length)];
  const kind = one === undefined ? 0 : roll(10);
  const slug = ["short", "long"][roll(2)] as string;
  const startAmong = (minutes: number) => OPENS + roll((CLOSES - OPENS) / minutes) * minutes;
  const { durationMinutes } = types[slug] as Terms;
  if (one === undefined || kind < 4) return book(slug, startAmong(durationMinutes), durationMinutes);
  if (kind < 6) return move(one, startAmong(one.end - one.start));
  if (kind === 6) return cancel(one);
  if (kind === 7) return decide(one, roll(3) === 0 ? "decline" : "confirm");
  return change(slug, ids[slug] as string, someTerms(roll));
}

function someTerms(roll: Dice): Partial<Terms> {
  const all = [{ hidden: roll(4) === 0 }, { confirmationRequired: roll(2) === 0 }, { maxBookingsPerDay: 1 + roll(3) }];
  return all[roll(all.length)] as Partial<Terms>;
}

/** Sends all steps at once. */
async function answersTo(steps: Step[], stage: Stage): Promise<Answer[]> {
  const answers = await Promise.all(steps.map((step) => step.send(stage)));
  return answers.map(({ status, body }) => ({
    outcome: `${status} ${body.code ?? body.booking?.status ?? ""}`,
    uid: body.bookingUid ?? "",
  }));
}

const listed = ({ bookings }: Morning): string =>
  bookings.map(({ uid, status, start }) => `${uid} ${status} ${slotOf(start, 0).start}`).join();

for (let seed = 1; seed <= 16; seed++)
  t.test(`requests at the same time are answered as in some order, one after the other (${seed})`, async (t) => {
    const roll = dice(seed);
    const { stage, morning, ids } = await openMorning(t, seed);
    let mornings = [morning];
    for (let round = 0; round < 16 && mornings.length > 0; round++) {
      const [one] = mornings as [Morning];
      const steps = Array.from({ length: 3 + roll(2) }, () => nextStep(roll, one, ids));
      const answers = await answersTo(steps, stage);
      mornings = explained(mornings, steps, answers);
      t.ok(mornings.length > 0, answers.map(({ outcome }) => outcome).join());
    }
    const { bookings } = (await stage.owner.get(`${base}/bookings?limit=100`).expect(200)).body as {
      bookings: Booking[];
    };
    const read = bookings.map(({ bookingUid, status, start }) => `${bookingUid} ${status} ${start}`).sort();
    t.ok(mornings.map(listed).includes(read.join()), "the owner reads the bookings of such an order");
  });
