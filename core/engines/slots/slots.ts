/** What other modules may import from slots. */
export { endMinutesOf, minutesOf, type Timetable, timetableOf } from "./availability.ts";
export {
  type AvailableSlots,
  availableSlots,
  type Busy,
  isBookable,
  joinBusy,
  localDay,
  reachOf,
  type SlotRequest,
  windowEnd,
} from "./free-slots.ts";
export { bookingNonces, checkNonce } from "./nonce.ts";
export { slotBytes } from "./slot-bytes.ts";
