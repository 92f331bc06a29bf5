import { isPhoneNumber, typedDigits, typedText } from "../../../core/platform/typed.ts";
import type { BookingField } from "../../../schemas/scheduling.ts";
import { parseWebAddress } from "../agent/address.ts";
import { element, randomId } from "../agent/element.ts";
import { words } from "./visit.ts";

/** One question of a form. */
export interface Field {
  /** Path of its value in the request, as the service's errors name it. */
  path: string;
  node: HTMLElement;
  read(): string;
  /** The error in the value, if any. */
  check(): string | undefined;
  /** Shows an error, or removes it. */
  mark(fault?: string): void;
  focus(): void;
}

/** Definition of a field. */
export interface FormQuestion {
  path: string;
  label: string;
  type: BookingField["type"];
  required: boolean;
  options?: readonly string[] | undefined;
  /** Labels of the options that differ from their values. */
  names?: readonly string[];
  autocomplete?: string;
  value?: string | undefined;
}

/** A field for any type of question. */
export function fieldOf(question: FormQuestion): Field {
  const { type, options = [] } = question;
  if (type === "radio") return choiceField(question, options);
  if (type === "boolean") return choiceField({ ...question, names: [words.yes, words.no] }, ["true", "false"]);
  return type === "checkbox" ? tickField(question) : inputField(question);
}

type ByType<T> = Partial<Record<BookingField["type"], T>>;

const inputs: ByType<Record<string, string>> = {
  email: { type: "email", inputmode: "email", autocapitalize: "off", spellcheck: "false" },
  phone: { type: "tel", autocomplete: "tel" },
  url: { type: "url", inputmode: "url", autocapitalize: "off", spellcheck: "false" },
  number: { inputmode: "decimal" },
};

/** What a value must look like, and the text if it doesn't. */
const checks: ByType<{ fits(value: string): boolean; text: "badEmail" | "badUrl" | "badNumber" | "badPhone" }> = {
  email: { fits: (value) => /^[^\s@<>,;]+@[^\s@<>,;]+\.[^\s@<>,;]+$/.test(value), text: "badEmail" },
  url: { fits: (value) => /^https?:\/\/\S+$/i.test(value) && parseWebAddress(value) !== undefined, text: "badUrl" },
  number: { fits: (value) => /^[+-]?(\d+(\.\d*)?|\.\d+)$/.test(value), text: "badNumber" },
  phone: { fits: isPhoneNumber, text: "badPhone" },
};

function inputField(question: FormQuestion): Field {
  const { type, autocomplete, value = "", options = [] } = question;
  const id = `field-${randomId()}`;
  const choices = ["", ...options].map((option) => element("option", { value: option }, option || words.choose));
  const input =
    type === "select"
      ? element("select", { id }, ...choices)
      : type.startsWith("text") && type !== "text"
        ? element("textarea", { id, rows: "4", maxlength: "10000" })
        : element("input", { id, type: "text", maxlength: "1000", autocomplete, ...inputs[type] });
  input.value = value;
  const label = element("label", { for: id }, ...labelOf(question));
  return fieldWith({ question, label, controls: [input], box: input, read: () => readText(input.value, type) });
}

function choiceField(question: FormQuestion, options: readonly string[]): Field {
  const name = `field-${randomId()}`;
  const inputs = options.map((value) =>
    element("input", { type: "radio", name, value, checked: value === question.value }),
  );
  const rows = inputs.map((input, at) =>
    element("label.choice", input, element("span", { dir: "auto" }, question.names?.[at] ?? options[at])),
  );
  const label = element("legend", ...labelOf(question));
  const read = (): string => inputs.find(({ checked }) => checked)?.value ?? "";
  return fieldWith({ question, label, controls: inputs, box: element("div.choices", ...rows), read });
}

function tickField(question: FormQuestion): Field {
  const input = element("input", { type: "checkbox", checked: question.value === "true" });
  const box = element("label.choice", input, element("span", ...labelOf(question)));
  return fieldWith({ question, controls: [input], box, read: () => (input.checked ? "true" : "") });
}

interface Parts {
  question: FormQuestion;
  label?: HTMLElement;
  controls: HTMLElement[];
  box: HTMLElement;
  read(): string;
}

/** A field around its controls, with an error message tied to them. */
function fieldWith({ question, label, controls, box, read }: Parts): Field {
  const fault = element("p.fault", { id: `fault-${randomId()}`, hidden: true });
  const isGroup = label?.tagName === "LEGEND";
  const node = element(isGroup ? "fieldset.field" : "div.field", label, box, fault);
  const mark = (text = ""): void => {
    fault.textContent = text;
    fault.hidden = text === "";
    for (const control of controls) control.setAttribute("aria-invalid", String(text !== ""));
  };
  for (const control of controls) {
    control.setAttribute("aria-describedby", fault.id);
    if (question.required && !isGroup) control.setAttribute("aria-required", "true");
    control.addEventListener("input", () => mark());
  }
  const check = (): string | undefined => faultOf(question, read());
  return { path: question.path, node, read, check, mark, focus: () => controls[0]?.focus() };
}

function labelOf({ label, required }: FormQuestion): (HTMLElement | false)[] {
  return [element("span", { dir: "auto" }, label), !required && element("span.optional", ` ${words.optional}`)];
}

/** The digits of a number are read in every script, and a decimal comma is a point. */
function readText(text: string, type: string): string {
  if (type === "email") return typedText(text);
  if (type !== "number" && type !== "phone") return text.trim();
  const typed = typedDigits(text);
  return type === "number" ? typed.replace(/^([+-]?\d+)[,٫](\d+)$/, "$1.$2") : typed;
}

function faultOf({ type, required }: FormQuestion, value: string): string | undefined {
  if (value === "") return !required ? undefined : type === "checkbox" ? words.mustAgree : words.missing;
  const check = checks[type];
  return check && !check.fits(value) ? words[check.text] : undefined;
}
