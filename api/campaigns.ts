import { recordConversion } from "../core/leads/conversions.ts";
import { changeRule, createRule, deleteRule, listRules, previewRule } from "../core/campaigns/rules.ts";
import {
  conversionAnswer,
  newConversion,
  newRule,
  ruleAnswer,
  ruleChange,
  ruleList,
  ruleListing,
  rulePath,
  rulePreview,
} from "../schemas/campaigns.ts";
import { creator, operator, type Row, route } from "./route.ts";

const rules = "/v2/handles/:handle/campaigns/:campaignId/email-rules";

/** Campaign email rules and the conversions that trigger some of them. */
export const campaignRows: Row[] = [
  route(`GET ${rules}`, creator, ruleListing, listRules, {
    returns: ruleList,
    summary: "List the email rules of a campaign",
  }),
  route(`POST ${rules}`, operator, newRule, createRule, {
    status: 201,
    returns: ruleAnswer,
    summary: "Create an email rule",
  }),
  route(`PUT ${rules}/:ruleId`, operator, ruleChange, changeRule, {
    returns: ruleAnswer,
    summary: "Update an email rule",
  }),
  route(`DELETE ${rules}/:ruleId`, operator, rulePath, deleteRule, { summary: "Delete an email rule" }),
  route(`GET ${rules}/:ruleId/preview`, creator, rulePreview, previewRule, {
    summary: "Preview an email rule for a lead",
  }),
  route("POST /v2/handles/:handle/conversions", creator, newConversion, recordConversion, {
    status: 202,
    returns: conversionAnswer,
    summary: "Record a conversion",
  }),
];
