import { accountRows, authorizationRows, signInRows } from "./account.ts";
import { assetRows } from "./assets.ts";
import { assistantRows } from "./assistant.ts";
import { campaignRows } from "./campaigns.ts";
import { emailRows } from "./email.ts";
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
    ...pageRows,
    ...knowledgeRows,
    ...assistantRows,
    ...leadRows,
    ...campaignRows,
    ...accountRows,
    ...signInRows(loginPath),
    ...authorizationRows,
    ...emailRows,
    ...schedulingRows,
    ...integrationRows,
    ...paymentRows,
    ...webhookRows,
    ...strategyRows,
    ...mcpRows(() => all),
    ...assetRows,
    ...systemRows(metrics, () => all),
    ...frontDoorRows,
  ];
  return all;
}
