import { accountRows, authorizationRows, signInRows } from "./account.ts";
import { assetRows } from "./assets.ts";
import { assistantRows } from "./assistant.ts";
import { campaignRows } from "./campaigns.ts";
import { domainRows, emailRows } from "./email.ts";
import { crawlerRows, frontDoorRows } from "./front-door.ts";
import { integrationRows } from "./integrations.ts";
import { knowledgeRows } from "./knowledge.ts";
import { leadRows } from "./leads.ts";
import { mcpRows } from "./mcp.ts";
import type { Metrics } from "./metrics.ts";
import { pageRows } from "./pages.ts";
import { paymentRows } from "./payments.ts";
import type { Row } from "./route.ts";
import { schedulingRows } from "./scheduling.ts";
import { strategyRows } from "./strategy.ts";
import { systemRows } from "./system.ts";
import { webhookRows } from "./webhooks.ts";

/** Every route of the service. The path of the built-in sign-in is a setting. */
export function rows(metrics: Metrics, loginPath = "/login"): Row[] {
  const all: Row[] = [
    ...crawlerRows,
    ...tagged("Pages", pageRows),
    ...tagged("Knowledge", knowledgeRows),
    ...tagged("Assistant", assistantRows),
    ...tagged("Leads", leadRows),
    ...tagged("Campaigns", campaignRows),
    ...tagged("Account", accountRows),
    ...signInRows(loginPath),
    ...authorizationRows,
    ...tagged("Domains", domainRows),
    ...tagged("Email", emailRows),
    ...tagged("Scheduling", schedulingRows),
    ...tagged("Connected accounts", integrationRows),
    ...tagged("Payments", paymentRows),
    ...tagged("Webhooks", webhookRows),
    ...tagged("Strategy", strategyRows),
    ...tagged(
      "MCP",
      mcpRows(() => all),
    ),
    ...assetRows,
    ...systemRows(metrics, () => all),
    ...frontDoorRows,
  ];
  return all;
}

/** The rows of a noun, with its tag in the OpenAPI document. */
function tagged(tag: string, rows: Row[]): Row[] {
  return rows.map((row) => ({ tag, ...row }));
}
