import { domainToASCII } from "node:url";
import { digestOf } from "./digest.ts";

/** Longest address in characters (RFC 5321, section 4.5.3.1.3, without the angle brackets). */
const MAX_LENGTH = 254;
const atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+";
const addrSpec = new RegExp(`^(${atom}(?:\\.${atom})*)@([^@]+)$`);
const label = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
/** A domain name of at least two labels whose last label is no number: `localhost` and IP addresses receive no mail. */
const domainName = new RegExp(`^(?:${label}\\.)+(?!\\d+$)${label}$`);
/** A possible internationalised domain name; excludes everything that a URL parser treats as more than a host. */
const unicodeName = /^[\p{L}\p{N}\p{M}.-]+$/u;

/**
 * True for exactly one addr-spec that mail systems accept (RFC 5321): a dot-atom, `@`, and a domain name, in any script (RFC 5890). Display
 * names, groups, lists, comments, quoted local parts and control characters are rejected, so that an address always means one recipient.
 */
export function isAddress(text: string): boolean {
  return asciiAddress(text) !== undefined;
}

/** The address with its domain in ASCII (RFC 5891), as SMTP needs it; undefined for an invalid one. */
export function asciiAddress(text: string): string | undefined {
  // Converting a long name to ASCII takes time that grows with the square of its length.
  if (text.length > MAX_LENGTH) return undefined;
  const [, local, given = ""] = addrSpec.exec(text) ?? [];
  const domain = unicodeName.test(given) ? asciiName(given) : "";
  const address = `${local}@${domain}`;
  const fits = local !== undefined && local.length <= 64 && address.length <= MAX_LENGTH;
  return fits && domainName.test(domain) ? address : undefined;
}

/** The canonical form of an address, for comparison: lower case, the domain in ASCII. */
export function canonicalAddress(address: string): string {
  const at = address.lastIndexOf("@") + 1;
  return (address.slice(0, at) + asciiName(address.slice(at))).toLowerCase();
}

/** ASCII names pass unchanged: a URL parser would turn some of them into IP addresses. */
function asciiName(domain: string): string {
  return /^[ -~]*$/.test(domain) || !unicodeName.test(domain) ? domain : domainToASCII(domain);
}

/** Addresses without duplicates, each in its first spelling. */
export function distinctAddresses(addresses: readonly string[]): string[] {
  const seen = new Set<string>();
  return addresses.filter((address) => !seen.has(canonicalAddress(address)) && seen.add(canonicalAddress(address)));
}

/** The address in key names: 132 bits of SHA-256 over its canonical form, in base64url. */
export function addressDigest(address: string): string {
  return digestOf(canonicalAddress(address)).slice(0, 22);
}

/** The same for a mailbox: subaddresses (`name+detail@…`, RFC 5233) share its digest, and so do other dots, which big providers ignore. */
export function mailboxDigest(address: string): string {
  return addressDigest(address.replace(/^([^+@]+)\+[^@]*@/, "$1@").replace(/\.(?=.*@)/g, ""));
}

/** A domain name in lower case and ASCII. */
export function canonicalDomain(domain: string): string {
  const folded = domain.toLowerCase().replace(/\.$/, "");
  return domainToASCII(folded) || folded;
}
