import { type Answer, blankAnswer, endAnswer, isOver } from "./answer.ts";
import type { Config } from "./config.ts";
import { randomId } from "./element.ts";
import { connected, follow, sendRequest } from "./reading.ts";
import { words } from "./words.ts";

/** A question and its answer. */
export interface ConversationTurn {
  id: string;
  question: string;
  answer: Answer;
}

/** The client side of a chat. */
export interface Conversation {
  isBusy(): boolean;
  /** Asks a question; ignored during an answer. */
  ask(question: string): void;
  stop(): void;
  /** Asks the latest question again. */
  retry(): void;
  /** Starts a new chat without the earlier turns. */
  renew(): void;
  /** False for a turn of an earlier conversation. */
  holds(turn: ConversationTurn): boolean;
}

/** A chat that ends with the page and is not stored. `changed` is called with every new or changed turn. */
export function openConversation(config: Config, changed: (turn: ConversationTurn) => void): Conversation {
  let chatId = randomId();
  const streamOf = (id: string): string => `${config.chatUrl}/${id}/stream`;
  const turns: ConversationTurn[] = [];
  let control = new AbortController();
  /** The service's answer to the latest stop: one that arrived late would stop the next question's answer. */
  let stopped: Promise<unknown> = Promise.resolve();
  const isBusy = (): boolean => turns.length > 0 && !isOver(turns.at(-1)!.answer);

  async function run(turn: ConversationTurn, trigger: string): Promise<void> {
    control = new AbortController();
    const { signal } = control;
    const streamUrl = streamOf(chatId);
    const answer = blankAnswer();
    turn.answer = answer;
    const tell = (): void => changed(turn);
    const body = JSON.stringify({ id: chatId, messages: history(turns), trigger, resumable: true });
    while (!isOver(answer) && !signal.aborted) {
      answer.status = navigator.onLine ? "waiting" : "queued";
      tell();
      await connected(signal);
      await stopped;
      const response = await sendRequest(config.chatUrl, { method: "POST", body, signal }).catch(() => undefined);
      if (response?.ok) await follow({ answer, streamUrl, signal, changed: tell }, response);
      else if (response) endAnswer(answer, "failed", await problemOf(response));
      // Offline, the question waits for a connection.
      else if (navigator.onLine) endAnswer(answer, "failed", words.unreachable);
    }
    if (signal.aborted) endAnswer(answer, "stopped");
    tell();
  }

  function stop(): void {
    if (!isBusy()) return;
    control.abort();
    // The answer has stopped here already. If this request fails, the service stops it after its own timeout.
    stopped = sendRequest(streamOf(chatId), { method: "DELETE" }).catch(() => undefined);
  }

  return {
    isBusy,
    stop,
    holds: (turn) => turns.includes(turn),
    ask(question) {
      if (isBusy()) return;
      turns.push({ id: randomId(), question, answer: blankAnswer() });
      void run(turns.at(-1)!, "submit-message");
    },
    renew() {
      stop();
      turns.length = 0;
      chatId = randomId();
    },
    retry() {
      if (turns.length > 0 && !isBusy()) void run(turns.at(-1)!, "regenerate-message");
    },
  };
}

/** The chat as the service reads it: texts, and a mark for a lead section, so that it is offered once. */
function history(turns: ConversationTurn[]): object[] {
  return turns.flatMap(({ id, question, answer }) => {
    const asked = { id, role: "user", parts: [{ type: "text", text: question }] };
    const parts = partsOf(answer);
    return parts.length > 0 ? [asked, { id: `${id}-a`, role: "assistant", parts }] : [asked];
  });
}

function partsOf({ text, section }: Answer): object[] {
  const said = text ? [{ type: "text", text }] : [];
  if (!section) return said;
  const { sectionId } = section;
  const type = "tool-renderLeadQualificationSection";
  return [...said, { type, toolCallId: sectionId, state: "output-available", input: {}, output: { sectionId } }];
}

/** The error text, by the problem's code (RFC 9457), or by the status if another server replied. */
async function problemOf(response: Response): Promise<string> {
  const { code } = await response.json().catch(() => ({}));
  const { status } = response;
  if (code === "question_too_long") return words.tooLong;
  if (status === 404) return words.unavailable;
  if (status === 503) return words.unreachable;
  if (status === 429) return words.busy;
  return status === 400 || status === 413 ? words.refused : words.failed;
}
