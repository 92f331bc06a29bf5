/** The normalised URL if the text is an absolute http or https URL; otherwise undefined. */
export function parseWebAddress(text: string): string | undefined {
  try {
    const { protocol, href } = new URL(text);
    return protocol === "https:" || protocol === "http:" ? href : undefined;
  } catch {
    // Not a URL.
    return undefined;
  }
}
