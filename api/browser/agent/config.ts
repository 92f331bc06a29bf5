import { words } from "./words.ts";

/** The configuration in the page's shell (docs/reference.md, "Widget"). */
export interface Config {
  pageSlug: string;
  chatUrl: string;
  leadUrl: string;
  wordsLanguage: string;
  assistant: { title?: string; intro?: string; suggestedQuestions?: string[] };
}

/** The configuration of this page, whose texts become the current ones; undefined if it is missing or invalid. */
export function readConfig(): Config | undefined {
  const source = document.querySelector('script[type="application/json"]#svc-public-page-agent-config');
  try {
    const { words: given, ...config } = JSON.parse(source?.textContent ?? "");
    if (!config.chatUrl || !config.leadUrl) return undefined;
    Object.assign(words, given);
    return { assistant: {}, wordsLanguage: "en", ...config };
  } catch {
    // A page without an assistant has no configuration.
    return undefined;
  }
}
