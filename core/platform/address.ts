import { hash } from "node:crypto";
import { domainToASCII } from "node:url";

const atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+";
const addrSpec = new RegExp(`^(${atom}(?:\\.${atom})*)@([^@]+)$`);
const label = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
/** A name of two labels at least, of which the last is no number: `localhost` and addresses of IP get no mail. */
const domainName = new RegExp(`^(?:${label}\\.)+(?!\\d+$)${label}$`);
/** What may be the domain name of another alphabet; nothing that a parser of web addresses would read as more than a name. */
const unicodeName = /^[\p{L}\p{N}\p{M}.-]+$/u;

/**
 * True for exactly one addr-spec in the form that mail systems accept (RFC 5321): a dot-atom, `@`, a domain name, in any alphabet
 * (RFC 5890). No display name, group, list, comment, quoted local part or control character passes, so that an address is one
 * recipient wherever it is used.
 */
export function isAddress(text: string): boolean {
  return asciiAddress(text) !== undefined;
}

/** An address as mail is sent to it, its domain in ASCII (RFC 5891); undefined for what is none. */
export function asciiAddress(text: string): string | undefined {
  const [, local, given = ""] = addrSpec.exec(text) ?? [];
  const domain = unicodeName.test(given) ? asciiName(given) : "";
  const address = `${local}@${domain}`;
  const fits = local !== undefined && local.length <= 64 && Math.max(text.length, address.length) <= 254;
  return fits && domainName.test(domain) ? address : undefined;
}

/** The form in which two spellings of an address are the same one: lower case throughout, the domain in ASCII. */
export function sameAddress(address: string): string {
  const at = address.lastIndexOf("@") + 1;
  return (address.slice(0, at) + asciiName(address.slice(at))).toLowerCase();
}

/** Names in ASCII stay as they are: a parser would read some of them as addresses of IP. */
function asciiName(domain: string): string {
  return isAscii(domain) || !unicodeName.test(domain) ? domain : domainToASCII(domain);
}

function isAscii(text: string): boolean {
  return /^[ -~]*$/.test(text);
}

/** Addresses without repeats, each in its first spelling. */
export function distinct(addresses: readonly string[]): string[] {
  const seen = new Set<string>();
  return addresses.filter((address) => !seen.has(sameAddress(address)) && seen.add(sameAddress(address)));
}

/** What stands for an address in key names: 128 bits of SHA-256 over its folded form, in base64url. */
export function addressDigest(address: string): string {
  return hash("sha256", sameAddress(address), "base64url").slice(0, 22);
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
