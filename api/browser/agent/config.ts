import type { Words } from "./words.ts";

/** What the page's shell tells the widget (docs/reference.md, "Widget"). */
export interface Config {
  pageSlug: string;
  chatUrl: string;
  leadUrl: string;
  /** The widget's words in the page's language, or in English where the service has none. */
  words: Partial<Words>;
  wordsLanguage: string;
  assistant: { title?: string; intro?: string; suggestedQuestions?: string[] };
}

/** The config of this page; undefined where it carries none that can be used. */
export function readConfig(): Config | undefined {
  const source = document.querySelector('script[type="application/json"]#svc-public-page-agent-config');
  try {
    const config = JSON.parse(source?.textContent ?? "") as Config;
    const { chatUrl, leadUrl, pageSlug, assistant, words = {}, wordsLanguage = "en" } = config;
    if (!chatUrl || !leadUrl) return undefined;
    return { pageSlug, chatUrl, leadUrl, words, wordsLanguage, assistant: assistant ?? {} };
  } catch {
    // A page without an assistant is whole without it.
    return undefined;
  }
}
