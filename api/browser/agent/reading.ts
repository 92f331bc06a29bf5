import { type Answer, addChunk, endAnswer, isOver } from "./answer.ts";
import { readEvents } from "./stream.ts";

/** An answer that is being read. */
export interface Reading {
  answer: Answer;
  /** The URL for resuming it. */
  streamUrl: string;
  signal: AbortSignal;
  changed(): void;
}

/** Ms before each attempt to resume an answer; the service keeps generating for 10 s without a reader. */
const pauses = [200, 800, 2000, 4000];
/** Ms for which events are read before yielding to the page. */
const MAX_TURN_MS = 8;

/** Reads an answer to its end, over as many connections as necessary. */
export async function follow(reading: Reading, first: Response): Promise<void> {
  const { answer, signal } = reading;
  let response: Response | undefined = first;
  for (let attempt = 0; ; attempt++) {
    const before: string = answer.last;
    if (response) await read(reading, response).catch(() => undefined);
    if (isOver(answer) || signal.aborted) return;
    if (answer.last !== before) attempt = 0;
    if (attempt >= pauses.length || response?.status === 204) return endAnswer(answer, "interrupted");
    answer.status = "reconnecting";
    reading.changed();
    await pause(pauses[attempt]!, signal);
    response = await resume(reading);
  }
}

/** A request to the page's own service without credentials. */
export function sendRequest(url: string, more: RequestInit): Promise<Response> {
  const headers = more.body ? { "content-type": "application/json" } : more.headers;
  return fetch(url, { credentials: "omit", cache: "no-store", ...more, ...(headers ? { headers } : {}) });
}

async function read({ answer, changed }: Reading, response: Response): Promise<void> {
  if (!response.body) return;
  let since = performance.now();
  for await (const { id, data } of readEvents(response.body)) {
    if (data === "[DONE]") continue;
    // The error of a process that lost the answer: it goes on at another one.
    if (id === (answer.last || "0")) return;
    addChunk(answer, JSON.parse(data));
    if (id) answer.last = id;
    changed();
    if (performance.now() - since < MAX_TURN_MS) continue;
    // Many events may arrive at once; the page must stay responsive.
    await new Promise((resolve) => setTimeout(resolve));
    since = performance.now();
  }
}

async function resume({ answer, streamUrl, signal }: Reading): Promise<Response | undefined> {
  const headers: Record<string, string> = answer.last ? { "last-event-id": answer.last } : {};
  const response = await sendRequest(streamUrl, { headers, signal }).catch(() => undefined);
  return response?.ok ? response : undefined;
}

/** Waits; while offline, until there is a connection. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (!navigator.onLine) return connected(signal);
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve());
    setTimeout(resolve, ms);
  });
}

/** Waits until the browser is online, or the signal is aborted. */
export function connected(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const go = (): void => resolve();
    if (navigator.onLine) return go();
    signal.addEventListener("abort", go);
    addEventListener("online", go, { once: true, signal });
  });
}
