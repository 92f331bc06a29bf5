import { languages } from "../../../schemas/languages.ts";
import { fold } from "../../platform/characters.ts";
import { calendarNames } from "../../platform/formats.ts";
import { lazy } from "../../platform/lazy.ts";
import { isMeasure, isMeasured, type Measure } from "./measures.ts";
import { termsIn } from "./words.ts";

/** The form of a requested answer. */
export type Shape = Measure | "amount" | "clock" | "time" | "count" | "phone" | "mail";

const CLOCK = "\\d{1,2}[:.h]\\d{2}(?!\\d)|\\d\\s?(?:[ap]\\.?m\\b|uhr|h\\b|heures?|uur)";

const forms = lazy(
  (): Record<Exclude<Shape, "count" | Measure>, RegExp> => ({
    amount:
      /[€$£¥₹%]|\b(?:eur|usd|gbp|chf|euros?|dollars?|pounds?|franken|francs?|pence|free|kostenlos|kostenfrei|gratis|gratuit\w*|gratuito)\b/,
    clock: new RegExp(`${CLOCK}|\\b\\d{1,2}\\s?(?:[-–]|to|till|bis|a|as|alle|tot|y|et)\\s?\\d{1,2}\\b`),
    time: new RegExp(
      `${CLOCK}|\\b(?:1[89]|20)\\d{2}\\b|\\b(?:${calendar()})(?:s|en)?\\b|\\b(?:before|after|until|vor|nach|bis|avant|apres|hasta|dopo|prima|daily|taglich)\\b`,
    ),
    phone: /(?:\+|\b0)\d[\d\s()/.-]{6,}\d|\b\d{3}[-. ]\d{3}[-. ]\d{3,4}\b/,
    mail: /(?<![\w.+-])[\w.+-]{1,64}@[\w-]+\.[\w.-]+/,
  }),
);

/** True if a text of a language contains something of a shape. */
export function holdsShape(text: string, shape: Shape, language: string): boolean {
  // A number that is written out is a term; a telephone number counts nothing.
  if (shape === "count")
    return termsIn(text.split(forms().phone).join(" "), language).some((term) => /^\p{N}/u.test(term));
  // "Within two weeks" is a time too, and "since 1974" is a duration.
  if (shape === "time" && isMeasured(text, "duration", language)) return true;
  if (shape === "duration" && /\b(?:1[89]|20)\d{2}\b/.test(text)) return true;
  if (isMeasure(shape)) return isMeasured(text, shape, language);
  return forms()[shape].test(fold(text));
}

/** The names of the days of the week and of the months, as one alternative of a pattern. */
function calendar(): string {
  const names = Object.keys(languages).flatMap((code) =>
    (["weekday", "month"] as const).flatMap((kind) => calendarNames(code, kind)),
  );
  return [...new Set(names.map(fold))].join("|");
}
