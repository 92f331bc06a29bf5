import type { JobData } from "../../schemas/jobs.ts";
import { wordsOf } from "../../schemas/languages.ts";
import { digestTexts, readDigest, sendForHandle } from "../email/face.ts";
import { type Fact, layOut, type MailLayout } from "../engines/mail/mail.ts";
import { canonicalAddress, distinctAddresses } from "../platform/address.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";
import { readDue, recipientsOf } from "./booking-mails.ts";
import { bookingLayout } from "./booking-texts.ts";
import { eventTypeRecords } from "./catalog.ts";

/** Mails the owners of a handle once what the further mails of an hour would have told them, with the links to decide and to open. */
export async function sendBookingDigest(
  runtime: Runtime,
  { handle, round }: JobData<"scheduling.digest">,
): Promise<void> {
  const list = keys.bookingDigest(handle, round);
  const { found, others } = await readDigest(runtime.redis, list, (item) => newsOf(runtime, JSON.parse(item)));
  const news = found.flat();
  for (const to of distinctAddresses(news.map(({ owner }) => owner))) {
    const owner = canonicalAddress(to);
    const layouts = news.flatMap((one) => (canonicalAddress(one.owner) === owner ? one.layout : []));
    const content = layOut(digestLayout(layouts, others));
    await sendForHandle(runtime, { handle, to, content, key: `booking digest ${round} ${owner}` });
  }
}

/** What a mail would have told the owners. Obsolete mails have no news: the later change has its own. */
async function newsOf(runtime: Runtime, data: JobData<"scheduling.mail">) {
  const { handle, kind } = data;
  const stored = await readDue(runtime, data);
  if (stored === undefined) return undefined;
  const questions = (await eventTypeRecords.find(runtime, handle, stored.eventTypeId))?.bookingFields;
  const owners = (await recipientsOf(runtime, handle, { stored, kind })).filter(({ isOwner }) => isOwner);
  return owners.map((recipient) => ({
    owner: recipient.email,
    layout: bookingLayout({ stored, kind, recipient, questions, isUntold: true }),
  }));
}

function digestLayout(layouts: MailLayout[], others: number): MailLayout {
  const [common] = layouts as [MailLayout];
  const texts = digestTexts(wordsOf(common.language).mails.booking, layouts.length, others);
  return { ...common, ...texts, facts: layouts.flatMap(linksOf), actions: [] };
}

/** The links of a mail: to confirm and decline a request, else to open the booking. */
function linksOf({ subject, actions = [] }: MailLayout): Fact[] {
  return actions.slice(0, 2).map(([words, address]): Fact => [words, subject, address]);
}
