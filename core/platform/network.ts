import { isIPv4, isIPv6 } from "node:net";

/**
 * The network that throttles count by: an IPv4 address, or the /64 of an IPv6 address, which is one subscriber's (RFC 6177, section 2).
 * IPv4 addresses embedded in IPv6 (RFC 4291, section 2.5.5.2; RFC 6052, section 2.1) count as IPv4. A port is dropped. "unknown" for an
 * invalid address.
 */
export function networkOf(address: string): string {
  const bare = withoutPort(address);
  if (isIPv4(bare)) return bare;
  if (!isIPv6(bare)) return "unknown";
  const groups = groupsOf(bare);
  const prefix = groups.slice(0, 6).join(":");
  if (embedsIPv4.has(prefix)) return groups.slice(6).flatMap(bytesOf).join(".");
  const network = groups.slice(0, 4).map((group) => group.toString(16));
  return `${network.join(":")}::/64`;
}

/** The first six groups of IPv4-mapped addresses and of the well-known translation prefix. */
const embedsIPv4 = new Set([`0:0:0:0:0:${0xffff}`, `${0x64}:${0xff9b}:0:0:0:0`]);

/** Some proxies forward `192.0.2.1:50000` and `[2001:db8::1]:50000`. */
function withoutPort(address: string): string {
  const [, v6, v4] = /^(?:\[([^\]]*)\](?::\d+)?|(\d+\.\d+\.\d+\.\d+):\d+)$/.exec(address) ?? [];
  return v6 ?? v4 ?? address;
}

/** The eight groups of an IPv6 address; URL normalises all its spellings (RFC 5952). */
function groupsOf(address: string): number[] {
  const { hostname } = new URL(`http://[${address.replace(/%.*$/, "")}]`);
  const [head, tail] = hostname.slice(1, -1).split("::").map(numbersOf) as [number[], number[]?];
  if (tail === undefined) return head;
  return [...head, ...new Array<number>(8 - head.length - tail.length).fill(0), ...tail];
}

function numbersOf(groups: string): number[] {
  return groups === "" ? [] : groups.split(":").map((group) => Number.parseInt(group, 16));
}

function bytesOf(group: number): number[] {
  return [group >> 8, group & 255];
}
