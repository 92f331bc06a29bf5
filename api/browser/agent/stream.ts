/** One server-sent event. */
export interface ServerEvent {
  id: string;
  data: string;
}

/** Ms without a byte after which a connection counts as lost; the service sends one at least every 10 s. */
const SILENCE_MS = 25_000;

/** The events of a response as they arrive. Ends when the connection closes or has been silent for too long. */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await patiently(reader);
    if (done) return;
    const frames = (rest + decoder.decode(value, { stream: true })).split(/\r?\n\r?\n/);
    rest = frames.pop() ?? "";
    for (const frame of frames) {
      const event = readFrame(frame);
      if (event.data) yield event;
    }
  }
}

function patiently(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<ReadableStreamReadResult<Uint8Array>> {
  const timer = setTimeout(() => reader.cancel(), SILENCE_MS);
  return reader.read().finally(() => clearTimeout(timer));
}

function readFrame(frame: string): ServerEvent {
  const event: ServerEvent = { id: "", data: "" };
  for (const line of frame.split(/\r?\n/)) {
    const [, name, value = ""] = /^(id|data): ?(.*)$/.exec(line) ?? [];
    if (name === "id") event.id = value;
    else if (name) event.data += value;
  }
  return event;
}
