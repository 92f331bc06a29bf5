/** What other modules may import from mail. */
export { type AskDns, type DnsAnswer, openDns } from "./dns.ts";
export { type Fact, factLabel, layOut, type MailLayout } from "./layout.ts";
export { composeMime, type DkimKey, type Mail, type MimeFile, mimeBytes, signMime } from "./mime.ts";
export { MAX_REPORT_BYTES, type MailReport, readReport } from "./reports.ts";
export { Breaker, classifySmtpFailure, isHardBounce, SmtpFailure, type SmtpFailureClass, SmtpPool } from "./smtp.ts";
