/** Every error code with its HTTP status and the sentence a person reads (contract 1, specification "Errors"). */
export const errors = {
  // all routes
  invalid_request: [400, "The request is not valid."],
  missing_bearer_token: [401, "A bearer token is needed."],
  invalid_token: [401, "The token is expired, malformed or not accepted here."],
  forbidden: [403, "This user has no access to the handle or account."],
  insufficient_role: [403, "The role of this user is too low for this route."],
  insufficient_scope: [403, "The token lacks the scope of this route."],
  not_found: [404, "There is nothing here."],
  method_not_allowed: [405, "The route does not take this method."],
  version_conflict: [409, "The resource has changed since the expected version."],
  idempotency_conflict: [409, "The idempotency key was used with another body."],
  idempotency_in_progress: [409, "The first request with this idempotency key has not ended yet."],
  payload_too_large: [413, "The body is too large."],
  unsupported_media_type: [415, "The content type is not accepted here."],
  rate_limited: [429, "Too many requests; try again later."],
  internal_error: [500, "Something went wrong on our side."],
  service_unavailable: [503, "The service is not available right now; try again later."],
  // pages and knowledge
  page_not_found: [404, "The page does not exist."],
  page_already_exists: [409, "A page with this slug exists."],
  invalid_page_content: [400, "The page content holds elements or attributes that are not allowed."],
  document_not_found: [404, "The document does not exist."],
  payment_provider_not_connected: [409, "No payment provider is connected or no price is set."],
  // assistant and leads
  question_too_long: [400, "The question is longer than 500 characters."],
  lead_not_found: [404, "The lead does not exist."],
  invalid_verification_code: [400, "The verification code is wrong or expired."],
  // email
  account_domain_not_found: [404, "The domain is not attached to the account."],
  domain_taken: [409, "The domain belongs to another account."],
  domain_email_identity_not_ready: [409, "The domain's email identity is not verified yet."],
  invalid_sender_id: [400, "A sender id starts with sender_."],
  sender_local_part_not_allowed: [400, "The local part is one of noreply, notifications, calendar, support, hello."],
  sender_profile_not_found: [404, "The sender does not exist."],
  sender_profile_not_ready: [409, "The sender is disabled or paused."],
  sender_not_ready: [409, "The sender is disabled or paused."],
  sender_purpose_not_allowed: [403, "The sender does not carry this purpose."],
  sender_missing_product_notification_purpose: [409, "The sender lacks the purpose PRODUCT_NOTIFICATION."],
  invalid_template_id: [400, "A template id starts with tmpl_."],
  template_invalid: [400, "The template holds a placeholder that is not allowed."],
  template_variables_missing: [400, "Variables of the template have no value."],
  email_template_not_found: [404, "The template does not exist."],
  email_template_not_active: [409, "The template is paused."],
  email_template_already_exists: [409, "A template with this id exists."],
  consent_attestation_required: [400, "consentAttestation must be true."],
  email_recipient_suppressed: [409, "A recipient is suppressed; do not retry until that is resolved."],
  email_quota_exceeded: [429, "The daily quota of this handle is used up."],
  transactional_email_queue_unavailable: [503, "Email delivery is not configured or not available."],
  event_filter_required: [400, "Give messageId, recipient, purpose or since."],
  message_not_found: [404, "The message does not exist."],
  message_not_cancellable: [409, "The message can no longer be cancelled."],
  // campaigns
  campaign_not_found: [404, "The campaign does not exist."],
  campaign_already_exists: [409, "A campaign with this id exists."],
  email_rule_not_found: [404, "The rule does not exist."],
  invalid_trigger: [400, "The trigger is one of LEAD_CAPTURED, LEAD_CAPTURED_DELAYED, CONVERSION."],
  delay_minutes_required_for_delayed_trigger: [400, "A delayed trigger needs delayMinutes."],
  delay_minutes_below_minimum: [400, "delayMinutes is at least 15."],
  delay_minutes_above_maximum: [400, "delayMinutes is at most 43200."],
  // scheduling
  schedule_not_found: [404, "The schedule does not exist."],
  event_type_not_found: [404, "The event type does not exist."],
  event_type_slug_taken: [409, "An event type with this slug exists."],
  booking_not_found: [404, "The booking does not exist."],
  booking_required_fields: [400, "attendee.name, attendee.email, slot.start and slot.end are required."],
  invalid_booking_answers: [400, "An answer is missing or malformed."],
  scheduling_slot_unavailable: [409, "The slot is taken or was never offered."],
  booking_not_cancellable: [409, "The booking can no longer be cancelled."],
  booking_not_reschedulable: [409, "The booking can no longer be moved."],
  booking_not_pending: [409, "The booking does not wait for confirmation."],
  integration_not_found: [404, "The integration does not exist."],
  provider_not_configured: [409, "The provider is not configured on this installation."],
  integration_revoked: [409, "The account took its authorisation back; connect it again."],
  invalid_oauth_state: [400, "The authorisation was not started here, or it has expired."],
  oauth_exchange_failed: [400, "The provider refused the authorisation."],
  caldav_login_failed: [400, "The calendar server refused the login."],
  webhook_not_found: [404, "The webhook does not exist."],
  // account and strategy
  attempt_expired: [410, "The pairing attempt is unknown, used or expired."],
  attempt_denied: [403, "The pairing was denied."],
  device_proof_mismatch: [403, "The proof does not match the challenge."],
  attempt_not_pending: [409, "The pairing attempt was decided already."],
  context_not_found: [404, "The retrieval context does not exist."],
  token_not_found: [404, "The token does not exist."],
  // jobs, for operators
  job_not_found: [404, "No queue knows the job."],
  job_not_failed: [409, "The job has not failed."],
} as const satisfies Record<string, readonly [number, string]>;

/** A code of the error table. */
export type ErrorCode = keyof typeof errors;

/** One input that is at fault: a JSON pointer into the request and what is wrong there. */
export interface InputError {
  path: string;
  message: string;
}
