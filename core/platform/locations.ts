/** The names of the usual types of locations, in one language. */
interface LocationNames {
  online: string;
  phone: string;
  inPerson: string;
}

/** The display name of a type of location (`google_meet`); a type that the service doesn't know is its own name. */
export function locationName(type: string, { online, phone, inPerson }: LocationNames): string {
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
