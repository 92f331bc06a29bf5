/** What other modules may import from slots. */
export { timetableOf } from "./availability.ts";
export {
  type AvailableSlots,
  availableSlots,
  isOpen,
  localDay,
  reachOf,
  type SlotRequest,
  type SlotTerms,
} from "./free-slots.ts";
export { bookingNonces, checkNonce } from "./nonce.ts";
export { slotBytes } from "./slot-bytes.ts";
