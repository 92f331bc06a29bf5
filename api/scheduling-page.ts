import { listPublicEventTypes, visitEvent } from "../core/scheduling/face.ts";
import { publicHandle, schedulingVisit } from "../schemas/scheduling.ts";
import { open, type Row, route } from "./route.ts";
import { eventListView, schedulingFailure, schedulingView } from "./scheduling-view.ts";

const shown = "/apps/public/scheduling/:handle";

const said = { not_found: "eventMissing", service_unavailable: "calendarAway" } as const;

/** What visitors see of scheduling: a handle's event types, and the page on which one is booked and bookings are managed. */
export const schedulingPageRows: Row[] = [
  route(`GET ${shown}`, open, publicHandle, listPublicEventTypes, {
    view: eventListView,
    failed: schedulingFailure,
    said,
    hidden: true,
  }),
  route(`GET ${shown}/:eventSlug`, open, schedulingVisit, visitEvent, {
    view: schedulingView,
    failed: schedulingFailure,
    said,
    hidden: true,
  }),
];
