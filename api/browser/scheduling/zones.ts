import { element, randomId } from "../agent/element.ts";
import type { Host } from "./host.ts";
import { clock, ownZone, zoneText } from "./times.ts";
import { visit, words } from "./visit.ts";

/** The choice of the zone and of the 12 or 24 hour clock. */
export function zoneControls(host: Host, changed: () => void): HTMLElement {
  return element("div.zones", zonePicker(host, changed), clockPicker(changed));
}

function zonePicker(host: Host, changed: () => void): HTMLElement {
  const suggested = [...new Set([clock.zone, ownZone, visit.event?.timeZone ?? "UTC", "UTC"])];
  const change = (): void => {
    clock.zone = select.value;
    changed();
  };
  // Several hundred names with their offsets take a moment: they are added when the list is first used.
  const fill = (): void => {
    if (select.childElementCount > 1) return;
    const others = Intl.supportedValuesOf("timeZone").filter((zone) => !suggested.includes(zone));
    for (const [region, zones] of byRegion(others, words.others)) select.append(group(region, zones, host));
  };
  const select = element("select", { change, pointerdown: fill, focus: fill }, group(words.suggested, suggested, host));
  select.value = clock.zone;
  return element("label.zone", element("span", words.zone), select);
}

function group(label: string, zones: string[], { now }: Host): HTMLElement {
  const options = zones.map((zone) => element("option", { value: zone }, zoneText(zone, now())));
  return element("optgroup", { label }, ...options);
}

function byRegion(zones: string[], others: string): Map<string, string[]> {
  const regions = new Map<string, string[]>();
  for (const zone of zones) {
    const region = zone.includes("/") ? (zone.split("/")[0] as string) : others;
    regions.set(region, [...(regions.get(region) ?? []), zone]);
  }
  return regions;
}

function clockPicker(changed: () => void): HTMLElement {
  const name = `clock-${randomId()}`;
  const choice = (label: string, isTwelve: boolean): HTMLElement => {
    const input = element("input", {
      type: "radio",
      name,
      checked: clock.isTwelveHours === isTwelve,
      change: () => {
        clock.isTwelveHours = isTwelve;
        changed();
      },
    });
    return element("label", input, element("span", label));
  };
  return element(
    "fieldset.switch",
    element("legend.unseen", words.clock),
    choice(words.twelve, true),
    choice(words.twentyFour, false),
  );
}
