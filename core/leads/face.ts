/** What the others may use of leads. */
export { recordConversion } from "./conversions.ts";
export { admitLead, captureLead } from "./capture.ts";
export { eraseLead, exportLeads, listLeads, readLead } from "./leads.ts";
export { sendLeadDigest, sendLeadNotice } from "./notices.ts";
export { sendLeadCode, verifyLead } from "./verification.ts";
