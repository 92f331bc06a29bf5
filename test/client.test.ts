import { randomBytes } from "node:crypto";
import t from "tap";
import { challengeOf } from "../core/account/pairing.ts";
import { startDns } from "../fixtures/dns.ts";
import { type ClientAnswer, Described, readOpenApi } from "../fixtures/document.ts";
import { makeSending, startMailing } from "../fixtures/email.ts";
import { eventually } from "../fixtures/service.ts";
import { startMailServer } from "../fixtures/smtp.ts";
import { typedClients } from "../fixtures/typed-client.ts";
import { startReceiver } from "../fixtures/webhook-receiver.ts";

/** Routes for browsers of people or for other services; they have tests of their own. */
const others = [
  ...["finishAuthorization", "connectCaldav", "listCalendars", "selectCalendars", "disconnectAccount"],
  ...["startPageCheckout", "eraseBuyer", "receiveStripeEvent", "receiveDeliveryReports", "receiveInboundMail"],
  "readLeadForm",
];

let example: { walk: (account: object) => Promise<object> };
let operations: { walk: (world: object) => Promise<void> };

t.test("typed clients fit the types of the document", async (t) => {
  const clients = await typedClients(t, "client-example", "client-walk");
  [example, operations] = clients as [typeof example, typeof operations];
});

t.test("the example of a typed client does what it says", async (t) => {
  const mail = await startMailServer(t);
  const service = await startMailing(t, mail.url, { env: { PUBLIC_PAGE_AGENT_ENABLED: "1" }, workers: true });
  const { handle } = await makeSending(service);
  const token = await service.token(`user_${handle}`);
  const came = await example.walk({
    url: service.url,
    token,
    handle,
    senderId: "sender_main",
    templateId: "tmpl_hello",
  });
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

t.test("a typed client calls a hundred operations, and every answer is as the document says", async (t) => {
  const [mail, dns, receiver] = [await startMailServer(t), await startDns(t), await startReceiver(t)];
  mail.refuseRecipient = (address) => (address.startsWith("later@") ? { code: 450, words: "later" } : undefined);
  const google = { GOOGLE_CLIENT_ID: "made-up", GOOGLE_CLIENT_SECRET: "made-up" };
  const env = { PUBLIC_PAGE_AGENT_ENABLED: "1", LOGIN_BUILTIN: "1", DNS_SERVERS: dns.address, ...google };
  const service = await startMailing(t, mail.url, { env, workers: true });
  const { handle } = await makeSending(service);
  const verifier = randomBytes(32).toString("base64url");
  const described = new Described();
  const answers: ClientAnswer[] = [];
  await operations.walk({
    ...{ url: service.url, handle, hook: receiver.url, token: await service.token(`user_${handle}`) },
    proof: { verifier, challenge: challengeOf(verifier) },
    codeOf: (address: string) =>
      eventually(() => {
        const { headers } = mail.mails.findLast(({ to }) => to[0] === address) ?? {};
        return /\d{6}/.exec(headers?.subject ?? "")?.[0];
      }),
    onAnswer: (answer: ClientAnswer) => void answers.push(answer),
  });
  t.same(
    answers.flatMap((one) => described.faults(one).map((fault) => `${one.method} ${one.path} ${fault}`)),
    [],
  );
  const { paths } = readOpenApi();
  const called = answers.map(({ method, path }) => paths[path]?.[method.toLowerCase()]?.operationId as string);
  const all = Object.values(paths).flatMap((verbs) => Object.values(verbs).map(({ operationId }) => operationId));
  t.ok(new Set(called).size >= 100, `${new Set(called).size} operations`);
  const uncalled = all.filter((one) => !called.includes(one)).sort();
  t.same(uncalled, [...others].sort(), "call the new ones in docs/client-walk.ts");
});
