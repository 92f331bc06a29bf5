import type { WidgetWords } from "./words.ts";

/** The configuration in the page's shell (docs/reference.md, "Widget"). */
export interface Config {
  pageSlug: string;
  chatUrl: string;
  leadUrl: string;
  /** The widget's texts in the page's language, or in English if the service has none. */
  words: Partial<WidgetWords>;
  wordsLanguage: string;
  assistant: { title?: string; intro?: string; suggestedQuestions?: string[] };
}

/** The configuration of this page; undefined if it is missing or invalid. */
export function readConfig(): Config | undefined {
  const source = document.querySelector('script[type="application/json"]#svc-public-page-agent-config');
  try {
    const config = JSON.parse(source?.textContent ?? "") as Config;
    const { chatUrl, leadUrl, pageSlug, assistant, words = {}, wordsLanguage = "en" } = config;
    if (!chatUrl || !leadUrl) return undefined;
    return { pageSlug, chatUrl, leadUrl, words, wordsLanguage, assistant: assistant ?? {} };
  } catch {
    // A page without an assistant has no configuration.
    return undefined;
  }
}
