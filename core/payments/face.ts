/** What other modules may import from payments. */
export {
  admitAccessRequest,
  openAccessLink,
  requestAccessMail,
  sendAccessMail,
  sendPurchaseMail,
} from "./access-mails.ts";
export { admitPayer, returnToPage, startPageCheckout } from "./page-checkouts.ts";
export {
  closeCheckout,
  openPayments,
  receiveStripeEvent,
  refundBooking,
} from "./payments.ts";
export { eraseBuyer, erasePurchases, listPurchases } from "./purchases.ts";
