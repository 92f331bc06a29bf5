/** What other modules may import from email. */
export { acceptMessage, sendMessage, unlessErased } from "./acceptance.ts";
export { readBounces } from "./bounces.ts";
export { dispatchMail } from "./dispatch.ts";
export {
  addDomain,
  checkDomain,
  listDomains,
  readEmailIdentity,
  reconcileEmailIdentity,
  scheduleNextCheck,
} from "./domains.ts";
export { eraseMentions, erasePerson } from "./erasure.ts";
export { listMessageEvents } from "./events.ts";
export {
  answerUnsubscribe,
  receiveDeliveryReports,
  receiveInboundMail,
  type UnsubscribeVisit,
  visitUnsubscribe,
} from "./feedback.ts";
export { acceptOnce, mailsByService, sendForHandle } from "./handle-mail.ts";
export { resealIdentity } from "./identity.ts";
export { adoptMessages, exportDomains, importDomain } from "./imports.ts";
export { cancelMessage, findMessage, listMessages, readMessage, withdrawMessage } from "./messages.ts";
export { decideNotice, digestTexts, readDigest } from "./notices.ts";
export { findSender, listSenders, putSender, refusal, sendingRights } from "./senders.ts";
export { addSuppression, listSuppressions, removeSuppression } from "./suppressions.ts";
export {
  createTemplate,
  listTemplates,
  previewTemplate,
  type Rendered,
  readTemplate,
  readTemplateVersion,
  updateTemplate,
} from "./templates.ts";
