import ICAL from "ical.js";

/** A property and a component of iCalendar in JSON (RFC 7265, sections 3.3 and 3.4). */
export type Property = [
  name: string,
  parameters: Record<string, string | string[]>,
  type: string,
  ...values: unknown[],
];
export type Component = [name: string, properties: Property[], components: Component[]];

/** Parses one calendar object or component; throws if it is malformed. */
export function parseObject(text: string): Component {
  return ICAL.parse(mended(text)) as Component;
}

/** The start of a content line, which may be folded anywhere (RFC 5545, section 3.1). */
const LINE = /^[\w-]+(?::|;[^:]*=)/;

/** A rule. Its words may be in lower case (RFC 5545, section 2), which ical.js doesn't read. */
const RULE = /^RRULE[;:].*/gim;

/**
 * The text with unfolded lines, with its rules in upper case, and without three faults of other programs: Exchange writes
 * `TZID=tzone://Microsoft/Utc` without the quotes that its colon needs (RFC 5545, section 3.2), some break the lines of a text without
 * folding them, and some end lines otherwise.
 */
function mended(text: string): string {
  const unfolded = text.replace(/[\r\n]+/g, "\n").replace(/\n[ \t]/g, "");
  const quoted = unfolded.replace(/;TZID=(tzone:[^":;\n]+)/gi, ';TZID="$1"');
  const lines = quoted.replace(RULE, (rule) => rule.toUpperCase()).split("\n");
  return lines.filter((line) => LINE.test(line)).join("\n");
}

export function componentsOf([, , components]: Component, name: string): Component[] {
  return components.filter(([one]) => one === name);
}

export function propertiesOf([, properties]: Component, name: string): Property[] {
  return properties.filter(([one]) => one === name);
}

/** The value of a component's first property of a name, as text; "" if there is none. */
export function textOf(component: Component, name: string): string {
  return String(propertiesOf(component, name)[0]?.[3] ?? "");
}
