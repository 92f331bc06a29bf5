import type { Runtime, Writer } from "../platform/runtime.ts";
import type { Evidence } from "./evidence.ts";
import { answerPieces, type Extraction, extract } from "./extractive.ts";
import { ground } from "./grounding.ts";
import type { Asking } from "./messages.ts";
import { phrases } from "./phrases.ts";
import { chatPrompt } from "./prompt.ts";
import { refusal } from "./refusal.ts";
import type { Retrieval } from "./retrieval.ts";

/** An answer about to be sent: what it rests on is known, its text comes. */
export interface Draft {
  text: AsyncIterable<string> | Iterable<string>;
  used: Evidence[];
  degraded: boolean;
  /** True where the question is one that is declined. */
  declined: boolean;
}

/** Ms in which a model must have begun its answer before the extractive answerer takes over. */
const beginsWithin = 10_000;
/** Pieces of evidence that a model reads. */
const mostRead = 12;

/** The answer by the model, or extracted where there is none or where it fails to begin; then degraded. */
export async function drafted(
  runtime: Runtime,
  asked: Asking,
  made: { found: Retrieval; signal: AbortSignal },
): Promise<Draft> {
  const declined = refusal(asked.question);
  if (declined !== null) return { text: [declined], used: [], degraded: false, declined: true };
  const { found } = made;
  const extraction = extract(asked.question, found.evidence, asked.history);
  const lost = found.degraded && extraction.used.length === 0;
  const plain = {
    text: answerPieces(lost ? phrases[extraction.language].fallback : extraction.markdown),
    used: extraction.used,
    degraded: found.degraded,
    declined: false,
  };
  if (runtime.model.writer === undefined || found.evidence.length === 0) return plain;
  const text = await begun(runtime.model.writer, asked, { ...made, extraction });
  const used = extraction.used.length > 0 ? extraction.used : found.evidence.slice(0, mostRead);
  return text ? { ...plain, text, used } : { ...plain, degraded: true };
}

/** The model's text behind the grounding filter, once its first words are there; undefined when it doesn't begin. */
async function begun(
  writer: Writer,
  asked: Asking,
  made: { found: Retrieval; extraction: Extraction; signal: AbortSignal },
): Promise<AsyncIterable<string> | undefined> {
  const evidence = made.found.evidence.slice(0, mostRead);
  const { messages, marks } = chatPrompt({ question: asked.question, history: asked.history, evidence });
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(new Error("The model did not begin in time.")), beginsWithin);
  const deltas = writer.write(messages, AbortSignal.any([made.signal, late.signal]))[Symbol.asyncIterator]();
  try {
    const first = await deltas.next();
    if (first.done) return undefined;
    return grounded(first.value, deltas, { filter: ground(evidence, marks), otherwise: made.extraction.markdown });
  } catch (error) {
    made.signal.throwIfAborted();
    // A model that is down or slow is answered for by the evidence itself; the answer says that it is degraded.
    if (!(error instanceof Error)) throw error;
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}

async function* grounded(
  first: string,
  rest: AsyncIterator<string>,
  { filter, otherwise }: { filter: ReturnType<typeof ground>; otherwise: string },
): AsyncGenerator<string> {
  yield filter.push(first);
  for (let next = await rest.next(); !next.done; next = await rest.next()) yield filter.push(next.value);
  yield filter.end();
  // A model all of whose sentences went has said nothing that the evidence bears out.
  if (filter.kept === 0) yield otherwise;
}
