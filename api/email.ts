import * as core from "../core/email/face.ts";
import * as shape from "../schemas/email.ts";
import { type Words, wordsOf } from "../schemas/languages.ts";
import { listOf, listQuery, nothing, object, string } from "../schemas/schema.ts";
import { type CardContent, cardLink, cardView } from "./card.ts";
import { html, sentence } from "./html.ts";
import type { Request } from "./request.ts";
import { anyone, operator, page, type Row, route, user, type View } from "./route.ts";

const domains = "/v2/account/domains";
const email = "/v2/handles/:handle/email";
const template = `${email}/templates/:templateId` as const;
const unsubscribe = "/v2/public/email/unsubscribe/:token";

/** Largest provider event, and largest bounce with the original mail attached, in bytes. */
const MAX_FEEDBACK_BYTES = 1_048_576;
const MAX_INBOUND_BYTES = 26_214_400;

const bounceExample = [
  "Content-Type: multipart/report; report-type=delivery-status; boundary=b",
  "",
  "--b",
  "Content-Type: message/delivery-status",
  "",
  "Reporting-MTA: dns; mx.example.com",
  "",
  "Final-Recipient: rfc822; ada@example.com",
  "Action: failed",
  "Status: 5.1.1",
  "",
  "--b--",
].join("\r\n");

export const domainRows: Row[] = [
  route(`POST ${domains}`, user, shape.newDomain, core.addDomain, {
    created: 201,
    returns: object({ domain: shape.accountDomain }),
    summary: "Attach a domain",
    description:
      "The domain belongs to the account of the caller's handles; `accountId` chooses between several accounts. It serves pages and is exclusive once its OWNERSHIP record is found in DNS. Attaching it again answers 200.",
    failures: ["forbidden", "insufficient_role", "domain_taken", "not_found"],
  }),
  route(`GET ${domains}`, user, listQuery, core.listDomains, {
    returns: listOf("domains", shape.accountDomain),
    failures: ["insufficient_role"],
  }),
  route(`GET ${domains}/:domain/email-identity`, user, nothing, core.readEmailIdentity, {
    returns: shape.identityAnswer,
    summary: "Get the email identity of a domain",
    description: "The DNS records to publish with the values found, and the senders of the domain.",
    failures: ["account_domain_not_found", "insufficient_role"],
  }),
  route(`POST ${domains}/:domain/email-identity/reconcile`, user, nothing, core.reconcileEmailIdentity, {
    status: 202,
    returns: shape.identityAnswer,
    summary: "Check the DNS records of a domain",
    description: "Starts another check in the background; poll the email identity for its result.",
    failures: ["account_domain_not_found", "insufficient_role"],
  }),
];

export const emailRows: Row[] = [
  route(`GET ${email}/senders`, operator, listQuery, core.listSenders, { returns: listOf("senders", shape.sender) }),
  route(`PUT ${email}/senders/:senderId`, operator, shape.senderChange, core.putSender, {
    returns: object({ sender: shape.sender }),
    summary: "Create or update a sender",
    description:
      "The first PUT requires `domain`, `localPart` and `purposes`. An enabled sender needs a domain whose email identity is READY.",
    failures: ["account_domain_not_found", "domain_email_identity_not_ready"],
  }),
  route(`POST ${email}/templates`, operator, shape.newTemplate, core.createTemplate, {
    status: 201,
    createdId: ({ template }) => template.templateId,
    returns: object({ template: shape.template }),
    description:
      "At least one of `html` and `text` is required; `text` is derived from `html` if it is absent. Placeholders are `{{name}}`.",
    failures: ["email_template_already_exists", "template_invalid"],
  }),
  route(`GET ${email}/templates`, operator, listQuery, core.listTemplates, {
    returns: listOf("templates", shape.template),
  }),
  route(`GET ${template}`, operator, nothing, core.readTemplate, {
    returns: object({ template: shape.template }),
    failures: ["email_template_not_found"],
  }),
  route(`PUT ${template}`, operator, shape.templateChange, core.updateTemplate, {
    returns: object({ template: shape.template }),
    description:
      "A change of content increments `activeVersion`. Earlier versions stay readable, and messages keep the version they were queued with.",
    failures: ["email_template_not_found", "template_invalid"],
  }),
  route(`GET ${template}/versions/:version`, operator, nothing, core.readTemplateVersion, {
    returns: object({ template: shape.template }),
    summary: "Get a version of a template",
    failures: ["email_template_not_found"],
  }),
  route(`POST ${template}/preview`, operator, shape.templatePreview, core.previewTemplate, {
    isReadOnly: true,
    returns: shape.previewAnswer,
    description: "Renders the active version with these variables. Nothing is sent.",
    failures: ["email_template_not_found", "template_variables_missing", "template_invalid"],
  }),
  route(`POST ${email}/messages`, operator, shape.newMessage, core.sendMessage, {
    status: 202,
    createdId: ({ message }) => message.messageId,
    returns: object({ message: shape.message }),
    idempotent: true,
    description:
      "Queues one delivery for each recipient; `QUEUED` is not proof of delivery. One suppressed recipient refuses the whole message. The idempotency key may be the header or the field `idempotencyKey`.",
    failures: [
      "consent_attestation_required",
      "sender_profile_not_found",
      "sender_not_ready",
      "account_domain_not_found",
      "domain_email_identity_not_ready",
      "sender_purpose_not_allowed",
      "email_template_not_found",
      "email_template_not_active",
      "template_variables_missing",
      "template_invalid",
      "email_recipient_suppressed",
      "email_quota_exceeded",
      "transactional_email_queue_unavailable",
    ],
  }),
  route(`GET ${email}/messages`, operator, listQuery, core.listMessages, {
    returns: listOf("messages", shape.message),
    description: "Newest first. Messages are kept for 90 days.",
  }),
  route(`GET ${email}/messages/:messageId`, operator, nothing, core.readMessage, {
    returns: shape.messageDetail,
    summary: "Get a message and its timeline",
  }),
  route(`POST ${email}/messages/:messageId/cancel`, operator, nothing, core.cancelMessage, {
    returns: object({ message: shape.message }),
    summary: "Cancel unsent deliveries",
    description: "Cancels deliveries that are QUEUED or DEFERRED.",
    failures: ["message_not_cancellable"],
  }),
  route(`GET ${email}/events`, operator, shape.eventListing, core.listMessageEvents, {
    returns: listOf("events", shape.messageEvent),
    summary: "List delivery events",
    description: "Newest first. Give at least one of `messageId`, `recipient`, `purpose` and `since`.",
    failures: ["event_filter_required"],
  }),
  route(`GET ${email}/suppressions`, operator, listQuery, core.listSuppressions, {
    returns: listOf("suppressions", shape.suppression),
  }),
  route(`POST ${email}/suppressions`, operator, shape.newSuppression, core.addSuppression, {
    status: 201,
    // The id would be an address, which is content.
    createdId: () => "",
    returns: object({ suppression: shape.suppression }),
    summary: "Suppress an address",
    description: "The address gets no more mail of this handle.",
  }),
  route(`DELETE ${email}/suppressions/:email`, operator, nothing, core.removeSuppression, {
    description: "The address can get mail of this handle again. It is no error if it was not suppressed.",
  }),
  route("POST /v2/email/feedback", anyone, shape.signedRequest, core.receiveDeliveryReports, {
    limit: MAX_FEEDBACK_BYTES,
    returns: shape.reportAnswer,
    summary: "Receive a signed delivery event",
    signed: "standardWebhooks",
    consumes: { "application/json": shape.deliveryReport },
    description: "For mail providers: reports what became of a delivery. Signed with `EMAIL_FEEDBACK_SECRET`.",
    failures: ["invalid_token"],
  }),
  route("POST /v2/email/inbound", anyone, shape.signedRequest, core.receiveInboundMail, {
    limit: MAX_INBOUND_BYTES,
    returns: shape.reportAnswer,
    summary: "Receive a signed bounce or complaint mail",
    signed: "standardWebhooks",
    consumes: { "message/rfc822": string({ examples: [bounceExample] }) },
    description:
      "For mail providers: a delivery report (RFC 3464) or a complaint in Abuse Reporting Format (RFC 5965), as it came. Signed with `EMAIL_FEEDBACK_SECRET`.",
    failures: ["invalid_token"],
  }),
  page(`GET ${unsubscribe}`, nothing, core.visitUnsubscribe, unsubscribeView),
  page(`POST ${unsubscribe}`, shape.unsubscribeForm, core.answerUnsubscribe, unsubscribeView),
];

const noReferrer = { "Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex" };

/** The page of an unsubscribe link in the visitor's language: a question, or the result and how to undo it. */
function unsubscribeView({ link }: core.UnsubscribeVisit, request: Request): View {
  const language = request.language();
  const content = unsubscribeContent(link, wordsOf(language));
  return cardView({ language, ...content, status: link ? 200 : 404, headers: noReferrer });
}

function unsubscribeContent(link: core.UnsubscribeVisit["link"], { unsubscribe: words, ways }: Words): CardContent {
  if (!link) return { title: words.title, body: [html`<p>${words.missing}</p>\n`, cardLink(ways.home, "/")] };
  const saying = (text: string) => html`<p>${sentence(text, { address: link.recipient, sender: link.from })}</p>\n`;
  const button = (name: string, value: string, label: string) =>
    html`<form method="post"><button type="submit" name="${name}" value="${value}">${label}</button></form>`;
  const { question, action, detail, undo } = words;
  if (link.state === "subscribed")
    return { title: words.title, body: [saying(question), button("List-Unsubscribe", "One-Click", action)] };
  if (link.state === "resubscribed") return { title: words.undone, body: saying(words.undoneDetail) };
  return { title: words.done, body: [saying(detail), link.canUndo && button("undo", "1", undo)] };
}
