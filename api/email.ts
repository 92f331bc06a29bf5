import { sendMessage } from "../core/email/acceptance.ts";
import { addDomain, listDomains, readIdentity, reconcileIdentity } from "../core/email/domains.ts";
import { listEvents } from "../core/email/events.ts";
import { takeFeedback, takeInbound } from "../core/email/feedback.ts";
import { cancelMessage, listMessages, readMessage } from "../core/email/messages.ts";
import { listSenders, putSender } from "../core/email/senders.ts";
import { addSuppression, listSuppressions, removeSuppression } from "../core/email/suppressions.ts";
import {
  changeTemplate,
  createTemplate,
  listTemplates,
  previewTemplate,
  readTemplate,
  readTemplateVersion,
} from "../core/email/templates.ts";
import { answerUnsubscribe, visitUnsubscribe } from "../core/email/unsubscribe.ts";
import {
  domainAnswer,
  domainList,
  domainListing,
  domainPath,
  eventList,
  eventListing,
  feedbackAnswer,
  handleListing,
  identityAnswer,
  messageAnswer,
  messageDetail,
  messageList,
  messagePath,
  newDomain,
  newMessage,
  newSuppression,
  newTemplate,
  previewAnswer,
  senderAnswer,
  senderChange,
  senderList,
  signedRequest,
  suppressionAnswer,
  suppressionList,
  suppressionPath,
  templateAnswer,
  templateChange,
  templateList,
  templatePath,
  templatePreview,
  templateVersionPath,
  unsubscribeForm,
  unsubscribePath,
} from "../schemas/email.ts";
import { open, operator, type Row, route, user } from "./route.ts";
import { unsubscribeView } from "./unsubscribe-view.ts";

const domains = "/v2/account/domains";
const email = "/v2/handles/:handle/email";

/** Bytes of a provider's notice, and of a mail that came back with all that it had carried. */
const largestFeedback = 1_048_576;
const largestInbound = 26_214_400;

/** Domains and their email identities, senders, templates, messages, events and suppressions. */
export const emailRows: Row[] = [
  route(`POST ${domains}`, user, newDomain, addDomain, {
    created: 201,
    returns: domainAnswer,
    summary: "Attach a domain",
  }),
  route(`GET ${domains}`, user, domainListing, listDomains, {
    returns: domainList,
    summary: "List domains",
  }),
  route(`GET ${domains}/:domain/email-identity`, user, domainPath, readIdentity, {
    returns: identityAnswer,
    summary: "Get the email identity of a domain",
  }),
  route(`POST ${domains}/:domain/email-identity/reconcile`, user, domainPath, reconcileIdentity, {
    status: 202,
    returns: identityAnswer,
    summary: "Check the DNS records of a domain",
  }),
  route(`GET ${email}/senders`, operator, handleListing, listSenders, {
    returns: senderList,
    summary: "List senders",
  }),
  route(`PUT ${email}/senders/:senderId`, operator, senderChange, putSender, {
    returns: senderAnswer,
    summary: "Create or update a sender",
  }),
  route(`POST ${email}/templates`, operator, newTemplate, createTemplate, {
    status: 201,
    returns: templateAnswer,
    summary: "Create a template",
  }),
  route(`GET ${email}/templates`, operator, handleListing, listTemplates, {
    returns: templateList,
    summary: "List templates",
  }),
  route(`GET ${email}/templates/:templateId`, operator, templatePath, readTemplate, {
    returns: templateAnswer,
    summary: "Get a template",
  }),
  route(`PUT ${email}/templates/:templateId`, operator, templateChange, changeTemplate, {
    returns: templateAnswer,
    summary: "Update a template",
  }),
  route(`GET ${email}/templates/:templateId/versions/:version`, operator, templateVersionPath, readTemplateVersion, {
    returns: templateAnswer,
    summary: "Get a version of a template",
  }),
  route(`POST ${email}/templates/:templateId/preview`, operator, templatePreview, previewTemplate, {
    reads: true,
    returns: previewAnswer,
    summary: "Preview a template",
  }),
  route(`POST ${email}/messages`, operator, newMessage, sendMessage, {
    status: 202,
    returns: messageAnswer,
    summary: "Send a message",
  }),
  route(`GET ${email}/messages`, operator, handleListing, listMessages, {
    returns: messageList,
    summary: "List messages",
  }),
  route(`GET ${email}/messages/:messageId`, operator, messagePath, readMessage, {
    returns: messageDetail,
    summary: "Get a message and its timeline",
  }),
  route(`POST ${email}/messages/:messageId/cancel`, operator, messagePath, cancelMessage, {
    returns: messageAnswer,
    summary: "Cancel unsent deliveries",
  }),
  route(`GET ${email}/events`, operator, eventListing, listEvents, {
    returns: eventList,
    summary: "List delivery events",
  }),
  route(`GET ${email}/suppressions`, operator, handleListing, listSuppressions, {
    returns: suppressionList,
    summary: "List suppressions",
  }),
  route(`POST ${email}/suppressions`, operator, newSuppression, addSuppression, {
    status: 201,
    returns: suppressionAnswer,
    summary: "Suppress an address",
  }),
  route(`DELETE ${email}/suppressions/:email`, operator, suppressionPath, removeSuppression, {
    summary: "Remove a suppression",
  }),
  route("POST /v2/email/feedback", open, signedRequest, takeFeedback, {
    accepts: "raw",
    limit: largestFeedback,
    returns: feedbackAnswer,
    summary: "Receive a signed delivery event",
  }),
  route("POST /v2/email/inbound", open, signedRequest, takeInbound, {
    accepts: "raw",
    limit: largestInbound,
    returns: feedbackAnswer,
    summary: "Receive a signed bounce or complaint mail",
  }),
  route("GET /v2/public/email/unsubscribe/:token", open, unsubscribePath, visitUnsubscribe, {
    view: unsubscribeView,
    hidden: true,
  }),
  route("POST /v2/public/email/unsubscribe/:token", open, unsubscribeForm, answerUnsubscribe, {
    accepts: "form",
    view: unsubscribeView,
    hidden: true,
  }),
];
