import {
  array,
  boolean,
  either,
  handle,
  type Infer,
  integer,
  map,
  nullable,
  number,
  object,
  oneOf,
  optional,
  type Schema,
  string,
} from "../../schemas/schema.ts";

/** Version of the format of the lines. */
export const EXPORT_VERSION = 2;

/** Ids become parts of keys. */
const id = string({ pattern: "^[^\\s{}]{1,255}$" });

/** The first line: the handle, and the data from outside its keys that an import needs. */
export const headerLine = object({
  format: oneOf("handle-export"),
  version: { const: EXPORT_VERSION } as Schema<number>,
  handle,
  account: id,
  exportedAt: string({ pattern: "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$" }),
  // The base URL of the installation, with which the handle's own URLs in its content begin.
  baseUrl: string(),
  // Its public domain; null or, in earlier files, absent without one.
  publicDomain: optional(nullable(string())),
  entitlements: array(string()),
  members: array(object({ userId: id, role: string(), email: nullable(string()) })),
  domains: array(object({ domain: string(), isHost: boolean, identity: nullable(string()) })),
});
export type ExportHeader = Infer<typeof headerLine>;

/** Text for valid UTF-8, else the bytes in base64. */
const value = either(string(), object({ base64: string() }));
export type Value = Infer<typeof value>;
const values = array(value);

/** The value of a key, by type; a zset is a list of members alternating with scores. */
const contents: Record<string, Schema<unknown>> = {
  string: value,
  list: values,
  set: values,
  zset: values,
  hash: map(value),
  stream: array({ type: "array", prefixItems: [string(), values], items: false, minItems: 2, maxItems: 2 }),
};

/** One key of a handle with its value. */
export interface ExportedKey {
  key: string;
  type: string;
  /** Milliseconds until the key expires, or null. */
  expiresInMs: number | null;
  value: unknown;
}
export const keyLine: Schema<ExportedKey> = {
  oneOf: Object.entries(contents).map(([type, content]) =>
    object({ key: string(), type: oneOf(type), expiresInMs: nullable(number()), value: content }),
  ),
};

/** The last line, by which a truncated file is detected. */
export const endLine = object({ end: { const: true } as Schema<true>, keys: integer() });
export type ExportEnd = Infer<typeof endLine>;
