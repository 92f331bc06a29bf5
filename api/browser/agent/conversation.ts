import { type Answer, blankAnswer, end, isOver } from "./answer.ts";
import type { Config } from "./config.ts";
import { randomId } from "./element.ts";
import { follow, send } from "./reading.ts";
import { words } from "./words.ts";

/** A question and its answer. */
export interface Turn {
  id: string;
  question: string;
  answer: Answer;
}

/** The visitor's side of a chat. */
export interface Conversation {
  isBusy(): boolean;
  /** Asks; nothing happens while an answer is on its way. */
  ask(question: string): void;
  stop(): void;
  /** Asks the latest question once more. */
  retry(): void;
}

/** A chat that lives as long as the page; nothing of it is stored. `changed` hears of every turn that is new or has changed. */
export function openConversation(config: Config, changed: (turn: Turn) => void): Conversation {
  const chatId = randomId();
  const streamUrl = `${config.chatUrl}/${chatId}/stream`;
  const turns: Turn[] = [];
  let control = new AbortController();
  const isBusy = (): boolean => turns.length > 0 && !isOver(turns.at(-1)!.answer);

  async function run(turn: Turn, trigger: string): Promise<void> {
    control = new AbortController();
    const { signal } = control;
    const answer = blankAnswer();
    turn.answer = answer;
    const tell = (): void => changed(turn);
    tell();
    try {
      const body = JSON.stringify({ id: chatId, messages: history(turns), trigger, resumable: true });
      const response = await send(config.chatUrl, { method: "POST", body, signal });
      if (response.ok) await follow({ answer, streamUrl, signal, changed: tell }, response);
      else end(answer, "failed", problemOf(response));
    } catch {
      // Whether the network or the visitor ended it, the visitor is told below.
      end(answer, "failed", words.unreachable);
    }
    if (signal.aborted) end(answer, "stopped");
    tell();
  }

  return {
    isBusy,
    ask(question) {
      if (isBusy()) return;
      turns.push({ id: randomId(), question, answer: blankAnswer() });
      void run(turns.at(-1)!, "submit-message");
    },
    stop() {
      if (!isBusy()) return;
      control.abort();
      // The answer is stopped here already; when the service can't be told, it stops by itself.
      void send(streamUrl, { method: "DELETE" }).catch(() => undefined);
    },
    retry() {
      if (turns.length > 0 && !isBusy()) void run(turns.at(-1)!, "regenerate-message");
    },
  };
}

/** The chat as the service reads it: texts, and a mark where a lead section was shown, so that it is shown once. */
function history(turns: Turn[]): object[] {
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

function problemOf({ status }: Response): string {
  if (status === 404) return words.unavailable;
  if (status === 429 || status === 503) return words.busy;
  return status === 400 ? words.tooLong : words.failed;
}
