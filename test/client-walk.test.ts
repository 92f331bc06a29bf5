import { randomBytes } from "node:crypto";
import t from "tap";
import { challengeOf } from "../core/account/pairing.ts";
import { type ClientAnswer, Described, readDocument } from "../fixtures/document.ts";
import { startDns } from "../fixtures/dns.ts";
import { makeSending, startMailing } from "../fixtures/email.ts";
import { eventually } from "../fixtures/service.ts";
import { startMailServer } from "../fixtures/smtp.ts";
import { typedClient } from "../fixtures/typed-client.ts";
import { startReceiver } from "../fixtures/webhook-receiver.ts";

t.setTimeout(120_000);

/** What only a person's browser or another service can ask for; tests of their own do. */
const others = [
  ...["finishAuthorization", "connectCaldav", "listCalendars", "selectCalendars", "disconnectAccount"],
  ...[
    "startPageCheckout",
    "eraseBuyer",
    "receiveStripeEvent",
    "receiveDeliveryReports",
    "receiveInboundMail",
    "readLeadForm",
  ],
];

t.test("a typed client calls a hundred operations, and every answer is as the document says", async (t) => {
  const { walk } = await typedClient<{ walk: (world: object) => Promise<void> }>(t, "client-walk");
  const [mail, dns, receiver] = [await startMailServer(t), await startDns(t), await startReceiver(t)];
  mail.refuseRecipient = (address) => (address.startsWith("later@") ? { code: 450, words: "later" } : undefined);
  const google = { GOOGLE_CLIENT_ID: "made-up", GOOGLE_CLIENT_SECRET: "made-up" };
  const env = { PUBLIC_PAGE_AGENT_ENABLED: "1", LOGIN_BUILTIN: "1", DNS_SERVERS: dns.address, ...google };
  const service = await startMailing(t, mail.url, { env, workers: true });
  const { handle } = await makeSending(service);
  const verifier = randomBytes(32).toString("base64url");
  const described = new Described();
  const answers: ClientAnswer[] = [];
  await walk({
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
  const { paths } = readDocument();
  const called = answers.map(({ method, path }) => paths[path]?.[method.toLowerCase()]?.operationId as string);
  const all = Object.values(paths).flatMap((verbs) => Object.values(verbs).map(({ operationId }) => operationId));
  t.ok(new Set(called).size >= 100, `${new Set(called).size} operations`);
  t.same(all.filter((one) => !called.includes(one)).sort(), [...others].sort());
});
