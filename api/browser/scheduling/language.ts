import { element } from "../agent/element.ts";
import { addressOf, visit, words } from "./visit.ts";

/** The choice of the page's language, by the languages' own names. The page, or its booking, is loaded again in the chosen one. */
export function languagePicker(bookingUid: string | undefined): HTMLElement {
  const select = element("select", { change: () => location.assign(addressOf(bookingUid, select.value)) });
  for (const code of visit.languages) select.append(element("option", { value: code, lang: code }, nameOf(code)));
  select.value = visit.language;
  return element("label.language", element("span", words.language), select);
}

function nameOf(code: string): string {
  const name = new Intl.DisplayNames(code, { type: "language" }).of(code) ?? code;
  return name.charAt(0).toLocaleUpperCase(code) + name.slice(1);
}
