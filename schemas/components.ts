import * as account from "./account.ts";
import * as assistant from "./assistant.ts";
import * as campaigns from "./campaigns.ts";
import * as email from "./email.ts";
import * as errors from "./errors.ts";
import * as integrations from "./integrations.ts";
import * as knowledge from "./knowledge.ts";
import * as leads from "./leads.ts";
import * as pages from "./pages.ts";
import * as payments from "./payments.ts";
import * as scheduling from "./scheduling.ts";
import type { Schema } from "./schema.ts";
import * as strategy from "./strategy.ts";
import * as webhooks from "./webhooks.ts";

/** The shapes that the OpenAPI document names: each one becomes a type of generated clients. */
export const components: Record<string, Schema<unknown>> = {
  Problem: errors.problem,
  ErrorCode: errors.errorCode,
  InputError: errors.inputError,

  Account: account.me,
  HandleSettings: account.settings,
  Session: account.session,
  Token: account.token,
  NewToken: account.shownToken,
  Pairing: account.pairingRedeemed,
  Domain: email.accountDomain,
  EmailIdentity: email.identity,
  DnsRecord: email.dnsRecord,

  Page: pages.page,
  PageAssistant: pages.pageAssistant,
  Price: pages.pagePrice,
  Document: knowledge.document,
  DocumentWithContent: knowledge.documentWithContent,
  KnowledgeResult: knowledge.queryResult,

  ChatMessage: assistant.chatMessage,
  ChatPart: assistant.chatPart,
  ChatChunk: assistant.chatChunk,
  QuestionAnswer: assistant.questionAnswer,
  EvidenceCard: assistant.evidenceCard,
  CtaCard: assistant.ctaCard,
  LeadSection: assistant.leadSection,
  LeadSectionStep: assistant.step,
  FormField: assistant.formField,
  LessonCard: assistant.lessonCard,

  Lead: leads.lead,
  LeadContext: leads.leadContext,
  Campaign: leads.campaign,
  EmailRule: campaigns.rule,
  Conversion: campaigns.conversion,

  Sender: email.sender,
  Template: email.template,
  RenderedMail: email.previewAnswer,
  Message: email.message,
  MessageDelivery: email.mailDelivery,
  MessageEvent: email.messageEvent,
  DeliveryReport: email.feedback,
  Suppression: email.suppression,

  Schedule: scheduling.schedule,
  WeeklyHours: scheduling.weeklyRow,
  ScheduleOverride: scheduling.overrideRow,
  EventType: scheduling.eventType,
  BookingField: scheduling.bookingField,
  Location: scheduling.location,
  PublicEventType: scheduling.publicEvent,
  Slot: scheduling.availableSlot,
  Booking: scheduling.booking,
  BookingPayment: scheduling.bookingPayment,
  NextAction: scheduling.nextAction,

  CalendarFeed: scheduling.calendarFeed,
  NewCalendarFeed: scheduling.shownCalendarFeed,

  ConnectedAccount: integrations.credential,
  Calendar: integrations.calendar,
  SelectedCalendars: integrations.selectedCalendars,

  Webhook: webhooks.webhook,
  NewWebhook: webhooks.shownWebhook,
  WebhookDelivery: webhooks.webhookDelivery,
  WebhookAttempt: webhooks.attempt,
  ReturnedMail: webhooks.returnedMail,
  Purchase: payments.purchase,
  ListedPurchase: payments.listedPurchase,

  StrategyRetrieval: strategy.strategyAnswer,
  StrategyGroup: strategy.group,
};
