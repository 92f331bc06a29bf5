import { me, pairingRedeemed, session, settings, shownToken, token } from "./account.ts";
import {
  chatChunk,
  chatMessage,
  chatPart,
  ctaCard,
  evidenceCard,
  formField,
  leadSection,
  lessonCard,
  questionAnswer,
  step,
} from "./assistant.ts";
import { conversion, rule } from "./campaigns.ts";
import {
  accountDomain,
  dnsRecord,
  feedback,
  identity,
  message,
  mailDelivery as messageDelivery,
  messageEvent,
  previewAnswer,
  sender,
  suppression,
  template,
} from "./email.ts";
import { errorCode, inputError, problem } from "./errors.ts";
import { calendar, credential, selectedCalendars } from "./integrations.ts";
import { document, documentWithContent, queryResult } from "./knowledge.ts";
import { campaign, lead, leadContext } from "./leads.ts";
import { page, pageAssistant, pagePrice } from "./pages.ts";
import { listedPurchase, purchase } from "./payments.ts";
import {
  availableSlot,
  booking,
  bookingField,
  bookingPayment,
  calendarFeed,
  eventType,
  location,
  nextAction,
  overrideRow,
  publicEvent,
  schedule,
  shownCalendarFeed,
  weeklyRow,
} from "./scheduling.ts";
import type { Schema } from "./schema.ts";
import { group, strategyAnswer } from "./strategy.ts";
import { attempt, returnedMail, shownWebhook, webhook, webhookDelivery } from "./webhooks.ts";

/** The shapes that the OpenAPI document names: each one becomes a type of generated clients. */
export const components: Record<string, Schema<unknown>> = {
  Problem: problem,
  ErrorCode: errorCode,
  InputError: inputError,

  Account: me,
  HandleSettings: settings,
  Session: session,
  Token: token,
  NewToken: shownToken,
  Pairing: pairingRedeemed,
  Domain: accountDomain,
  EmailIdentity: identity,
  DnsRecord: dnsRecord,

  Page: page,
  PageAssistant: pageAssistant,
  Price: pagePrice,
  Document: document,
  DocumentWithContent: documentWithContent,
  KnowledgeResult: queryResult,

  ChatMessage: chatMessage,
  ChatPart: chatPart,
  ChatChunk: chatChunk,
  QuestionAnswer: questionAnswer,
  EvidenceCard: evidenceCard,
  CtaCard: ctaCard,
  LeadSection: leadSection,
  LeadSectionStep: step,
  FormField: formField,
  LessonCard: lessonCard,

  Lead: lead,
  LeadContext: leadContext,
  Campaign: campaign,
  EmailRule: rule,
  Conversion: conversion,

  Sender: sender,
  Template: template,
  RenderedMail: previewAnswer,
  Message: message,
  MessageDelivery: messageDelivery,
  MessageEvent: messageEvent,
  DeliveryReport: feedback,
  Suppression: suppression,

  Schedule: schedule,
  WeeklyHours: weeklyRow,
  ScheduleOverride: overrideRow,
  EventType: eventType,
  BookingField: bookingField,
  Location: location,
  PublicEventType: publicEvent,
  Slot: availableSlot,
  Booking: booking,
  BookingPayment: bookingPayment,
  NextAction: nextAction,

  CalendarFeed: calendarFeed,
  NewCalendarFeed: shownCalendarFeed,

  ConnectedAccount: credential,
  Calendar: calendar,
  SelectedCalendars: selectedCalendars,

  Webhook: webhook,
  NewWebhook: shownWebhook,
  WebhookDelivery: webhookDelivery,
  WebhookAttempt: attempt,
  ReturnedMail: returnedMail,
  Purchase: purchase,
  ListedPurchase: listedPurchase,

  StrategyRetrieval: strategyAnswer,
  StrategyGroup: group,
};
