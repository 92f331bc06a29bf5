/** What other modules may import from slots. */
export { type Timetable, timetableOf } from "./availability.ts";
export {
  type AvailableSlots,
  availableSlots,
  isOpen,
  localDay,
  reachOf,
  type SlotRequest,
} from "./free-slots.ts";
export { bookingNonces, checkNonce } from "./nonce.ts";
export { slotBytes } from "./slot-bytes.ts";
