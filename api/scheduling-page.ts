import { decideByLink, listPublicEventTypes, visitEvent, visitOwnerLink } from "../core/scheduling/face.ts";
import { ownerDecision, ownerVisit, publicHandle, schedulingVisit } from "../schemas/scheduling.ts";
import { ownerBookingView } from "./owner-booking-view.ts";
import { anyone, type Row, route } from "./route.ts";
import { eventListView, schedulingFailure, schedulingView } from "./scheduling-view.ts";

const pagePath = "/apps/public/scheduling/:handle";
const ownerLink = "/apps/scheduling/:handle/:bookingUid/:purpose/:token";
const owners = { headerInputs: ["visitorLanguage"], view: ownerBookingView, hidden: true } as const;

const said = { not_found: "eventMissing", service_unavailable: "calendarAway" } as const;

/**
 * Scheduling pages: a handle's event types, the page where visitors book and manage bookings, and the pages behind the links of owners'
 * mails.
 */
export const schedulingPageRows: Row[] = [
  route(`GET ${pagePath}`, anyone, publicHandle, listPublicEventTypes, {
    view: eventListView,
    errorView: schedulingFailure,
    said,
    hidden: true,
  }),
  route(`GET ${pagePath}/:eventSlug`, anyone, schedulingVisit, visitEvent, {
    view: schedulingView,
    errorView: schedulingFailure,
    said,
    hidden: true,
  }),
  route(`GET ${ownerLink}`, anyone, ownerVisit, visitOwnerLink, owners),
  route(`POST ${ownerLink}`, anyone, ownerDecision, decideByLink, { ...owners, accepts: "form" }),
];
