/** A time in a language (BCP 47) with the name of its zone; `short` for lists and subjects. */
export function formatTime(
  instant: string,
  { language, timeZone, length }: { language: string; timeZone: string; length: "short" | "long" },
): string {
  const date =
    length === "short"
      ? ({ day: "numeric", month: "short" } as const)
      : ({ weekday: "long", day: "numeric", month: "long", year: "numeric" } as const);
  const time = { hour: "numeric", minute: "2-digit", timeZone, timeZoneName: "short" } as const;
  return new Intl.DateTimeFormat(localeOf(language), { ...date, ...time }).format(new Date(instant));
}

export function formatMinutes(minutes: number, language: string): string {
  return formatUnits(minutes, "minute", language);
}

/** A time to wait in seconds, in a language: rounded up to the longest unit of which it has at least one and a half. */
export function formatWait(seconds: number, language: string): string {
  const units: [unit: string, length: number][] = [
    ["day", 86_400],
    ["hour", 3600],
    ["minute", 60],
  ];
  const [unit, length] = units.find(([, length]) => seconds >= 1.5 * length) ?? ["second", 1];
  return formatUnits(Math.max(1, Math.ceil(seconds / length)), unit, language);
}

function formatUnits(count: number, unit: string, language: string): string {
  return new Intl.NumberFormat(localeOf(language), { style: "unit", unit, unitDisplay: "long" }).format(count);
}

/** An amount in the smallest unit of its currency, as Stripe counts it (docs.stripe.com/currencies), in a language, with all its digits. */
export function formatMoney(money: { amountMinor: number; currency: string }, language: string): string {
  const { amountMinor, currency } = money;
  const digits = digitsOf(currency);
  const format = { style: "currency", currency, minimumFractionDigits: digits, maximumFractionDigits: digits } as const;
  return new Intl.NumberFormat(localeOf(language), format).format(amountMinor / 10 ** digits);
}

/** Digits of the smallest unit. Some locale data leave out units whose coins are out of use, such as those of HUF and COP. */
function digitsOf(currency: string): number {
  if (/^(BIF|CLP|DJF|GNF|JPY|KMF|KRW|MGA|PYG|RWF|VND|VUV|XAF|XOF|XPF)$/i.test(currency)) return 0;
  return /^(BHD|JOD|KWD|OMR|TND)$/i.test(currency) ? 3 : 2;
}

/** Plain `en` uses a format in which readers of every country see the same day. */
function localeOf(language: string): string {
  return language === "en" ? "en-GB" : language;
}

/** The names of the days of the week from Sunday, or of the months, as dates in a language spell them, without a full stop. */
export function calendarNames(language: string, part: "weekday" | "month", style: "long" | "short" = "long"): string[] {
  const format = new Intl.DateTimeFormat(language, { day: "numeric", [part]: style, timeZone: "UTC" });
  const [count, dateAt] =
    part === "month"
      ? [12, (month: number) => Date.UTC(2027, month, 15)]
      : [7, (day: number) => Date.UTC(2027, 0, 3 + day)];
  return Array.from({ length: count }, (_, at) => {
    const name = format.formatToParts(dateAt(at)).find(({ type }) => type === part)?.value ?? "";
    return name.toLowerCase().replace(/\.$/, "");
  });
}
