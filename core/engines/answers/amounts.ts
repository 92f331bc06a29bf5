import { languages, type Words } from "../../../schemas/languages.ts";
import { fold } from "../../platform/characters.ts";
import { namesOf } from "./measures.ts";
import { asAlternatives } from "./phrases.ts";

/** A currency (ISO 4217). */
type Currency = keyof Words["answers"]["figures"]["currencies"];

const lexicons = Object.values(languages).map(({ answers }) => answers.figures.currencies);
const currencies = Object.keys(lexicons[0]!) as Currency[];
const names = [...currencies.flatMap(namesOfCurrency), ...namesOfPercentages()];
/** A sign of several currencies, such as "$" or "kr", stands for the first of them. */
const units = new Map(names.map(({ name, unit }) => [compact(name), unit] as const).reverse());

/** The names of the units of amounts in all languages, as a pattern (flags `iu`). */
export const UNIT = `(?<!\\p{L})(?:${asAlternatives(names.map(({ name }) => name))})`;

/** The unit of amounts that a word names, such as `GBP` for "pounds"; undefined for other words. */
export function unitNamed(word: string): string | undefined {
  return units.get(compact(word));
}

/** The code, the signs and the words of a currency. */
function namesOfCurrency(currency: Currency) {
  const signs = (["symbol", "narrowSymbol"] as const).map((currencyDisplay) => {
    const format = new Intl.NumberFormat("en-GB", { style: "currency", currency, currencyDisplay });
    return format.formatToParts(1).find(({ type }) => type === "currency")!.value;
  });
  const words = lexicons.flatMap((lexicon) => lexicon[currency].split(" "));
  return [currency, ...signs, ...words].map((name) => ({ name, unit: currency }));
}

function namesOfPercentages() {
  const words = ["en-GB", ...Object.keys(languages)].flatMap((language) => namesOf("percent", language));
  return ["%", ...words].map((name) => ({ name, unit: "%" }));
}

function compact(name: string): string {
  return fold(name).replace(/\s/g, "");
}
