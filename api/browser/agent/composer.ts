import { element, widgetIcon } from "./element.ts";
import { words } from "./words.ts";

/** Maximum length of a question, in Unicode code points (docs/reference.md, "Questions"). */
const MAX_QUESTION_LENGTH = 500;
/** The number of characters is shown from here on. */
const COUNTED_LENGTH = 400;

/** The question's text field. */
export interface Composer {
  node: HTMLElement;
  focus(): void;
  /** Enters a question without sending it. */
  fill(question: string): void;
  /** Shows the matching button: send, or stop during an answer. */
  show(isBusy: boolean): void;
}

export function drawComposer(actions: {
  ask(question: string): void;
  stop(): void;
  say(words: string): void;
}): Composer {
  let isBusy = false;
  const input = element("textarea", {
    part: "input",
    rows: "1",
    enterkeyhint: "send",
    placeholder: words.placeholder,
    "aria-label": words.placeholder,
  });
  const counter = element("p.counter");
  const button = element("button.send", { part: "send", "aria-label": words.send }, widgetIcon("send"));
  const length = (): number => [...input.value.trim()].length;
  const count = (): void => {
    counter.textContent = length() < COUNTED_LENGTH ? "" : `${length()} / ${MAX_QUESTION_LENGTH}`;
    counter.classList.toggle("over", length() > MAX_QUESTION_LENGTH);
  };
  const submit = (event: Event): void => {
    event.preventDefault();
    const question = input.value.trim();
    if (isBusy) return void actions.stop();
    if (length() > MAX_QUESTION_LENGTH) return void actions.say(words.tooLong);
    if (question === "") return void input.focus();
    input.value = "";
    count();
    actions.ask(question);
  };
  input.addEventListener("input", count);
  input.addEventListener("keydown", (event) => {
    // Enter that ends an IME composition chooses a word; it doesn't send.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    if (!isBusy) submit(event);
  });
  return {
    node: element("form.composer", { part: "composer", submit }, input, button, counter),
    focus: () => input.focus(),
    fill(question) {
      input.value = question;
      count();
      input.focus();
    },
    show(busy) {
      if (busy === isBusy) return;
      isBusy = busy;
      button.replaceChildren(widgetIcon(busy ? "stop" : "send"));
      button.setAttribute("aria-label", busy ? words.stop : words.send);
    },
  };
}
