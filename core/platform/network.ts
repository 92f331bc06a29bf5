import { isIPv4, isIPv6 } from "node:net";
import ipaddr from "ipaddr.js";

/**
 * The network that throttles count by: an IPv4 address, or the /64 of an IPv6 address, which is one subscriber's (RFC 6177, section 2).
 * IPv4 addresses embedded in IPv6 (RFC 4291, section 2.5.5.2; RFC 6052, section 2.1) count as IPv4. A port is dropped. "unknown" for an
 * invalid address.
 */
export function networkOf(address: string): string {
  // A socket for both versions writes its IPv4 clients so.
  const bare = withoutPort(address).replace(/^::ffff:(?=\d+\.)/i, "");
  if (isIPv4(bare)) return bare;
  if (!isIPv6(bare)) return "unknown";
  const parsed = ipaddr.process(bare);
  if (parsed instanceof ipaddr.IPv4) return parsed.toString();
  if (parsed.range() === "rfc6052") return parsed.toByteArray().slice(12).join(".");
  const prefix = parsed.parts.slice(0, 4).map((group) => group.toString(16));
  return `${prefix.join(":")}::/64`;
}

/** Some proxies forward `192.0.2.1:50000` and `[2001:db8::1]:50000`. */
function withoutPort(address: string): string {
  const [, v6, v4] = /^(?:\[([^\]]*)\](?::\d+)?|(\d+\.\d+\.\d+\.\d+):\d+)$/.exec(address) ?? [];
  return v6 ?? v4 ?? address;
}
