/** The names of the usual kinds of places, in one language. */
export interface PlaceWords {
  online: string;
  phone: string;
  inPerson: string;
}

/** The display name of a kind of place (`google_meet`); a kind that the service doesn't know is its own name. */
export function placeKind(type: string, { online, phone, inPerson }: PlaceWords): string {
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
