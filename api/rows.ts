import { accountRows, signInRows } from "./account.ts";
import { assetRows } from "./assets.ts";
import { assistantRows } from "./assistant.ts";
import { authorizationRows } from "./authorization.ts";
import { calendarFeedRows } from "./calendar-feeds.ts";
import { campaignRows } from "./campaigns.ts";
import { emailRows } from "./email.ts";
import { crawlerRows, frontDoorRows } from "./front-door.ts";
import { integrationRows } from "./integrations.ts";
import { knowledgeRows } from "./knowledge.ts";
import { leadFormRows } from "./lead-form.ts";
import { leadRows } from "./leads.ts";
import { mcpRows } from "./mcp.ts";
import type { Metrics } from "./metrics.ts";
import { pageRows } from "./pages.ts";
import { paymentRows } from "./payments.ts";
import type { Row } from "./route.ts";
import { schedulingRows } from "./scheduling.ts";
import { schedulingPageRows } from "./scheduling-page.ts";
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
    ...leadFormRows,
    ...leadRows,
    ...campaignRows,
    ...accountRows,
    ...signInRows(loginPath),
    ...authorizationRows,
    ...emailRows,
    ...schedulingRows,
    ...calendarFeedRows,
    ...schedulingPageRows,
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
