/** Starts the mail server and its page; 0 takes a free port. */
export function startSink(options: {
  smtpPort: number;
  pagePort: number;
  folder: string;
}): Promise<{ smtpPort: number; pagePort: number; close(): Promise<void> }>;
