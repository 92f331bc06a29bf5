import type { Row } from "../route.ts";
import { type Content, exampleOf, type Parameter, type Surroundings } from "./published.ts";

/** The request of a row as a curl command for a POSIX shell, with the examples of its required parameters and its body. */
export function sample(
  row: Row,
  { parameters, content = {}, around }: { parameters: Parameter[]; content: Content | undefined; around: Surroundings },
): string {
  const [type, body] = Object.entries(content)[0] ?? [];
  const values = (place: Parameter["in"]): Record<string, string> => {
    const wanted = parameters.filter((one) => one.in === place && one.required);
    return Object.fromEntries(wanted.map(({ name, schema }) => [name, String(exampleOf(schema, around.components))]));
  };
  const headers = { ...secrets(row), ...values("header"), ...(type ? { "Content-Type": type } : {}) };
  return [
    `curl ${row.method === "GET" ? "" : `-X ${row.method} `}${quoted(addressOf(row, around.baseUrl, values))}`,
    ...Object.entries(headers).map(([name, value]) => `-H ${header(name, value)}`),
    ...(body
      ? [
          type === "application/json"
            ? `-d ${quoted(JSON.stringify(body.example, null, 2))}`
            : "--data-binary @message.eml",
        ]
      : []),
  ].join(" \\\n  ");
}

function addressOf(row: Row, baseUrl: string, values: (place: "path" | "query") => Record<string, string>): string {
  const known = values("path");
  const path = row.path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(known[name] ?? name));
  const query = new URLSearchParams(values("query")).toString();
  return `${baseUrl}${path}${query ? `?${query}` : ""}`;
}

/** Tokens and signatures are shell variables. */
function secrets({ access, signed }: Row): Record<string, string> {
  if (signed === "standardWebhooks") return { "webhook-signature": "v1,$SIGNATURE" };
  if (signed === "stripe") return { "stripe-signature": "$SIGNATURE" };
  return access.kind === "public" ? {} : { Authorization: "Bearer $TOKEN" };
}

function header(name: string, value: string): string {
  return value.includes("$") ? `"${name}: ${value}"` : quoted(`${name}: ${value}`);
}

function quoted(text: string): string {
  return `'${text.replace(/'/g, "'\\''")}'`;
}
