import type { Buffer } from "node:buffer";
import { Fail } from "./errors.ts";
import { ResponseRefused } from "./exchange.ts";

/** Deepest nesting and most values of another server's JSON: a full page of calendar events has some hundred thousand values. */
const MAX_DEPTH = 50;
const MAX_VALUES = 500_000;

const [quote, backslash, comma, openList, closeList, openObject, closeObject] = [34, 92, 44, 91, 93, 123, 125];

/** The members of a value from an untrusted source; none if it is no object. */
export function asObject(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

/**
 * Parses JSON (RFC 8259) from an untrusted source, with or without a byte order mark. Counts nesting and values before it builds anything:
 * throws `ResponseRefused` for too many, `SyntaxError` for malformed text, which its message doesn't quote.
 */
export function parseJson<T>(bytes: Buffer): T {
  mustBeBounded(bytes);
  const text = new TextDecoder().decode(bytes);
  try {
    return JSON.parse(text) as T;
  } catch {
    throw new SyntaxError("The answer is not JSON.");
  }
}

/** Parses the body of a request whose signature was checked over its bytes; `invalid_request`. */
export function parseSignedBody(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch (error) {
    throw new Fail("invalid_request", { detail: "The body cannot be parsed." }, error);
  }
}

function mustBeBounded(bytes: Buffer): void {
  let [depth, values, isText] = [0, 0, false];
  for (let at = 0; at < bytes.length; at++) {
    const sign = bytes[at];
    if (sign === quote) isText = !isText;
    else if (isText) at += sign === backslash ? 1 : 0;
    else if (sign === openList || sign === openObject) {
      values += 1;
      if (++depth > MAX_DEPTH) throw new ResponseRefused("limit", `The answer is nested more than ${MAX_DEPTH} deep.`);
    } else if (sign === closeList || sign === closeObject) depth -= 1;
    else if (sign === comma && ++values > MAX_VALUES)
      throw new ResponseRefused("limit", `The answer holds more than ${MAX_VALUES} values.`);
  }
}
