import t from "tap";
import { makeSending, startMailing } from "../fixtures/email.ts";
import { eventually } from "../fixtures/service.ts";
import { startMailServer } from "../fixtures/smtp.ts";
import { typedClient } from "../fixtures/typed-client.ts";

t.test("the example of a typed client fits the document and does what it says", async (t) => {
  const { walk } = await typedClient<{ walk: (account: object) => Promise<object> }>(t, "client-example");
  const mail = await startMailServer(t);
  const service = await startMailing(t, mail.url, { env: { PUBLIC_PAGE_AGENT_ENABLED: "1" }, workers: true });
  const { handle } = await makeSending(service);
  const token = await service.token(`user_${handle}`);
  const came = await walk({ url: service.url, token, handle, senderId: "sender_main", templateId: "tmpl_hello" });
  t.match(came, {
    page: { pageSlug: "pricing", status: "PUBLISHED" },
    answer: { answerMarkdown: /12 EUR a month/, degraded: false },
    lead: { status: "ACCEPTED" },
    message: { status: "QUEUED" },
    booking: { title: "Intro", status: "ACCEPTED" },
  });
  await eventually(() =>
    mail.mails.some(({ to, headers }) => to[0] === "ada@example.com" && headers.subject === "Hello Ada"),
  );
});
