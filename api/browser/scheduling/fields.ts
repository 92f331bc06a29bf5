import type { BookingField } from "../../../schemas/scheduling.ts";
import { element, randomId } from "../agent/element.ts";
import type { PageWords } from "./words.ts";

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
export function fieldOf(question: FormQuestion, words: PageWords): Field {
  const { type, options = [] } = question;
  if (type === "radio") return choiceField(question, options, words);
  if (type === "boolean") return choiceField({ ...question, names: [words.yes, words.no] }, ["true", "false"], words);
  if (type === "checkbox") return tickField(question, words);
  return type === "select" ? selectField(question, options, words) : textField(question, words);
}

const kinds: Partial<Record<BookingField["type"], Record<string, string>>> = {
  email: { type: "email", inputmode: "email", autocapitalize: "off", spellcheck: "false" },
  phone: { type: "tel", autocomplete: "tel" },
  url: { type: "url", inputmode: "url", autocapitalize: "off", spellcheck: "false" },
  number: { type: "text", inputmode: "decimal" },
};

function textField(question: FormQuestion, words: PageWords): Field {
  const { type, autocomplete, value = "" } = question;
  const isArea = type.startsWith("text") && type !== "text";
  const attributes = { id: `field-${randomId()}`, ...(kinds[type] ?? {}), ...(autocomplete ? { autocomplete } : {}) };
  const input = isArea
    ? element("textarea", { ...attributes, rows: "4", maxlength: "10000" })
    : element("input", { type: "text", maxlength: "1000", ...attributes });
  input.value = value;
  const label = element("label", { for: input.id }, ...labelOf(question, words));
  const read = (): string => readText(input.value, type);
  return fieldWith({ question, words, label, controls: [input], box: input, read });
}

function selectField(question: FormQuestion, options: readonly string[], words: PageWords): Field {
  const select = element("select", { id: `field-${randomId()}` }, element("option", { value: "" }, words.choose));
  select.append(...options.map((option) => element("option", { value: option }, option)));
  select.value = question.value ?? "";
  const label = element("label", { for: select.id }, ...labelOf(question, words));
  return fieldWith({ question, words, label, controls: [select], box: select, read: () => select.value });
}

function choiceField(question: FormQuestion, options: readonly string[], words: PageWords): Field {
  const name = `field-${randomId()}`;
  const inputs = options.map((value) =>
    element("input", { type: "radio", name, value, checked: value === question.value }),
  );
  const rows = inputs.map((input, at) =>
    element("label.choice", input, element("span", { dir: "auto" }, question.names?.[at] ?? options[at])),
  );
  const legend = element("legend", ...labelOf(question, words));
  const box = element("div.choices", ...rows);
  const read = (): string => inputs.find(({ checked }) => checked)?.value ?? "";
  return fieldWith({ question, words, label: legend, controls: inputs, box, read });
}

function tickField(question: FormQuestion, words: PageWords): Field {
  const input = element("input", { type: "checkbox", checked: question.value === "true" });
  const text = element("span", ...labelOf(question, words));
  const box = element("label.choice", input, text);
  return fieldWith({ question, words, controls: [input], box, read: () => (input.checked ? "true" : "") });
}

interface Parts {
  question: FormQuestion;
  words: PageWords;
  label?: HTMLElement;
  controls: HTMLElement[];
  box: HTMLElement;
  read(): string;
}

/** A field around its controls, with an error message tied to them. */
function fieldWith({ question, words, label, controls, box, read }: Parts): Field {
  const fault = element("p.fault", { id: `fault-${randomId()}`, hidden: true });
  const isGroup = label?.tagName === "LEGEND";
  const node = element(isGroup ? "fieldset" : "div", { class: "field" }, label, box, fault);
  for (const control of controls) {
    if (question.required && !isGroup) control.setAttribute("aria-required", "true");
    control.addEventListener("input", () => mark());
  }
  const mark = (text?: string): void => {
    fault.textContent = text ?? "";
    fault.hidden = text === undefined;
    for (const control of controls) {
      control.toggleAttribute("aria-invalid", false);
      control.removeAttribute("aria-describedby");
      if (text === undefined) continue;
      control.setAttribute("aria-invalid", "true");
      control.setAttribute("aria-describedby", fault.id);
    }
  };
  const check = (): string | undefined => faultOf(question, read(), words);
  return { path: question.path, node, read, check, mark, focus: () => controls[0]?.focus() };
}

function labelOf({ label, required }: FormQuestion, words: PageWords): (HTMLElement | false)[] {
  const text = element("span", { dir: "auto" }, label);
  return [text, !required && element("span.optional", ` ${words.optional}`)];
}

/** A decimal comma becomes a point. */
function readText(text: string, type: string): string {
  const trimmed = text.trim();
  return type === "number" && /^[+-]?\d+,\d+$/.test(trimmed) ? trimmed.replace(",", ".") : trimmed;
}

function faultOf({ type, required }: FormQuestion, value: string, words: PageWords): string | undefined {
  if (value === "") return !required ? undefined : type === "checkbox" ? words.mustAgree : words.missing;
  const digits = value.replace(/\D/g, "").length;
  if (type === "email") return /^[^\s@<>,;]+@[^\s@<>,;]+\.[^\s@<>,;]+$/.test(value) ? undefined : words.badEmail;
  if (type === "url") return /^https?:\/\/\S+$/i.test(value) && canParse(value) ? undefined : words.badUrl;
  if (type === "number") return /^[+-]?(\d+\.?\d*|\.\d+)$/.test(value) ? undefined : words.badNumber;
  if (type === "phone") return digits >= 5 && digits <= 20 ? undefined : words.badPhone;
  return undefined;
}

function canParse(text: string): boolean {
  try {
    return Boolean(new URL(text));
  } catch {
    // Not a URL, which is the test.
    return false;
  }
}
