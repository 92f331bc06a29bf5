/** The address as the browser reads it where it is an absolute one of http or https; undefined otherwise. */
export function webAddress(text: string): string | undefined {
  try {
    const { protocol, href } = new URL(text);
    return protocol === "https:" || protocol === "http:" ? href : undefined;
  } catch {
    // Not an address.
    return undefined;
  }
}
