/** Entered values by path. */
export type Draft = Map<string, string>;

const key = `draft ${location.pathname}`;

/** The values that were entered in this tab before the page was loaded again, else those of the URL. */
export function readDraft(): Draft {
  const given = new URLSearchParams(location.search);
  const named: [string, string | undefined][] = [
    ["/attendee/name", given.get("name")?.slice(0, 200)],
    ["/attendee/email", given.get("email")?.slice(0, 254)],
  ];
  return new Map([
    ...named.flatMap(([path, value]): [string, string][] => (value ? [[path, value]] : [])),
    ...stored(),
  ]);
}

/** Keeps the values for as long as the tab, where the browser lets the page store anything. */
export function storeDraft(draft: Draft): void {
  try {
    sessionStorage.setItem(key, JSON.stringify([...draft]));
  } catch {}
}

function stored(): [string, string][] {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? "[]");
  } catch {
    return [];
  }
}
