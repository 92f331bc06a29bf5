import {
  createMcpHandler,
  type McpHttpHandler,
  type McpRequestContext,
  ProtocolError,
  ProtocolErrorCode,
  Server,
} from "@modelcontextprotocol/server";
import type { Caller, Runtime } from "../core/platform/runtime.ts";
import { callTool, type ToolRow, toolsFor } from "./tools.ts";

/** The MCP handler for these tools. The tools never change at runtime, so there are no subscriptions. */
export function openMcp(tools: ToolRow[]): McpHttpHandler {
  return createMcpHandler((context) => serverOf(tools, context), { maxSubscriptions: 0, keepAliveMs: 0 });
}

/** A stateless server for one request. */
function serverOf(tools: ToolRow[], { authInfo }: McpRequestContext): Server {
  const { runtime, caller } = (authInfo?.extra ?? {}) as { runtime: Runtime; caller: Caller };
  const server = new Server({ name: "handle-platform", version: "2" }, { capabilities: { tools: {} } });
  const usable = toolsFor(tools, caller);
  server.setRequestHandler("tools/list", () => ({ tools: usable.map(({ described }) => described) }));
  server.setRequestHandler("tools/call", async ({ params }) => {
    const row = usable.find(({ tool }) => tool.name === params.name);
    if (row === undefined) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no tool ${params.name}.`);
    return callTool(runtime, row, { input: params.arguments ?? {}, caller });
  });
  return server;
}
