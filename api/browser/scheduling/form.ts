import { element } from "../agent/element.ts";
import { Problem } from "./calls.ts";
import type { Field } from "./fields.ts";
import type { Host } from "./host.ts";
import { sentenceOf } from "./problem.ts";

/** Content and actions of a form. */
export interface Form {
  fields(): Field[];
  /** Elements above the button. */
  parts: (HTMLElement | false)[];
  /** Label of the button. */
  action: string;
  look?: string;
  /** Elements next to the button. */
  others?: HTMLElement[];
  /** Submits; a failure is shown to the visitor. */
  send(): Promise<void>;
}

/** A form that validates, submits once at a time, and ties errors to their fields. */
export function openForm(host: Host, form: Form): HTMLFormElement {
  const { words, say } = host;
  const alert = element("p.alert", { role: "alert", hidden: true });
  const button = element("button", { class: form.look ?? "primary" }, form.action);
  let isSending = false;
  const showAlert = (text: string): void => {
    alert.textContent = text;
    alert.hidden = text === "";
  };
  const setSending = (value: boolean): void => {
    isSending = value;
    button.textContent = value ? words.sending : form.action;
    button.setAttribute("aria-disabled", String(value));
  };
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (isSending) return;
    showAlert("");
    if (markFaults(form.fields())) return showAlert(words.checkEntries);
    setSending(true);
    say(words.sending);
    try {
      await form.send();
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      showAlert(markFrom(form.fields(), error, words.wrong) ? words.checkEntries : sentenceOf(error, words));
    } finally {
      setSending(false);
    }
  };
  const actions = element("div.actions", button, ...(form.others ?? []));
  return element("form.form", { novalidate: true, submit }, ...form.parts, alert, actions);
}

/** Marks the fields that are invalid by their own rules and focuses the first; true if there is one. */
function markFaults(fields: Field[]): boolean {
  const faults = fields.map((field) => ({ field, fault: field.check() }));
  for (const { field, fault } of faults) field.mark(fault);
  const first = faults.find(({ fault }) => fault !== undefined);
  first?.field.focus();
  return first !== undefined;
}

/** Marks the fields that the service refused and focuses the first; true if there is one. */
function markFrom(fields: Field[], { faults }: Problem, text: string): boolean {
  const named = fields.filter(({ path }) =>
    faults.some((fault) => fault.path === path || fault.path.startsWith(`${path}/`)),
  );
  for (const field of named) field.mark(text);
  named[0]?.focus();
  return named.length > 0;
}
