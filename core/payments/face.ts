/** What other modules may import from payments. */
export {
  admitPayer,
  openPayments,
  receiveStripeEvent,
  refundBooking,
  returnToPage,
  startPageCheckout,
} from "./payments.ts";
