import { asciiDigits, compatible } from "./characters.ts";

/** Marks of direction, fillers, controls and the like, but no joiners: domains may have them (RFC 5892, appendices A.1 and A.2). */
const INVISIBLE = /(?![\u200c\u200d])[\p{Cf}\p{Default_Ignorable_Code_Point}]|(?!\s)\p{Cc}/gu;

/** What a person typed or pasted, without invisible characters and outer spaces; wide letters and signs become plain ones. */
export function typedText(text: string): string {
  return compatible(text.replace(INVISIBLE, "")).trim();
}

/** The same for a number: the digits of every script become 0 to 9. */
export function typedDigits(text: string): string {
  return asciiDigits(typedText(text));
}

/** True for 5 to 20 digits with the usual separators, and an extension. E.164 allows 15; some people add an exit code. */
export function isPhoneNumber(text: string): boolean {
  const digits = text.replace(/\D/g, "").length;
  return /^\(?\+?[\d ().\p{Pd}/]+( ?(x|ext\.?) ?\d+)?$/iu.test(text) && digits >= 5 && digits <= 20;
}
