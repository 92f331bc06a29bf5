/** What other modules may import from payments. */
export {
  admitAccessRequest,
  openAccessLink,
  requestAccessMail,
  sendAccessMail,
  sendPurchaseMail,
} from "./access-mails.ts";
export {
  admitPayer,
  closeCheckout,
  openPayments,
  receiveStripeEvent,
  refundBooking,
  returnToPage,
  startPageCheckout,
} from "./payments.ts";
export { eraseBuyer, erasePurchases, listPurchases } from "./purchases.ts";
