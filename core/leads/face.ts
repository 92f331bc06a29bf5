/** What other modules may import from leads. */

export { admitLead, captureLead } from "./capture.ts";
export { recordConversion } from "./conversions.ts";
export { eraseLead, exportLeads, listLeads, readLead } from "./leads.ts";
export { sendLeadDigest, sendLeadNotice } from "./notices.ts";
export { sendLeadCode, verifyLead } from "./verification.ts";
