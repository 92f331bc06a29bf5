/** What other modules may import from slots. */
export { endMinutesOf, minutesOf, type Timetable, timetableOf } from "./availability.ts";
export {
  type Busy,
  isBookable,
  joinBusy,
  localDay,
  type AvailableSlots,
  availableSlots,
  type SlotRequest,
  reachOf,
  windowEnd,
} from "./free-slots.ts";
export { bookingNonces, checkNonce } from "./nonce.ts";
export { slotBytes } from "./slot-bytes.ts";
