import { languages, type Words } from "../../../schemas/languages.ts";
import { fold } from "../../platform/characters.ts";
import { namesOf } from "./measures.ts";
import { asAlternatives } from "./phrases.ts";

/** A currency (ISO 4217). */
type Currency = keyof Words["answers"]["figures"]["currencies"];

const lexicons = Object.values(languages).map(({ answers }) => answers.figures.currencies);
const percentages = ["en-GB", ...Object.keys(languages)].flatMap((language) => namesOf("percent", language));
const named = (unit: string, names: readonly string[]) => names.map((name) => ({ unit, name }));
const names = [
  ...(Object.keys(lexicons[0]!) as Currency[]).flatMap((currency) => named(currency, currencyNames(currency))),
  ...named("%", ["%", ...percentages]),
];
/** A sign of several currencies, such as "$" or "kr", stands for the first of them. */
const units = new Map(names.map(({ name, unit }) => [compact(name), unit] as const).reverse());

/** The names of the units of amounts in all languages, as a pattern (flags `iu`). */
export const UNIT = `(?<!\\p{L})(?:${asAlternatives(names.map(({ name }) => name))})`;

/** The unit of amounts that a word names, such as `GBP` for "pounds"; undefined for other words. */
export function unitNamed(word: string): string | undefined {
  return units.get(compact(word));
}

/** The code, the signs and the words of a currency. */
function currencyNames(currency: Currency): string[] {
  const signs = (["symbol", "narrowSymbol"] as const).flatMap((currencyDisplay) =>
    new Intl.NumberFormat("en-GB", { style: "currency", currency, currencyDisplay })
      .formatToParts(1)
      .flatMap(({ type, value }) => (type === "currency" ? [value] : [])),
  );
  return [currency, ...signs, ...lexicons.flatMap((lexicon) => lexicon[currency].split(" "))];
}

function compact(name: string): string {
  return fold(name).replace(/\s/g, "");
}
