import { element } from "../agent/element.ts";
import { Problem } from "./calls.ts";
import type { Field } from "./fields.ts";
import type { Host } from "./host.ts";
import { sentenceOf } from "./problem.ts";
import { words } from "./visit.ts";

/** Content and actions of a form. */
export interface Form {
  fields(): Field[];
  /** Elements above the button. */
  parts: (HTMLElement | false)[];
  /** Label of the button. */
  action: string;
  look?: string;
  /** Follows the message that no reply came. */
  reassurance?: string;
  /** Elements next to the button. */
  others?: HTMLElement[];
  /** Submits; a failure is shown to the visitor. */
  send(): Promise<void>;
}

/** A form that validates, submits once at a time, and ties errors to their fields. */
export function openForm(host: Host, form: Form): HTMLFormElement {
  const { say } = host;
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
    if (markFields(form.fields(), (field) => field.check())) return showAlert(words.checkEntries);
    setSending(true);
    say(words.sending);
    try {
      await form.send();
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      const isMarked = markFields(form.fields(), (field) => (isRefused(field, error) ? words.wrong : undefined));
      showAlert(isMarked ? words.checkEntries : sentenceOf(error, form.reassurance));
    } finally {
      setSending(false);
    }
  };
  const actions = element("div.actions", button, ...(form.others ?? []));
  return element("form.form", { novalidate: true, submit }, ...form.parts, alert, actions);
}

/** Marks the fields with their faults and focuses the first one that has any; true if there is one. */
function markFields(fields: Field[], faultOf: (field: Field) => string | undefined): boolean {
  const wrong = fields.filter((field) => {
    const fault = faultOf(field);
    field.mark(fault);
    return fault !== undefined;
  });
  wrong[0]?.focus();
  return wrong.length > 0;
}

/** True if the service refused the value of a field. */
function isRefused({ path }: Field, { faults }: Problem): boolean {
  return faults.some((fault) => fault.path === path || fault.path.startsWith(`${path}/`));
}
