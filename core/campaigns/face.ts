/** What other modules may import from campaigns. */
export { campaignOf, createCampaign, findCampaign, listCampaigns } from "./campaigns.ts";
export { promoteDueSends } from "./delayed-sends.ts";
export { abandonSends, fireRules, sendRule } from "./rule-sends.ts";
export { createRule, deleteRule, listRules, previewRule, updateRule } from "./rules.ts";
