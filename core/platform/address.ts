import { createHash } from "node:crypto";
import { domainToASCII } from "node:url";

const atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+";
const label = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
const addrSpec = new RegExp(`^${atom}(?:\\.${atom})*@${label}(?:\\.${label})*$`);

/**
 * True for exactly one addr-spec in the form that mail systems accept (RFC 5321): a dot-atom, `@`, a domain name. No display name,
 * group, list, comment, quoted local part or control character passes, so that an address is one recipient wherever it is used.
 */
export function isAddress(text: string): boolean {
  return text.length <= 254 && text.indexOf("@") <= 64 && addrSpec.test(text);
}

/** The form in which two spellings of an address are the same one: lower case throughout. */
export function sameAddress(address: string): string {
  return address.toLowerCase();
}

/** Addresses without repeats, each in its first spelling. */
export function distinct(addresses: readonly string[]): string[] {
  const seen = new Set<string>();
  return addresses.filter((address) => !seen.has(sameAddress(address)) && seen.add(sameAddress(address)));
}

/** What stands for an address in key names: 128 bits of SHA-256 over its folded form, in base64url. */
export function addressDigest(address: string): string {
  return createHash("sha256").update(sameAddress(address)).digest("base64url").slice(0, 22);
}

/** The same for a mailbox: subaddresses (`name+detail@…`, RFC 5233) are one. */
export function mailboxDigest(address: string): string {
  return addressDigest(address.replace(/^([^+@]+)\+[^@]*@/, "$1@"));
}

/** A domain name folded to lower case and ASCII. */
export function sameDomain(domain: string): string {
  const folded = domain.toLowerCase().replace(/\.$/, "");
  return domainToASCII(folded) || folded;
}
