/** The display name of a type of location (`google_meet`), in a language; a type that the service doesn't know is its own name. */
export function locationName(
  type: string,
  { online, phone, inPerson }: Record<"online" | "phone" | "inPerson", string>,
): string {
  const names: Record<string, string> = {
    google_meet: "Google Meet",
    teams: "Microsoft Teams",
    zoom: "Zoom",
    link: online,
    phone,
    in_person: inPerson,
  };
  return Object.hasOwn(names, type) ? (names[type] as string) : type;
}
