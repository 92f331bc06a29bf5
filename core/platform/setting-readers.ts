import { readFileSync } from "node:fs";
import { handle } from "../../schemas/schema.ts";

/** Reads the text of a setting: undefined if it is absent. Throws `Malformed`. */
export type SettingReader<T> = (value: string | undefined) => T;

/** Thrown by a reader, with the form that is expected and an example; `readEnv` adds the name of the variable. */
export class Malformed extends Error {}

export function text(fallback: string): SettingReader<string> {
  return (value) => value ?? fallback;
}

export function maybe<T>(reader: SettingReader<T>): SettingReader<T | undefined> {
  return (value) => (value === undefined ? undefined : reader(value));
}

export function flag(value = "no"): boolean {
  if (/^(1|true|yes)$/i.test(value)) return true;
  if (/^(0|false|no)$/i.test(value)) return false;
  throw new Malformed("must be one of 1, true, yes, 0, false, no");
}

export function whole(fallback: number, least: number, most: number): SettingReader<number> {
  return (value) => {
    const parsed = value === undefined ? fallback : Number(value);
    if (Number.isInteger(parsed) && parsed >= least && parsed <= most) return parsed;
    throw new Malformed(`must be an integer from ${least} to ${most}`);
  };
}

export function real(fallback: number, least: number, most: number): SettingReader<number> {
  return (value) => {
    const parsed = value === undefined ? fallback : Number(value);
    if (parsed >= least && parsed <= most) return parsed;
    throw new Malformed(`must be a number from ${least} to ${most}`);
  };
}

/** Tokens of a bucket a second. */
export const rate = (fallback: number) => real(fallback, 0.001, 1e9);

/** Most tokens of a bucket: with less than a whole one it would refuse everything. */
export const burst = (fallback: number) => real(fallback, 1, 1e9);

export function choice<const V extends string>(fallback: V, ...values: V[]): SettingReader<V> {
  return (value) => {
    const found = values.find((one) => one === (value ?? fallback));
    if (found === undefined) throw new Malformed(`must be one of ${values.join(", ")}`);
    return found;
  };
}

/** Comma-separated words, restricted to `known` if it is given. */
export function names(...known: string[]): SettingReader<string[]> {
  return (value) => {
    const given = (value ?? "").split(",").map((name) => name.trim());
    const read = given.filter((name) => name !== "");
    const unknown = read.find((name) => known.length > 0 && !known.includes(name));
    if (unknown !== undefined) throw new Malformed(`contains ${unknown}, which is not one of ${known.join(", ")}`);
    return read;
  };
}

export function handles(value: string | undefined): string[] {
  const read = names()(value);
  const form = new RegExp(handle.pattern as string);
  const wrong = read.find((one) => !form.test(one));
  if (wrong !== undefined) throw new Malformed(`contains ${wrong}, which is not the name of a handle such as acme`);
  return read;
}

/** Comma-separated hosts with ports, of a form, in lower case. */
export function hosts(form: RegExp): SettingReader<string[]> {
  return (value) => {
    const read = names()(value?.toLowerCase());
    const isPort = (port = "") => Number(port) <= 65535;
    if (read.every((one) => form.test(one) && isPort(/:(\d+)$/.exec(one)?.[1]))) return read;
    throw new Malformed("must be a list such as host:port,host:port");
  };
}

/** Comma-separated Sentinels, as `host` or `host:port`; their usual port is 26379. */
export function servers(value: string | undefined): { host: string; port: number }[] {
  return names()(value).map((name) => {
    const { hostname = "", port = "" } = URL.canParse(`tcp://${name}`) ? new URL(`tcp://${name}`) : {};
    if (!name.startsWith(hostname) || !/^(:\d+)?$/.test(name.slice(hostname.length)) || hostname === "")
      throw new Malformed("must be a list such as host:port,host:port");
    return { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port || 26379) };
  });
}

/** An http address, without a slash at its end, that paths are appended to. */
export function base(fallback?: string): SettingReader<string> {
  return (value) => {
    const given = page(value ?? fallback);
    if (given.includes("?")) throw new Malformed("must be an address without a query, such as https://host/path");
    return given;
  };
}

/** The service's own address: its pages refer to each other from the root of their host. */
export function origin(value: string | undefined): string {
  const { origin, pathname, search } = new URL(web(value));
  if (pathname + search !== "/") throw new Malformed("must be an address without a path, such as https://host");
  return origin;
}

export function page(value: string | undefined): string {
  return web(value).replace(/\/+$/, "");
}

/** An http address. Requests don't carry the credentials of one. */
export function web(value: string | undefined): string {
  const given = url("http:", "https:")(value);
  const { username, password } = new URL(given);
  if (username + password !== "") throw new Malformed("must be an address without credentials, such as https://host");
  return given;
}

/** A model server as its client reads it: an address, or only a host, a port or both. */
export function modelServer(given = ""): string {
  const host = given.replace(/^:/, "127.0.0.1:");
  url("http:", "https:")(host.includes("://") ? host : `http://${host}`);
  return given;
}

/** A mail server, perhaps with numbers as parameters (`core/engines/mail/smtp.ts`). Without a connection or time it would get no mail. */
export function mailServer(value: string | undefined): string {
  const given = url("smtp:", "smtps:")(value);
  for (const [name, text] of new URL(given).searchParams) {
    const isNumber = /^(maxConnections|sendTimeout)$/.test(name) ? /^0*[1-9]\d*$/ : /^\d+$/;
    const isEndless = name === "maxMessages" && text === "Infinity";
    if (/^(max|rate)|Timeout$/.test(name) && !isNumber.test(text) && !isEndless)
      throw new Malformed(`must have a number for ${name}, such as smtp://host?${name}=10`);
  }
  return given;
}

/** Redis, perhaps with the number of a database. */
export function redis(value: string | undefined): string {
  const given = encoded("redis:", "rediss:")(value);
  if (!/^\/?\d*$/.test(new URL(given).pathname)) throw new Malformed("must be a URL such as redis://host:6379/0");
  return given;
}

/** A URL whose user and password have escaped special characters. */
export function encoded(first: string, second: string): SettingReader<string> {
  return (value) => {
    const given = url(first, second)(value);
    if (/%(?![\da-f]{2})/i.test(given)) throw new Malformed("must have special characters escaped, such as %25 for %");
    return given;
  };
}

function url(first: string, second: string): SettingReader<string> {
  return (value) => {
    const given = value ?? "";
    const parsed = URL.canParse(given) ? new URL(given) : undefined;
    const isKind = parsed && [first, second].includes(parsed.protocol) && parsed.hostname !== "";
    if (isKind && !given.includes("#")) return given;
    throw new Malformed(`must be a URL such as ${first}//host`);
  };
}

const LABEL = "[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?";
const HOST = new RegExp(`^${LABEL}(?:\\.${LABEL})*$`);

/** A host name in lower case, without the dot that ends an absolute one. */
export function host(fallback = ""): SettingReader<string> {
  return (value = fallback) => {
    const name = value.toLowerCase().replace(/\.$/, "");
    if (HOST.test(name)) return name;
    throw new Malformed("must be a host name such as mail.example.com");
  };
}

/** A host name, perhaps with a port, whose subdomains are hosts too. */
export function domain(value = ""): string {
  const [name, port = ""] = value.split(/(?=:\d+$)/);
  const read = host()(name) + port;
  if (URL.canParse(`http://acme.${read}`)) return read;
  throw new Malformed("must be a domain such as example.com");
}

/** An address, perhaps with the name of its owner. */
export function mailbox(value = ""): { name: string; address: string } {
  const [, , name = "", address = value] = /^("?)([^"<>]*)\1 *<([^<>]*)>$/.exec(value) ?? [];
  const [, of = ""] = /^[^\s"(),:;<>@[\\\]]{1,64}@(.+)$/.exec(address) ?? [];
  if (HOST.test(of.toLowerCase())) return { name: name.trim(), address };
  throw new Malformed("must be an address such as noreply@example.com or Acme <noreply@example.com>");
}

/** A secret of Standard Webhooks: base64, usually after `whsec_`. */
export function signingSecret(value = ""): string {
  const [letters = ""] = /^[\w+/-]{2,}(?=={0,2}$)/.exec(value.replace(/^whsec_/, "")) ?? [];
  if (letters !== "" && letters.length % 4 !== 1) return value;
  throw new Malformed("must be base64, such as whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
}

/** A file with a JSON Web Key Set (RFC 7517, section 5), which is read again later. */
export function keySetFile(path = ""): string {
  try {
    if (Array.isArray(JSON.parse(readFileSync(path, "utf8")).keys)) return path;
  } catch {
    // It can't be read or is no JSON.
  }
  throw new Malformed('must be a readable file with a key set such as {"keys":[]}');
}

export function secretKey(value: string | undefined): string {
  if (value !== undefined && /^[\w+/-]{43}=?$/.test(value)) return value;
  throw new Malformed("must be 32 bytes in base64, as openssl rand -base64 32 prints them");
}

export function bearerToken(value = ""): string {
  if (/\s/.test(value)) throw new Malformed("must have no spaces, such as a1b2c3");
  return value;
}

export function instant(value: string | undefined): number {
  const parsed = Date.parse(value ?? "");
  if (Number.isNaN(parsed) || !/^\d{4}-\d\d-\d\d/.test(value ?? ""))
    throw new Malformed("must be an instant such as 2026-03-01T09:00:00Z");
  return parsed;
}
