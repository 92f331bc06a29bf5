import type { Booking, BookingAnswer } from "../../../schemas/scheduling.ts";

/** A bookable time. */
export interface BookableSlot {
  start: string;
  end: string;
  bookingNonce: string;
}

/** Why a call failed; `offline` if no reply came. `wait` is in seconds, `limit` names the limit that was reached. */
export class Problem extends Error {
  readonly code: string;
  readonly wait: number;
  readonly faults: { path: string; message: string }[];
  readonly limit: string;

  constructor(code: string, wait = 0, problem: { errors?: Problem["faults"]; limit?: string } = {}) {
    super(code);
    this.code = code;
    this.wait = wait;
    this.faults = problem.errors ?? [];
    this.limit = problem.limit ?? "";
  }
}

/** Ms after which a call times out. */
const TIMEOUT_MS = 20_000;
/** Attempts of a call that the service answers with a short wait. */
const MAX_ATTEMPTS = 4;
/** Ms of the shortest window that is still split into halves. */
const MIN_WINDOW_MS = 3_600_000;

/** Query of the slots route: `start` and `end` are instants. */
export type SlotQuery = { start: string; end: string } & Record<string, string>;

/** The public routes of one event type. */
export interface Calls {
  slots(asked: SlotQuery): Promise<BookableSlot[]>;
  book(body: object, key: string): Promise<BookingAnswer>;
  move(body: object): Promise<BookingAnswer>;
  cancel(bookingUid: string, body: object): Promise<BookingAnswer>;
  read(bookingUid: string): Promise<Booking>;
  calendarFile(bookingUid: string): string;
}

export function openCalls(handle: string, eventSlug: string): Calls {
  const root = `/v2/public/scheduling/${encodeURIComponent(handle)}/${encodeURIComponent(eventSlug)}`;
  const bookingAt = (bookingUid: string): string => `${root}/bookings/${encodeURIComponent(bookingUid)}`;
  return {
    slots: (asked) => slotsOf(root, asked),
    book: (body, key) => call(`${root}/bookings`, sent(body, { "idempotency-key": key })),
    move: (body) => call(`${root}/reschedule`, sent(body)),
    cancel: (bookingUid, body) => call(`${bookingAt(bookingUid)}/cancel`, sent(body)),
    read: async (bookingUid) => (await call<{ booking: Booking }>(bookingAt(bookingUid))).booking,
    calendarFile: (bookingUid) => `${bookingAt(bookingUid)}/calendar.ics`,
  };
}

/** If the window has too many slots for one answer, both halves are requested. */
async function slotsOf(root: string, asked: SlotQuery): Promise<BookableSlot[]> {
  try {
    return (await call<{ slots: BookableSlot[] }>(`${root}/slots?${new URLSearchParams(asked)}`)).slots;
  } catch (error) {
    const [start, end] = [Date.parse(asked.start), Date.parse(asked.end)];
    const isTooLong = error instanceof Problem && error.faults.some(({ path }) => path === "/end");
    if (!isTooLong || end - start < MIN_WINDOW_MS) throw error;
    const middle = new Date((start + end) / 2).toISOString();
    const first = await slotsOf(root, { ...asked, end: middle });
    return [...first, ...(await slotsOf(root, { ...asked, start: middle }))];
  }
}

function sent(body: object, headers: Record<string, string> = {}): RequestInit {
  return { method: "POST", headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(body) };
}

/** The reply's JSON. Observes a short `Retry-After`; throws `Problem` for every other failure. */
async function call<T>(url: string, init: RequestInit = {}): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await once<T>(url, init);
    } catch (error) {
      const problem = error instanceof Problem ? error : new Problem("offline");
      const isPutOff = ["rate_limited", "service_unavailable", "idempotency_in_progress"].includes(problem.code);
      if (!isPutOff || problem.wait > 5 || tries === MAX_ATTEMPTS) throw problem;
      await new Promise((resolve) => setTimeout(resolve, problem.wait * 1000 + Math.random() * 500));
    }
  }
}

async function once<T>(url: string, init: RequestInit): Promise<T> {
  const guard: RequestInit = { credentials: "omit", signal: AbortSignal.timeout(TIMEOUT_MS) };
  const answer = await fetch(url, { ...init, ...guard });
  if (answer.ok) return answer.json();
  const problem = await answer.json().catch(() => ({}));
  const code = String(problem.code ?? (answer.status >= 500 ? "service_unavailable" : "invalid_request"));
  throw new Problem(code, Number(answer.headers.get("retry-after") ?? 1) || 1, problem);
}
