/** Starts the mail server and its page; port 0 picks a free port. */
export function startSink(options: {
  smtpPort: number;
  pagePort: number;
  folder: string;
}): Promise<{ smtpPort: number; pagePort: number; close(): Promise<void> }>;
