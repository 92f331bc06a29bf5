/** What the page's shell tells the widget (docs/reference.md, "Widget"). */
export interface Config {
  pageSlug: string;
  chatUrl: string;
  leadUrl: string;
  assistant: { title?: string; intro?: string; suggestedQuestions?: string[] };
}

/** The config of this page; undefined where it carries none that can be used. */
export function readConfig(): Config | undefined {
  const source = document.querySelector('script[type="application/json"]#svc-public-page-agent-config');
  try {
    const { chatUrl, leadUrl, pageSlug, assistant } = JSON.parse(source?.textContent ?? "") as Config;
    return chatUrl && leadUrl ? { pageSlug, chatUrl, leadUrl, assistant: assistant ?? {} } : undefined;
  } catch {
    // A page without an assistant is whole without it.
    return undefined;
  }
}
