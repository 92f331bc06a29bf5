import { MAX_QUESTION_LENGTH } from "./assistant.ts";
import { MAX_DELAY_MINUTES, MIN_DELAY_MINUTES, triggerNames } from "./campaigns.ts";
import { localParts } from "./email.ts";
import * as s from "./schema.ts";

const choice = new Intl.ListFormat("en-GB", { type: "disjunction" });

/** Every error code with its HTTP status and its default detail: one sentence for people (docs/reference.md, "Errors"). */
export const errors = {
  // all routes
  invalid_request: [400, "The request is invalid; see errors for each input at fault."],
  missing_bearer_token: [401, "Send a bearer token in the Authorization header."],
  invalid_token: [401, "The token is expired, malformed or not accepted by this route."],
  forbidden: [403, "You do not have access to this handle or account."],
  insufficient_role: [403, "Your role on this handle is too low for this operation."],
  insufficient_scope: [403, "The token lacks the scope that this operation needs."],
  not_found: [404, "The resource does not exist."],
  method_not_allowed: [405, "This resource does not support the method; see the Allow header."],
  version_conflict: [409, "The resource has changed since expectedVersion; read it again and retry."],
  idempotency_conflict: [409, "The idempotency key was already used with a different request body."],
  idempotency_in_progress: [409, "A request with this idempotency key is still in progress; retry later."],
  payload_too_large: [413, "The request body is too large."],
  unsupported_media_type: [415, "The content type of the request body is not supported; send application/json."],
  rate_limited: [429, "Too many requests; retry after the time in Retry-After."],
  internal_error: [500, "An internal error occurred."],
  service_unavailable: [503, "The service is temporarily unavailable; retry after the time in Retry-After."],
  // pages and knowledge
  page_not_found: [404, "The page does not exist."],
  page_already_exists: [409, "A page with this slug already exists."],
  invalid_page_content: [400, "The page content contains elements or attributes that are not allowed."],
  document_not_found: [404, "The document does not exist."],
  payment_provider_not_connected: [409, "No payment provider is connected, or no price is set."],
  // assistant and leads
  question_too_long: [400, `The question is longer than ${MAX_QUESTION_LENGTH} characters.`],
  lead_not_found: [404, "The lead does not exist."],
  invalid_verification_code: [400, "The verification code is wrong or has expired."],
  // email
  account_domain_not_found: [404, "The domain is not attached to this account."],
  domain_taken: [409, "The domain belongs to another account."],
  domain_email_identity_not_ready: [
    409,
    "The email identity of the domain is not verified yet; publish its DNS records first.",
  ],
  invalid_sender_id: [400, "A sender id must start with sender_."],
  sender_local_part_not_allowed: [400, `The local part must be ${choice.format(localParts)}.`],
  sender_profile_not_found: [404, "The sender does not exist."],
  sender_profile_not_ready: [409, "The sender is disabled or paused."],
  sender_not_ready: [409, "The sender is disabled or paused."],
  sender_purpose_not_allowed: [403, "The sender may not be used for this purpose."],
  sender_missing_product_notification_purpose: [409, "The sender needs the purpose PRODUCT_NOTIFICATION."],
  invalid_template_id: [400, "A template id must start with tmpl_."],
  template_invalid: [400, "The template is not valid; see errors for the position of its fault."],
  template_variables_missing: [400, "Some variables of the template have no value."],
  email_template_not_found: [404, "The template does not exist."],
  email_template_not_active: [409, "The template is paused."],
  email_template_already_exists: [409, "A template with this id already exists."],
  consent_attestation_required: [400, "consentAttestation must be true."],
  email_recipient_suppressed: [409, "A recipient is suppressed; do not retry until the suppression is removed."],
  email_quota_exceeded: [429, "The daily sending quota of this handle is exhausted."],
  transactional_email_queue_unavailable: [503, "Email delivery is not configured or is temporarily unavailable."],
  event_filter_required: [400, "Give at least one of messageId, recipient, purpose and since."],
  message_not_found: [404, "The message does not exist."],
  message_not_cancellable: [409, "The message can no longer be cancelled."],
  // campaigns
  campaign_not_found: [404, "The campaign does not exist."],
  campaign_already_exists: [409, "A campaign with this id already exists."],
  email_rule_not_found: [404, "The email rule does not exist."],
  invalid_trigger: [400, `The trigger must be ${choice.format(triggerNames)}.`],
  delay_minutes_required_for_delayed_trigger: [400, "The trigger LEAD_CAPTURED_DELAYED requires delayMinutes."],
  delay_minutes_below_minimum: [400, `delayMinutes must be at least ${MIN_DELAY_MINUTES}.`],
  delay_minutes_above_maximum: [400, `delayMinutes must be at most ${MAX_DELAY_MINUTES}.`],
  // scheduling
  schedule_not_found: [404, "The schedule does not exist."],
  event_type_not_found: [404, "The event type does not exist."],
  event_type_slug_taken: [409, "An event type with this slug already exists."],
  booking_not_found: [404, "The booking does not exist."],
  booking_required_fields: [400, "attendee.name, attendee.email, slot.start and slot.end are required."],
  invalid_booking_answers: [400, "An answer is missing or malformed; see errors."],
  scheduling_slot_unavailable: [409, "The slot is no longer available; choose another one."],
  booking_not_cancellable: [409, "The booking can no longer be cancelled."],
  booking_not_reschedulable: [409, "The booking can no longer be rescheduled."],
  booking_not_pending: [409, "The booking is not waiting for confirmation."],
  integration_not_found: [404, "The connected account does not exist."],
  provider_not_configured: [409, "This provider is not configured on this installation."],
  integration_revoked: [409, "Access was revoked at the provider; reconnect the account."],
  invalid_oauth_state: [400, "The authorization was not started here, or it has expired; start again."],
  oauth_exchange_failed: [400, "The provider refused the authorization."],
  caldav_login_failed: [400, "The connection to the calendar server failed."],
  webhook_not_found: [404, "The webhook does not exist."],
  // account and strategy
  attempt_expired: [410, "The pairing attempt is unknown, already redeemed or expired; start again."],
  attempt_denied: [403, "The pairing was denied."],
  device_proof_mismatch: [403, "The verifier does not match the challenge."],
  attempt_not_pending: [409, "The pairing attempt has already been decided."],
  context_not_found: [404, "The retrieval context does not exist."],
  session_not_found: [404, "The session does not exist."],
  token_not_found: [404, "The token does not exist."],
  // jobs, for operators
  job_not_found: [404, "No queue contains this job."],
  job_not_failed: [409, "Only failed jobs can be retried."],
} as const satisfies Record<string, readonly [number, string]>;

export type ErrorCode = keyof typeof errors;

const errorCode = s.named("ErrorCode", s.oneOf(...(Object.keys(errors) as ErrorCode[])));

/** One invalid input: a JSON pointer into the request (RFC 6901), and what is wrong there. */
const inputError = s.component("InputError", { path: s.string(), message: s.string() });
export type InputError = s.Infer<typeof inputError>;

/** A failure as clients read it (RFC 9457). */
export const problem = s.component("Problem", {
  type: s.string(),
  title: s.string(),
  status: s.integer(400, 599),
  code: errorCode,
  detail: s.string(),
  requestId: s.string(),
  errors: s.optional(s.array(inputError)),
  currentVersion: s.optional(s.integer(1)),
  field: s.optional(s.string()),
  position: s.optional(s.integer(0)),
  line: s.optional(s.integer(1)),
  column: s.optional(s.integer(1)),
  limit: s.optional(s.oneOf("network", "attendee", "moves")),
});
