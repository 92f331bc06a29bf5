import { createCampaign, listCampaigns } from "../core/campaigns/campaigns.ts";
import { admitLead, captureLead, eraseLead, exportLeads, listLeads, readLead } from "../core/leads/leads.ts";
import { verifyLead } from "../core/leads/verification.ts";
import {
  campaignAnswer,
  campaignList,
  campaignListing,
  leadAccepted,
  leadAnswer,
  leadCode,
  leadExport,
  leadList,
  leadListing,
  leadPath,
  newCampaign,
  newLead,
} from "../schemas/leads.ts";
import { leadsCsv } from "./leads-csv.ts";
import { creator, open, operator, type Row, route } from "./route.ts";

const leads = "/v2/handles/:handle/leads";

/** Leads: what visitors submit, and what owners do with it; and the campaigns that leads belong to. */
export const leadRows: Row[] = [
  route("POST /v2/public/handles/:handle/leads", open, newLead, captureLead, {
    status: 202,
    accepts: "form",
    guard: admitLead,
    returns: leadAccepted,
    logged: false,
    summary: "Submit a lead",
  }),
  route("POST /v2/public/handles/:handle/leads/:leadId/verify", open, leadCode, verifyLead, {
    guard: admitLead,
    logged: false,
    summary: "Verify the email address of a lead",
  }),
  route(`GET ${leads}`, creator, leadListing, listLeads, {
    returns: leadList,
    summary: "List leads",
  }),
  route(`GET ${leads}/export`, operator, leadExport, async (runtime, input) => exportLeads(runtime, input), {
    view: leadsCsv,
    summary: "Export leads as CSV",
  }),
  route(`GET ${leads}/:leadId`, creator, leadPath, readLead, { returns: leadAnswer, summary: "Get a lead" }),
  route(`DELETE ${leads}/:leadId`, operator, leadPath, eraseLead, { summary: "Erase the person of a lead" }),
  route("POST /v2/handles/:handle/campaigns", creator, newCampaign, createCampaign, {
    status: 201,
    returns: campaignAnswer,
    summary: "Create a campaign",
  }),
  route("GET /v2/handles/:handle/campaigns", creator, campaignListing, listCampaigns, {
    returns: campaignList,
    summary: "List campaigns",
  }),
];
