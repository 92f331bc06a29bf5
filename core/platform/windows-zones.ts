import zones from "./windows-zones.json" with { type: "json" };

const names: Readonly<Record<string, string>> = zones;

/** The IANA name of a Windows zone (CLDR, windowsZones, territory 001, and two that Windows has dropped), or undefined. */
export function ofWindows(name: string): string | undefined {
  return Object.hasOwn(names, name) ? names[name] : undefined;
}
