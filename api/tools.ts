import type { CallToolResult, Tool } from "@modelcontextprotocol/server";
import { hasRole, mustHaveScope } from "../core/account/face.ts";
import type { Caller, Role, Runtime } from "../core/platform/runtime.ts";
import { propertiesOf, type Schema } from "../schemas/schema.ts";
import { mustBeBounded } from "./body.ts";
import { checkInput } from "./input.ts";
import { operationId, summaryOf } from "./openapi/operation.ts";
import { published } from "./openapi/published.ts";
import { asFail, problemView } from "./problem.ts";
import type { Row, ToolColumn } from "./route.ts";

/** A row that agents may call, and how the protocol describes it. */
export type ToolRow = Row & { tool: ToolColumn; described: Tool };

export function toolRows(rows: Row[]): ToolRow[] {
  return rows.flatMap((row) => (row.tool ? [{ ...row, tool: row.tool, described: describe(row, row.tool) }] : []));
}

/** The tools that a caller may use: by scope for a token, by role for a session. */
export function toolsFor(rows: ToolRow[], { scopes, role }: Caller): ToolRow[] {
  return rows.filter(
    ({ tool, access }) =>
      access.kind === "handle" && hasRole(role as Role, access.role) && (scopes?.includes(tool.scope) ?? true),
  );
}

/** Throws, before anything runs, if the caller's token lacks the scope of a tool. */
export function assertToolAllowed(rows: ToolRow[], name: unknown, caller: Caller): void {
  const row = rows.find(({ tool }) => tool.name === name);
  if (row) mustHaveScope(caller, [row.tool.scope]);
}

/** Calls a row as a tool on the caller's handle. A failure becomes a result that the agent can read. */
export async function callTool(
  runtime: Runtime,
  row: ToolRow,
  called: { input: Record<string, unknown>; caller: Caller },
): Promise<CallToolResult> {
  const { caller } = called;
  const parameters = { handle: caller.handle as string };
  try {
    if (row.guard) await row.guard(runtime, parameters, caller);
    mustBeBounded(called.input);
    const input = checkInput(row, { ...called.input, ...parameters });
    const answer = (await row.run(runtime, input as never, caller)) as Record<string, unknown>;
    const result = row.tool.omits ? without(answer, row.tool.omits) : answer;
    return { content: [{ type: "text", text: JSON.stringify(result) }], structuredContent: result };
  } catch (error) {
    return refusal(runtime, error, caller);
  }
}

function describe(row: Row, { name, description, omits = [] }: ToolColumn): Tool {
  const summary = summaryOf(row);
  const owner = operationId(row);
  const returned = published(row.returns as Schema<unknown>, { owner: `${owner}.answer` });
  const outputSchema = without(returned, omits) as NonNullable<Tool["outputSchema"]>;
  const annotations = { title: summary, readOnlyHint: true, idempotentHint: true, openWorldHint: false };
  return { name, title: summary, description, annotations, inputSchema: inputOf(row.input, owner), outputSchema };
}

/** A copy of an answer, or of its schema, without these fields, wherever they are. */
function without<T>(value: T, fields: readonly string[]): T {
  return JSON.parse(JSON.stringify(value, (name, one) => (fields.includes(name) ? undefined : one)));
}

/** The row's input schema, without the handle, which is in the address, and without ignored fields. */
function inputOf(schema: Schema<unknown>, owner: string): Tool["inputSchema"] {
  const { handle: _, ...properties } = propertiesOf(schema);
  return published({ ...schema, properties }, { owner }) as Tool["inputSchema"];
}

function refusal(runtime: Runtime, error: unknown, caller: Caller): CallToolResult {
  const fail = asFail(error);
  if (fail.code === "internal_error")
    runtime.log.error({ requestId: caller.requestId, error: (error as Error)?.stack }, "mcp.tool.failed");
  const { body } = problemView(fail, caller.requestId);
  return { isError: true, content: [{ type: "text", text: body as string }] };
}
