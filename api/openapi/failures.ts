import { type ErrorCode, errors } from "../../schemas/errors.ts";
import { propertiesOf, type Schema } from "../../schemas/schema.ts";
import { type Access, hasQuery, type Row } from "../route.ts";
import { writable } from "./published.ts";

const content = { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } };
const retryAfter = { "Retry-After": { $ref: "#/components/headers/RetryAfter" } };

/** The failures of a row, by status, each code with its sentence. */
export function failures(row: Row): Record<string, object> {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of failureCodes(row)) byStatus.set(errors[code][0], [...(byStatus.get(errors[code][0]) ?? []), code]);
  const described = [...byStatus].sort(([one], [other]) => one - other);
  return Object.fromEntries([
    ...described.map(([status, codes]) => [status, failure(status, codes)]),
    ["default", { description: "Any other failure", content }],
  ]);
}

function failure(status: number, codes: ErrorCode[]): object {
  const description = codes.map((code) => `\`${code}\`: ${errors[code][1]}`).join("\n\n");
  return { description, ...(status === 429 || status === 503 ? { headers: retryAfter } : {}), content };
}

/** The failure codes of a row: those of its access, its input and its columns, and its own. */
function failureCodes(row: Row): ErrorCode[] {
  const { access, input, idempotent, failures: own = [] } = row;
  const hasBody = !hasQuery(row);
  const codes: (ErrorCode | false)[] = [
    ...accessCodes(access),
    (hasBody || isChecked(input)) && "invalid_request",
    ...inputCodes(input),
    hasBody && "payload_too_large",
    hasBody && row.accepts !== "raw" && "unsupported_media_type",
    Object.hasOwn(propertiesOf(input), "expectedVersion") && "version_conflict",
    ...(idempotent ? (["idempotency_conflict", "idempotency_in_progress"] as const) : []),
    ...own,
    "service_unavailable",
  ];
  return [...new Set(codes.filter((code) => code !== false))];
}

function accessCodes(access: Access): ErrorCode[] {
  if (access.kind === "open") return [];
  const codes: ErrorCode[] = ["missing_bearer_token", "invalid_token"];
  if (access.kind !== "handle") return codes;
  codes.push("forbidden");
  if (access.role !== "CREATOR") codes.push("insufficient_role");
  if (access.scopes) codes.push("insufficient_scope");
  return codes;
}

/** True if a value of the right type can still be invalid. Access checks the handle. */
function isChecked(schema: Schema<unknown>): boolean {
  return writable(schema).some(([name, { type: _type, ...rest }]) => name !== "handle" && Object.keys(rest).length > 0);
}

/** The error codes that the schemas of an input name. */
function inputCodes(schema: Schema<unknown>): ErrorCode[] {
  const below = [...Object.values(propertiesOf(schema)), ...([schema.items ?? []].flat() as Schema<unknown>[])];
  const here = [schema["x-code"], schema["x-absent-code"]].filter((code) => code !== undefined) as ErrorCode[];
  return [...here, ...below.flatMap(inputCodes)];
}
