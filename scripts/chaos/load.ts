import { type ApiAnswered, type ApiCall, asker } from "../../fixtures/settled-handle.ts";
import type { ChaosTown } from "./town.ts";

/** How a chat ended, as its reader saw it. */
export interface Chat {
  began: number;
  ended: number;
  how: "finished" | "failed in order" | "cut off" | "refused" | "never ended";
}

/** The accepted requests, as the clients know them. */
export interface Ledger {
  /** Lead ids by `handle email`. */
  leads: Map<string, string>;
  /** Message ids by `handle recipient`. */
  mails: Map<string, string>;
  bookings: { handle: string; uid: string; email: string }[];
  /** Slots that another visitor had booked first. */
  taken: number;
  chats: Chat[];
  questions: { answered: number; refused: number };
  /** Responses that no client should ever see, and abandoned requests. */
  wrong: string[];
  givenUp: number;
  requests: number;
}

/** The intensity of a mixed load; `churn` removes what it creates, for long runs. */
interface Pressure {
  /** Ms between two requests of one client. */
  pause: number;
  churn?: boolean;
}

/** Ms after which a stream counts as endless, and a request is abandoned. */
const longestStream = 60_000;
const longestTry = 60_000;

/** A load of chats, questions, bookings, leads and mails until it is stopped. */
export class Load {
  readonly ledger: Ledger = {
    leads: new Map(),
    mails: new Map(),
    bookings: [],
    taken: 0,
    chats: [],
    questions: { answered: 0, refused: 0 },
    wrong: [],
    givenUp: 0,
    requests: 0,
  };
  readonly #town: ChaosTown;
  readonly #pressure: Pressure;
  readonly #visitor: ApiCall;
  readonly #owner: ApiCall;
  readonly #clients: Promise<void>[] = [];
  #isOver = false;
  #count = 0;

  constructor(town: ChaosTown, pressure: Pressure) {
    this.#town = town;
    this.#pressure = pressure;
    this.#visitor = asker(town.url);
    this.#owner = asker(town.url, town.token);
  }

  /** Starts the clients: more of the kinds that wait longer. */
  start(): void {
    const works = [this.#lead, this.#lead, this.#mail, this.#mail, this.#book, this.#book, this.#book, this.#question];
    for (const work of [...works, ...Array.from({ length: 4 }, () => this.#chat)]) this.#clients.push(this.#run(work));
  }

  /** Lets each client finish its current request. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#clients);
  }

  async #run(work: (this: Load, handle: string, at: number) => Promise<void>): Promise<void> {
    while (!this.#isOver) {
      const at = this.#count++;
      await work.call(this, this.#town.handles[at % this.#town.handles.length] as string, at);
      await pause(this.#pressure.pause * (0.5 + Math.random()));
    }
  }

  async #lead(handle: string, at: number): Promise<void> {
    const email = `lead-${this.#pressure.churn ? at % 100 : at}@far.example`;
    const body = { email, name: "Ann", pageSlug: "index", campaignId: "cmp_spring" };
    const done = await this.#until(() => this.#visitor("POST", `/v2/public/handles/${handle}/leads`, body), 202);
    if (done) this.ledger.leads.set(`${handle} ${email}`, (done.body.lead as { leadId: string }).leadId);
  }

  /** The same key for every attempt: it remains one message, however often the response is lost. */
  async #mail(handle: string, at: number): Promise<void> {
    const recipient = `mail-${at}@far.example`;
    const mail = {
      senderId: "sender_main",
      purpose: "TRANSACTIONAL_API",
      templateId: "tmpl_hello",
      consentAttestation: true,
    };
    const body = { ...mail, to: [recipient], variables: { name: "Ann" }, idempotencyKey: `mail-${at}` };
    const done = await this.#until(() => this.#owner("POST", `/v2/handles/${handle}/email/messages`, body), 202);
    if (done) this.ledger.mails.set(`${handle} ${recipient}`, (done.body.message as { messageId: string }).messageId);
  }

  async #book(handle: string, at: number): Promise<void> {
    const event = `/v2/public/scheduling/${handle}/${at % 3 === 0 ? "visit" : "talk"}`;
    const slot = await this.#slot(event);
    if (slot === undefined) return;
    const email = `booker-${at}@far.example`;
    const body = { attendee: { name: "Ann", email }, slot };
    const key = { "idempotency-key": `booking-${at}` };
    const done = await this.#until(() => this.#visitor("POST", `${event}/bookings`, body, key), 201, 409);
    if (done?.status === 409) this.ledger.taken++;
    if (done?.status !== 201) return;
    const uid = done.body.bookingUid as string;
    if (!this.#pressure.churn) return void this.ledger.bookings.push({ handle, uid, email });
    await this.#until(() => this.#visitor("POST", `${event}/bookings/${uid}/cancel`, {}), 200);
  }

  /** One of the first free slots, so that visitors compete. */
  async #slot(event: string): Promise<object | undefined> {
    const now = Date.parse(this.#town.env.TEST_CLOCK ?? new Date().toISOString());
    const [start, end] = [2, 12].map((days) => new Date(now + days * 86_400_000).toISOString());
    const found = await this.#until(() => this.#visitor("GET", `${event}/slots?start=${start}&end=${end}`), 200);
    const slots = (found?.body.slots ?? []) as { start: string; end: string }[];
    const slot = slots[Math.floor(Math.random() * 12)];
    return slot && { start: slot.start, end: slot.end };
  }

  async #question(handle: string): Promise<void> {
    const path = `/v2/public/pages/${handle}/index/agentic-question`;
    const done = await this.#tried(() => this.#visitor("POST", path, { question: "What does the small plan cost?" }));
    this.ledger.questions[done?.status === 200 ? "answered" : "refused"]++;
  }

  async #chat(handle: string, at: number): Promise<void> {
    const began = Date.now();
    const how = await this.#read(handle, at);
    this.ledger.requests++;
    this.ledger.chats.push({ began, ended: Date.now(), how });
  }

  async #read(handle: string, at: number): Promise<Chat["how"]> {
    let isAnswered = false;
    try {
      const answer = await this.#openChat(handle, at);
      isAnswered = answer.status === 200;
      const text = await answer.text();
      if (!isAnswered) return "refused";
      if (!text.trimEnd().endsWith("data: [DONE]")) return "cut off";
      return text.includes('"type":"error"') ? "failed in order" : "finished";
    } catch (error) {
      if ((error as Error).name === "TimeoutError") return "never ended";
      return isAnswered ? "cut off" : "refused";
    }
  }

  #openChat(handle: string, at: number): Promise<Response> {
    const question = [{ type: "text", text: "What does the small plan cost?" }];
    return fetch(`${this.#town.url()}/v2/public/pages/${handle}/index/agentic-chat`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      signal: AbortSignal.timeout(longestStream),
      body: JSON.stringify({
        id: `chat-number-${at}-of-this-load`,
        resumable: at % 2 === 0,
        messages: [{ id: "1", role: "user", parts: question }],
      }),
    });
  }

  /** Retries until it gets one of these statuses, like a persistent client; undefined if it gives up. */
  async #until(ask: () => Promise<ApiAnswered>, ...statuses: number[]): Promise<ApiAnswered | undefined> {
    const late = Date.now() + longestTry;
    while (Date.now() < late) {
      const answer = await this.#tried(ask);
      const isUnderWay = answer?.body.code === "idempotency_in_progress";
      if (answer && !isUnderWay && statuses.includes(answer.status)) return answer;
      await pause(300);
    }
    this.ledger.givenUp++;
    return undefined;
  }

  /** One attempt; undefined without a response. Anything but success, a taken slot or "retry later" is recorded as wrong. */
  async #tried(ask: () => Promise<ApiAnswered>): Promise<ApiAnswered | undefined> {
    this.ledger.requests++;
    try {
      const answer = await ask();
      if (![200, 201, 202, 409, 503].includes(answer.status))
        this.ledger.wrong.push(`${answer.status} ${answer.text.slice(0, 300)}`);
      return answer;
    } catch {
      // The connection broke or timed out: the process died or its Redis is away, as this load expects.
      return undefined;
    }
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
