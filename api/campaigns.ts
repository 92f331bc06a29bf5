import * as core from "../core/campaigns/face.ts";
import { recordConversion } from "../core/leads/face.ts";
import * as shape from "../schemas/campaigns.ts";
import { previewAnswer } from "../schemas/email.ts";
import { listOf, listQuery, nothing, object } from "../schemas/schema.ts";
import { creator, operator, type Row, route } from "./route.ts";

const campaigns = "/v2/handles/:handle/campaigns";
const rules = `${campaigns}/:campaignId/email-rules` as const;

const ruleFailures = [
  "sender_profile_not_found",
  "sender_profile_not_ready",
  "account_domain_not_found",
  "domain_email_identity_not_ready",
  "sender_missing_product_notification_purpose",
  "email_template_not_found",
  "email_template_not_active",
  "delay_minutes_required_for_delayed_trigger",
  "delay_minutes_below_minimum",
  "delay_minutes_above_maximum",
] as const;

export const campaignRows: Row[] = [
  route(`POST ${campaigns}`, creator, shape.newCampaign, core.createCampaign, {
    status: 201,
    createdId: ({ campaign }) => campaign.campaignId,
    returns: object({ campaign: shape.campaign }),
    description: "Without `campaignId` one is generated.",
    failures: ["campaign_already_exists"],
  }),
  route(`GET ${campaigns}`, creator, listQuery, core.listCampaigns, {
    returns: listOf("campaigns", shape.campaign),
  }),
  route(`GET ${rules}`, creator, listQuery, core.listRules, {
    returns: listOf("rules", shape.rule),
    summary: "List the email rules of a campaign",
    description: "Newest first. `counts` are the sends of a rule by state.",
  }),
  route(`POST ${rules}`, operator, shape.newRule, core.createRule, {
    status: 201,
    createdId: ({ rule }) => rule.ruleId,
    returns: object({ rule: shape.rule }),
    summary: "Create an email rule",
    description:
      "The rule applies to triggers after its creation and sends at most once for a lead. A disabled rule is not checked for a ready sender and an active template.",
    failures: ["campaign_not_found", ...ruleFailures],
  }),
  route(`PUT ${rules}/:ruleId`, operator, shape.ruleChange, core.updateRule, {
    returns: object({ rule: shape.rule }),
    summary: "Update an email rule",
    description: "Sends that already wait follow the rule as it is when they are due.",
    failures: ["campaign_not_found", "email_rule_not_found", ...ruleFailures],
  }),
  route(`DELETE ${rules}/:ruleId`, operator, nothing, core.deleteRule, {
    summary: "Delete an email rule",
    description: "Deleting again is no error. Sends of the rule that still wait are denied when they are due.",
    failures: ["campaign_not_found", "email_rule_not_found"],
  }),
  route(`GET ${rules}/:ruleId/preview`, creator, shape.rulePreview, core.previewRule, {
    summary: "Preview an email rule for a lead",
    returns: previewAnswer,
    description: "Renders the mail that the rule would send to the lead now. Nothing is sent.",
    failures: [
      "campaign_not_found",
      "email_rule_not_found",
      "lead_not_found",
      "email_template_not_found",
      "template_variables_missing",
      "template_invalid",
    ],
  }),
  route("POST /v2/handles/:handle/conversions", creator, shape.newConversion, recordConversion, {
    status: 202,
    createdId: ({ conversion }) => conversion.conversionId,
    returns: object({ conversion: shape.conversion }),
    description: "Triggers the rules of the campaign with the trigger `CONVERSION`.",
    failures: ["campaign_not_found", "lead_not_found"],
  }),
];
