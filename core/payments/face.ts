/** What the others may use of payments. */
export { admitPayer, openPayments, receiveStripeEvent, returnToPage, startPageCheckout } from "./payments.ts";
