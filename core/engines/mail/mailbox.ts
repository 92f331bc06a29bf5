import { ImapFlow } from "imapflow";
import { connectionFailure } from "../../platform/exchange.ts";
import type { Mailbox } from "../../platform/runtime.ts";
import { MAX_REPORT_BYTES } from "./reports.ts";

/** Real ms within which a server must greet and respond. */
const TIMEOUT_MS = 30_000;

/**
 * Opens the mailbox of a URL, `imap(s)://user:password@host:port/mailbox`; INBOX by default. A plain connection is upgraded to TLS if the
 * server can. Throws if the server is unreachable or refuses the login.
 */
export async function openMailbox(address: string): Promise<Mailbox> {
  const url = new URL(address);
  const client = clientOf(url);
  // A broken connection fails the pending command, which handles it.
  client.on("error", () => undefined);
  try {
    await client.connect();
    await client.mailboxOpen(decodeURIComponent(url.pathname.slice(1)) || "INBOX");
  } catch (error) {
    client.close();
    throw connectionFailure(error as Error);
  }
  return {
    async unseen() {
      const found = await client.search({ seen: false }, { uid: true });
      if (!found) throw new Error("The mail server refuses to search the mailbox.");
      return found.sort((one, other) => one - other);
    },
    async read(uid) {
      const found = await client.fetchOne(String(uid), { source: { maxLength: MAX_REPORT_BYTES } }, { uid: true });
      return found ? found.source : undefined;
    },
    async markSeen(uid) {
      const isMarked = await client.messageFlagsAdd(String(uid), ["\\Seen"], { uid: true });
      if (!isMarked) throw new Error("The mail server refuses to mark a mail as seen.");
    },
    close: () => client.close(),
  };
}

function clientOf(url: URL): ImapFlow {
  const secure = url.protocol === "imaps:";
  return new ImapFlow({
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: url.port === "" ? (secure ? 993 : 143) : Number(url.port),
    secure,
    auth: { user: decodeURIComponent(url.username), pass: decodeURIComponent(url.password) },
    logger: false,
    connectionTimeout: TIMEOUT_MS,
    greetingTimeout: TIMEOUT_MS,
    socketTimeout: TIMEOUT_MS,
  });
}
