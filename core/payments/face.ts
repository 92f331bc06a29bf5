/** What the others may use of payments. */
export {
  admitPayer,
  openPayments,
  receiveStripeEvent,
  refundBooking,
  returnToPage,
  startPageCheckout,
} from "./payments.ts";
