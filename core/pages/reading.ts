import type { StoredPage } from "../../schemas/pages.ts";
import { readHtml } from "../engines/answers/answers.ts";
import { languageOf } from "../platform/languages.ts";

/** Characters of a fragment that suffice to detect its language. */
const SAMPLE_LENGTH = 20_000;

/** The language of a page (BCP 47): as declared, else the handle's, else detected from its public text. */
export function pageLanguage(page: StoredPage, ofHandle: string | null): string {
  const { title, description, accessMode, content, teaser } = page;
  const named = page.language ?? ofHandle;
  if (named) return named;
  const { blocks } = readHtml((accessMode === "PAID" ? teaser : content).slice(0, SAMPLE_LENGTH));
  return languageOf([title, description, ...blocks.map(({ text }) => text)].join("\n"));
}
