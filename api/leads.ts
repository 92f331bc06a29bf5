import * as core from "../core/leads/face.ts";
import * as shape from "../schemas/leads.ts";
import { listOf, nothing, object } from "../schemas/schema.ts";
import { leadView, verifiedView, wrongCodeView } from "./lead-view.ts";
import { leadsCsv } from "./leads-csv.ts";
import { anyone, creator, operator, type Row, route } from "./route.ts";

const leads = "/v2/handles/:handle/leads";

export const leadRows: Row[] = [
  route("POST /v2/public/handles/:handle/leads", anyone, shape.newLead, core.captureLead, {
    status: 202,
    guard: core.admitLead,
    page: leadView,
    returns: shape.leadAccepted,
    logged: false,
    summary: "Submit a lead",
    description:
      "Takes JSON or a form; a form post that prefers HTML is answered with a page. Other scalar keys become custom fields. The same email, page and campaign within 24 h updates the lead. A lead is UNVERIFIED if a code was sent to confirm the address.",
    failures: ["not_found", "campaign_not_found"],
  }),
  route("POST /v2/public/handles/:handle/leads/:leadId/verify", anyone, shape.leadCode, core.verifyLead, {
    guard: core.admitLead,
    page: verifiedView,
    errorView: wrongCodeView,
    logged: false,
    summary: "Verify the email address of a lead",
    returns: shape.leadVerified,
    description: "Takes the six-digit code from the mail. Five wrong codes end it.",
    failures: ["not_found", "lead_not_found", "invalid_verification_code"],
  }),
  route(`GET ${leads}`, creator, shape.leadListing, core.listLeads, {
    returns: listOf("leads", shape.lead),
    description: "Newest first. `since` finds leads that were captured, or captured again, from then on.",
  }),
  route(`GET ${leads}/export`, operator, shape.leadExport, core.exportLeads, {
    view: leadsCsv,
    summary: "Export leads as CSV",
    description:
      "One row for each lead, streamed (RFC 4180). Cells that a spreadsheet would run as a formula are escaped.",
    produces: { types: ["text/csv"], example: "leadId,createdAt,updatedAt,email,name\r\n…" },
  }),
  route(`GET ${leads}/:leadId`, creator, nothing, core.readLead, { returns: object({ lead: shape.lead }) }),
  route(`DELETE ${leads}/:leadId`, operator, nothing, core.eraseLead, {
    summary: "Erase the person of a lead",
    description:
      "Erases all leads of the address on this handle and all copies of their data. A suppression of the address stays, as a digest.",
  }),
];
