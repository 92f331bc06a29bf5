import { addressDigest } from "../platform/address.ts";
import type { Env } from "../platform/env.ts";
import { isSigned, sign } from "../platform/sealing.ts";

const linkPurposes = ["open", "confirm", "decline"] as const;

/** A link: one booking at the time of the mail, one purpose, one owner. */
export interface OwnerLink {
  handle: string;
  bookingUid: string;
  purpose: (typeof linkPurposes)[number];
  sequence: number;
  /** Digest of the owner's address. */
  owner: string;
}

type Keys = Pick<Env, "SECRET_KEY" | "SECRET_KEY_PREVIOUS" | "BASE_URL">;

/** The address of a signed link for an owner (docs/reference.md, "Managing a booking"). */
export function ownerLink(env: Keys, { email, ...link }: Omit<OwnerLink, "owner"> & { email: string }): string {
  const { handle, bookingUid, purpose, sequence } = link;
  const owner = addressDigest(email);
  const mac = sign(env, signedFor, signedText({ ...link, owner }));
  // Owners view bookings there and decide requests without signing in.
  return `${env.BASE_URL}/apps/scheduling/${handle}/${bookingUid}/${purpose}/${sequence}.${owner}.${mac}`;
}

/** The link of a path; undefined for one that the service didn't issue. */
export function readOwnerLink(
  env: Keys,
  path: { handle: string; bookingUid: string; purpose: string; token: string },
): OwnerLink | undefined {
  const { handle, bookingUid, token } = path;
  const [, sequence, owner, mac] = /^(\d{1,9})\.([\w-]{22})\.([\w-]{43})$/.exec(token) ?? [];
  const purpose = linkPurposes.find((one) => one === path.purpose);
  if (purpose === undefined || owner === undefined || mac === undefined) return undefined;
  const link = { handle, bookingUid, purpose, sequence: Number(sequence), owner };
  return isSigned(env, signedFor, signedText(link), mac) ? link : undefined;
}

const signedFor = "owner booking link";

function signedText({ handle, bookingUid, purpose, sequence, owner }: OwnerLink): string {
  return JSON.stringify([handle, bookingUid, purpose, sequence, owner]);
}
