type Part = "weekday" | "month";

const days = Array.from({ length: 7 }, (_, day) => new Date(Date.UTC(2027, 0, 3 + day)));
const months = Array.from({ length: 12 }, (_, month) => new Date(Date.UTC(2027, month, 15)));

/** The names of the days of the week from Sunday, or of the months, as dates in a language spell them, without a full stop. */
export function calendarNames(language: string, part: Part, style: "long" | "short" = "long"): string[] {
  const format = new Intl.DateTimeFormat(language, { day: "numeric", [part]: style, timeZone: "UTC" });
  return (part === "month" ? months : days).map((date) => {
    const name = format.formatToParts(date).find(({ type }) => type === part)?.value ?? "";
    return name.toLowerCase().replace(/\.$/, "");
  });
}
